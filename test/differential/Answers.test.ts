import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Result } from "effect"
import { FetchHttpClient } from "effect/http"
import { serve, stream } from "../providers/server.ts"
import * as Ours from "../../harness/differential/Ours.ts"
import { wires } from "../../harness/differential/Wire.ts"

const apiKey = "a key of this test"

describe.each(wires)("$name", ({ fixtures, layer, model, sdk }) => {
  it.live.each(fixtures)("agrees with us on $name", ({ body, said }) =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).end(body))
      const { baseUrl } = server
      const theirs = yield* Effect.promise(() => sdk({ origin: new URL(baseUrl).origin, apiKey, model }))
      const ours = yield* Ours.ask(model).pipe(
        Effect.provide(layer({ baseUrl, apiKey: Redacted.make(apiKey) })),
        Effect.provide(FetchHttpClient.layer)
      )

      assert.deepStrictEqual(theirs, said)
      assert.deepStrictEqual(ours, said)
      const urls = server.requests.map(({ url }) => url)
      assert.deepStrictEqual(urls, [urls[0], urls[0]])
    })
  )

  it.live("agrees with us that an answer which breaks off is none", () =>
    Effect.gen(function* () {
      const body = fixtures[1]?.body ?? ""
      const half = body.slice(0, body.indexOf("\n\n", body.length * 0.7) + 2)
      const server = yield* serve((response) => stream(response).end(half))
      const { baseUrl } = server
      const theirs = yield* Effect.result(
        Effect.tryPromise(() => sdk({ origin: new URL(baseUrl).origin, apiKey, model }))
      )
      const ours = yield* Effect.flip(Ours.ask(model)).pipe(
        Effect.provide(layer({ baseUrl, apiKey: Redacted.make(apiKey) })),
        Effect.provide(FetchHttpClient.layer)
      )

      // One of the libraries has no opinion of its own: it shows that no chunk told why it was the last.
      assert.isTrue(Result.isFailure(theirs) || theirs.success.stopReason === "error")
      assert.strictEqual(ours.reason._tag, "StreamTruncated")
    })
  )
})
