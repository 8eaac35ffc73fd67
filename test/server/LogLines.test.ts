/** The log of two processes of one database, in which a search by the session finds what is about it. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Logger, References, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Agent, Approval, Tool } from "effect-agent"
import * as NodeSqlite from "effect-agent/node/NodeSqlite"
import { Agents, LiveRuns, Runs, SqlRunLogStore } from "effect-agent/server"
import { SqlSessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { files, textOf } from "../source.ts"
import { sqlite } from "../sql/databases.ts"

/** A tool that waits until its step is done. */
const stepOf = (gates: ReadonlyArray<Deferred.Deferred<void>>) =>
  Tool.make({
    name: "step",
    description: "Takes a step.",
    effect: "pure",
    params: Schema.Struct({ n: Schema.Int }),
    execute: ({ n }) => Effect.as(Effect.forEach(gates.slice(n, n + 1), Deferred.await), "done")
  })

const script = [
  ScriptedProvider.toolCall("step", { n: 0 }),
  ScriptedProvider.toolCall("step", { n: 1 }),
  ScriptedProvider.text("done")
]

/** A process that takes sessions over. Its database waits for no lock: the stores do. */
const started = (filename: string, gates: ReadonlyArray<Deferred.Deferred<void>>, from = 0) => {
  const agents = Agents.layer(({ session }) =>
    Agent.make({ model: "any", tools: [stepOf(gates)], session })
  ).pipe(
    Layer.provide([
      ScriptedProvider.layer(script.slice(from)),
      Approval.layer({ rules: [], otherwise: "allow" })
    ])
  )
  const patience = "20 seconds"
  return LiveRuns.layer({ flush: 0 }).pipe(
    Layer.provide([agents, SqlRunLogStore.layer({ patience })]),
    Layer.provide(SqlSessionStore.layer({ takeOver: true, patience })),
    Layer.provide(NodeSqlite.layer({ filename, busyTimeout: 0 })),
    Layer.build,
    Effect.map((context) => Context.get(context, Runs.Runs))
  )
}

/** Waits until a run has begun as many calls. */
const until = (runs: Runs.Service, runId: string, calls: number) =>
  Effect.flatMap(runs.events(runId, 0), (events) =>
    events.pipe(
      Stream.filter(({ event }) => event._tag === "ToolInvoked"),
      Stream.take(calls),
      Stream.runDrain
    )
  )

interface Line {
  readonly text: string
  readonly names: Readonly<Record<string, unknown>>
}

describe("the log", () => {
  it("has no sentence with an id in it", () => {
    const found = files
      .filter((file) => /^(runs|durable|server|sessions)\//.test(file))
      .flatMap((file) =>
        [...textOf(file).matchAll(/\.log[A-Z]\w+\(\s*`[^`]*\$\{[^}]*(?:session|run)Id\b/g)].map(
          ([line]) => `${file}: ${line}`
        )
      )
    assert.deepStrictEqual(found, [])
  })

  it.live(
    "has the waits, the troubles and the takeover of a session under its id, and those of a run under its own",
    () =>
      Effect.gen(function* () {
        const lines: Array<Line> = []
        const logger = Logger.make(({ fiber, message }) => {
          lines.push({ text: String(message), names: fiber.getRef(References.CurrentLogAnnotations) })
        })
        const runId = yield* Effect.gen(function* () {
          const filename = (yield* sqlite).slice("sqlite:".length)
          const gates = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
          const [first, second] = gates
          if (first === undefined || second === undefined) return assert.fail()
          const one = yield* started(filename, gates)
          yield* one.sessions.create({ sessionId: "other" })
          yield* one.sessions.create({ sessionId: "s" })
          const { runId } = yield* one.start({ sessionId: "s", prompt: "Go" })
          yield* until(one, runId, 1)
          const other = Context.get(yield* Layer.build(NodeSqlite.layer({ filename })), SqlClient.SqlClient)
          yield* Effect.andThen(Deferred.succeed(first, undefined), Effect.sleep("300 millis")).pipe(
            other.withTransaction
          )
          yield* until(one, runId, 2)
          const two = yield* started(filename, [], 2)
          yield* Stream.runDrain(yield* two.events(runId, 0))
          yield* Deferred.succeed(second, undefined)
          yield* Effect.repeat(Effect.sleep("10 millis"), {
            until: () => lines.some(({ text }) => text.includes("no longer has"))
          })
          assert.strictEqual((yield* two.get(runId)).status, "completed")
          return runId
        }).pipe(Effect.provide(Logger.layer([logger])), Effect.scoped)
        const found = lines.filter(({ names }) => names["sessionId"] === "s")
        const ofRun = found.filter(({ names }) => names["runId"] === runId)
        for (const [words, where] of [
          [/^A statement waits for the SQL database: /, ofRun],
          [/^The run continues in this process$/, ofRun],
          [/^This process no longer has the session$/, found]
        ] as const)
          assert.isTrue(
            where.some(({ text }) => words.test(text)),
            String(words)
          )
        for (const { text } of lines) assert.notInclude(text, runId)
        assert.deepStrictEqual(
          lines.filter((line) => !found.includes(line)),
          []
        )
      })
  )
})
