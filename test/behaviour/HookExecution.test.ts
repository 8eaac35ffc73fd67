import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Latch, Layer } from "effect"
import { Agent, Hook, HookManager, Message, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "./invariants.ts"
import { agent, ofTag, outcomes, play, reasonOf, say, settle, tags, texts } from "./play.ts"

const done = ScriptedProvider.text("done")
const parallel = { hookExecution: "parallel" } as const

describe('observers with hookExecution "parallel"', () => {
  it.effect("start at once, each with its own time limit", () =>
    Effect.gen(function* () {
      const began: Array<number> = []
      const slow = (id: number) =>
        Hook.beforeModel(() =>
          Effect.andThen(
            Effect.sync(() => began.push(id)),
            Effect.sleep("3 seconds")
          )
        )
      const run = yield* Effect.forkChild(
        play([done], { hooks: [slow(1), slow(2), slow(3)], options: parallel })
      )
      yield* settle()
      assert.deepStrictEqual(began, [1, 2, 3])
      yield* TestClock.adjust("3 seconds")
      const { events, view } = yield* Fiber.join(run)
      assert.deepStrictEqual(ofTag(events, "HookError"), [])
      assert.strictEqual(view.status, "completed")
    })
  )

  it.effect("read the input as it was, and count in the order of registration, whichever ends first", () =>
    Effect.gen(function* () {
      const first = yield* Latch.make(false)
      const seen: Array<unknown> = []
      const { requests } = yield* play([done], {
        options: { ...parallel, modelOptions: { temperature: 0 } },
        hooks: [
          Hook.beforeModel(({ options }) =>
            Effect.as(first.await, { modified: { temperature: Number(options.temperature) + 1, topP: 0.1 } })
          ),
          Hook.beforeModel(({ options }) =>
            Effect.gen(function* () {
              seen.push(options)
              yield* first.open
              return { modified: { temperature: 0.5 } }
            })
          )
        ]
      })
      assert.deepStrictEqual(seen, [{ temperature: 0 }])
      assert.deepStrictEqual(requests[0]?.options, { temperature: 0.5, topP: 0.1 })
    })
  )

  it.effect("all run, although the first of several answers in place of the model", () =>
    Effect.gen(function* () {
      let asked = 0
      const { requests, view } = yield* play([], {
        options: parallel,
        hooks: [
          Hook.beforeModel(() => Effect.succeed({ skip: true, response: "first" })),
          Hook.beforeModel(() => Effect.sync(() => ({ skip: ++asked > 0, response: "second" })))
        ]
      })
      assert.strictEqual(asked, 1)
      assert.deepStrictEqual(texts(view.messages), ["hi", "first"])
      assert.strictEqual(requests.length, 0)
    })
  )

  it.effect("fail each for itself; the first failure ends the run in mode fail", () =>
    Effect.gen(function* () {
      const hooks = ["one", "two"].map((name) => Hook.afterModel(() => Effect.fail(name), { name }))
      const warned = yield* play([done], { hooks, options: parallel })
      assert.deepStrictEqual(
        ofTag(warned.events, "HookError").map(({ hookName }) => hookName),
        ["one", "two"]
      )
      const failed = yield* play([done], { hooks, options: { ...parallel, hookFailureMode: "fail" } })
      assert.deepInclude(reasonOf(failed.exit), { _tag: "HookFailed", hookName: "one" })
      assert.deepStrictEqual(Invariants.broken(failed.events), [])
    })
  )

  it.effect("do not keep a cancel waiting", () =>
    Effect.gen(function* () {
      const began = yield* Latch.make(false)
      const deaf = Hook.beforeModel(() => Effect.andThen(began.open, Effect.uninterruptible(Effect.never)))
      const script = yield* agent([done], { hooks: [deaf, deaf], ...parallel })
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* script.agent.cancel()
      yield* TestClock.adjust("200 millis")
      assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
    })
  )

  it.effect("are the only ones: guards, shapers and reviews run one after another", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const slow = <A>(name: string, output: A) =>
        Effect.gen(function* () {
          order.push(`${name} in`)
          yield* Effect.yieldNow
          order.push(`${name} out`)
          return output
        })
      const twice = (make: (name: string) => Hook.Runnable) => [make("1"), make("2")]
      yield* play([ScriptedProvider.toolCall("act", {}), done], {
        tools: [say("act")],
        options: parallel,
        hooks: [
          ...twice((name) => Hook.transformMessages(({ messages }) => slow(`shape ${name}`, messages))),
          ...twice((name) => Hook.approveTool(() => slow(`approve ${name}`, { approved: true }))),
          ...twice((name) => Hook.afterTool(() => slow(`review ${name}`, {})))
        ]
      })
      const inOrder = ["shape", "approve", "review", "shape"].flatMap((name) =>
        ["1 in", "1 out", "2 in", "2 out"].map((step) => `${name} ${step}`)
      )
      assert.deepStrictEqual(order, inOrder)
    })
  )
})

