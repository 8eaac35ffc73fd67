/**
 * A worker of a cluster whose runs count: `countingWorker.ts URL PORT LEASE`. A run logs an event every 100 milliseconds, and goes on behind
 * the last one that is stored. It prints `ready` and `run N`, where N is the number of a step, for each step that it does.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import type { AgentEvent } from "effect-agent"
import { Problem } from "effect-agent/api"
import { NodeCluster } from "effect-agent/durable-node"
import { RunLogStore, type Runs, SqlRunLogStore } from "effect-agent/server"
import { SessionStore, SqlSessionStore } from "effect-agent/sessions"
import { appendFileSync, writeSync } from "node:fs"
import { Gate } from "../../src/durable/Gate.ts"
import { LocalRuns } from "../../src/durable/LocalRuns.ts"
import * as SessionHandlers from "../../src/durable/SessionHandlers.ts"
import * as LogLine from "../../src/server/LogLine.ts"
import { Pace } from "../../src/server/Pace.ts"
import { RunLog } from "../../src/server/RunLog.ts"
import type { RunKey } from "../../src/server/RunLogStore.ts"

export const steps = 40

const [url = "", port = "", lease = "15 seconds", effects = "/dev/null"] = process.argv.slice(2)
const print = (line: string) => writeSync(1, `${line}\n`)

const base = (runId: string, seq: number) => ({ runId, seq, timestamp: Date.now() })
const eventOf = (runId: string, n: number): AgentEvent.AgentEvent =>
  n === steps
    ? {
        ...base(runId, n),
        _tag: "RunEnd",
        status: "completed",
        turns: n,
        usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
        newMessageIds: [],
        durationMs: 1
      }
    : { ...base(runId, n), _tag: "TurnStart" }

const pace = new Pace({ flush: 0, heartbeat: "15 seconds" })

interface Live {
  readonly runId: string
  readonly log: RunLog
  readonly scope: Scope.Closeable
}

const make = Effect.gen(function* () {
  const logs = yield* RunLogStore.RunLogStore
  const sessions = yield* SessionStore.SessionStore
  const live = new Map<string, Live>()
  const leave = (sessionId: string) =>
    Effect.suspend(() => {
      const one = live.get(sessionId)
      live.delete(sessionId)
      one?.log.close()
      return one === undefined ? Effect.void : Scope.close(one.scope, Exit.void)
    })
  const work = (run: RunKey, log: RunLog) =>
    Effect.gen(function* () {
      for (let n = log.events.length; n <= steps; n++) {
        yield* Effect.sleep(100)
        yield* log.append([eventOf(run.runId, n)])
        appendFileSync(effects, `${run.runId} ${n} ${process.pid}\n`)
      }
      yield* logs.end(run)
      yield* leave(run.sessionId)
    })
  const begin = (run: RunKey) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      yield* Scope.provide(sessions.open(run.sessionId), scope)
      const append = yield* Scope.provide(logs.open(run), scope)
      const lines = yield* logs.read(run)
      if (lines.length === 0) yield* append([LogLine.run(run.runId, run.sessionId, Date.now())])
      const log = new RunLog(append, LogLine.read(lines))
      live.set(run.sessionId, { runId: run.runId, log, scope })
      yield* Effect.forkIn(Effect.orDie(work(run, log)), scope)
    }).pipe(Effect.mapError(({ message }) => new Problem.StorageUnavailable({ detail: message })))
  const none = () => Effect.die("not used")
  const runs: Runs.Service = {
    ready: Effect.void,
    createSession: none,
    listSessions: none,
    readSession: none,
    updateSession: none,
    deleteSession: none,
    deleteRun: none,
    forkSession: none,
    start: ({ sessionId }) =>
      Effect.gen(function* () {
        const runId = `run_${sessionId}`
        if (!live.has(sessionId)) yield* begin({ runId, sessionId })
        return { runId, status: "started" as const }
      }),
    active: (sessionId) => Effect.sync(() => live.get(sessionId)?.runId),
    list: none,
    get: (runId) => new Problem.RunNotFound({ runId }),
    watch: (runId, after) =>
      Effect.sync(() => [...live.values()].find((one) => one.runId === runId)?.log.watch(after, pace)),
    events: none,
    steer: () => Effect.void,
    followUp: none,
    pause: none,
    resume: none,
    cancel: none,
    approve: none,
    answer: none,
    drain: none
  }
  return {
    runs,
    leave,
    active: (sessionId: string) => live.get(sessionId)?.runId,
    messageIds: () => Effect.succeed(new Set<string>()),
    adopt: (run: RunKey) =>
      Effect.gen(function* () {
        if (!live.has(run.sessionId)) yield* begin(run)
        print(`adopt ${run.runId}`)
        const mine = live.get(run.sessionId)
        while (mine !== undefined && live.get(run.sessionId) === mine) yield* Effect.sleep(50)
        const stored = yield* Effect.orDie(logs.find(run.runId))
        return stored?.ended === undefined ? ("left" as const) : ("over" as const)
      })
  }
})

const stores = SqlRunLogStore.layer({ patience: "1 minute" }).pipe(
  Layer.provideMerge(SqlSessionStore.layer({ takeOver: true, patience: "1 minute" }))
)
const database = PgClient.layer({
  url: Redacted.make(url),
  maxConnections: 8,
  startupParameters: { timezone: "UTC" }
})

const worker = SessionHandlers.layer(new Gate(100)).pipe(
  Layer.provide(Layer.effect(LocalRuns, make)),
  Layer.provideMerge(NodeCluster.worker({ port: Number(port), lease: Number(lease) })),
  Layer.provideMerge(stores),
  Layer.provide(database)
)

if (import.meta.main) {
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        yield* Layer.build(worker)
        print("ready")
        yield* Effect.callback<void>((resume) => {
          process.once("SIGTERM", () => resume(Effect.void))
        })
      })
    )
  )
  process.exit(0)
}
