import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, type Schema, type Scope } from "effect"
import {
  Agent,
  ContextManager,
  Hook,
  HookManager,
  Loop,
  Message,
  type Provider,
  ToolRegistry
} from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { agent, echo, hookAt, ofTag, outcomes, play, reasonOf, resultTexts, say, status } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string) => ScriptedProvider.toolCall(name, {})

/** A manager that an application wrote itself, with no more than the public type of the service asks for. */
const handWritten = (...hooks: ReadonlyArray<HookManager.Registered>): HookManager.HookManager => ({
  list: () => hooks,
  register: () => Effect.die("This manager takes no hooks"),
  unregister: () => Effect.succeed(false),
  enable: () => Effect.succeed(false),
  disable: () => Effect.succeed(false)
})

const provided = (manager: HookManager.HookManager) => Layer.succeed(HookManager.HookManager, manager)

/** A hook of such a manager, which notes when it is called. */
const noting = <P extends Hook.Point>(
  asked: Array<string>,
  name: string,
  point: P,
  output: Effect.Effect<Hook.Output<P> | void, string> = Effect.void
): HookManager.Registered<P> => ({
  id: name,
  point,
  isEnabled: true,
  run: () => Effect.andThen(noted(asked, name), output)
})
const noted = (asked: Array<string>, name: string) => Effect.sync(() => void asked.push(name))

describe("A HookManager of the application's own", () => {
  it.effect("is asked by a loop", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const provider = yield* ScriptedProvider.make([done])
      const { status } = yield* Loop.run("hi", { messages: [] }, { model: "m" }).pipe(
        Effect.provide([
          provider.layer,
          ToolRegistry.layer(),
          provided(handWritten(noting(asked, "theirs", "beforeModel")))
        ])
      )
      assert.strictEqual(status, "completed")
      assert.deepStrictEqual(asked, ["theirs"])
    })
  )

  it.effect(
    "is asked before the hooks of an agent within it, which have no point in common or the same",
    () =>
      Effect.gen(function* () {
        const asked: Array<string> = []
        const provider = yield* ScriptedProvider.make([done])
        const manager = handWritten(
          noting(asked, "their beforeModel", "beforeModel"),
          noting(asked, "their afterModel", "afterModel")
        )
        const result = yield* Effect.gen(function* () {
          const agent = yield* Agent.make({
            model: "m",
            hooks: [
              Hook.beforeExecution(() => noted(asked, "own beforeExecution")),
              Hook.afterModel(() => noted(asked, "own afterModel"))
            ]
          })
          return yield* agent.prompt("hi")
        }).pipe(Effect.provide([provider.layer, provided(manager)]))
        assert.strictEqual(result.status, "completed")
        assert.deepStrictEqual(asked, [
          "own beforeExecution",
          "their beforeModel",
          "their afterModel",
          "own afterModel"
        ])
      })
  )

  it.effect("is asked by an agent without hooks, and by one whose layers lie between", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const provider = yield* ScriptedProvider.make([done, done])
      const manager = handWritten(noting(asked, "theirs", "afterModel"))
      const prompted = Effect.gen(function* () {
        return yield* (yield* Agent.make({ model: "m" })).prompt("hi")
      })
      yield* prompted.pipe(Effect.provide([provider.layer, provided(manager)]))
      assert.deepStrictEqual(asked, ["theirs"])
      yield* prompted.pipe(
        Effect.provide(HookManager.layer(Hook.afterModel(() => noted(asked, "layer")))),
        Effect.provide([provider.layer, provided(manager)])
      )
      assert.deepStrictEqual(asked, ["theirs", "theirs", "layer"])
    })
  )

  it.effect("decides first about a call: the agent's guards are not asked about one it refused", () =>
    Effect.gen(function* () {
      const refusing = [
        [Effect.succeed({ block: true }), "blocked"],
        [Effect.fail("offline"), "rejected"]
      ] as const
      for (const [output, outcome] of refusing) {
        const asked: Array<string> = []
        const manager = provided(handWritten(noting(asked, "theirs", "beforeTool", output)))
        const within = HookManager.layer(
          Hook.beforeTool(() => noted(asked, "own")),
          Hook.approveTool(() => Effect.as(noted(asked, "approval"), { approved: true }))
        )
        const { events } = yield* play([call("act"), done], {
          tools: [say("act")],
          layer: Layer.provide(within, manager)
        })
        assert.deepStrictEqual(outcomes(events), [outcome])
        assert.deepStrictEqual(asked, ["theirs"])
        assert.strictEqual(status(events), "completed")
      }
    })
  )

  it.effect("changes params that the agent's guards then see, and they decide what it let pass", () =>
    Effect.gen(function* () {
      const shown: Array<unknown> = []
      const renamed = noting(
        [],
        "theirs",
        "approveTool",
        Effect.succeed({ approved: true, params: { to: "them" } })
      )
      const within = HookManager.layer(
        Hook.approveTool(({ params }) =>
          Effect.sync(() => {
            shown.push(params)
            return { approved: false, reason: "not to them" }
          })
        )
      )
      const { events } = yield* play([call("act"), done], {
        tools: [say("act")],
        layer: Layer.provide(within, provided(handWritten(renamed)))
      })
      assert.deepStrictEqual(outcomes(events), ["rejected"])
      assert.strictEqual(shown.length, 1)
    })
  )
})

