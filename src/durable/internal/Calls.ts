/**
 * The requests of a process to the workers that have the sessions.
 */
import * as ClusterError from "effect/cluster/ClusterError"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { SteerOptions } from "../../Agent.ts"
import type * as Payload from "../../api/Payload.ts"
import * as Problem from "../../api/Problem.ts"
import * as Message from "../../Message.ts"
import * as History from "../../runs/History.ts"
import type { RunKey, Service as Logs, StoredRun, RunLogError } from "../../runs/RunLogStore.ts"
import type { NewSession, Start } from "../../runs/Runs.ts"
import * as SessionProblem from "../../runs/SessionProblem.ts"
import * as Trace from "../../runs/Trace.ts"
import * as Requests from "./SessionEntity.ts"
import type { SessionEntity } from "./SessionEntity.ts"
import * as Cause from "effect/Cause"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { type Entry, eventOfFrame } from "../../runs/LogEntry.ts"
import { Pace } from "../../runs/Watchers.ts"
import type { AgentEvent } from "../../AgentEvent.ts"

export type Client = Effect.Success<(typeof SessionEntity)["client"]>

type Unreached =
  | ClusterError.MailboxFull
  | ClusterError.AlreadyProcessingMessage
  | ClusterError.PersistenceError
  | ClusterError.EntityNotAssignedToRunner

const isUnreached = (error: unknown): error is Unreached =>
  error instanceof ClusterError.MailboxFull ||
  error instanceof ClusterError.AlreadyProcessingMessage ||
  error instanceof ClusterError.PersistenceError ||
  error instanceof ClusterError.EntityNotAssignedToRunner

const unreached = ({ message }: Unreached) =>
  new Problem.StorageUnavailable({ detail: `The request did not reach a worker: ${message}` })

const noAnswer = () => new Problem.StorageUnavailable({ detail: "No worker has answered within 30 seconds." })

/** A worker that is about to end gives its sessions to others within seconds. */
const otherWorker = { schedule: Schedule.spaced("250 millis"), times: 60 }
const isLeft = (error: unknown) => error instanceof Problem.Draining || SessionProblem.isLeft(error)

const newId = Effect.sync(() => crypto.randomUUID())

export class Calls {
  private readonly client: Client
  private readonly logs: Logs

  /** Fails soon if the store refuses writes, such as with a full disk: a worker gets no request then. */
  private readonly refused: Effect.Effect<never, Problem.StorageUnavailable>

  constructor(client: Client, logs: Logs) {
    this.client = client
    this.logs = logs
    this.refused = Effect.andThen(Effect.delay(History.probe(logs), "2 seconds"), Effect.never)
  }

  /** The answer of a worker, or the problem of a cluster or a store that has none. */
  private readonly reached = <A, E, R>(call: Effect.Effect<A, E | Unreached, R>) =>
    Effect.mapError(call, (error) => (isUnreached(error) ? unreached(error) : error)).pipe(
      Effect.raceFirst(this.refused),
      Effect.timeoutOrElse({ duration: "30 seconds", orElse: () => Effect.fail(noAnswer()) })
    )

  create(options: NewSession) {
    return Effect.gen({ self: this }, function* () {
      const sessionId = options.sessionId ?? (yield* newId)
      const request = yield* Requests.encode(Requests.Create, options)
      return yield* again(this.reached(this.client(sessionId).Create(request)))
    })
  }

  fork(sessionId: string, options: Payload.ForkSession) {
    return Effect.flatMap(Requests.encode(Requests.Fork, options), (request) =>
      this.ofSession(sessionId, (session) => again(this.reached(session.Fork(request))))
    )
  }

  update(sessionId: string, changes: Payload.UpdateSession) {
    return Effect.flatMap(Requests.encode(Requests.Update, changes), (request) =>
      this.ofSession(sessionId, (session) => again(this.reached(session.Update(request))))
    )
  }

