/**
 * Certificates that sign themselves, made when they are needed: one in a file would expire, or look like a secret.
 */
import { generateKeyPairSync, sign } from "node:crypto"

/** For 127.0.0.1, valid for a day from `from` on. */
export const certificate = (from: Date) => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const until = new Date(from.getTime() + 24 * 60 * 60 * 1000)
  const body = sequence(
    tagged(0xa0, integer(2)),
    integer(1),
    ed25519,
    name,
    sequence(time(from), time(until)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(addressExtension))
  )
  const signature = sign(null, body, privateKey)
  const der = sequence(body, ed25519, tagged(0x03, Buffer.of(0), signature))
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }),
    cert: `-----BEGIN CERTIFICATE-----\n${der.toString("base64")}\n-----END CERTIFICATE-----\n`
  }
}

/** A value of ASN.1, as DER writes it: https://www.itu.int/rec/T-REC-X.690 */
const tagged = (tag: number, ...parts: ReadonlyArray<Uint8Array>): Buffer => {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.of(tag, ...size), content])
}

const sequence = (...parts: ReadonlyArray<Uint8Array>) => tagged(0x30, ...parts)
const integer = (value: number) => tagged(0x02, Buffer.of(value))
const identifier = (...bytes: ReadonlyArray<number>) => tagged(0x06, Buffer.of(...bytes))

const time = (date: Date) => tagged(0x18, Buffer.from(`${date.toISOString().replace(/[-:T]|\.\d+/g, "")}`))

const ed25519 = sequence(identifier(0x2b, 0x65, 0x70))
const commonName = sequence(identifier(0x55, 0x04, 0x03), tagged(0x0c, Buffer.from("a test")))
const name = sequence(tagged(0x31, commonName))
/** The subject's alternative name: an address. */
const addressExtension = sequence(
  identifier(0x55, 0x1d, 0x11),
  tagged(0x04, sequence(tagged(0x87, Buffer.of(127, 0, 0, 1))))
)
