import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Hook, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { ofTag, outcomes, play, resultTexts, say } from "./play.ts"

const Params = Schema.Struct({ path: Schema.String, when: Schema.DateFromString })
const params = { path: "here", when: "2026-01-01T00:00:00.000Z" }
const remove = Tool.make({
  name: "remove",
  description: "Removes a file.",
  params: Params,
  execute: ({ path, when }) => Effect.succeed(`${path} at ${when.toISOString()}`)
})
const script = [
  ScriptedProvider.toolCalls({ name: "remove", params }, { name: "look", params: {} }),
  ScriptedProvider.text("done")
]

describe("a hook that is bound to a tool", () => {
  it.effect("is called for this tool alone, with its decoded params", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const { events } = yield* play(script, {
        tools: [remove, say("look")],
        hooks: [
          Hook.beforeTool(remove, ({ params }) => Effect.sync(() => void seen.push(params.path))),
          Hook.approveTool(remove, ({ params }) =>
            Effect.sync(() => {
              seen.push(params.when.getUTCFullYear())
              return { approved: params.path === "here" }
            })
          ),
          Hook.afterTool(remove, ({ outcome, params }) =>
            Effect.sync(() => void seen.push(`${params.path} ${outcome}`))
          )
        ]
      })
      assert.deepStrictEqual(seen, ["here", 2026, "here success"])
      assert.deepStrictEqual(outcomes(events), ["success", "success"])
      assert.deepStrictEqual(
        ofTag(events, "ToolInvoked").map(({ approved }) => approved),
        [true, false]
      )
    })
  )

  it.effect("may reject, block and change its params, and has its name in errors", () =>
    Effect.gen(function* () {
      const cases = [
        [Hook.approveTool(remove, () => Effect.succeed({ approved: false })), "rejected", "not approved"],
        [
          Hook.beforeTool(remove, () => Effect.succeed({ block: true, reason: "frozen" })),
          "blocked",
          "frozen"
        ],
        [
          Hook.beforeTool(remove, () => Effect.succeed({ params: { ...params, path: "there" } })),
          "success",
          "there at 2026-01-01T00:00:00.000Z"
        ],
        [
          Hook.beforeTool(remove, () => Effect.fail("offline"), { name: "policy" }),
          "rejected",
          '"policy" failed'
        ]
      ] as const
      for (const [hook, outcome, told] of cases) {
        const { events, view } = yield* play(script, { tools: [remove, say("look")], hooks: [hook] })
        assert.deepStrictEqual(outcomes(events).toSorted(), [outcome, "success"].toSorted())
        assert.include(resultTexts(view.messages)[0], told)
        assert.strictEqual(resultTexts(view.messages)[1], "look")
      }
    })
  )

  it.effect("is called for a copy of its tool, and for a name with white space around it", () =>
    Effect.gen(function* () {
      const wrapped = { ...remove, execute: () => Effect.succeed("wrapped") }
      const spaced = [ScriptedProvider.toolCall(" remove ", params), ScriptedProvider.text("done")]
      const { view } = yield* play(spaced, {
        tools: [wrapped],
        hooks: [Hook.approveTool(remove, ({ params }) => Effect.succeed({ approved: params.path === "" }))]
      })
      assert.include(resultTexts(view.messages)[0], "not approved")
    })
  )

  it.effect("rejects the calls of another tool of this name, whose params it cannot read", () =>
    Effect.gen(function* () {
      let asked = 0
      const { events, view } = yield* play(script, {
        tools: [say("remove"), say("look")],
        hooks: [Hook.approveTool(remove, () => Effect.sync(() => ({ approved: ++asked > 0 })))]
      })
      assert.deepStrictEqual(outcomes(events), ["rejected", "success"])
      assert.include(resultTexts(view.messages)[0], "The hook is bound to another tool named remove")
      assert.strictEqual(asked, 0)
    })
  )

  it("has the type of the params of its tool, and what it requires", () => {
    const hook = Hook.approveTool(remove, ({ params }) => {
      const path: string = params.path
      // @ts-expect-error: the tool has no such param.
      return Effect.succeed({ approved: path !== params.file })
    })
    const runnable: Hook.Runnable = hook
    assert.strictEqual(runnable.point, "approveTool")
  })
})

describe("the tool that is called", () => {
  it.effect("is shown to the hooks, which cannot change it", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const labelled = { ...remove, label: "Remove a file" }
      const { view } = yield* play(script, {
        tools: [labelled, say("look")],
        hooks: [
          Hook.beforeTool(({ tool }) =>
            Effect.sync(() => {
              seen.push(tool.label ?? tool.name)
              try {
                Object.assign(tool, { execute: () => Effect.succeed("stolen") })
              } catch {
                // Frozen.
              }
            })
          )
        ]
      })
      assert.deepStrictEqual(seen, ["Remove a file", "look"])
      assert.deepStrictEqual(resultTexts(view.messages), ["here at 2026-01-01T00:00:00.000Z", "look"])
    })
  )
})
