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
import type * as Agent from "../Agent.ts"
import type * as Payload from "../api/Payload.ts"
import * as Problem from "../api/Problem.ts"
import { SessionStore } from "../sessions/SessionStore.ts"
import { Agents } from "./Agents.ts"
import * as Answers from "./Answers.ts"
import * as History from "./History.ts"
import { Host, type Parts } from "./Host.ts"
import type { LiveRun } from "./LiveRun.ts"
import { Pace } from "./Pace.ts"
import * as Recovery from "./Recovery.ts"
import { type RunLogError, RunLogStore } from "./RunLogStore.ts"
import * as Requesting from "./Requesting.ts"
import * as RunList from "./RunList.ts"
import * as RunRemoval from "./RunRemoval.ts"
import * as Runs from "./Runs.ts"
import * as SessionProblem from "./SessionProblem.ts"
import * as Sessions from "./Sessions.ts"
import * as Starting from "./Starting.ts"

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
  /**
   * The fate of runs whose process ends before they do. Default `"end"`.
   *
   * - `"end"`: the next process ends their logs, and a process that is about to end cancels its runs.
   * - `"continue"`: they survive. The next process continues them, and begins those that were queued.
   */
  readonly recovery?: "end" | "continue"
}

/** @internal The options of a host. */
export interface HostOptions extends Omit<Options, "recovery"> {
  /** With `"adopt"` runs survive, and the process takes those of others when `adopt` names them. */
  readonly recovery?: Options["recovery"] | "adopt"
  /** Whether no further run may begin: then runs are queued until they are adopted. Default: they may. */
  readonly isFull?: () => boolean
}

