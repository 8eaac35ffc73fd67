import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { RunOptions, StopCondition, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { agent, failureOf, say } from "./play.ts"

const { all, any, hasToolCall, tokenCount, turnCount } = StopCondition
const usage = { input: 10, output: 5 }
const call = (name: string) => ScriptedProvider.toolCall(name, {}, { usage })
const done = ScriptedProvider.text("done", { usage })

/** How a run of four turns ends that calls `a`, `b` and `a`. */
const ended = Effect.fnUntraced(function* (stopWhen: StopCondition.StopCondition) {
  const script = yield* agent([call("a"), call("b"), call("a"), done], {
    tools: [say("a"), say("b")],
    stopWhen
  })
  const { newMessages, status, turns } = yield* script.agent.prompt("hi")
  assert.strictEqual(newMessages.filter(({ role }) => role === "toolResult").length, Math.min(turns, 3))
  return [status, turns]
})

describe("Stop conditions", () => {
  it.effect("end a run after a tool, after turns, after tokens, and after combinations of them", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* ended(hasToolCall("b")), ["stopped", 2])
      assert.deepStrictEqual(yield* ended(hasToolCall("x", "a")), ["stopped", 1])
      assert.deepStrictEqual(yield* ended(hasToolCall("x")), ["completed", 4])
      assert.deepStrictEqual(yield* ended(turnCount(3)), ["stopped", 3])
      assert.deepStrictEqual(yield* ended(tokenCount(30)), ["stopped", 2])
      assert.deepStrictEqual(yield* ended(any(turnCount(3), hasToolCall("b"))), ["stopped", 2])
      assert.deepStrictEqual(yield* ended(all(turnCount(2), hasToolCall("a"))), ["stopped", 3])
      assert.deepStrictEqual(yield* ended(all(turnCount(1), any(hasToolCall("b"), tokenCount(999)))), [
        "stopped",
        2
      ])
    })
  )

  it.effect("leave a run its own end", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* ended(turnCount(4)), ["completed", 4])
      const stop = say("stop", Tool.output("over", { terminate: true }))
      const terminated = yield* agent([call("stop")], { tools: [stop], stopWhen: hasToolCall("stop") })
      assert.strictEqual((yield* terminated.agent.prompt("hi")).status, "terminated")
      const typed = yield* agent([ScriptedProvider.toolCall("final_answer", { n: 1 })])
      const output = Schema.Struct({ n: Schema.Int })
      const result = yield* typed.agent.prompt("hi", { output, stopWhen: turnCount(1) })
      assert.deepStrictEqual([result.status, result.output], ["completed", { n: 1 }])
    })
  )

  it.effect("leave queued messages for the next run, and come before the limit of turns", () =>
    Effect.gen(function* () {
      const script = yield* agent([call("a"), done, done], {
        tools: [say("a")],
        stopWhen: turnCount(1),
        limits: { maxTurns: 1 }
      })
      yield* script.agent.followUp("more")
      assert.strictEqual((yield* script.agent.prompt("hi")).status, "stopped")
      assert.deepStrictEqual(yield* script.agent.queues.sizes, { steering: 0, followUp: 1 })
      yield* script.agent.update({ stopWhen: null })
      const exit = yield* Effect.exit(script.agent.prompt("again"))
      assert.isTrue(Exit.isSuccess(exit) || failureOf(exit)?.reason._tag === "LimitExceeded")
    })
  )

  it.effect("are data, which JSON keeps and the schema checks", () =>
    Effect.gen(function* () {
      const options: RunOptions.RunOptions = {
        model: "m",
        stopWhen: any(hasToolCall("a"), all(turnCount(2), tokenCount(9)))
      }
      const codec = Schema.toCodecJson(RunOptions.RunOptions)
      const json: unknown = JSON.parse(JSON.stringify(yield* Schema.encodeEffect(codec)(options)))
      assert.deepStrictEqual(yield* Schema.decodeUnknownEffect(codec)(json), options)
      const exit = yield* Effect.exit(ended(turnCount(0)))
      assert.include(String(exit), "stopWhen")
    })
  )
})
