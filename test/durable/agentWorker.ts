/**
 * A worker of a cluster: `agentWorker.ts URL PORT LEASE EFFECTS HELD`. Its model calls the tool `count` until it has ten results, and then ends.
 * Each call of the tool, which is not to be repeated, writes a line to the file EFFECTS. With HELD as `ModelCallStart` or `ToolInvoked` the model
 * or the tool of the third turn waits until there is a file EFFECTS.go. It prints `ready`, `model` at each call of the model, and
 * `refused` with what was to be written and the reason when the database refuses a write.
 */
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { Agent, Approval, Tool } from "effect-agent"
import { DurableRuns } from "effect-agent/durable"
import * as NodeCluster from "effect-agent/node/NodeCluster"
import { Agents, SqlRunLogStore } from "effect-agent/server"
import { SessionStore, SqlSessionStore } from "effect-agent/sessions"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { appendFileSync, existsSync, writeSync } from "node:fs"

export const calls = 10

const [url = "", port = "", lease = "", effects = "", held = ""] = process.argv.slice(2)

const print = (line: string): void => void writeSync(1, `${line}\n`)
const refused = (what: string) => (error: { readonly reason: string | { readonly _tag: string } }) =>
  Effect.sync(() =>
    print(`refused ${what} ${typeof error.reason === "string" ? error.reason : error.reason._tag}`)
  )

const isHeld = (step: string, n: number): boolean => step === held && n === 2

const untilGo = Effect.repeat(Effect.sleep(20), {
  until: () => Effect.sync(() => existsSync(`${effects}.go`))
})

const count = Tool.make({
  name: "count",
  description: "Counts.",
  params: Schema.Struct({ n: Schema.Int }),
  execute: ({ n }) =>
    Effect.gen(function* () {
      appendFileSync(effects, `${n} ${process.pid}\n`)
      yield* Effect.sleep(200)
      if (isHeld("ToolInvoked", n)) yield* untilGo
      return `counted ${n}`
    })
})

/** The held model begins its answer, which the log keeps at once, a while before the session keeps the whole of it. */
const answering = (n: number) =>
  isHeld("ModelCallStart", n) ? [Step.run(untilGo), Step.text("I count."), Step.sleep(2000)] : []

const script: ScriptedProvider.Script = Array.from({ length: 100 }, () => ({ messages }) => {
  const n = messages.filter(({ role }) => role === "toolResult").length
  print("model")
  return n < calls
    ? ScriptedProvider.turn(
        Step.sleep(100),
        ...answering(n),
        Step.toolCall("count", { n }),
        Step.finish("toolUse")
      )
    : ScriptedProvider.text("done")
})

const agents = Agents.layer(({ session }) => Agent.make({ model: "any", tools: [count], session })).pipe(
  Layer.provide([
    ScriptedProvider.layer(script),
    Approval.layer({ rules: [], otherwise: "allow", asked: "wait" })
  ])
)

const patience = "1 minute"
const stores = SqlRunLogStore.layer({ patience }).pipe(
  Layer.provideMerge(SqlSessionStore.layer({ takeOver: true, patience }))
)

/** The stores, which say what the database refuses. */
const telling = Layer.effectContext(
  Effect.gen(function* () {
    const sessions = yield* SessionStore.SessionStore
    const open: typeof sessions.open = (sessionId) =>
      Effect.map(sessions.open(sessionId), (session) => ({
        ...session,
        restored: session.restored,
        record: (records) => Effect.tapError(session.record(records), refused("session")),
        log: (lines) =>
          Effect.tapError(
            session.log(lines),
            refused(lines.every(({ _tag }) => _tag === "Logged") ? "log" : "session")
          )
      }))
    return Context.make(SessionStore.SessionStore, { ...sessions, open })
  })
).pipe(Layer.provideMerge(stores))

const database = PgClient.layer({
  url: Redacted.make(url),
  maxConnections: 8,
  startupParameters: { timezone: "UTC" }
})

const worker = DurableRuns.worker({ flush: 0 }).pipe(
  Layer.provide([agents, NodeCluster.worker({ port: Number(port), lease: Number(lease) })]),
  Layer.provide(telling),
  Layer.provide(database)
)

if (import.meta.main) {
  const ended = new AbortController()
  process.once("SIGTERM", () => ended.abort())
  const main = Layer.launch(
    Layer.effectDiscard(Effect.sync(() => print("ready"))).pipe(Layer.provideMerge(worker))
  )
  await Effect.runPromise(main, { signal: ended.signal }).catch((error: unknown) => {
    if (!ended.signal.aborted) console.error(error)
  })
  process.exit()
}
