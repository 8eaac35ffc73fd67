import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AiSdk } from "effect-agent/ai-sdk"
import * as Ours from "../../harness/differential/Ours.ts"
import { serve, stream } from "../providers/server.ts"
import { vendors } from "./vendors.ts"

describe.each(vendors)("$name", ({ fixtures, model }) => {
  it.live.each(fixtures)("answers $name as this vendor's own library reads it", ({ body, said }) =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).end(body))
      const ours = yield* Effect.provide(Ours.ask("any"), AiSdk.layer({ model: model(server.baseUrl) }))
      assert.deepStrictEqual(ours, said)
    })
  )

  it.live("takes an answer that breaks off for none", () =>
    Effect.gen(function* () {
      const body = fixtures[1]?.body ?? ""
      const half = body.slice(0, body.indexOf("\n\n", body.length * 0.7) + 2)
      const server = yield* serve((response) => stream(response).end(half))
      const error = yield* Ours.ask("any").pipe(
        Effect.flip,
        Effect.provide(AiSdk.layer({ model: model(server.baseUrl) }))
      )
      assert.strictEqual(error.reason._tag, "StreamTruncated")
    })
  )
})