describe("Managers within each other", () => {
  it.effect("name each hook in HookError by an id that no other has, and count its failures for itself", () =>
    Effect.gen(function* () {
      const broken = () => Hook.afterModel(() => Effect.fail("broke"))
      const { events } = yield* play([call("act"), call("act"), call("act"), done], {
        tools: [say("act")],
        layer: Layer.provide(HookManager.layer(broken()), HookManager.layer(broken()))
      })
      const errors = ofTag(events, "HookError")
      assert.deepStrictEqual(
        errors.map(({ consecutiveErrors }) => consecutiveErrors),
        [1, 1, 2, 2, 3, 3]
      )
      assert.strictEqual(new Set(errors.map(({ hookId }) => hookId)).size, 2)
    })
  )

  it.effect("ask a hook that an outer one registers at the same point from the next point on", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const provider = yield* ScriptedProvider.make([call("act"), done])
      yield* Effect.gen(function* () {
        const inner: Array<HookManager.HookManager> = []
        const late = Hook.afterModel(({ turn }) => noted(asked, `late ${turn}`))
        const outer = HookManager.layer(
          Hook.afterModel(({ turn }) =>
            Effect.gen(function* () {
              asked.push(`outer ${turn}`)
              const [manager] = inner
              if (turn === 1 && manager !== undefined) yield* manager.register(late)
            })
          )
        )
        yield* Effect.gen(function* () {
          const agent = yield* Agent.make({ model: "m", tools: [say("act")] })
          inner.push(agent.hooks)
          yield* agent.prompt("hi")
        }).pipe(Effect.provide(outer))
      }).pipe(Effect.provide(provider.layer))
      assert.deepStrictEqual(asked, ["outer 1", "outer 2", "late 2"])
    })
  )

  it.effect("ask no further guard where the outer one gave params that the tool does not take", () =>
    Effect.gen(function* () {
      for (const point of ["beforeTool", "approveTool"]) {
        const asked: Array<string> = []
        const guard = (name: string, params: Schema.Json) =>
          point === "beforeTool"
            ? Hook.beforeTool(() => Effect.as(noted(asked, name), { params }))
            : Hook.approveTool(() => Effect.as(noted(asked, name), { approved: true, params }))
        const { events } = yield* play([ScriptedProvider.toolCall("echo", { n: 1 }), done], {
          tools: [echo],
          layer: Layer.provide(
            HookManager.layer(guard("inner", { n: 2 })),
            HookManager.layer(guard("outer", { n: "many" }), guard("beside", { n: 3 }))
          )
        })
        assert.deepStrictEqual(asked, ["outer"])
        assert.deepStrictEqual(outcomes(events), ["invalidArguments"])
      }
    })
  )
})

