import { assert, describe, it } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import * as Requests from "../../src/durable/internal/SessionEntity.ts"

/** The bodies of requests as version 1 stored them. They do not change. */
const version1 = {
  Start: {
    prompt: [{ role: "user", id: "msg_1", content: [{ type: "text", text: "Go" }], timestamp: 1 }],
    options: { toolExecution: "sequential", modelOptions: { temperature: 1 } },
    when: "queue",
    replaces: "msg_0",
    idempotency: { key: "k", body: { prompt: "Go" } }
  },
  Send: {
    runId: "run_1",
    messages: [{ role: "user", id: "msg_1", content: [{ type: "text", text: "Hi" }], timestamp: 1 }]
  },
  Control: { runId: "run_1", reason: "why" },
  Approve: {
    runId: "run_1",
    approvalId: "apr_1",
    answer: { decision: "approve", params: { n: 1 }, reason: "fine", argumentsHash: "h" }
  },
  Answer: { runId: "run_1", questionId: "qst_1", answer: { answer: { city: "Oslo" } } },
  Create: { sessionId: "s", name: "Trip", model: "any", system: "Help.", tools: ["look"], cwd: "/work" },
  Fork: { entryId: "msg_1" },
  Update: { name: "Journey", model: "other" }
} as const

const schemas: Record<keyof typeof version1, Schema.Codec<unknown, unknown>> = {
  Start: Requests.Start,
  Send: Requests.Send,
  Control: Requests.Control,
  Approve: Requests.Approve,
  Answer: Requests.Answer,
  Create: Requests.Create,
  Fork: Requests.Fork,
  Update: Requests.Update
}

describe("stored requests", () => {
  it.effect.each(["Start", "Send", "Control", "Approve", "Answer", "Create", "Fork", "Update"] as const)(
    "of version 1 are read: %s",
    (name) =>
      Effect.gen(function* () {
        const body = version1[name]
        assert.deepStrictEqual(yield* Requests.decode(schemas[name], { v: 1, body }), body)
      })
  )

  it.effect("of a later version, and those that are damaged, are refused with the reason", () =>
    Effect.gen(function* () {
      for (const [v, body, words] of [
        [2, version1.Control, "it has the version 2, and this worker reads version 1"],
        [1, { reason: "why" }, "runId"]
      ] as const) {
        const error = yield* Effect.flip(Requests.decode(Requests.Control, { v, body }))
        assert.strictEqual(error._tag, "StorageUnavailable")
        assert.include(error.detail, words)
      }
    })
  )
})