/**
 * Makes a layer of runs in this process.
 *
 * **Details**
 *
 * The layer ends the logs of runs that a crash cut: such a run has failed, or it is suspended if it waited for a person. When the layer
 * is released, it cancels the runs that have not ended, and waits for their ends: see `drain`.
 *
 * With `recovery: "continue"` a run survives the process. The next one continues it under its id, and its log reads as if nothing had
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
 *   const sessionId = yield* runs.createSession({ name: "Trip to Oslo" })
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
  const { isFull = () => false, recovery = "end" } = options
  const survives = recovery !== "end"
  if (!survives) yield* Recovery.recover(logs, sessions)
  const scope = yield* Scope.make()
  const pace = new Pace({ flush, heartbeat })
  const takesBack = recovery === "continue"
  const fates = { survives, takesBack, isFull }
  const parts: Parts = { agents: yield* Agents, logs, sessions, scope, idle, pace, cwd, ...fates }
  const host = new Host(parts)
  yield* Effect.addFinalizer(() => Effect.andThen(host.drain(0), Scope.close(scope, Exit.void)))
  if (recovery === "continue") yield* Recovery.resume(host)
  return { host, runs: serviceOf(host) }
})

const serviceOf = (host: Host): Runs.Service => ({
  ready: host.ready,
  ...Sessions.make(host),
  ...Answers.make(host),
  ...control(host),
  start: (request) => Starting.start(host, request),
  active: (sessionId) => Effect.sync(() => host.active(sessionId)?.runId),
  list: (sessionId) => list(host, sessionId),
  listAll: (page) => listAll(host, page),
  get: (runId) => get(host, runId),
  deleteRun: (runId) => deleteRun(host, runId),
  watch: (runId, after, options) => watch(host, runId, after, options),
  events: (runId, after, options) =>
    Effect.map(watch(host, runId, after, options), (pages = Stream.empty) =>
      Stream.flatMap(pages, (page) =>
        Stream.fromIterable(
          page.flatMap(({ event, position }) => (event === undefined ? [] : [{ position, event }]))
        )
      )
    ),
  drain: (grace) => host.drain(grace)
})

const list = Effect.fnUntraced(function* (host: Host, sessionId: string) {
  yield* SessionProblem.reading(host.parts.sessions.read(sessionId))
  const ended = yield* SessionProblem.logging(host.history.of(sessionId))
  const live = [...host.runs.values()].filter((run) => run.sessionId === sessionId)
  // The log of a run has its end before the run has ended here.
  const before = [...ended.values()].filter(({ runId }) => !host.runs.has(runId))
  const all = [...before, ...live.map(({ info }) => info)]
  return all.map((run) => host.history.current(run)).toSorted((left, right) => left.created - right.created)
})

const get = Effect.fnUntraced(function* (host: Host, runId: string) {
  const live = host.runs.get(runId)
  if (live !== undefined) return live.info
  const { sessionId } = yield* host.stored(runId)
  const ended = yield* SessionProblem.logging(host.history.of(sessionId))
  const run: Payload.Run | undefined = ended.get(runId)
  if (run !== undefined) return host.history.current(run)
  // The run continues without this process, which has let go of it.
  const { created, log } = yield* SessionProblem.logging(History.logOf(host.parts.logs, { runId, sessionId }))
  return host.history.current(log.state.of(runId, sessionId, created))
})

const listAll = (host: Host, page: Runs.RunPage) =>
  RunList.page(
    host.parts.logs,
    {
      live: (runId) => host.runs.get(runId)?.info,
      suspended: (run) => Effect.catchTag(get(host, run.runId), "RunNotFound", () => Effect.succeed(run))
    },
    page
  )

const deleteRun = Effect.fnUntraced(function* (host: Host, runId: string) {
  const { history, parts } = host
  const { sessionId } = yield* RunRemoval.remove(parts.logs, runId)
  history.forget(sessionId)
})

const watch = Effect.fnUntraced(function* (
  host: Host,
  runId: string,
  after: number,
  { cancelOnLeave = false }: Runs.WatchOptions = {}
) {
  const { logs, pace } = host.parts
  const live = host.runs.get(runId)
  if (live !== undefined) {
    const pages = live.watch(after, pace)
    if (cancelOnLeave === false) return pages
    const isCancelled = cancelOnLeave === true ? () => true : cancelOnLeave
    return live.held(pages, Effect.ignore(cancel(host, live, "the last watcher left")), isCancelled)
  }
  const { log } = yield* SessionProblem.logging(History.logOf(logs, yield* host.stored(runId)))
  return log.hasAfter(after) ? log.watch(after, pace) : undefined
})

type Control = Pick<Runs.Service, "steer" | "followUp" | "pause" | "resume" | "cancel">

const control = (host: Host): Control => {
  const running = (runId: string) =>
    Effect.flatMap(find(host, runId), (run) => {
      const conversation = host.conversation(run.sessionId)
      const { agent } = conversation
      return agent === undefined || conversation.current !== run
        ? new Problem.RunNotReady({ runId, detail: "The run waits for the one before it." })
        : Effect.succeed({ agent, run })
    })
  const sent = (runId: string, send: (agent: Agent.Agent) => Effect.Effect<void>) =>
    Effect.flatMap(running(runId), ({ agent, run }) => Effect.andThen(send(agent), Requesting.held(run)))
  return {
    steer: (runId, message) => sent(runId, (agent) => agent.steer(message)),
    followUp: (runId, message) => sent(runId, (agent) => agent.followUp(message)),
    pause: (runId, reason) =>
      Effect.flatMap(running(runId), ({ agent, run }) => Requesting.pause(host, agent, run, reason)),
    resume: (runId, reason) =>
      Effect.flatMap(running(runId), ({ agent, run }) => Requesting.resume(host, agent, run, reason)),
    cancel: (runId, reason) => Effect.flatMap(find(host, runId), (run) => cancel(host, run, reason))
  }
}

/** A run that has not ended. */
const find = (host: Host, runId: string) => {
  const live = host.runs.get(runId)
  return live === undefined
    ? Effect.flatMap(host.stored(runId), () => new Problem.RunOver({ runId }))
    : Effect.succeed(live)
}

const cancel = (host: Host, run: LiveRun, reason?: string) =>
  Effect.suspend(() => {
    const conversation = host.conversation(run.sessionId)
    const { agent } = conversation
    if (conversation.current !== run)
      return Effect.asVoid(conversation.cancelQueued((queued) => queued === run))
    return agent === undefined ? Effect.void : Requesting.cancel(host, agent, run, reason)
  })
