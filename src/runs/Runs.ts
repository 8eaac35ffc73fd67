/**
 * The runs of a server: the service that its routes use.
 *
 * **Details**
 *
 * A run belongs to the server. A client that leaves does not cancel it, and watches it again from where it was. `LiveRuns` runs agents
 * in this process.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import type { SteerOptions } from "../Agent.ts"
import type * as Payload from "../api/Payload.ts"
import type * as Problem from "../api/Problem.ts"
import type * as Message from "../Message.ts"
import type { ListOptions } from "../sessions/SessionStore.ts"
import type { Entry } from "./LogEntry.ts"

export type { Entry } from "./LogEntry.ts"

/**
 * A request for a run.
 *
 * @category options
 * @since 0.2.0
 */
export interface Start {
  /** The session. */
  readonly sessionId: string
  /** The prompt. Fails with `MessageExists` where the conversation has a message with the id of one of it. */
  readonly prompt: Message.Input
  /** The options of the run, which only narrow those of the server. Default: those of the session. */
  readonly options?: Payload.Options
  /** The treatment of the prompt while the session has a run. Default: it fails with `RunGoesOn`. */
  readonly when?: Payload.When
  /**
   * The id of a message that the prompt replaces. The conversation continues before it: the session keeps that message and those behind
   * it on another branch. Fails with `RunGoesOn` while the session has a run, whatever `when` says. Default: none, the prompt is the next
   * message.
   */
  readonly replaces?: Message.MessageId
  /**
   * A key of the client, and the body that it stands for: for 24 hours another request with the key gets the first answer. Default: none.
   */
  readonly idempotency?: Idempotency
  /**
   * The place of the run in a trace, as the header `traceparent` has it: the run continues that trace, also where it begins later or in
   * another process. Default: that of the span around the request.
   */
  readonly trace?: string
}

/**
 * A key of a client, and the body that it stands for.
 *
 * @category options
 * @since 0.2.0
 */
export interface Idempotency {
  /** The key. */
  readonly key: string
  /** The body: a request with the key and another body is refused. */
  readonly body: Schema.Json
}

/**
 * A session that is to be made.
 *
 * @category options
 * @since 0.2.0
 */
export interface NewSession extends Payload.CreateSession {
  /** The working directory of the session, which no client of HTTP chooses. Default: that of the server. */
  readonly cwd?: string
}

/**
 * The options of a watcher.
 *
 * @category options
 * @since 0.2.0
 */
export interface WatchOptions {
  /**
   * Whether the run is cancelled when the last watcher with this option has left; a function decides when it leaves. Default `false`.
   */
  readonly cancelOnLeave?: boolean | (() => boolean)
  /** Whether `PartialValue` events are among the entries. Default `false`. */
  readonly partials?: boolean
}

/**
 * The options of a page of runs.
 *
 * @category options
 * @since 0.2.0
 */
export interface RunPage {
  /** The most runs of the page, at least 1. Default 50. */
  readonly limit?: number
  /** The `nextCursor` of the page before. Default: the first page. */
  readonly cursor?: string
  /** The status of the runs, or `"waiting"` for those that wait for a person. Default: any. */
  readonly status?: Payload.ListedStatus
}

/**
 * An event and its position in the log of its run.
 *
 * @category models
 * @since 0.2.0
 */
export interface Positioned {
  /** The position, from 1. */
  readonly position: number
  /** The event. */
  readonly event: AgentEvent
}

type Storage = Problem.StorageUnavailable
type ToRun = Problem.RunNotFound | Problem.RunOver | Problem.RunNotReady | Storage
type ToOpen = Problem.SessionNotFound | Problem.SessionLocked | Storage
type ToAnswer =
  | Problem.RunNotFound
  | Problem.RunNotReady
  | Problem.CannotAnswer
  | Problem.SessionLocked
  | Problem.Draining
  | Storage

/**
 * The functions of the service that are about sessions.
 *
 * @category models
 * @since 0.2.0
 */
export interface Sessions {
  /** Makes a session, and succeeds with its id. */
  readonly create: (
    options: NewSession
  ) => Effect.Effect<string, Problem.SessionExists | Problem.MalformedRequest | Problem.Draining | Storage>
  /** Lists sessions, those with the newest entries first. */
  readonly list: (page: ListOptions) => Effect.Effect<Payload.Sessions, Problem.MalformedRequest | Storage>
  /** Reads a session. */
  readonly get: (
    sessionId: string
  ) => Effect.Effect<Payload.SessionContents, Problem.SessionNotFound | Storage>
  /** Changes the name or the model of a session. The model changes while the session has no run, or it fails with `RunGoesOn`. */
  readonly update: (
    sessionId: string,
    changes: Payload.UpdateSession
  ) => Effect.Effect<void, Problem.RunGoesOn | Problem.MalformedRequest | Problem.Draining | ToOpen>
  /** Removes a session and its runs. */
  readonly remove: (sessionId: string) => Effect.Effect<void, Problem.RunGoesOn | ToOpen>
  /** Makes a session with the conversation of another one, and succeeds with its id. */
  readonly fork: (
    sessionId: string,
    options: Payload.ForkSession
  ) => Effect.Effect<string, Problem.SessionNotFound | Problem.MalformedRequest | Problem.Draining | Storage>
}

/**
 * The functions of the service.
 *
 * @category models
 * @since 0.2.0
 */
