/**
 * The requests to a session, as the worker that has it does them.
 */
import * as Effect from "effect/Effect"
import * as Problem from "../../api/Problem.ts"
import { IdempotencyKeys } from "../../runs/IdempotencyKeys.ts"
import type { StoredRun } from "../../runs/RunLogStore.ts"
import * as SessionProblem from "../../runs/SessionProblem.ts"
import * as Starting from "../../runs/Starting.ts"
import type { Driving, Worker } from "./Driving.ts"
import * as Requests from "./Requests.ts"

interface Request extends Requests.Stored {
  /** The id of the request. */
  readonly id: string
}

/** Stores that a run is to be brought to its end. */
type Drive = (id: string, runId: string) => Effect.Effect<void>

export class SessionRequests {
  private readonly sessionId: string
  private readonly worker: Worker
  private readonly driving: Driving
  private readonly drive: Drive
  /** The ids of the messages that the session had when this worker took it, and of those that came since. */
  private seen: Set<string> | undefined

  constructor(sessionId: string, worker: Worker, driving: Driving, drive: Drive) {
    this.sessionId = sessionId
    this.worker = worker
    this.driving = driving
    this.drive = drive
  }

  private get runs() {
    return this.worker.local.runs
  }

  start(request: Request) {
    return Effect.gen({ self: this }, function* () {
      const { prompt, ...others } = yield* Requests.decode(Requests.Start, request)
      const unended = yield* SessionProblem.logging(this.worker.logs.active(this.sessionId))
      const parked = unended.find((run) => run.parked !== undefined)
      if (parked !== undefined) return yield* this.beside(parked, others)
      yield* this.driving.caughtUpWith(unended)
      const started = yield* this.runs.start({ ...others, prompt, sessionId: this.sessionId })
      yield* this.drive(started.runId, started.runId)
      // A prompt that steers or follows a run may begin another one.
      const active = this.worker.local.active(this.sessionId)
      if (active !== undefined && active !== started.runId) yield* this.drive(active, active)
      return started
    })
  }

  /** Answers a prompt while a run is parked: one that came before as it was answered first. */
  private beside({ runId }: StoredRun, { idempotency }: Pick<typeof Requests.Start.Type, "idempotency">) {
    return Effect.gen({ self: this }, function* () {
      const { logs } = this.worker
      const lines = yield* SessionProblem.logging(logs.keys(this.sessionId))
      const keys = new IdempotencyKeys(this.sessionId, logs, lines)
      const first = yield* Starting.firstAnswer(
        keys,
        idempotency,
        this.worker.local.messageIds(this.sessionId)
      )
      return first ?? (yield* new Problem.RunGoesOn({ runId }))
    })
  }

  send(how: "steer" | "followUp", request: Request) {
    return Effect.gen({ self: this }, function* () {
      const { messages, runId, ...options } = yield* Requests.decode(Requests.Send, request)
      yield* this.driving.caughtUp
      const seen = (this.seen ??= new Set(yield* this.worker.local.messageIds(this.sessionId)))
      const fresh = messages.filter(({ id }) => !seen.has(id))
      if (fresh.length === 0) return
      yield* this.runs[how](runId, fresh, options)
      for (const { id } of fresh) seen.add(id)
    })
  }

  control(how: "pause" | "cancel", request: Request) {
    return Effect.gen({ self: this }, function* () {
      const { reason, runId } = yield* Requests.decode(Requests.Control, request)
      // A run that is parked comes to its end when it is driven again.
      if (how === "cancel") yield* this.unparked(request.id, runId)
      yield* this.driving.caughtUp
      yield* this.runs[how](runId, reason)
    })
  }

  /** Resumes a run that is paused, or one that is parked: that one is driven again. */
  resume(request: Request) {
    return Effect.gen({ self: this }, function* () {
      const { reason, runId } = yield* Requests.decode(Requests.Control, request)
      if (yield* this.unparked(request.id, runId)) return
      yield* this.driving.caughtUp
      yield* this.runs.resume(runId, reason)
    })
  }

  /**
   * Lets a parked run be started, and drives it. Whether it was parked. A run that is not parked is driven too: the worker before this one
   * may have ended between the two, and the request that drove the run until it was parked has its reply.
   */
  private unparked(id: string, runId: string): Effect.Effect<boolean, Problem.StorageUnavailable> {
    return Effect.gen({ self: this }, function* () {
      const { logs } = this.worker
      const run = yield* SessionProblem.logging(logs.find(runId))
      if (run === undefined || run.ended !== undefined) return false
      const isParked = run.parked !== undefined
      if (isParked) yield* SessionProblem.logging(logs.unpark(runId))
      return yield* Effect.as(this.drive(id, runId), isParked)
    })
  }

  approve(request: Request) {
    return Effect.gen({ self: this }, function* () {
      const { answer, approvalId, runId } = yield* Requests.decode(Requests.Approve, request)
      yield* this.driving.caughtUp
      const decided = yield* this.runs.approve(runId, approvalId, answer)
      yield* this.drive(decided.runId, decided.runId)
      return decided
    })
  }

  answer(request: Request) {
    return Effect.gen({ self: this }, function* () {
      const { answer, questionId, runId } = yield* Requests.decode(Requests.Answer, request)
      yield* this.driving.caughtUp
      const answered = yield* this.runs.answer(runId, questionId, answer)
      yield* this.drive(answered.runId, answered.runId)
      return answered
    })
  }

  create(request: Requests.Stored) {
    return Effect.flatMap(Requests.decode(Requests.Create, request), (options) =>
      this.runs.createSession({ ...options, sessionId: this.sessionId })
    )
  }

  update(request: Requests.Stored) {
    return Effect.flatMap(Requests.decode(Requests.Update, request), (changes) =>
      this.runs.updateSession(this.sessionId, changes)
    )
  }

  fork(request: Requests.Stored) {
    return Effect.flatMap(Requests.decode(Requests.Fork, request), (options) =>
      this.runs.forkSession(this.sessionId, options)
    )
  }

  /** Removes the session, if it has no run that is to come to its end: also none that is parked, or waits for a place. */
  remove() {
    return Effect.flatMap(SessionProblem.logging(this.worker.logs.active(this.sessionId)), ([run]) =>
      run === undefined
        ? this.runs.deleteSession(this.sessionId)
        : Effect.fail(new Problem.RunGoesOn({ runId: run.runId }))
    )
  }
}
