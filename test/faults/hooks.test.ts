import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Logger, Schema, Stream } from "effect"
import { type AgentEvent, Hook, Message, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "../behaviour/invariants.ts"
import {
  agent,
  hookAt,
  ofTag,
  outcomes,
  play,
  reasonOf,
  resultTexts,
  say,
  tags,
  texts
} from "../behaviour/play.ts"

const call = ScriptedProvider.toolCall("act", { path: "here", list: [1] })
const done = ScriptedProvider.text("done")

/** A tool that counts how often it ran, and keeps what it was given. */
const acting = () => {
  const given: Array<unknown> = []
  const tool = Tool.fromJsonSchema({
    name: "act",
    description: "Does something that cannot be undone.",
    parameters: { type: "object" },
    execute: (params) => Effect.sync(() => given.push(params))
  })
  return { given, tool }
}

/** Every way to fail that a language has. */
const failures: Readonly<Record<string, () => Effect.Effect<never, unknown>>> = {
  throws: () => {
    throw new Error("planned")
  },
  "throws a string": () => {
    throw "planned"
  },
  rejects: () => Effect.promise(() => Promise.reject(new Error("planned"))),
  fails: () => Effect.fail("planned"),
  dies: () => Effect.die(new Error("planned"))
}

/** Something of another type than the point takes, as those without a compiler return it. */
const garbage = (value: unknown): Effect.Effect<any> => Effect.succeed(value)

describe("a hook", () => {
  for (const [fails, failure] of Object.entries(failures)) {
    for (const guard of [Hook.beforeTool(failure), Hook.approveTool(failure)]) {
      it.effect(`F091: that guards and ${fails} at ${guard.point} leaves the tool undone`, () =>
        Effect.gen(function* () {
          const { given, tool } = acting()
          const { events, view } = yield* play([call, done], { tools: [tool], hooks: [guard] })
          assert.deepStrictEqual(given, [])
          assert.deepStrictEqual(outcomes(events), ["rejected"])
          assert.include(resultTexts(view.messages)[0], "planned")
          assert.deepInclude(ofTag(events, "HookError")[0], { hook: guard.point, disabled: false })
          assert.strictEqual(view.status, "completed")
        })
      )
    }

    it.effect(`F091: that observes and ${fails} is reported, and the run goes on; or fails it, typed`, () =>
      Effect.gen(function* () {
        for (const observer of [
          Hook.beforeExecution(failure),
          Hook.beforeModel(failure),
          Hook.afterModel(failure),
          Hook.pauseCheck(failure),
          Hook.afterExecution(failure)
        ]) {
          const passed = yield* play([done], { hooks: [observer] })
          assert.deepInclude(ofTag(passed.events, "HookError")[0], { hook: observer.point, error: "planned" })
          assert.strictEqual(passed.view.status, "completed")
          const failed = yield* play([done], {
            hooks: [observer],
            options: { hookFailureMode: "fail" }
          })
          assert.deepInclude(reasonOf(failed.exit), { _tag: "HookFailed", hook: observer.point })
          assert.deepStrictEqual(Invariants.broken(failed.events), [])
        }
      })
    )
  }

  it.effect("F092: that hangs has five seconds; a guard has then rejected, an observer is passed over", () =>
    Effect.gen(function* () {
      const { given, tool } = acting()
      const began = yield* Latch.make(false)
      const hangs = () => Effect.andThen(began.open, Effect.uninterruptible(Effect.never))
      const run = yield* Effect.forkChild(
        play([call, done], { tools: [tool], hooks: [Hook.beforeTool(hangs)] })
      )
      yield* began.await
      yield* TestClock.adjust("5200 millis")
      const guarded = yield* Fiber.join(run)
      assert.deepStrictEqual([given, outcomes(guarded.events)], [[], ["rejected"]])
      assert.include(ofTag(guarded.events, "HookError")[0]?.error, "timed out after 5s")

      yield* began.close
      const other = yield* Effect.forkChild(play([done], { hooks: [Hook.afterModel(hangs)] }))
      yield* began.await
      yield* TestClock.adjust("5200 millis")
      const observed = yield* Fiber.join(other)
      assert.include(ofTag(observed.events, "HookError")[0]?.error, "timed out after 5s")
      assert.strictEqual(observed.view.status, "completed")
    })
  )

  it.effect("F092: that hangs, with a time limit or without one, does not keep a cancel waiting", () =>
    Effect.gen(function* () {
      for (const point of ["beforeTool", "approveTool", "beforeModel", "transformMessages"] as const) {
        const { given, tool } = acting()
        const began = yield* Latch.make(false)
        const hook = hookAt(point, () => Effect.andThen(began.open, Effect.uninterruptible(Effect.never)))
        const script = yield* agent([call, done], { tools: [tool], hooks: [hook] })
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* began.await
        yield* script.agent.cancel("enough")
        yield* TestClock.adjust("200 millis")
        assert.strictEqual((yield* Fiber.join(run)).status, "cancelled", hook.point)
        assert.deepStrictEqual(given, [])
        assert.deepStrictEqual(Invariants.broken(script.events), [])
      }
    })
  )

  const nonsense: ReadonlyArray<unknown> = ["yes", 1, null, [], true, { block: "yes" }, { approved: "no" }]
  for (const point of ["beforeTool", "approveTool"] as const) {
    it.effect(`F093: that guards at ${point} and returns what means nothing has not agreed`, () =>
      Effect.gen(function* () {
        const meaningless = nonsense.filter(
          // Keys of the other guard are extra keys here.
          (value) => point === "approveTool" || !Schema.is(Schema.Struct({ approved: Schema.String }))(value)
        )
        for (const value of meaningless) {
          const { given, tool } = acting()
          const { events } = yield* play([call, done], {
            tools: [tool],
            hooks: [hookAt(point, () => garbage(value))]
          })
          assert.deepStrictEqual([given, outcomes(events)], [[], ["rejected"]], JSON.stringify(value))
          assert.match(
            ofTag(events, "HookError")[0]?.error ?? "",
            /^(Expected|Missing key|The hook returned `)/
          )
        }
      })
    )
  }

  it.effect("F093: that observes and returns what means nothing changes nothing, and is reported", () =>
    Effect.gen(function* () {
      const hooks = [
        Hook.beforeExecution(() => garbage({ modified: { model: 7 } })),
        Hook.pauseCheck(() => garbage("pause")),
        Hook.beforeModel(() => garbage({ modified: { temperature: "hot", messages: [{ role: "nobody" }] } })),
        Hook.afterExecution(() => garbage({ modified: "done?" }))
      ]
      const { events, requests, view } = yield* play([done], { hooks })
      assert.deepStrictEqual(
        ofTag(events, "HookError").map(({ hook }) => hook),
        hooks.map(({ point }) => point)
      )
      assert.deepInclude(requests[0], { model: "m", options: {} })
      assert.strictEqual(view.status, "completed")
    })
  )

  it.effect("F093: that reviews a result and returns what means nothing makes an error of it", () =>
    Effect.gen(function* () {
      const { events } = yield* play([call, done], {
        tools: [say("act")],
        hooks: [Hook.afterTool(() => garbage({ content: "all is well" }))]
      })
      assert.deepStrictEqual(outcomes(events), ["error"])
      assert.include(resultTexts(ofTag(events, "MessageEnd").map(({ message }) => message))[0], "Expected")
    })
  )

  it.effect("F093: that shapes the request and returns what means nothing fails the run, typed", () =>
    Effect.gen(function* () {
      for (const make of [Hook.transformMessages, Hook.toModelMessages, Hook.steering]) {
        const hook = make(() => garbage([{ role: "user", content: "no list" }]))
        const { exit, requests } = yield* play([done], { hooks: [hook] })
        assert.deepInclude(reasonOf(exit), { _tag: "TransformFailed", hook: hook.point })
        assert.strictEqual(requests.length, 0)
      }
    })
  )

  it.effect("F093: that returns more than it should has failed, and nothing of it counts", () =>
    Effect.gen(function* () {
      const { given, tool } = acting()
      const { events, requests } = yield* play([call, done], {
        tools: [tool],
        hooks: [
          Hook.beforeModel(() => garbage({ modified: { temperature: 0.5, apiKey: "planted" } })),
          Hook.beforeModel(() => garbage({ modified: { temperature: 0.5 }, extra: 1 })),
          Hook.beforeTool(() => garbage({ params: { path: "there" }, approved: false, outcome: "blocked" })),
          Hook.afterTool(() => garbage({ isError: false, outcome: "error", toolCallId: "other" }))
        ]
      })
      assert.deepStrictEqual(given, [])
      assert.deepStrictEqual(requests[0]?.options, {})
      assert.deepStrictEqual(outcomes(events), ["rejected"])
    })
  )

  it.effect("F093: that changes what it is shown changes nothing, and has not agreed", () =>
    Effect.gen(function* () {
      const { given, tool } = acting()
      const changed = (change: (input: Hook.ToolInput) => unknown) =>
        Hook.beforeTool((input) => Effect.sync(() => void change(input)))
      for (const hook of [
        changed(({ params }) => Object.assign(Object(params), { path: "/etc" })),
        changed(({ call }) => Object.assign(call, { name: "other" })),
        changed(({ call }) => Object.assign(Object(call.params), { list: [] })),
        changed(({ message }) => Object.assign(message, { content: [] })),
        changed(({ messages }) => Object.assign(messages, { length: 0 }))
      ]) {
        const prompt = Message.user("hi")
        const { events, view } = yield* play([call, done], { prompt, tools: [tool], hooks: [hook] })
        assert.deepStrictEqual(outcomes(events), ["rejected"])
        const asked = ofTag(events, "ToolExecutionStart")[0]
        assert.deepInclude(asked, { toolName: "act", params: { path: "here", list: [1] } })
        assert.strictEqual(view.messages.length, 4)
        assert.isFalse(Object.isFrozen(prompt))
      }
      assert.deepStrictEqual(given, [])
    })
  )
})

describe("a listener", () => {
  it.effect("F094: that throws or is slow breaks neither the run nor what others hear, and is reported", () =>
    Effect.gen(function* () {
      const logged: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => {
        logged.push(String(message))
      })
      const script = yield* agent([call, done], { tools: [say("act")] })
      const slow: Array<AgentEvent.AgentEvent> = []
      yield* script.agent.subscribe(
        (event) => Effect.map(Effect.sleep("1 minute"), () => void slow.push(event)),
        { timeout: "2 minutes" }
      )
      yield* script.agent.subscribe(() => Effect.die(new Error("planned")))
      yield* script.agent.subscribe((): Effect.Effect<void> => {
        throw new Error("planned")
      })
      yield* script.agent.subscribe(() => Effect.andThen(Effect.yieldNow, Effect.die(new Error("planned"))))
      const after: Array<AgentEvent.AgentEvent> = []
      yield* script.agent.subscribe((event) => Effect.sync(() => void after.push(event)))
      const read = yield* Effect.forkChild(
        Stream.runCollect(Stream.takeUntil(script.agent.events, ({ _tag }) => _tag === "RunEnd")),
        { startImmediately: true }
      )
      const run = yield* Effect.forkChild(
        Effect.provide(script.agent.prompt("hi"), Logger.layer([logger], { mergeWithExisting: false }))
      )
      yield* TestClock.adjust("2 hours")
      const { newMessages, status } = yield* Fiber.join(run)
      assert.strictEqual(status, "completed")
      assert.deepStrictEqual(texts(newMessages), ["hi", "", "act", "done"])
      for (const heard of [slow, after, yield* Fiber.join(read)]) {
        assert.deepStrictEqual(tags(heard), tags(script.events))
      }
      // Once for each of the three, not once for each event.
      assert.strictEqual(logged.filter((line) => line.includes("failed, and may fail again")).length, 3)
    })
  )
})
