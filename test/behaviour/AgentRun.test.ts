import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Schema } from "effect"
import { Agent, Approval, Tool } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { agent } from "./play.ts"

describe("Agent.run", () => {
  it.effect("succeeds with the result, and with the output that a schema decodes", () =>
    Effect.gen(function* () {
      const { output, status, text } = yield* Agent.run("Review.", {
        model: "any",
        output: Schema.Struct({ grade: Schema.Int })
      })
      assert.strictEqual(status, "completed")
      assert.strictEqual(text, "")
      assert.deepStrictEqual(output, { grade: 2 })
    }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.toolCall("final_answer", { grade: 2 })])))
  )

  it.effect("fails with the faults of its options, and as its run fails", () =>
    Effect.gen(function* () {
      const invalid = yield* Effect.flip(Agent.run("hi", { model: "" }))
      assert.strictEqual(invalid._tag, "InvalidInput")
      const empty = yield* Effect.flip(Agent.run([], { model: "any" }))
      assert.strictEqual(empty._tag === "RunFailed" ? empty.reason._tag : empty._tag, "InvalidTranscript")
      const failed = yield* Effect.flip(
        Agent.run("hi", { model: "any", tools: [ping], limits: { maxTurns: 1 } })
      )
      assert.strictEqual(failed._tag === "RunFailed" && failed.reason._tag, "LimitExceeded")
    }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.toolCall("ping", {})])))
  )

  it.effect("cancels the run when it is interrupted, and releases the agent", () =>
    Effect.gen(function* () {
      const began = yield* Latch.make(false)
      const script = [ScriptedProvider.turn(Step.start, Step.run(began.open), Step.never)]
      const run = yield* Effect.forkChild(
        Effect.provide(Agent.run("hi", { model: "any" }), ScriptedProvider.layer(script))
      )
      yield* began.await
      yield* Fiber.interrupt(run)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(run)))
    })
  )
})

const ping = Tool.make({ name: "ping", description: "Answers.", execute: () => Effect.succeed("pong") })

describe("agent.answer", () => {
  it.effect("refuses the reply of the other kind, and the request stays open", () =>
    Effect.gen(function* () {
      const calls = ScriptedProvider.toolCalls(
        { name: "ping", params: {} },
        { name: "ask_user", params: { question: "Where?" } }
      )
      const script = yield* agent([calls, ScriptedProvider.text("done")], {
        tools: [ping, Approval.askUser()]
      })
      const made = script.agent
      const run = yield* Effect.forkChild(made.prompt("hi"))
      while ((yield* made.requests).approvals.length + (yield* made.requests).questions.length < 2)
        yield* Effect.yieldNow
      const { approvals, questions } = yield* made.requests
      const [{ approvalId, argumentsHash }] = [approvals[0] ?? assert.fail("no approval")]
      const [{ questionId }] = [questions[0] ?? assert.fail("no question")]
      const decision = { decision: "approve", argumentsHash } as const
      const decided = yield* Effect.flip(made.answer(questionId, decision))
      const answered = yield* Effect.flip(made.answer(approvalId, { answer: "Oslo" }))
      assert.deepStrictEqual([decided._tag, answered._tag], ["InvalidAnswer", "InvalidAnswer"])
      assert.deepStrictEqual(yield* made.requests, { approvals, questions })
      assert.deepStrictEqual(yield* made.answer(approvalId, decision), { decision: "approve" })
      assert.deepStrictEqual(yield* made.answer(questionId, { answer: "Oslo" }), { answer: "Oslo" })
      assert.strictEqual((yield* Fiber.join(run)).status, "completed")
    }).pipe(
      Effect.provide(
        Approval.layer({ rules: [Approval.ask("ping"), Approval.allow("ask_user")], asked: "wait" })
      )
    )
  )
})
