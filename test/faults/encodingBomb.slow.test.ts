import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { NodeHttp } from "effect-agent/node"
import type { ServerResponse } from "node:http"
import * as Zlib from "node:zlib"
import { serve } from "../providers/server.ts"
import { play, told } from "./session.ts"
import { openAi } from "./vendors.ts"

const clients = [
  { client: "fetch", layer: FetchHttpClient.layer },
  { client: "NodeHttp", layer: NodeHttp.layer },
  { client: "undici", layer: NodeHttpClient.layerUndici },
  { client: "node:http", layer: NodeHttpClient.layerNodeHttp }
]

/** Begins a response whose body is in gzip. */
const zipped = (response: ServerResponse, status: number) =>
  response.writeHead(status, { "content-type": "text/event-stream", "content-encoding": "gzip" })

/** Gzip that is a thousand times as long when it is decoded, and ends after gigabytes, if a reader takes that much. */
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

/** One event without an end, comments without an end, and a failure whose words have none. */
const bombs: ReadonlyArray<readonly [decoded: string, status: number]> = [
  ["a", 200],
  [": ping\n\n", 200],
  ["a", 400]
]

// Ours gets each of them; the others decode in their own way, so each of them gets one that reaches the cap.
describe.each(clients)("over $client", ({ client, layer }) => {
  it.live(
    "F041: a bomb goes off at the cap on what is decoded, not behind it",
    () =>
      Effect.gen(function* () {
        for (const [decoded, status] of client === "NodeHttp" ? bombs : bombs.slice(0, 1)) {
          let pieces = 0
          const server = yield* serve((response) => {
            zipped(response, status)
            if (status === 200) response.socket?.setNoDelay(true)
            bomb(response, decoded, () => ++pieces)
          })
          const { reason } = yield* play(openAi, server)
          assert.strictEqual(told(reason), status === 200 ? "Protocol tooLarge" : "InvalidRequest")
          yield* server.idle
        }
      }).pipe(Effect.provide(layer)),
    60_000
  )
})
