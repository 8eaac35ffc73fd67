/**
 * Runs in the process of the server: an agent for each session, and a log for each run.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { SessionStore } from "../sessions/SessionStore.ts"
import { Agents } from "./Agents.ts"
import * as Commands from "./internal/Commands.ts"
import * as IdempotencyKeys from "./IdempotencyKeys.ts"
import type { Places } from "./Gate.ts"
import type { Parts } from "./internal/Conversation.ts"
import { Host, attend } from "./internal/Host.ts"
import { Pace, lastLeft } from "./Watchers.ts"
import { type RunLogError, RunLogStore, type StoredRun } from "./RunLogStore.ts"
import * as Runs from "./Runs.ts"
import * as SessionProblem from "./SessionProblem.ts"
import * as Sessions from "./Sessions.ts"
import * as Option from "effect/Option"
import * as History from "./History.ts"
import { type Entry, eventsOf } from "./LogEntry.ts"

/**
 * The options of the runs of a server.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The working directory of new sessions, to which a list of sessions keeps. Default: none, and all sessions. */
  readonly cwd?: string
  /** The time without a run after which the server lets go of a session, a duration. Default 1 minute. */
  readonly idle?: Duration.Input
  /** The time without an event after which a watcher gets an empty page, a duration. Default 15 seconds. */
  readonly heartbeat?: Duration.Input
  /** The least time between two pages of a watcher, a duration: for over 250 watchers in proportion more. Default 50 milliseconds. */
  readonly flush?: Duration.Input
}

/** @internal The options of a host. */
export interface HostOptions extends Options {
  /** Whether the process takes runs of others when `adopt` names them alone. Default `false`: it looks for them itself. */
  readonly adopts?: boolean
  /** The places of runs that work at a time. A run without one is queued until it is adopted. Default: there are enough. */
  readonly places?: Places
}

/**
 * Makes a layer of runs in this process.
 *
 * **Details**
 *
 * A run survives the process. When the layer is released, it lets go of the runs that have not ended: see `drain`. The next process
 * continues them under their ids, also after a crash, and begins those that were queued. The log of a run reads as if nothing had
 * happened. A model call that was cut is made again. Of the tool calls that had not ended, those of `"pure"` and `"idempotent"` tools run
 * again with the same `idempotencyKey`, and those of other tools get the outcome `"unknown"`, or a person decides about them: see `unknown`
 * of `Approval.Options`. Requests to a person wait again.
 *
 * **Example** (Runs with an agent)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-agent"
 * import { Agents, LiveRuns, RunLogStore, Runs } from "effect-agent/server"
 * import { MemorySessionStore } from "effect-agent/sessions"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const agents = Agents.layer(({ session }) => Agent.make({ model: "any", session }))
 * const RunsLive = LiveRuns.layer({ idle: "10 seconds" }).pipe(
 *   Layer.provide([agents, MemorySessionStore.layer(), RunLogStore.layerMemory]),
 *   Layer.provide(ScriptedProvider.layer([ScriptedProvider.text("Yes.")]))
 * )
 *
 * const program = Effect.gen(function* () {
 *   const runs = yield* Runs.Runs
 *   const sessionId = yield* runs.sessions.create({ name: "Trip to Oslo" })
 *   const started = yield* runs.start({ sessionId, prompt: "Do I need a coat?" })
 *   return started.status
 * })
 *
 * console.log(await Effect.runPromise(Effect.provide(program, RunsLive))) // => started
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (
  options: Options = {}
): Layer.Layer<Runs.Runs, RunLogError, Agents | SessionStore | RunLogStore> =>
  Layer.effect(
    Runs.Runs,
    Effect.map(make(options), ({ runs }) => Runs.Runs.of(runs))
  )

/** @internal Makes the runs of this process, and their host. */
export const make = Effect.fnUntraced(function* (options: HostOptions) {
  const sessions = yield* SessionStore
  const logs = yield* RunLogStore
  const { cwd, flush = "50 millis", heartbeat = "15 seconds", idle = "1 minute" } = options
  const { adopts = false, places } = options
  const scope = yield* Scope.make()
  const pace = new Pace({ flush, heartbeat })
  const parts: Parts = { agents: yield* Agents, logs, sessions, scope, idle, pace, cwd, adopts, places }
  const host = new Host(parts)
  yield* Effect.addFinalizer(() => Effect.andThen(host.drain(0), Scope.close(scope, Exit.void)))
  if (!adopts) yield* attend(host)
  return { host, runs: serviceOf(host) }
})

