import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Stream } from "effect"
import { Agent, Loop, type Provider, Tool, ToolRegistry } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import { ScriptedProvider } from "effect-agent/testing"
import { resultTexts, say } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string) => ScriptedProvider.toolCall(name, {})

/** Prompts an agent under a registry of these tools, and returns the names it offers and the results of its calls. */
const under = Effect.fnUntraced(function* <const T extends Agent.Tools = readonly []>(
  around: ReadonlyArray<Tool.Runnable>,
  script: ScriptedProvider.Script,
  tools?: T
) {
  const provider = yield* ScriptedProvider.make(script)
  const agent = yield* Agent.make({ model: "m", ...(tools === undefined ? {} : { tools }) }).pipe(
    Effect.provide([provider.layer, ToolRegistry.layer(...around)])
  )
  const { newMessages } = yield* agent.prompt("hi")
  const [request] = yield* provider.requests
  return { offered: request?.tools.map(({ name }) => name), results: resultTexts(newMessages) }
})

/** A registry whose `execute` keeps the names of the calls. */
const watched = (calls: Array<string>) =>
  Layer.effect(
    ToolRegistry.ToolRegistry,
    Effect.map(ToolRegistry.make(say("ping", "pong")), (registry) => ({
      ...registry,
      execute: (prepared, context) =>
        Effect.suspend(() => {
          calls.push(prepared.call.name)
          return registry.execute(prepared, context)
        })
    }))
  )

describe("a ToolRegistry around Agent.make", () => {
  it.effect("gives its tools to the agent, as to the loop", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* under([say("ping", "pong")], [call("ping"), done]), {
        offered: ["ping"],
        results: ["pong"]
      })
      const { newMessages } = yield* Loop.run("hi", { messages: [] }, { model: "m" }).pipe(
        Effect.provide([
          ScriptedProvider.layer([call("ping"), done]),
          ToolRegistry.layer(say("ping", "pong"))
        ])
      )
      assert.deepStrictEqual(resultTexts(newMessages), ["pong"])
    })
  )

  it.effect("stands before the agent's own tools, which win over those of their name", () =>
    Effect.gen(function* () {
      const tools = [say("b", "own b"), say("c", "own c")]
      const script = [call("a"), call("b"), call("c"), done]
      assert.deepStrictEqual(yield* under([say("a", "a"), say("b", "b")], script, tools), {
        offered: ["a", "b", "c"],
        results: ["a", "own b", "own c"]
      })
    })
  )

  it.effect("sees the calls of all tools of the agent, which keep their services", () =>
    Effect.gen(function* () {
      class Word extends Context.Service<Word, { readonly word: string }>()("Word") {}
      const own = Tool.make({
        name: "own",
        description: "",
        execute: () => Effect.map(Word, ({ word }) => word)
      })
      const calls: Array<string> = []
      const agent = yield* Agent.make({ model: "m", tools: [own] }).pipe(
        Effect.provide([
          ScriptedProvider.layer([call("own"), call("ping"), call("gone"), done]),
          watched(calls),
          Layer.succeed(Word, { word: "hello" })
        ])
      )
      const { newMessages } = yield* agent.prompt("hi")
      assert.deepStrictEqual(resultTexts(newMessages).slice(0, 2), ["hello", "pong"])
      assert.deepStrictEqual(calls, ["own", "ping"])
    })
  )

  it.effect("is not changed by the agent, which no longer has what it removed", () =>
    Effect.gen(function* () {
      const around = yield* ToolRegistry.make(say("a", "a"), say("b", "b"))
      const agent = yield* Agent.make({ model: "m", tools: [say("b", "own b")] }).pipe(
        Effect.provide(ScriptedProvider.layer([])),
        Effect.provideService(ToolRegistry.ToolRegistry, around)
      )
      const names = Effect.map(agent.tools.definitions, (all) => all.map(({ name }) => name))
      yield* around.register(say("late", "late"))
      assert.deepStrictEqual(yield* names, ["a", "late", "b"])
      assert.isTrue(yield* agent.tools.unregister("b"))
      assert.isFalse(yield* agent.tools.unregister("b"))
      assert.isTrue(yield* agent.tools.unregister("a"))
      assert.deepStrictEqual(yield* names, ["late"])
      assert.deepStrictEqual(
        [yield* agent.tools.has("a"), yield* agent.tools.get("a"), yield* agent.tools.has("late")],
        [false, undefined, true]
      )
      yield* agent.tools.register(say("a", "own a"))
      assert.deepStrictEqual(yield* names, ["late", "a"])
      const refused = yield* agent.tools.replace("server", [say("late", "x"), say("new", "new")])
      assert.deepStrictEqual(refused, ["late"])
      const [changed] = yield* agent.tools.changes.pipe(Stream.take(1), Stream.runCollect)
      assert.deepStrictEqual(
        changed?.map(({ name }) => name),
        ["late", "a", "new"]
      )
      yield* agent.tools.clear
      assert.deepStrictEqual(yield* names, [])
      assert.deepStrictEqual(
        (yield* around.definitions).map(({ name }) => name),
        ["a", "b", "late"]
      )
    })
  )

  it.effect("offers the same definitions in each turn, so that providers encode them once", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({ model: "m", tools: [say("b", "b")] }).pipe(
        Effect.provide([ScriptedProvider.layer([]), ToolRegistry.layer(say("a", "a"))])
      )
      assert.strictEqual(yield* agent.tools.definitions, yield* agent.tools.definitions)
    })
  )

  it.effect("gives its tools to the agents that the conversation is handed to", () =>
    Effect.gen(function* () {
      const handOff = Agent.handOff({ to: "other", description: "d", agent: { model: "m" } })
      const { results } = yield* under(
        [say("ping", "pong")],
        [call("transfer_to_other"), call("ping"), done],
        [handOff]
      )
      assert.strictEqual(results.at(-1), "pong")
    })
  )

  it.effect("gives them not to an agent inside of a tool call, nor does the run around it", () =>
    Effect.gen(function* () {
      const inner = Agent.asTool({ name: "inner", description: "d", agent: { model: "m" } })
      const ask = ScriptedProvider.toolCall("inner", { prompt: "hi" })
      const offered: Array<ReadonlyArray<string>> = []
      const look = ({ tools }: Provider.ModelRequest) => {
        offered.push(tools.map(({ name }) => name))
        return done
      }
      yield* under([say("ping", "pong")], [ask, look, done], [inner])
      yield* Loop.run("hi", { messages: [] }, { model: "m" }).pipe(
        Effect.provide(
          Layer.provideMerge(ToolRegistry.layer(inner), ScriptedProvider.layer([ask, look, done]))
        )
      )
      const making = Tool.make({
        name: "making",
        description: "d",
        execute: () =>
          Effect.gen(function* () {
            const agent = yield* Agent.make({ model: "m" })
            return (yield* agent.prompt("hi")).text
          }).pipe(Effect.provide(ScriptedProvider.layer([look])))
      })
      yield* under([say("ping", "pong")], [call("making"), done], [making])
      assert.deepStrictEqual(offered, [[], [], []])
    })
  )

  it("reaches an agent of promises by its layer", async () => {
    const agent = createAgent({
      provider: ScriptedProvider.layer([call("ping"), done]),
      model: "m",
      layer: ToolRegistry.layer(say("ping", "pong"))
    })
    assert.deepStrictEqual(resultTexts((await agent.prompt("hi")).newMessages), ["pong"])
    await agent.close()
  })
})