describe("a hook that is switched off", () => {
  it.effect("is not called from its next point on, until it is switched on again, and keeps its place", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const { agent: one } = yield* agent([done, done, done])
      const first = yield* one.hooks.register(Hook.afterModel(() => noted(asked, "first")))
      yield* one.hooks.register(Hook.afterModel(() => noted(asked, "second")))
      assert.isTrue(yield* one.hooks.disable(first))
      yield* one.prompt("1")
      assert.deepStrictEqual(asked, ["second"])
      assert.deepStrictEqual(
        one.hooks.list().map(({ isEnabled, point }) => [point, isEnabled]),
        [
          ["afterModel", false],
          ["afterModel", true]
        ]
      )
      assert.isTrue(yield* one.hooks.enable(first))
      yield* one.prompt("2")
      assert.deepStrictEqual(asked, ["second", "first", "second"])
      assert.isTrue(yield* one.hooks.unregister(first))
      assert.isFalse(yield* one.hooks.enable(first))
      assert.isFalse(yield* one.hooks.disable("other"))
    })
  )

  it.effect("decides nothing as a guard", () =>
    Effect.gen(function* () {
      const { agent: one, events } = yield* agent([call("act"), done], { tools: [say("act")] })
      const guard = yield* one.hooks.register(Hook.beforeTool(() => Effect.fail("offline")))
      yield* one.hooks.disable(guard)
      yield* one.prompt("hi")
      assert.deepStrictEqual(outcomes(events), ["success"])
    })
  )
})