  remove(sessionId: string) {
    return this.ofSession(sessionId, (session) => this.reached(session.Remove()))
  }

  /** Starts a run. Each request has a key, so that a worker that gets it again starts one run. */
  start({ prompt, sessionId, ...request }: Start) {
    return Effect.gen({ self: this }, function* () {
      const {
        idempotency = { key: yield* newId, body: null },
        trace = yield* Trace.current,
        ...rest
      } = request
      const others = trace === undefined ? rest : { ...rest, trace }
      const messages = Message.fromInput(prompt)
      const body = yield* Requests.encode(Requests.Start, { ...others, prompt: messages, idempotency })
      return yield* this.ofSession(sessionId, (session) => again(this.reached(session.Start(body))))
    })
  }

  send(how: "Steer" | "FollowUp", runId: string, message: Message.Input, { interrupt }: SteerOptions = {}) {
    const ends = interrupt === true ? { interrupt } : {}
    return this.toRun(runId, (session) =>
      Effect.flatMap(
        Requests.encode(Requests.Send, { runId, messages: Message.fromInput(message), ...ends }),
        (body) => this.reached(session[how](body))
      )
    )
  }

  control(how: "Pause" | "Resume" | "Cancel", runId: string, reason?: string) {
    return this.toRun(runId, (session) =>
      Effect.flatMap(
        Requests.encoded(Requests.Control, { runId, ...(reason === undefined ? {} : { reason }) }),
        (body) => this.reached(session[how](body))
      )
    )
  }

  approve(runId: string, approvalId: string, answer: Payload.AnswerApproval) {
    return this.toRun(runId, (session) =>
      Effect.flatMap(Requests.encoded(Requests.Approve, { runId, approvalId, answer }), (body) =>
        this.reached(session.Approve(body))
      )
    )
  }

  answer(runId: string, questionId: string, answer: Payload.AnswerQuestion) {
    return this.toRun(runId, (session) =>
      Effect.flatMap(Requests.encoded(Requests.Answer, { runId, questionId, answer }), (body) =>
        this.reached(session.Answer(body))
      )
    )
  }

  /** The session of a run. */
  find(runId: string): Effect.Effect<StoredRun, Problem.RunNotFound | Problem.StorageUnavailable> {
    return Effect.flatMap(SessionProblem.logging(this.logs.find(runId)), (run) =>
      run === undefined ? new Problem.RunNotFound({ runId }) : Effect.succeed(run)
    )
  }

  /** Asks the worker that has the session of a run for its entries. */
  watch({ runId, sessionId }: RunKey, partials: boolean) {
    return (after: number) => this.client(sessionId).Watch({ runId, after, partials })
  }

  /** Calls the worker of a session. PostgreSQL cannot store a request to an id with the character NUL, which no session has. */
  private ofSession<A, E>(sessionId: string, call: (session: ReturnType<Client>) => Effect.Effect<A, E>) {
    return Effect.suspend(
      (): Effect.Effect<A, E | Problem.SessionNotFound> =>
        sessionId.includes("\0") ? new Problem.SessionNotFound({ sessionId }) : call(this.client(sessionId))
    )
  }

  private toRun<A, E>(runId: string, call: (session: ReturnType<Client>) => Effect.Effect<A, E>) {
    return Effect.flatMap(this.find(runId), ({ sessionId }) => again(call(this.client(sessionId))))
  }
}

const again = <A, E, R>(call: Effect.Effect<A, E, R>) => Effect.retry(call, { ...otherWorker, while: isLeft })

// ───────────────────────── Watchers
//
// The entries of a run, for a watcher: over all workers that have the run one after another, each entry once and in order.

export type Page = ReadonlyArray<Entry>

/** The times before a watcher looks for the next worker, from the last new entry on. */
const followingPace = Schedule.toStepWithSleep(
  Schedule.min([Schedule.exponential("50 millis", 2), Schedule.spaced("500 millis")])
)

