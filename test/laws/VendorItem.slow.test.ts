/** An item of a vendor that an application puts into a conversation reaches that vendor alone, and every other one gets a request without it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Message } from "effect-agent"
import { OpenAi } from "effect-agent/providers"
import { serve } from "../providers/server.ts"
import { wires } from "./wires.ts"

const compaction = { type: "compaction", id: "cmp_1", encrypted_content: "sealed" }

describe("a compaction item of OpenAI", () => {
  for (const [name, wire] of Object.entries(wires)) {
    it.live(`is ${name === "Responses" ? "sent" : "left out"} over ${name} (row 15)`, () =>
      Effect.gen(function* () {
        const { baseUrl, requests } = yield* serve((response) =>
          response
            .writeHead(200, { "content-type": wire.contentType ?? "text/event-stream" })
            .end(wire.answer("ok"))
        )
        yield* Effect.gen(function* () {
          const agent = yield* Agent.make({ model: wire.model, messages: [OpenAi.item(compaction)] })
          assert.strictEqual((yield* agent.prompt("one")).text, "ok")
          yield* agent.prompt([OpenAi.item({ ...compaction, id: "cmp_2" }, "other"), Message.user("two")])
          assert.strictEqual((yield* agent.state.get).messages.length, 6)
        }).pipe(Effect.scoped, Effect.provide(wire.layer(new URL(baseUrl).origin)))
        const bodies = requests.map(({ body }): Readonly<Record<string, unknown>> => JSON.parse(body))
        assert.isFalse(JSON.stringify(bodies).includes("cmp_2"))
        if (name !== "Responses") return assert.isFalse(JSON.stringify(bodies).includes("sealed"))
        for (const { input } of bodies) {
          assert.deepStrictEqual(Array.isArray(input) && input[0], compaction)
          assert.strictEqual(JSON.stringify(input).split("sealed").length, 2)
        }
      })
    )
  }
})
