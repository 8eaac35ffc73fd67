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
import type { RunKey, Service as Logs, StoredRun } from "../../runs/RunLogStore.ts"
import type { NewSession, Start } from "../../runs/Runs.ts"
import * as SessionProblem from "../../runs/SessionProblem.ts"
import * as Trace from "../../runs/Trace.ts"
import * as Requests from "./Requests.ts"
import type { SessionEntity } from "./SessionEntity.ts"

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
