/**
 * The runs of a cluster: each session and its runs belong to a worker, and another one continues them when that worker ends.
 *
 * @since 0.2.0
 */
import type { Sharding } from "effect/cluster/Sharding"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type * as Payload from "../api/Payload.ts"
import * as Problem from "../api/Problem.ts"
import type { Agents } from "../runs/Agents.ts"
import * as History from "../runs/History.ts"
import { Holders, lastLeft } from "../runs/Watchers.ts"
import type * as LiveRuns from "../runs/LiveRuns.ts"
import { type RunLogError, RunLogStore, type Service as Logs } from "../runs/RunLogStore.ts"
import * as Runs from "../runs/Runs.ts"
import * as SessionProblem from "../runs/SessionProblem.ts"
import * as Sessions from "../runs/Sessions.ts"
import * as IdempotencyKeys from "../runs/IdempotencyKeys.ts"
import { eventsOf } from "../runs/LogEntry.ts"
import { SessionStore, type Service as SessionStoreService } from "../sessions/SessionStore.ts"
import * as Calls from "./internal/Calls.ts"
import * as Worker from "./internal/Worker.ts"
import { SessionEntity } from "./internal/SessionEntity.ts"
import type { Shards } from "./internal/Shards.ts"
export type { LocalRuns, Service as LocalRunsService, State as LocalState } from "./internal/Worker.ts"
import * as Clock from "effect/Clock"
import * as Metric from "effect/Metric"
import * as Schedule from "effect/Schedule"

/**
 * The options of the runs of a cluster.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The working directory of new sessions, to which a list of sessions keeps. Default: none, and all sessions. */
  readonly cwd?: string
}

/**
 * The options of a worker.
 *
 * @category options
 * @since 0.2.0
 */
export interface WorkerOptions extends Options, LiveRuns.Options {
  /**
   * The number of runs that work at a time. Others wait, those that came first go first. A run that waits for a person or is paused does
   * not count. Default 100.
   */
  readonly concurrency?: number
}