export interface Service {
  /** Succeeds when the service can take a run. */
  readonly health: Effect.Effect<void, Problem.Draining | Storage>
  /** The sessions. */
  readonly sessions: Sessions
  /** Starts a run, joins the one that the session has, or queues one. */
  readonly start: (
    request: Start
  ) => Effect.Effect<
    Payload.Started | Payload.Joined,
    | Problem.RunGoesOn
    | Problem.MessageNotFound
    | Problem.MessageExists
    | Problem.KeyReused
    | Problem.MalformedRequest
    | Problem.Draining
    | ToOpen
  >
  /** The first answer to the key of a prompt; `undefined` for a key that is new. Fails with `KeyReused` for another body. */
  readonly known: (
    sessionId: string,
    idempotency: Idempotency
  ) => Effect.Effect<Payload.Started | Payload.Joined | undefined, Problem.KeyReused | Storage>
  /** Removes a run that has ended, and its events. The conversation stays in the session. */
  readonly remove: (runId: string) => Effect.Effect<void, Problem.RunNotFound | Problem.RunGoesOn | Storage>
  /** The id of the run that a session has, `undefined` if it has none. */
  readonly active: (sessionId: string) => Effect.Effect<string | undefined>
  /** Lists the runs of a session, oldest first. */
  readonly list: (
    sessionId: string
  ) => Effect.Effect<ReadonlyArray<Payload.Run>, Problem.SessionNotFound | Storage>
  /** Lists the runs of all sessions, the newest first. A page may have fewer runs than its limit and be followed by others. */
  readonly listAll: (page: RunPage) => Effect.Effect<Payload.Runs, Problem.MalformedRequest | Storage>
  /** Reads the state of a run. */
  readonly get: (runId: string) => Effect.Effect<Payload.Run, Problem.RunNotFound | Storage>
  /**
   * The entries of the log of a run behind the position `after`, in pages, until the run is over. A page is empty where no event came
   * for 15 seconds. Succeeds with `undefined` if the run is over and has no entry there.
   */
  readonly watch: (
    runId: string,
    after: number,
    options?: WatchOptions
  ) => Effect.Effect<Stream.Stream<ReadonlyArray<Entry>> | undefined, Problem.RunNotFound | Storage>
  /** The events of a run behind the position `after`, until the run is over. */
  readonly events: (
    runId: string,
    after: number,
    options?: WatchOptions
  ) => Effect.Effect<Stream.Stream<Positioned>, Problem.RunNotFound | Storage>
  /** Sends a message to a run for the time after its turn, which `interrupt` ends at once. */
  readonly steer: (
    runId: string,
    message: Message.Input,
    options?: SteerOptions
  ) => Effect.Effect<void, Problem.MalformedRequest | ToRun>
  /** Sends a message to a run for the time when it would end. */
  readonly followUp: (
    runId: string,
    message: Message.Input
  ) => Effect.Effect<void, Problem.MalformedRequest | ToRun>
  /** Holds a run before its next turn or tool call. */
  readonly pause: (runId: string, reason?: string) => Effect.Effect<void, ToRun>
  /** Releases a run that is paused. */
  readonly resume: (runId: string, reason?: string) => Effect.Effect<void, ToRun>
  /** Cancels a run, and does not wait for its end. */
  readonly cancel: (runId: string, reason?: string) => Effect.Effect<void, ToRun>
  /**
   * Approves or rejects a tool call. Succeeds with the decision, and with the id of the run that continues: another one for a run that is
   * suspended. The first answer counts: an equal one succeeds too, and another one fails with `AnswerConflict`.
   */
  readonly approve: (
    runId: string,
    approvalId: string,
    answer: Payload.AnswerApproval
  ) => Effect.Effect<Payload.Decided, ToAnswer>
  /** Answers a question of the model. Succeeds with the answer, and with the id of the run that continues. */
  readonly answer: (
    runId: string,
    questionId: string,
    answer: Payload.AnswerQuestion
  ) => Effect.Effect<Payload.Answered, ToAnswer>
  /**
   * Takes no more runs, and lets go of those that have not ended: at once of those that wait for a person or are paused, after the time of
   * others. They continue in another process, or after the next start.
   */
  readonly drain: (grace: Duration.Input) => Effect.Effect<void>
}

/**
 * The runs of a server.
 *
 * **Example** (Starting a run)
 *
 * ```ts
 * import { Effect, Layer, Stream } from "effect"
 * import { Agent } from "effect-agent"
 * import { Agents, LiveRuns, RunLogStore, Runs } from "effect-agent/server"
 * import { MemorySessionStore } from "effect-agent/sessions"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const agents = Agents.layer(({ session }) => Agent.make({ model: "any", session }))
 * const RunsLive = LiveRuns.layer().pipe(
 *   Layer.provide([agents, MemorySessionStore.layer(), RunLogStore.layerMemory])
 * )
 *
 * const program = Effect.gen(function* () {
 *   const runs = yield* Runs.Runs
 *   const sessionId = yield* runs.sessions.create({})
 *   const { runId } = yield* runs.start({ sessionId, prompt: "Do I need a coat?" })
 *   const events = yield* Stream.runCollect(yield* runs.events(runId, 0))
 *   return events.at(-1)?.event._tag
 * }).pipe(Effect.provide(RunsLive), Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Yes.")])))
 *
 * console.log(await Effect.runPromise(program)) // => RunEnd
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export class Runs extends Context.Service<Runs, Service>()("effect-agent/server/Runs") {}
