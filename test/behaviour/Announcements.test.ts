import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Logger, Option, Stream } from "effect"
import { Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { agent, gated, ofTag, say, settle, tags } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string) => ScriptedProvider.toolCall(name, {})

describe("the sizes of the queues", () => {
  it.effect(
    "are told at once, though the run says nothing else, and together where they change together",
    () =>
      Effect.gen(function* () {
        const { began, go, tool } = yield* gated
        const script = yield* agent([call("gated"), done, done], { tools: [tool] })
        const read: Array<string> = []
        const run = yield* script.agent.stream("hi").pipe(
          Stream.runForEach(({ _tag }) => Effect.sync(() => void read.push(_tag))),
          Effect.forkChild
        )
        yield* began.await
        yield* settle()
        yield* script.agent.steer("hey")
        yield* Effect.promise(() => Promise.resolve())
        yield* settle()
        assert.deepStrictEqual(tags(script.events).at(-1), "QueueUpdate")
        assert.deepStrictEqual(read.at(-1), "QueueUpdate")
        yield* Effect.all([script.agent.followUp("a"), script.agent.queues.clear("all")])
        yield* Effect.promise(() => Promise.resolve())
        yield* settle()
        const sizes = ofTag(script.events, "QueueUpdate").map(({ followUp, steering }) => [
          steering,
          followUp
        ])
        assert.deepStrictEqual(sizes, [
          [1, 0],
          [0, 0]
        ])
        yield* go.open
        yield* Fiber.join(run)
        assert.strictEqual(ofTag(script.events, "QueueUpdate").length, 2)
      })
  )

  it.effect("are not told of an idle agent, nor after the end of a run", () =>
    Effect.gen(function* () {
      const script = yield* agent([done, done])
      yield* script.agent.followUp("before")
      yield* script.agent.queues.clear("all")
      yield* script.agent.subscribe(({ _tag }) =>
        _tag === "RunEnd" ? script.agent.followUp("later") : Effect.void
      )
      yield* script.agent.prompt("hi")
      yield* Effect.promise(() => Promise.resolve())
      yield* settle()
      assert.notInclude(tags(script.events), "QueueUpdate")
      assert.strictEqual(tags(script.events).at(-1), "RunEnd")
    })
  )
})

describe("a run that is resumed", () => {
  it.effect("says why, in its event and its report, and of the last time only", () =>
    Effect.gen(function* () {
      const script = yield* agent([call("a"), done], { tools: [say("a")] })
      const reasons = ["looked at", undefined]
      yield* Effect.flip(script.agent.resume("too early"))
      yield* script.agent.subscribe(({ _tag }) => {
        if (_tag === "RunPaused") return script.agent.resume(reasons.shift())
        return _tag === "ToolsDetected" || _tag === "TurnEnd" ? script.agent.pause("wait") : Effect.void
      })
      const { report } = yield* script.agent.prompt("hi")
      assert.deepStrictEqual(
        ofTag(script.events, "RunResumed").map((event) => ["reason" in event, event.reason]),
        [
          [true, "looked at"],
          [false, undefined]
        ]
      )
      const resumed = report.audit.filter(({ type }) => type === "execution_resumed")
      assert.deepStrictEqual(
        resumed.map(({ detail }) => detail),
        ["looked at", undefined]
      )
    })
  )

  it.effect("is held again if it is paused again while that is told", () =>
    Effect.gen(function* () {
      const script = yield* agent([done])
      let pauses = 0
      yield* script.agent.subscribe(({ _tag }) => {
        if (_tag === "RunPaused") return script.agent.resume(`${++pauses}`)
        return _tag === "RunStart" || (_tag === "RunResumed" && pauses < 3)
          ? script.agent.pause()
          : Effect.void
      })
      yield* script.agent.prompt("hi")
      const pairs = ["RunPaused", "RunResumed", "RunPaused", "RunResumed", "RunPaused", "RunResumed"]
      assert.deepStrictEqual(tags(script.events).slice(0, 8), ["RunStart", ...pairs, "TurnStart"])
      assert.deepStrictEqual(
        ofTag(script.events, "RunResumed").map(({ reason }) => reason),
        ["1", "2", "3"]
      )
    })
  )
})

describe("a started run that fails", () => {
  const logging = () => {
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(
      ({ cause, logLevel, message }) => void lines.push(`${logLevel} ${String(message)} ${String(cause)}`)
    )
    return { lines, layer: Logger.layer([logger], { mergeWithExisting: false }) }
  }

  it.effect("is logged where no fiber awaits it", () =>
    Effect.gen(function* () {
      for (const turn of [ScriptedProvider.die(new Error("BOOM")), ScriptedProvider.turn()]) {
        const { layer, lines } = logging()
        const script = yield* agent([turn], { emptyResponse: "fail" })
        const { runId } = yield* Effect.provide(script.agent.start("hi"), layer)
        yield* script.agent.waitForIdle
        yield* settle()
        assert.strictEqual(lines.length, 1)
        assert.include(lines[0], `Error Run ${runId} failed, and no fiber awaits its result`)
      }
    })
  )

  it.effect("is not logged where one does, nor when it ends well", () =>
    Effect.gen(function* () {
      const { layer, lines } = logging()
      const script = yield* agent([ScriptedProvider.die(new Error("BOOM")), done])
      const { result } = yield* Effect.provide(script.agent.start("hi"), layer)
      assert.isTrue(
        Option.isNone(yield* Effect.option(Effect.catchDefect(result, () => Effect.fail("died"))))
      )
      yield* Effect.provide(script.agent.start("hi"), layer)
      yield* script.agent.waitForIdle
      yield* settle()
      assert.deepStrictEqual(lines, [])
    })
  )
})

describe("progress", () => {
  it.effect("holds its tool up until the reader has room", () =>
    Effect.gen(function* () {
      let shown = 0
      const chatty = Tool.make({
        name: "chatty",
        description: "Shows much.",
        execute: () =>
          Effect.flatMap(Tool.ToolContext, ({ progress }) =>
            Effect.forEach(Array.from({ length: 500 }, String), (text) =>
              Effect.map(progress(Tool.output(text)), () => void shown++)
            )
          )
      })
      const script = yield* agent([call("chatty"), done], { tools: [chatty] })
      const go = yield* Latch.make(false)
      const began = yield* Latch.make(false)
      const reading = script.agent.stream("hi").pipe(
        Stream.rechunk(1),
        Stream.tap(({ _tag }) =>
          _tag === "ToolExecutionProgress" ? Effect.andThen(began.open, go.await) : Effect.void
        ),
        Stream.runDrain
      )
      const run = yield* Effect.forkChild(reading)
      yield* began.await
      yield* settle(500)
      assert.isAbove(shown, 0)
      assert.isBelow(shown, 200)
      yield* go.open
      yield* Fiber.join(run)
      assert.strictEqual(shown, 500)
    })
  )
})