describe("a hook that fails several times in a row", () => {
  const calls = (count: number) => [...Array.from({ length: count }, () => call("act")), done]
  const endless = { limits: { maxIdenticalToolCalls: Infinity } }

  it.effect(
    "is disabled after maxConsecutiveHookErrors failures: an observer, a guard, a review (row 128)",
    () =>
      Effect.gen(function* () {
        for (const point of ["afterModel", "beforeTool", "afterTool"] as const) {
          for (const maxConsecutiveHookErrors of [1, 2, Infinity, undefined]) {
            const asked: Array<string> = []
            const { events, view } = yield* play(calls(4), {
              tools: [say("act")],
              hooks: [hookAt(point, () => Effect.andThen(noted(asked, point), Effect.fail("broke")))],
              options:
                maxConsecutiveHookErrors === undefined ? endless : { ...endless, maxConsecutiveHookErrors }
            })
            const max = maxConsecutiveHookErrors ?? 3
            assert.strictEqual(asked.length, Math.min(max, point === "afterModel" ? 5 : 4), `${point} ${max}`)
            assert.deepStrictEqual(
              ofTag(events, "HookError").map(({ consecutiveErrors, disabled }) => [
                consecutiveErrors,
                disabled
              ]),
              asked.map((_, index) => [index + 1, index + 1 >= max])
            )
            if (point === "afterModel") continue
            assert.isFalse(outcomes(events).includes("success"))
            if (max === 2)
              assert.include(resultTexts(view.messages)[3], "it is disabled after 2 failures in a row")
          }
        }
      })
  )

  it.effect("is called again in the same run, from 0 failures, when enable names it (row 128)", () =>
    Effect.gen(function* () {
      for (const point of ["beforeModel", "approveTool"] as const) {
        const asked: Array<string> = []
        const one = yield* agent(calls(7), {
          tools: [say("act")],
          hooks: [hookAt(point, () => Effect.andThen(noted(asked, point), Effect.fail("broke")))],
          ...endless
        })
        const [hook] = one.agent.hooks.list()
        yield* one.agent.subscribe((event) =>
          event._tag === "TurnEnd" && event.turn === 4
            ? Effect.asVoid(one.agent.hooks.enable(hook?.id ?? ""))
            : Effect.void
        )
        yield* one.agent.prompt("hi")
        assert.deepStrictEqual(
          ofTag(one.events, "HookError").map(({ consecutiveErrors, turn }) => [turn, consecutiveErrors]),
          [1, 2, 3, 5, 6, 7].map((turn, index) => [turn, (index % 3) + 1])
        )
        assert.strictEqual(asked.length, 6)
      }
    })
  )

  it.effect("has failures that enable forgets before it is disabled, also while it runs (row 128)", () =>
    Effect.gen(function* () {
      const one = yield* agent(calls(4), { tools: [say("act")], ...endless })
      const id: string = yield* one.agent.hooks.register(
        Hook.afterModel(({ turn }) =>
          Effect.andThen(turn === 3 ? one.agent.hooks.enable(id) : Effect.void, Effect.fail("broke"))
        )
      )
      yield* one.agent.prompt("hi")
      assert.deepStrictEqual(
        ofTag(one.events, "HookError").map(({ consecutiveErrors }) => consecutiveErrors),
        [1, 2, 3, 1, 2]
      )
    })
  )

  it.effect("is listed by the agent until enable or the next run, hooks of layers included (row 128)", () =>
    Effect.gen(function* () {
      let isBroken = true
      const broken = (name: string) =>
        Hook.afterModel(() => (isBroken ? Effect.fail("broke") : Effect.void), { name })
      const one = yield* agent([...calls(2), done], {
        tools: [say("act")],
        hooks: [broken("own"), Hook.afterModel(() => Effect.void, { name: "fine" })],
        maxConsecutiveHookErrors: 2
      }).pipe(Effect.provide(HookManager.layer(broken("around"))))
      const names = Effect.map(one.agent.disabledHooks, (all) => all.map(({ name }) => name))
      assert.deepStrictEqual(yield* names, [])
      const during: Array<unknown> = []
      yield* one.agent.subscribe(({ _tag }) =>
        _tag === "TurnEnd" ? Effect.map(names, (all) => void during.push(all)) : Effect.void
      )
      yield* one.agent.prompt("hi")
      const both = ["around", "own"]
      assert.deepStrictEqual(during, [[], both, both])
      assert.deepStrictEqual(yield* names, both)
      const own = one.agent.hooks.list().find(({ name }) => name === "own")
      assert.isTrue(own?.isEnabled)
      yield* one.agent.hooks.enable(own?.id ?? "")
      assert.deepStrictEqual(yield* names, ["around"])
      isBroken = false
      yield* one.agent.prompt("hi")
      assert.deepStrictEqual(yield* names, [])
    })
  )
})

