import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, Schema, type Scope } from "effect"
import { Agent, Tool } from "effect-agent"
import { Agents, JsonlRunLogStore, LiveRuns, RunLogStore, Runs } from "effect-agent/server"
import { JsonlSessionStore, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { sqlite } from "../sql/databases.ts"
import { eventsOf, layer } from "./host.ts"
import { processOf } from "./sqlRuns.ts"

interface Place {
  readonly stores: Layer.Layer<SessionStore.SessionStore | RunLogStore.RunLogStore>
  /** All that the place holds. */
  readonly held: Effect.Effect<string>
}

const inDatabase: Effect.Effect<Place, unknown, Scope.Scope> = Effect.gen(function* () {
  const { logs, sessions, sql } = yield* processOf(yield* sqlite)
  const tables = [
    "effect_agent_session",
    "effect_agent_session_entry",
    "effect_agent_run",
    "effect_agent_run_line"
  ]
  const rows = Effect.forEach(tables, (table) => sql`SELECT * FROM ${sql(table)}`)
  return {
    stores: Layer.mergeAll(
      Layer.succeed(SessionStore.SessionStore, sessions),
      Layer.succeed(RunLogStore.RunLogStore, logs)
    ),
    held: Effect.map(Effect.orDie(rows), (rows) => JSON.stringify(rows))
  }
})

const inFiles: Effect.Effect<Place, unknown, Scope.Scope> = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const directory = yield* files.makeTempDirectoryScoped()
  const sessions = SessionStore.make(yield* JsonlSessionStore.storage({ directory }))
  const context = yield* Layer.build(JsonlRunLogStore.layer({ directory: `${directory}/logs` }))
  const held = Effect.gen(function* () {
    const names = yield* files.readDirectory(directory, { recursive: true })
    const texts = yield* Effect.forEach(
      names.filter((name) => name.endsWith(".jsonl")),
      (name) => files.readFileString(`${directory}/${name}`)
    )
    return texts.join("")
  })
  return {
    stores: Layer.mergeAll(
      Layer.succeed(SessionStore.SessionStore, sessions),
      Layer.succeed(RunLogStore.RunLogStore, Context.get(context, RunLogStore.RunLogStore))
    ),
    held: Effect.orDie(held)
  }
}).pipe(Effect.provide(NodeServices.layer))

const times = (text: string, word: string) => text.split(word).length - 1

const look = Tool.make({
  name: "look",
  description: "Looks.",
  params: Schema.Struct({ at: Schema.String }),
  execute: () => Effect.succeed("the-result-of-it")
})

const inner = Agent.asTool({
  name: "inner",
  description: "Asks another agent.",
  agent: { model: "any", tools: [look] }
})

const delegating = (script: ScriptedProvider.Script, stores: Place["stores"]) => {
  const agents = Agents.layer(({ session }) => Agent.make({ model: "any", tools: [inner], session }))
  return LiveRuns.layer({ flush: 0 }).pipe(
    Layer.provide([Layer.provide(agents, ScriptedProvider.layer(script)), stores])
  )
}

describe.each([
  ["SQLite", inDatabase],
  ["files", inFiles]
] as const)("the log of a run in %s", (_, place) => {
  const run = Effect.gen(function* () {
    const runs = yield* Runs.Runs
    const sessionId = yield* runs.sessions.create({})
    const started = yield* runs.start({ sessionId, prompt: "the-prompt-of-it" })
    const { runId } = started
    return { runId, sessionId, seen: yield* eventsOf(runId) }
  })

  it.live("has a prompt once, the arguments of a call at most twice, and its result twice", () =>
    Effect.gen(function* () {
      const { held, stores } = yield* place
      const script = [
        ScriptedProvider.toolCall("look", { at: "the-place-of-it" }),
        ScriptedProvider.text("the-answer-of-it")
      ]
      yield* Effect.provide(run, layer(script, { tools: [look] }, stores))
      const text = yield* held
      assert.strictEqual(times(text, "the-prompt-of-it"), 1)
      assert.isAtMost(times(text, "the-place-of-it"), 2)
      assert.strictEqual(times(text, "the-answer-of-it"), 1)
      // The result of the call, and the message that the model gets.
      assert.strictEqual(times(text, "the-result-of-it"), 2)
    }).pipe(Effect.scoped)
  )

  it.live("reads as its watchers saw it, with a run inside", () =>
    Effect.gen(function* () {
      const { stores } = yield* place
      const script = [
        ScriptedProvider.toolCall("inner", { prompt: "Look there." }),
        ScriptedProvider.toolCall("look", { at: "there" }),
        ScriptedProvider.text("It is there."),
        ScriptedProvider.text("Yes.")
      ]
      const { runId, seen } = yield* Effect.provide(run, delegating(script, stores))
      const whole = seen.filter(({ event }) => event._tag !== "MessageDelta")
      assert.isAbove(whole.filter(({ event }) => event.path !== undefined).length, 10)
      const read = yield* Effect.provide(eventsOf(runId), layer([], {}, stores))
      assert.deepStrictEqual(JSON.parse(JSON.stringify(read)), JSON.parse(JSON.stringify(whole)))
    }).pipe(Effect.scoped)
  )
})
