import { assert, describe, it } from "@effect/vitest"
import { Message } from "effect-agent"
import type { AgentEvent } from "../../src/AgentEvent.ts"
import * as Outcome from "../../src/cli/Outcome.ts"
import type { Refusal } from "../../src/ModelEvent.ts"

const base = { runId: "r", seq: 1, timestamp: 0, turn: 1 }

const verdictOf = (refusal?: Refusal) => {
  const message = { ...Message.assistant(""), stopReason: "refusal" } as const
  const events: ReadonlyArray<AgentEvent> = [
    { ...base, _tag: "MessageEnd", message },
    { ...base, _tag: "ModelCallEnd", messageId: "m", durationMs: 1, ...(refusal && { refusal }) }
  ]
  const outcome = events.reduce(Outcome.fold, Outcome.initial)
  return Outcome.verdict({ ...outcome, status: "completed" }, {})
}

describe("the verdict on a refusal", () => {
  it("says why the model refused, as far as its vendor does, on one line without control characters", () => {
    assert.deepStrictEqual(
      verdictOf({
        category: "cyber",
        explanation: "It could\nenable \u001b[31mharm.",
        recommendedModel: "claude-opus-4-8"
      }),
      {
        code: 5,
        remark:
          "The model refused to answer. Its policy: cyber. It could enable \\u{1b}[31mharm. Its vendor recommends the model claude-opus-4-8."
      }
    )
    assert.deepStrictEqual(verdictOf({ category: "bio" }), {
      code: 5,
      remark: "The model refused to answer. Its policy: bio."
    })
    assert.deepStrictEqual(verdictOf(), { code: 5 })
  })
})