describe("HookManager.MaxHooksPerPoint", () => {
  const three = Layer.succeed(HookManager.MaxHooksPerPoint, 3)
  const hook = Hook.afterModel(() => Effect.void)
  const defectOf = (exit: Exit.Exit<unknown, unknown>) =>
    Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined

  it.effect(
    "is how many hooks a point of an agent may have, those of layers around it included (row 124)",
    () =>
      Effect.gen(function* () {
        const one = yield* Agent.make({ model: "m", hooks: [hook] }).pipe(
          Effect.provide([ScriptedProvider.layer([]), HookManager.layer(hook)]),
          Effect.provide(three)
        )
        const third = yield* one.hooks.register(hook)
        const fault = defectOf(yield* Effect.exit(one.hooks.register(hook)))
        assert.instanceOf(fault, HookManager.TooManyHooks)
        assert.include(String(fault), "Too many hooks for afterModel (max: 3). Unregister one, or raise")
        yield* one.hooks.register(Hook.beforeModel(() => Effect.void))
        yield* one.hooks.unregister(third)
        yield* one.hooks.register(hook)
        assert.strictEqual(one.hooks.list().length, 4)
      })
  )

  it.effect("counts those of a layer, and is Infinity by default (row 124)", () =>
    Effect.gen(function* () {
      const many = HookManager.layer(hook, hook, hook, hook)
      const fault = defectOf(yield* Effect.exit(Layer.build(Layer.provide(many, three))))
      assert.instanceOf(fault, HookManager.TooManyHooks)
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(Layer.build(many))))
    })
  )
})

describe("the guards of the calls of one answer", () => {
  /** Tools that note that they run. */
  const noting = (ran: Array<string>, ...names: ReadonlyArray<string>) =>
    names.map((name) =>
      Tool.make({
        name,
        description: "Notes that it runs.",
        execute: () => Effect.sync(() => ran.push(name))
      })
    )

  it.effect("are all asked before any tool of the answer runs (row 152)", () =>
    Effect.gen(function* () {
      const steps: Array<string> = []
      const note = (step: string) => Effect.sync(() => void steps.push(step))
      yield* play([ScriptedProvider.toolCalls({ name: "a", params: {} }, { name: "b", params: {} }), done], {
        tools: noting(steps, "a", "b"),
        hooks: [
          Hook.beforeTool(({ call }) => note(`before ${call.name}`)),
          Hook.approveTool(({ call }) => Effect.as(note(`approve ${call.name}`), { approved: true }))
        ]
      })
      assert.deepStrictEqual(steps, ["before a", "approve a", "before b", "approve b", "a", "b"])
    })
  )

  it.effect("keep nothing from running that was allowed before a hook failed the run", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const calls = ["a", "unknown", "b"].map((name) => ({ name, params: {} }))
      const { events, exit } = yield* play([ScriptedProvider.toolCalls(...calls), done], {
        tools: noting(ran, "a", "b"),
        // Asked about the unknown tool, while the guards are asked.
        hooks: [Hook.onError(() => Effect.fail("broke"))],
        options: { hookFailureMode: "fail" }
      })
      assert.deepStrictEqual(ran, ["a"])
      assert.sameMembers([...outcomes(events)], ["success", "unknownTool", "aborted"])
      assert.deepInclude(reasonOf(exit), { _tag: "HookFailed", hook: "onError" })
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("keep all of them from running that cancel the run", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const calls = ["a", "b"].map((name) => ({ name, params: {} }))
      const script = yield* agent([ScriptedProvider.toolCalls(...calls), done], {
        tools: noting(ran, "a", "b")
      })
      yield* script.agent.hooks.register(
        Hook.approveTool(({ call }) =>
          call.name === "b" ? Effect.asVoid(script.agent.cancel()) : Effect.succeed({ approved: true })
        )
      )
      const { newMessages, status } = yield* script.agent.prompt("hi")
      assert.strictEqual(status, "cancelled")
      assert.deepStrictEqual(ran, [])
      assert.notInclude(tags(script.events), "ToolInvoked")
      assert.strictEqual(newMessages.filter((message) => message.role === "toolResult").length, 2)
      assert.strictEqual(newMessages.map(Message.textOf).filter((text) => text.includes("aborted")).length, 2)
    })
  )
})
