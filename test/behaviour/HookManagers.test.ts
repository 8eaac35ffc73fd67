import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, type Schema } from "effect"
import { Agent, Hook, HookManager, Loop, ToolRegistry } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { echo, ofTag, outcomes, play, say, status } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string) => ScriptedProvider.toolCall(name, {})

/** One hook of a manager that is written by hand. `output` may be a verdict of its own. */
interface Ruled {
  readonly point: Hook.Point
  readonly rule: (input: unknown) => HookManager.Verdict<any>
}

/** A manager that an application wrote itself, with no more than the public type of the service asks for. */
const handWritten = (...rules: ReadonlyArray<Ruled>): HookManager.Service => ({
  forRun: () => ({
    has: (point) => rules.some((rule) => rule.point === point),
    ask: (point, input, step) =>
      Effect.gen(function* () {
        for (const { rule } of rules.filter((one) => one.point === point)) {
          const stepped = step(rule(input()))
          if ((typeof stepped === "string" ? stepped : yield* stepped) === "stop") return
        }
      })
  }),
  register: () => Effect.die("This manager takes no hooks"),
  unregister: () => Effect.succeed(false)
})

const provided = (manager: HookManager.Service) => Layer.succeed(HookManager.HookManager, manager)
const silent: HookManager.Verdict<any> = { _tag: "Silent" }

/** A manager that notes when it is asked. */
const noting = (
  asked: Array<string>,
  name: string,
  point: Hook.Point,
  verdict: HookManager.Verdict<any> = silent
): Ruled => ({
  point,
  rule: () => {
    asked.push(name)
    return verdict
  }
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
      const refusing: ReadonlyArray<readonly [HookManager.Verdict<any>, string]> = [
        [{ _tag: "Said", output: { block: true } }, "blocked"],
        [{ _tag: "Failed", message: "offline" }, "rejected"]
      ]
      for (const [verdict, outcome] of refusing) {
        const asked: Array<string> = []
        const manager = provided(handWritten(noting(asked, "theirs", "beforeTool", verdict)))
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
      const renamed = noting([], "theirs", "approveTool", {
        _tag: "Said",
        output: { approved: true, params: { to: "them" } }
      })
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
        const inner: Array<HookManager.Service> = []
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
      for (const point of [Hook.beforeTool, Hook.approveTool]) {
        const asked: Array<string> = []
        const guard = (name: string, params: Schema.Json) =>
          point(() => Effect.as(noted(asked, name), { approved: true, params }))
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
