import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Approval } from "effect-agent"
import { Problem } from "effect-agent/api"

const given = { id: "approval_1", runId: "run_1", detail: "It has another answer." }

/** The errors of an answer in the core, and their problems. */
const answers = [
  [new Approval.RequestNotFound(given), 404, "request-not-found", "The run has no such approval or question"],
  [new Approval.AnswerConflict(given), 409, "answer-conflict", "The answer contradicts the request"],
  [new Approval.InvalidAnswer(given), 422, "answer-invalid", "The answer is not valid"]
] as const

describe("problems", () => {
  it.effect.each(answers)(
    "have the errors of an answer in their own form: %s",
    ([error, status, name, title]) =>
      Effect.gen(function* () {
        const problem = yield* Schema.encodeEffect(Problem.CannotAnswer)(error)
        const { detail, id: requestId, runId } = given
        const type = `urn:effect-agent:problem:${name}`
        assert.deepStrictEqual(problem, { type, status, title, detail, requestId, runId })
        const decode = Schema.decodeUnknownEffect(Problem.CannotAnswer)
        assert.deepStrictEqual(yield* decode(problem), error)
        const older = yield* decode({ type, status, title, runId })
        assert.strictEqual(older._tag, error._tag)
      })
  )
})