/**
 * Makes a layer that lets this process run sessions, with its agents.
 *
 * **Details**
 *
 * The process takes over the sessions that the cluster gives it, and continues their runs: see `LiveRuns.layer`. It lets go of
 * them when the layer is released, and another worker continues them.
 *
 * **Gotchas**
 *
 * All workers of a cluster need the same agents. The stores must be those of the database of the cluster, with `takeOver` for sessions:
 * the cluster decides which process has a session.
 *
 * **Example** (A server and worker in one process, on SQLite)
 *
 * ```ts
 * import { Effect, Layer, Stream } from "effect"
 * import { Agent } from "effect-agent"
 * import { Cluster, DurableRuns } from "effect-agent/durable"
 * import { Agents, Runs, SqlRunLogStore } from "effect-agent/server"
 * import { SqlSessionStore } from "effect-agent/sessions"
 * import * as NodeSqlite from "effect-agent/node/NodeSqlite"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const agents = Agents.layer(({ session }) => Agent.make({ model: "any", session })).pipe(
 *   Layer.provide(ScriptedProvider.layer([ScriptedProvider.text("Yes.")]))
 * )
 * const stores = SqlRunLogStore.layer().pipe(
 *   Layer.provideMerge(SqlSessionStore.layer({ takeOver: true })),
 *   Layer.provideMerge(NodeSqlite.layer({ filename: ":memory:" }))
 * )
 * const DurableRunsLive = DurableRuns.layer().pipe(
 *   Layer.provideMerge(DurableRuns.worker()),
 *   Layer.provide([agents, Cluster.embedded()]),
 *   Layer.provide(stores)
 * )
 *
 * const program = Effect.gen(function* () {
 *   const runs = yield* Runs.Runs
 *   const sessionId = yield* runs.sessions.create({})
 *   const { runId } = yield* runs.start({ sessionId, prompt: "Do I need a coat?" })
 *   const events = yield* Stream.runCollect(yield* runs.events(runId, 0))
 *   return events.at(-1)?.event._tag
 * })
 *
 * console.log(await Effect.runPromise(Effect.provide(program, DurableRunsLive))) // => RunEnd
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const worker = ({ concurrency = 100, ...options }: WorkerOptions = {}): Layer.Layer<
  Worker.LocalRuns,
  RunLogError,
  Agents | SessionStore | RunLogStore | Sharding | Shards
> => Worker.layer({ ...options, concurrency })

/**
 * Makes a layer of the runs of a cluster, for a process that starts, watches and answers them.
 *
 * **Details**
 *
 * A request goes to the worker that has the session, which acknowledges it when its effect is stored. One whose worker ends before that
 * is sent to the next one, and is done once. A watcher sees each event once and in order, over all workers that the run has. The layer reads stored data from
 * the database, also while there is no worker. `drain` drains the worker of this process, if it has one, and ends the streams of the
 * watchers of this process: they go on elsewhere.
 *
 * Functions fail with `StorageUnavailable` if no worker answers within 30 seconds. A worker may have done the request meanwhile: send a
 * prompt again with the same idempotency key.
 *
 * **Example** (Reaching the workers of an SQL database)
 *
 * ```ts
 * import { PgClient } from "@effect/sql-pg"
 * import { Layer, Redacted } from "effect"
 * import { DurableRuns } from "effect-agent/durable"
 * import * as NodeCluster from "effect-agent/node/NodeCluster"
 * import { SqlRunLogStore } from "effect-agent/server"
 * import { SqlSessionStore } from "effect-agent/sessions"
 *
 * const database = PgClient.layer({
 *   url: Redacted.make("postgres://agent@127.0.0.1/agent"),
 *   startupParameters: { timezone: "UTC" }
 * })
 *
 * const stores = SqlRunLogStore.layer().pipe(Layer.provideMerge(SqlSessionStore.layer()))
 *
 * export const runs = DurableRuns.layer().pipe(
 *   Layer.provide(NodeCluster.client()),
 *   Layer.provide(stores),
 *   Layer.provide(database)
 * )
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (
  options: Options = {}
): Layer.Layer<Runs.Runs, never, Sharding | SessionStore | RunLogStore> =>
  Layer.effect(Runs.Runs, Effect.map(make(options), Runs.Runs.of))

const make = Effect.fnUntraced(function* ({ cwd }: Options) {
  const logs = yield* RunLogStore
  const sessions = yield* SessionStore
  const calls = new Calls.Calls(yield* SessionEntity.client, logs)
  const local = Option.getOrUndefined(yield* Effect.serviceOption(Worker.LocalRuns))
  let isDraining = false
  const left = yield* Deferred.make<void>()
  const draining = Effect.suspend(() => (isDraining ? new Problem.Draining({}) : Effect.void))
  const place = cwd === undefined ? {} : { cwd }
  yield* measure(logs)
  return {
    health: Effect.andThen(draining, History.probe(logs)),
    sessions: {
      create: (options) => Effect.andThen(draining, calls.create({ ...place, ...options })),
      list: (page) => Sessions.list({ cwd, sessions }, page),
      get: (sessionId) => Sessions.read(sessions, sessionId),
      update: (sessionId, changes) => Effect.andThen(draining, calls.update(sessionId, changes)),
      remove: (sessionId) => calls.remove(sessionId),
      fork: (sessionId, options) => Effect.andThen(draining, calls.fork(sessionId, options))
    },
    remove: (runId) => Effect.asVoid(History.remove(logs, runId)),
    known: (sessionId, idempotency) => IdempotencyKeys.stored({ logs, sessions }, sessionId, idempotency),
    start: (request) => Effect.andThen(draining, calls.start(request)),
    ...reads(new History.History({ logs, sessions }, (runId) => shown(local?.owed(runId))), logs, sessions),
    ...watches(calls, { logs, sessions }, local, Deferred.await(left)),
    ...requests(calls),
    drain: (grace) =>
      Effect.suspend(() => {
        isDraining = true
        const drained = local === undefined ? Effect.void : local.runs.drain(grace)
        return Effect.ensuring(drained, Deferred.succeed(left, undefined))
      })
  } satisfies Runs.Service
})

/** A run whose end this process has shown, and the store not. */
const shown = (info: Payload.Run | undefined) =>
  info === undefined ? undefined : { info, resumes: undefined }