describe("the name of a hook", () => {
  const name = "policy"

  it.effect("is in HookError, in the report, and in the errors of the run", () =>
    Effect.gen(function* () {
      const observer = yield* play([done], { hooks: [Hook.afterModel(() => Effect.fail("broke"), { name })] })
      assert.deepInclude(ofTag(observer.events, "HookError")[0], { hook: "afterModel", hookName: name })
      const unnamed = yield* play([done], { hooks: [Hook.afterModel(() => Effect.fail("broke"))] })
      assert.notProperty(ofTag(unnamed.events, "HookError")[0], "hookName")
      const failing = yield* play([done], {
        hooks: [Hook.afterModel(() => Effect.fail("broke"), { name })],
        options: { hookFailureMode: "fail" }
      })
      assert.strictEqual(reasonOf(failing.exit)?.message, 'Hook afterModel "policy" failed: broke')
      const shaper = yield* play([done], { hooks: [Hook.steering(() => Effect.fail("broke"), { name })] })
      assert.strictEqual(reasonOf(shaper.exit)?.message, 'Hook steering "policy" failed: broke')
    })
  )

  it.effect("is in the result of a call that it rejects by a failure, or is disabled for", () =>
    Effect.gen(function* () {
      const broken = () => Effect.fail("broke")
      for (const [hook, told] of [
        [Hook.beforeTool(broken, { name }), 'A beforeTool hook "policy" failed: '],
        [Hook.approveTool(broken, { name }), 'rejected: the approval "policy" failed: '],
        [Hook.afterTool(broken, { name }), 'An afterTool hook "policy" failed: ']
      ] as const) {
        const { view } = yield* play([call("act"), call("act"), call("act"), call("act"), done], {
          tools: [say("act")],
          hooks: [hook],
          options: { limits: { maxIdenticalToolCalls: Infinity } }
        })
        const [first, , , fourth] = resultTexts(view.messages)
        assert.include(first, `${told}broke`)
        assert.include(fourth, `${told}it is disabled after 3 failures in a row`)
      }
    })
  )

  it.effect("is listed by its manager, and must be a string", () =>
    Effect.gen(function* () {
      const { agent: one } = yield* agent([], { hooks: [Hook.afterModel(() => Effect.void, { name })] })
      assert.deepStrictEqual(
        one.hooks.list().map((hook) => hook.name),
        [name]
      )
      const wrong = Object.assign(
        Hook.afterModel(() => Effect.void),
        { name: 7 }
      )
      const exit = yield* Effect.exit(one.hooks.register(wrong))
      assert.include(String(exit), "expected `name` to be a string, got number")
    })
  )
})

/** Puts a summary in place of the messages before the prompt. */
const compactingOnce = Layer.succeed(ContextManager.ContextManager, {
  view: (messages) => Effect.succeed({ messages, dropped: 0, reason: "window" }),
  compact: ({ compaction, messages }) => {
    const summarize = Effect.succeed({ summary: "x", firstKept: messages.at(-1)?.id ?? "", tokensAfter: 1 })
    return Effect.succeed(compaction === undefined ? { tokensBefore: 1_000, summarize } : undefined)
  }
})

describe("each point", () => {
  const constructors: Readonly<Record<string, unknown>> = Hook

  it("has a constructor of its name", () => {
    assert.strictEqual(Object.keys(Hook.points).length, 17)
    for (const point of Object.keys(Hook.points)) assert.isFunction(constructors[point], point)
  })

  it.effect("is called in a run that comes by it (rows 108, 109, 110)", () =>
    Effect.gen(function* () {
      const called = new Set<string>()
      const isPoint = (name: string): name is Hook.Point => name in Hook.points
      const points = Object.keys(Hook.points).filter(isPoint)
      yield* play([call("act"), call("unknown"), done], {
        tools: [say("act")],
        messages: [Message.user("one"), Message.assistant("x".repeat(1_000))],
        layer: compactingOnce,
        hooks: points.map((point) => hookAt(point, () => Effect.sync(() => void called.add(point))))
      })
      assert.sameMembers([...called], points)
    })
  )
})

describe("types", () => {
  it("a list of hooks that need nothing needs nothing, and one that hides what it needs says so", () => {
    type Needs<A> = A extends Effect.Effect<unknown, unknown, infer R> ? R : "no effect"
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
    const loaded: ReadonlyArray<Hook.Runnable> = [Hook.afterModel(() => Effect.void)]
    const hidden: ReadonlyArray<Hook.Hook> = loaded
    const runnable = Agent.make({ model: "m", hooks: loaded })
    const any = Agent.make({ model: "m", hooks: hidden })
    const fine: Same<Needs<typeof runnable>, Provider.Provider | Scope.Scope> = true
    const told: Same<Needs<typeof any>, Provider.Provider | Scope.Scope | Hook.HiddenRequirements> = true
    class Db extends Context.Service<Db, { readonly rows: number }>()("test/Db") {}
    const needy = Hook.afterModel(() => Effect.asVoid(Db))
    const refused: typeof needy extends Hook.Runnable ? true : false = false
    assert.deepStrictEqual([fine, told, refused], [true, true, false])
  })
})