/** A log that is complete has no other time. */
const atOnce = () => new Pace({ flush: 0, heartbeat: "15 seconds" })

/** The pages behind a position, from the store. */
const stored = (
  stores: History.Stores,
  run: StoredRun,
  after: number
): Effect.Effect<Stream.Stream<Page>, RunLogError> =>
  Effect.map(History.logOf(stores, run), ({ log }) => log.watch(after, atOnce()))

/** The stored pages of a run that has ended; `undefined` if there is none behind the position. */
export const ended = (
  stores: History.Stores,
  run: StoredRun,
  after: number
): Effect.Effect<Stream.Stream<Page> | undefined, RunLogError> =>
  Effect.map(History.logOf(stores, run), ({ log }) =>
    log.hasAfter(after) ? log.watch(after, atOnce()) : undefined
  )

/** The end of the stream of a worker: another one has the session now, or will have it. */
const lost = ({ runId, sessionId }: RunKey, cause: Cause.Cause<unknown>): Stream.Stream<never> => {
  if (!Cause.hasDies(cause)) return Stream.empty
  const logged = Effect.logWarning("The worker of the run has failed", cause)
  return Stream.drain(Stream.fromEffect(Effect.annotateLogs(logged, { runId, sessionId })))
}

const nothing = Effect.succeed(Stream.empty)

/** Whether an entry is the end of a run that stands in no other one. */
const isEnd = (entry: Entry): boolean => entry.tag === "RunEnd" && entry.event?.path === undefined

/** The pages of a run that has not ended. */
export const live = <E>(
  stores: History.Stores,
  watch: (after: number) => Stream.Stream<ReadonlyArray<Sent>, E>,
  run: RunKey,
  after: number
): Stream.Stream<Page> =>
  Stream.suspend(() => {
    let last = after
    let pause: Effect.Success<typeof followingPace> | undefined
    let isOver = false
    /** A worker that took the run over sends again what this one has. */
    const behind = (page: Page) => {
      const fresh = page.filter(({ position }) => position > last)
      last = fresh.at(-1)?.position ?? last
      isOver ||= fresh.some(isEnd)
      if (fresh.length > 0) pause = undefined
      return fresh
    }
    const fromWorker = Stream.suspend(() => watch(last)).pipe(
      Stream.map((page) => behind(page.map((entry) => new WireEntry(entry)))),
      Stream.catchCause((cause) => lost(run, cause))
    )
    const paused = Effect.gen(function* () {
      pause ??= yield* followingPace
      yield* Effect.ignore(pause(undefined))
      return undefined
    })
    /** The stored pages of a run that is over; `undefined` for one that goes on, and while the store is away. */
    const rest = stores.logs.find(run.runId).pipe(
      Effect.flatMap((found) => {
        if (found === undefined) return nothing
        return found.ended === undefined ? Effect.undefined : stored(stores, found, last)
      }),
      Effect.orElseSucceed(() => undefined)
    )
    const found = Effect.flatMap(rest, (over) => (over === undefined ? paused : Effect.succeed(over)))
    // The stream of a worker ends when the run is over or has shown its end, and when the worker ends or leaves the session.
    return Stream.paginate(true, (isFirst: boolean) =>
      Effect.map(isFirst ? Effect.undefined : isOver ? nothing : found, (over) => [
        [over ?? fromWorker],
        over === undefined ? Option.some(false) : Option.none<boolean>()
      ])
    ).pipe(Stream.flatMap((pages) => pages))
  })

/** The part of an entry that processes send. */
export interface Sent {
  readonly position: number
  readonly tag: string
  readonly frame: string
}

export class WireEntry implements Entry {
  readonly position: number
  readonly tag: string
  readonly frame: string

  constructor({ frame, position, tag }: Sent) {
    this.position = position
    this.tag = tag
    this.frame = frame
  }

  get event(): AgentEvent | undefined {
    return eventOfFrame(this.frame)
  }
}
