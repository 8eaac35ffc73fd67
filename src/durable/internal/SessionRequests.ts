/**
 * The requests to a session, as the worker that has it does them. A request may come twice, where its reply was lost: it has its effect
 * once.
 */
import * as Effect from "effect/Effect"
import * as Problem from "../../api/Problem.ts"
import * as SessionProblem from "../../runs/SessionProblem.ts"
import * as Requests from "./Requests.ts"
import type { Worker } from "./Worker.ts"

export class SessionRequests {
  private readonly sessionId: string
  private readonly worker: Worker
  /** Brings the runs of the session to their ends, in a fiber of the worker. */
  private readonly drive: Effect.Effect<void>
  /** The ids of the messages that the session had when this worker took it, and of those that came since. */
  private seen: Set<string> | undefined

  constructor(sessionId: string, worker: Worker) {
    this.sessionId = sessionId
    this.worker = worker
    this.drive = worker.drive(sessionId)
  }

  private get runs() {
    return this.worker.local.runs
  }

  start(request: Requests.Sent) {
    return Requests.decode(Requests.Start, request).pipe(
      Effect.flatMap((start) => this.runs.start({ ...start, sessionId: this.sessionId })),
      Effect.tap(this.drive)
    )
  }

  send(how: "steer" | "followUp", request: Requests.Sent) {
    return Effect.gen({ self: this }, function* () {
      const { messages, runId, ...options } = yield* Requests.decode(Requests.Send, request)
      const seen = (this.seen ??= new Set(yield* this.worker.local.messageIds(this.sessionId)))
      const fresh = messages.filter(({ id }) => !seen.has(id))
      if (fresh.length === 0) return
      yield* this.runs[how](runId, fresh, options)
      for (const { id } of fresh) seen.add(id)
      yield* this.drive
    })
  }

  control(how: "pause" | "resume" | "cancel", request: Requests.Sent) {
    return Requests.decode(Requests.Control, request).pipe(
      Effect.flatMap(({ reason, runId }) => this.runs[how](runId, reason)),
      Effect.tap(this.drive)
    )
  }

  approve(request: Requests.Sent) {
    return Requests.decode(Requests.Approve, request).pipe(
      Effect.flatMap(({ answer, approvalId, runId }) => this.runs.approve(runId, approvalId, answer)),
      Effect.tap(this.drive)
    )
  }

  answer(request: Requests.Sent) {
    return Requests.decode(Requests.Answer, request).pipe(
      Effect.flatMap(({ answer, questionId, runId }) => this.runs.answer(runId, questionId, answer)),
      Effect.tap(this.drive)
    )
  }

  create(request: Requests.Sent) {
    return Effect.flatMap(Requests.decode(Requests.Create, request), (options) =>
      this.runs.createSession({ ...options, sessionId: this.sessionId })
    )
  }

  update(request: Requests.Sent) {
    return Effect.flatMap(Requests.decode(Requests.Update, request), (changes) =>
      this.runs.updateSession(this.sessionId, changes)
    )
  }

  fork(request: Requests.Sent) {
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
