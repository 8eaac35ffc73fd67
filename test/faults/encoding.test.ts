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
})