/** The requests to a run. */
const requests = (
  calls: Calls.Calls
): Pick<Runs.Service, "steer" | "followUp" | "pause" | "resume" | "cancel" | "approve" | "answer"> => ({
  steer: (runId, message, options) => calls.send("Steer", runId, message, options),
  followUp: (runId, message) => calls.send("FollowUp", runId, message),
  pause: (runId, reason) => calls.control("Pause", runId, reason),
  resume: (runId, reason) => calls.control("Resume", runId, reason),
  cancel: (runId, reason) => calls.control("Cancel", runId, reason),
  approve: (runId, approvalId, answer) => calls.approve(runId, approvalId, answer),
  answer: (runId, questionId, answer) => calls.answer(runId, questionId, answer)
})

const reads = (
  history: History.History,
  logs: Logs,
  sessions: SessionStoreService
): Pick<Runs.Service, "active" | "list" | "listAll" | "get"> => ({
  active: (sessionId) =>
    Effect.orElseSucceed(
      Effect.map(logs.active(sessionId), ([run]) => run?.runId),
      () => undefined
    ),
  list: (sessionId) =>
    Effect.andThen(SessionProblem.reading(sessions.read(sessionId)), history.list(sessionId)),
  listAll: (page) => history.page(page),
  get: (runId) => history.get(runId)
})

/** `left`: this process is about to end, and its watchers go on at another one. */
const watches = (
  calls: Calls.Calls,
  stores: History.Stores,
  local: Worker.Service | undefined,
  left: Effect.Effect<void>
): Pick<Runs.Service, "watch" | "events"> => {
  const watch = watcher(calls, stores, local, left)
  return {
    watch,
    events: (runId, after, options) =>
      Effect.map(watch(runId, after, options), (pages = Stream.empty) => Stream.flatMap(pages, eventsOf))
  }
}

/** Watchers, of which the last one of this process may cancel its run. */
const watcher = (
  calls: Calls.Calls,
  stores: History.Stores,
  local: Worker.Service | undefined,
  left: Effect.Effect<void>
): Runs.Service["watch"] => {
  const holders = new Holders()
  return Effect.fnUntraced(function* (runId, after, { cancelOnLeave = false, partials = false } = {}) {
    const here = local?.sessionOf(runId)
    const run = here === undefined ? yield* calls.find(runId) : { runId, sessionId: here, ended: undefined }
    if (run.ended !== undefined) return yield* SessionProblem.logging(Calls.ended(stores, run, after))
    const pages = Stream.interruptWhen(Calls.live(stores, calls.watch(run, partials), run, after), left)
    if (cancelOnLeave === false) return pages
    let isOver = false
    const toEnd = Stream.onEnd(
      pages,
      Effect.sync(() => void (isOver = true))
    )
    const cancel = calls.control("Cancel", runId, lastLeft)
    return holders.held(runId, toEnd, { cancelOnLeave, cancel, isOver: () => isOver })
  })
}

// ───────────────────────── Gauges

const gauge = (name: string, description: string) =>
  Metric.gauge(`effect_agent.durable.runs.${name}`, { description })

const seenAt = Metric.gauge("effect_agent.durable.seen", {
  description: "The time at which this process has last read the database, in seconds since the epoch"
})
const unended = gauge("unended", "Runs that have not ended")
const parked = gauge("parked", "Runs that no worker starts until someone resumes them")
const repeated = gauge("repeated", "Runs that were started again, and have made no progress since")
const oldest = gauge("oldest", "The age of the oldest run that has not ended and is not parked, in seconds")

/** Measures four times a minute until the scope closes. */
const measure = (logs: Logs) =>
  Effect.gen(function* () {
    const runs = yield* logs.unended
    const now = yield* Clock.currentTimeMillis
    const going = runs.filter((run) => run.parked === undefined)
    const ages = going.map(({ created }) => (now - created) / 1000)
    yield* Metric.update(unended, runs.length)
    yield* Metric.update(parked, runs.length - going.length)
    yield* Metric.update(repeated, going.filter(({ attempts }) => attempts > 1).length)
    yield* Metric.update(
      oldest,
      ages.reduce((most, age) => Math.max(most, age), 0)
    )
    yield* Metric.update(seenAt, now / 1000)
  }).pipe(Effect.ignore, Effect.repeat(Schedule.spaced("15 seconds")), Effect.forkScoped, Effect.asVoid)