const serviceOf = (host: Host): Runs.Service => ({
  health: Effect.andThen(host.ready, History.probe(host.parts.logs)),
  sessions: Sessions.make(host),
  ...Commands.answers(host),
  ...Commands.controls(host),
  start: (request) => Commands.start(host, request),
  known: (sessionId, idempotency) => IdempotencyKeys.stored(host.parts, sessionId, idempotency),
  active: (sessionId) => active(host, sessionId),
  list: (sessionId) =>
    Effect.andThen(SessionProblem.reading(host.parts.sessions.read(sessionId)), host.history.list(sessionId)),
  listAll: (page) => host.history.page(page),
  get: (runId) => host.history.get(runId),
  remove: (runId) =>
    Effect.andThen(host.settled(runId), Effect.asVoid(History.remove(host.parts.logs, runId))),
  watch: (runId, after, options) => pages(host, runId, after, options),
  events: (runId, after, options) =>
    Effect.map(pages(host, runId, after, options), (pages = Stream.empty) => Stream.flatMap(pages, eventsOf)),
  drain: (grace) => host.drain(grace)
})

/** The run that a session has, here or in another process. */
const active = (host: Host, sessionId: string): Effect.Effect<string | undefined> =>
  Effect.suspend(() => {
    const live = host.active(sessionId)
    if (live !== undefined) return Effect.succeed(live.runId)
    return Effect.orElseSucceed(
      Effect.map(host.parts.logs.active(sessionId), ([run]) => run?.runId),
      () => undefined
    )
  })

// ───────────────────────── Watchers
//
// The entries of a run for a watcher: of this process while it has the run, else of the store.

type Page = ReadonlyArray<Entry>

/** The time between two looks at the log of a run that another process may have. */
const glance = "1 second"

/** The pages behind a position until the run is over; `undefined` for one that is over and has no entry there. */
const pages = Effect.fnUntraced(function* (
  host: Host,
  runId: string,
  after: number,
  { cancelOnLeave = false, partials = false }: Runs.WatchOptions = {}
) {
  const { pace } = host.parts
  const live = host.runs.get(runId)
  if (live !== undefined) {
    const pages = live.watch(after, pace, partials)
    if (cancelOnLeave === false) return pages
    const cancel = Commands.cancel(host, live, lastLeft)
    return host.holders.held(runId, pages, { cancelOnLeave, cancel, isOver: () => live.log.isClosed })
  }
  const run = yield* host.stored(runId)
  if (run.ended === undefined) return elsewhere(host, run, after, partials)
  const { log } = yield* SessionProblem.logging(History.logOf(host.parts, run))
  return log.hasAfter(after) ? log.watch(after, pace) : undefined
})

/** The pages of a run that this process does not have, and may get. */
const elsewhere = (host: Host, run: StoredRun, after: number, isPartial: boolean): Stream.Stream<Page> => {
  const { adopts, logs, pace } = host.parts
  const arrived = Effect.raceFirst(host.arrival(run.runId), Effect.sleep(adopts ? pace.heartbeat : glance))
  let last = after
  /** The log is read after the look, which shows whether it was complete. */
  const next = Effect.gen(function* () {
    const found = yield* logs.find(run.runId)
    const live = host.runs.get(run.runId)
    const isOver =
      found === undefined || found.ended !== undefined || host.isDraining || live?.isOwed === true
    if (live !== undefined) return { isOver, isLive: true, page: live.watch(last, pace, isPartial) }
    const { log } = yield* History.logOf(host.parts, run)
    return { isOver, isLive: false, page: log.watch(last, pace) }
  })
  // The log of this process ends with the run, or where the run leaves it.
  return Stream.paginate(true, (wasLive: boolean) =>
    (wasLive ? next : Effect.andThen(arrived, next)).pipe(
      Effect.map(
        ({ isLive, isOver, page }) => [[page], isOver ? Option.none<boolean>() : Option.some(isLive)] as const
      ),
      Effect.orElseSucceed(() => [[Stream.empty], Option.some(false)] as const)
    )
  ).pipe(
    Stream.flatMap((page) => page),
    Stream.tap((page) => Effect.sync(() => void (last = page.at(-1)?.position ?? last)))
  )
}
