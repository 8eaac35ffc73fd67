import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Latch, Layer } from "effect"
import { Agent, Hook, HookManager, Message, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "./invariants.ts"
import {
  agent,
  echo,
  hookAt,
  ofTag,
  outcomes,
  play,
  reasonOf,
  resultTexts,
  say,
  settle,
  tags,
  texts
} from "./play.ts"

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
})

describe('shapers with hookExecution "parallel"', () => {
  it.effect("run one after another, since each continues from what those before it returned", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const shaper = (name: string) =>
        Hook.transformMessages(({ messages }) =>
          Effect.gen(function* () {
            order.push(`${name} in`)
            yield* Effect.yieldNow
            order.push(`${name} out`)
            return messages
          })
        )
      yield* play([done], { options: parallel, hooks: [shaper("1"), shaper("2")] })
      assert.deepStrictEqual(order, ["1 in", "1 out", "2 in", "2 out"])
    })
  )
})

describe('guards with hookExecution "parallel"', () => {
  const call = ScriptedProvider.toolCall("echo", { n: 1 })

  const guarded = (...hooks: ReadonlyArray<Hook.Runnable>) =>
    play([call, done], { tools: [echo], hooks, options: parallel })

  it.effect("start at once, and an allow needs all of them (row 126)", () =>
    Effect.gen(function* () {
      const began: Array<number> = []
      const slow = (seconds: number) =>
        Hook.approveTool(() =>
          Effect.gen(function* () {
            began.push(seconds)
            yield* Effect.sleep(`${seconds} seconds`)
            return { approved: true }
          })
        )
      const run = yield* Effect.forkChild(guarded(slow(3), slow(1), slow(2)))
      yield* settle()
      assert.deepStrictEqual(began, [3, 1, 2])
      yield* TestClock.adjust("2 seconds")
      yield* settle()
      assert.isUndefined(run.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(outcomes((yield* Fiber.join(run)).events), ["success"])
    })
  )

  it.effect("deny by the first that does: it interrupts the others, which have not failed (row 126)", () =>
    Effect.gen(function* () {
      const denials = [
        [Hook.beforeTool(() => Effect.succeed({ block: true, reason: "no" })), "blocked"],
        [Hook.beforeTool(() => Effect.fail("no")), "rejected"],
        [Hook.approveTool(() => Effect.succeed({ approved: false, reason: "no" })), "rejected"],
        [Hook.approveTool(() => Effect.fail("no")), "rejected"]
      ] as const
      for (const [denial, outcome] of denials) {
        const interrupted: Array<number> = []
        const busy = (id: number) =>
          hookAt(denial.point, () =>
            Effect.never.pipe(Effect.onInterrupt(() => Effect.sync(() => interrupted.push(id))))
          )
        const { events, view } = yield* guarded(busy(1), denial, busy(2))
        assert.deepStrictEqual(outcomes(events), [outcome])
        assert.include(resultTexts(view.messages)[0], "no")
        // The guard after the denial has not begun.
        assert.deepStrictEqual(interrupted, [1])
        assert.isAtMost(ofTag(events, "HookError").length, 1)
      }
    })
  )

  it.effect("deny although one before allows, stands in or changes the params (row 126)", () =>
    Effect.gen(function* () {
      for (const output of [{}, { skip: true, result: "stood in" }, { params: { n: 2 } }]) {
        const run = yield* Effect.forkChild(
          guarded(
            Hook.beforeTool(() => Effect.succeed(output)),
            Hook.beforeTool(() => Effect.delay(Effect.succeed({ block: true }), "1 second"))
          )
        )
        yield* settle()
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(outcomes((yield* Fiber.join(run)).events), ["blocked"])
      }
      const skipped = yield* guarded(
        Hook.beforeTool(() => Effect.succeed({ params: { n: 2 } })),
        Hook.beforeTool(() => Effect.succeed({ skip: true, result: "stood in" }))
      )
      assert.deepStrictEqual(outcomes(skipped.events), ["skipped"])
    })
  )

  it.effect("get the params as they were; the last in the order of registration changes them (row 126)", () =>
    Effect.gen(function* () {
      const first = yield* Latch.make(false)
      const seen: Array<unknown> = []
      const changing = (n: number, before: Effect.Effect<unknown>) =>
        Hook.beforeTool(({ params }) =>
          Effect.gen(function* () {
            seen.push(params)
            yield* before
            return { params: { n } }
          })
        )
      const { events, view } = yield* guarded(
        changing(2, first.await),
        changing(3, first.open),
        Hook.approveTool(({ params }) => Effect.sync(() => ({ approved: seen.push(params) > 0 })))
      )
      assert.deepStrictEqual(seen, [{ n: 1 }, { n: 1 }, { n: 3 }])
      assert.deepStrictEqual(resultTexts(view.messages), ["3"])
      assert.deepInclude(ofTag(events, "ToolInvoked")[0], { params: { n: 3 }, modified: true })
      const wrong = yield* guarded(
        Hook.beforeTool(() => Effect.succeed({ params: { n: "many" } })),
        Hook.beforeTool(() => Effect.succeed({ params: { n: 3 } }))
      )
      assert.deepStrictEqual(outcomes(wrong.events), ["invalidArguments"])
    })
  )

  it.effect("deny within 100 milliseconds although another ignores its interruption (row 126)", () =>
    Effect.gen(function* () {
      for (const [point, denial] of [
        ["beforeTool", { block: true }],
        ["approveTool", { approved: false }]
      ] as const) {
        const began = yield* Latch.make(false)
        const deaf = hookAt(point, () => Effect.andThen(began.open, Effect.uninterruptible(Effect.never)))
        const run = yield* Effect.forkChild(
          guarded(
            deaf,
            hookAt(point, () => Effect.succeed(denial))
          )
        )
        yield* began.await
        yield* settle()
        yield* TestClock.adjust("100 millis")
        assert.include(["blocked", "rejected"], outcomes((yield* Fiber.join(run)).events)[0])
      }
    })
  )

  it.effect("count no failure of a guard that a denial interrupted, and still stop with the run", () =>
    Effect.gen(function* () {
      let asked = 0
      const waits = Hook.approveTool(() => (++asked < 4 ? Effect.never : Effect.succeed({ approved: true })))
      let isDenied = true
      const denies = Hook.approveTool(() => Effect.succeed({ approved: asked === 4 || !isDenied }))
      const script = yield* agent([call, call, call, call, done, call, done], {
        tools: [echo],
        hooks: [waits, denies],
        ...parallel
      })
      yield* script.agent.prompt("hi")
      assert.deepStrictEqual(outcomes(script.events), ["rejected", "rejected", "rejected", "success"])
      assert.deepStrictEqual(ofTag(script.events, "HookError"), [])
      asked = 0
      isDenied = false
      const run = yield* script.agent.start("hi")
      yield* settle()
      yield* run.cancel()
      assert.strictEqual((yield* run.result).status, "cancelled")
    })
  )
})

describe('reviews with hookExecution "parallel"', () => {
  const reviewed = (...hooks: ReadonlyArray<Hook.Runnable>) =>
    play([ScriptedProvider.toolCall("act", {}), done], { tools: [say("act")], hooks, options: parallel })

  it.effect("start at once with the result of the tool; the last in order wins a member (row 126)", () =>
    Effect.gen(function* () {
      const second = yield* Latch.make(false)
      const seen: Array<string> = []
      const review = (before: Effect.Effect<unknown>, output: Hook.Output<"afterTool">) =>
        Hook.afterTool(({ result }) =>
          Effect.gen(function* () {
            seen.push(result.content.map((block) => (block.type === "text" ? block.text : "")).join())
            yield* before
            return output
          })
        )
      const { events, view } = yield* reviewed(
        review(second.await, { content: [Message.text("one")], details: { by: 1 } }),
        review(second.open, { content: [Message.text("two")] })
      )
      assert.deepStrictEqual(seen, ["act", "act"])
      assert.deepStrictEqual(resultTexts(view.messages), ["two"])
      assert.deepInclude(ofTag(events, "ToolExecutionEnd")[0]?.result, { details: { by: 1 } })
    })
  )

  it.effect("make an error of the result if one fails, whatever one beside it returns (row 126)", () =>
    Effect.gen(function* () {
      const { events, view } = yield* reviewed(
        Hook.afterTool(() => Effect.fail("offline")),
        Hook.afterTool(() => Effect.succeed({ isError: false, content: [Message.text("fine")] }))
      )
      assert.deepStrictEqual(outcomes(events), ["error"])
      assert.include(resultTexts(view.messages)[0], "offline")
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
