import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { NodeHttp } from "effect-agent/node"
import type { ServerResponse } from "node:http"
import * as Zlib from "node:zlib"
import { serve } from "../providers/server.ts"
import { bytes, play, told } from "./session.ts"
import { openAi, vendors } from "./vendors.ts"

const clients = [
  { client: "fetch", layer: FetchHttpClient.layer },
  { client: "NodeHttp", layer: NodeHttp.layer },
  { client: "undici", layer: NodeHttpClient.layerUndici },
  { client: "node:http", layer: NodeHttpClient.layerNodeHttp }
]

const encodings: ReadonlyArray<readonly [name: string, encode: (body: string) => Uint8Array]> = [
  ["gzip", (body) => Zlib.gzipSync(body)],
  ["x-gzip", (body) => Zlib.gzipSync(body)],
  ["deflate", (body) => Zlib.deflateSync(body)],
  ["br", (body) => Zlib.brotliCompressSync(body)],
  ["identity", (body) => Buffer.from(body)]
]

/** Begins a response whose body is encoded. */
const encoded = (response: ServerResponse, encoding: string, status = 200) =>
  response.writeHead(status, { "content-type": "text/event-stream", "content-encoding": encoding })

/** Gzip that is a thousand times as long when it is decoded, and ends after gigabytes, if somebody takes as much. */
const bomb = (response: ServerResponse, decoded: string, onPiece: () => number) => {
  const head = Buffer.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3)
  const piece = Zlib.deflateRawSync(decoded.repeat(Math.ceil((1 << 20) / decoded.length)), {
    finishFlush: Zlib.constants.Z_FULL_FLUSH
  })
  const more = () => {
    if (response.destroyed) return
    if (onPiece() > 3000) response.end()
    else if (response.write(piece)) setImmediate(more)
    else response.once("drain", more)
  }
  response.write(head)
  more()
}

describe.each(clients)("over $client", ({ layer }) => {
  it.live.each(vendors)("F041: an answer of $name is decoded", (vendor) =>
    Effect.gen(function* () {
      for (const [encoding, encode] of encodings) {
        const body = encode(bytes(vendor.answer({ text: ["Grüße, ", "Welt"] })))
        const server = yield* serve((response) => encoded(response, encoding).end(body))
        const { reason, text } = yield* play(vendor, server)
        assert.deepStrictEqual([text, reason], ["Grüße, Welt", undefined], encoding)
        // Nothing is asked for that could not be read.
        const asked = server.requests[0]?.headers["accept-encoding"] ?? ""
        for (const name of asked.toString().split(/[\s,]+/))
          assert.match(name, /^(gzip|deflate|br|identity|)$/)
      }
    }).pipe(Effect.provide(layer))
  )

  it.effect("F041: an answer in an encoding that nobody here reads is a failure, never noise", () =>
    Effect.gen(function* () {
      const noise = Buffer.from(Array.from({ length: 500 }, (_, index) => (index * 151) % 256))
      for (const encoding of ["compress", "aes128gcm", "x-secret, gzip"]) {
        for (const status of [200, 500]) {
          const server = yield* serve((response) => encoded(response, encoding, status).end(noise))
          const { reason } = yield* play(openAi, server)
          assert.strictEqual(told(reason), status === 200 ? "Protocol contentType" : "ServerError")
          assert.isUndefined(reason?.body)
          if (status === 200) assert.include(reason?.detail, encoding)
          else assert.strictEqual(reason?.detail, "HTTP 500")
        }
      }
    }).pipe(Effect.provide(layer))
  )

  it.live("F041: a bomb goes off at the cap on what is decoded, not behind it", () =>
    Effect.gen(function* () {
      const bombs: ReadonlyArray<readonly [decoded: string, status: number]> = [
        // One event without an end, comments without an end, and a failure whose words have none.
        ["a", 200],
        [": ping\n\n", 200],
        ["a", 400]
      ]
      for (const [decoded, status] of bombs) {
        let pieces = 0
        const server = yield* serve((response) => {
          encoded(response, "gzip", status)
          if (status === 200) response.socket?.setNoDelay(true)
          bomb(response, decoded, () => ++pieces)
        })
        const { reason } = yield* play(openAi, server)
        assert.strictEqual(told(reason), status === 200 ? "Protocol tooLarge" : "InvalidRequest")
        yield* server.idle
      }
    }).pipe(Effect.provide(layer))
  )
})
