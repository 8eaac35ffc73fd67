/**
 * What a client says of a connection that failed, as a reason of ours. Runtimes and clients differ in the wrapping; the
 * code is somewhere down the chain of causes.
 */
import * as Duration from "effect/Duration"
import { hasProperty } from "effect/Predicate"
import type { Reason } from "../../ProviderError.ts"
import { InvalidRequest, StreamStalled, Transport } from "../../ProviderError.ts"
import type { Redact } from "./secrets.ts"
import * as Wording from "./wording.ts"

/**
 * Of the URL only the host is told: the rest may hold a key. `isFresh`: nothing had come over the socket before, so what
 * did come was the start of an answer.
 */
export const reason = (cause: unknown, url: string, redact: Redact, isFresh = false): Reason => {
  const chain = causes(cause)
  const code = chain.map(codeOf).find((found) => found !== undefined) ?? ""
  const last = chain.findLast((link) => link instanceof Error && link.message !== "")
  const told = last instanceof Error ? last.message : String(last ?? "The connection failed")
  // White space in a secret is part of it.
  const message = redact(Wording.start(told)).replace(/\s+/g, " ").trim().slice(0, 300)
  const host = URL.canParse(url) ? new URL(url).host : "no URL"
  const detail = `${message.includes(code) ? message : `${code}: ${message}`} (${host})`
  if (chain.some(isOurs) || /^ERR_INVALID_|invalid header|bad port/i.test(`${code} ${message}`))
    return new InvalidRequest({ detail })
  const stall = stalls.get(code)
  if (stall !== undefined) return new StreamStalled({ kind: stall, detail, after: Duration.seconds(300) })
  const isBad = chain.some(isBadHttp) || (isFresh && chain.some(isCutHead))
  const kind = isBad ? "badHttp" : kindOf(code)
  return new Transport({ kind, detail, ...(code === "" ? {} : { code }) })
}

type Kind = Transport["kind"]

const kindOf = (code: string): Kind => kinds.find(([pattern]) => pattern.test(code))?.[1] ?? "reset"

const kinds: ReadonlyArray<readonly [RegExp, Kind]> = [
  [/^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, "refused"],
  [/^(?:ENOTFOUND|EAI_\w+)$/, "dns"],
  [
    /^(?:ERR_SSL_|ERR_TLS_|EPROTO|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(?:VERIFY|GET)_|HOSTNAME_MISMATCH)/,
    "tls"
  ],
  [/^(?:HPE_|UND_ERR_(?:HEADERS_OVERFLOW|RES_)|Z_|ERR_HTTP_)/, "badHttp"]
]

/** undici's own limits, for those who set ours higher. */
const stalls: ReadonlyMap<string, StreamStalled["kind"]> = new Map([
  ["UND_ERR_HEADERS_TIMEOUT", "firstByte"],
  ["UND_ERR_BODY_TIMEOUT", "idle"]
])

/** undici's parser, which does not always give a code. */
const isBadHttp = (link: unknown): boolean => link instanceof Error && link.name === "HTTPParserError"

/** undici: the server closed, after it had said something. */
const isCutHead = (link: unknown): boolean =>
  codeOf(link) === "UND_ERR_SOCKET" &&
  hasProperty(link, "socket") &&
  hasProperty(link.socket, "bytesRead") &&
  typeof link.socket.bytesRead === "number" &&
  link.socket.bytesRead > 0

/** A request that no client could send. */
const isOurs = (link: unknown): boolean =>
  hasProperty(link, "_tag") && (link._tag === "InvalidUrlError" || link._tag === "EncodeError")

/** The error, what it wraps, and of several attempts the first; as deep as errors are ever nested. */
const causes = (cause: unknown, depth = 0): ReadonlyArray<unknown> => {
  if (cause === undefined || cause === null || depth > 8) return []
  const inner = hasProperty(cause, "reason")
    ? cause.reason
    : hasProperty(cause, "cause") && cause.cause !== undefined
      ? cause.cause
      : hasProperty(cause, "errors") && Array.isArray(cause.errors)
        ? cause.errors[0]
        : undefined
  return [cause, ...causes(inner, depth + 1)]
}

const codeOf = (link: unknown): string | undefined =>
  hasProperty(link, "code") && typeof link.code === "string" && link.code !== "" ? link.code : undefined
