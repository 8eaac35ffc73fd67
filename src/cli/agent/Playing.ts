/** Plays the runs of a place, which is this process or a server: shows their events, and answers their requests. */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import type * as Approval from "../../Approval.ts"
import type * as Message from "../../Message.ts"
import { Failed, UsageError } from "../ExitCode.ts"
import * as Requests from "../terminal/Requests.ts"
import * as Screen from "../terminal/Screen.ts"
import * as Outcome from "./Outcome.ts"

/** The failure of a run, or the reason for which a place refuses a request. */
export type Problem = Error & { readonly _tag: string; readonly title?: string; readonly detail?: string }

/** The events of a run. */
export type Events = Stream.Stream<AgentEvent, Problem>

/** The answer to a request of a run. */
type Reply = Approval.Reply | Approval.QuestionReply

/** The session of a prompt, and its runs, of which the place plays one at a time. */
export interface Place {
  /** The id of the session; `undefined` if nothing keeps it. */
  readonly sessionId: string | undefined
  /** Whether the last run of the session is suspended. */
  readonly isSuspended: boolean
  /** Whether a run that waits for a person waits on when the program has left it. */
  readonly isShared: boolean
  /** Begins a run. Without a prompt it is the one that continues what is open in the session. */
  readonly begin: (prompt?: Message.Input) => Events
  /** Whether a request waits for its answer. */
  readonly isOpen: (requestId: string) => Effect.Effect<boolean, Problem>
  /** Answers a request. Succeeds with the events of the run that continues the one that asked, if another one does. */
  readonly answer: (requestId: string, reply: Reply) => Effect.Effect<Events | undefined, Problem>
  readonly steer: (text: string, options: { readonly interrupt?: boolean }) => Effect.Effect<void, Problem>
  readonly followUp: (text: string) => Effect.Effect<void, Problem>
  readonly cancel: (reason?: string) => Effect.Effect<void, Problem>
  /** Whether a run is to continue: one whose requests all have answers, or messages that came too late. */
  readonly isReady: (isSuspended: boolean) => Effect.Effect<boolean>
  /** Drops the messages that no run has taken. */
  readonly clear: Effect.Effect<void>
}

/** A problem as a failure of the program: wrong use if the request is not valid. */
export const failureOf = (problem: Problem): Failed | UsageError => {
  const { _tag, detail = "", message, title = "" } = problem
  if (problem instanceof Failed || problem instanceof UsageError) return problem
  if (_tag === "MalformedRequest") return new UsageError({ detail: detail || message })
  // Its title is about a server that does answer.
  const words = _tag === "StorageUnavailable" && detail !== "" ? [detail] : [title, detail]
  return new Failed({ detail: words.filter((text) => text !== "").join(": ") || message })
}

/** The failure of a prompt without words in a session that has nothing open. */
export const nothingOpen = () =>
  new UsageError({ detail: "There is nothing to continue in this session: give a prompt." })

// ───────────────────────── The runs

interface Options {
  readonly place: Place
  readonly policy: Requests.Policy
  /** Shows an array of events. */
  readonly show: (events: ReadonlyArray<AgentEvent>) => Effect.Effect<void>
  /** Takes away what is below the last line, before a question comes. */
  readonly hide: Effect.Effect<void>
  /** Whether events are shown while a question waits for its answer. */
  readonly isImmediate: boolean
  /** Completes when stdin has no more answers. */
  readonly isOver: Effect.Effect<void>
}

export class Player {
  /** The outcome of the last run. */
  outcome = Outcome.initial
  /** Open while a run works. */
  readonly begun = Latch.makeUnsafe(false)
  /** The run that continues the one that plays. */
  private next: Events | undefined
  /** The request that waits for the person at the terminal. */
  private asked: { readonly event: Request; readonly isVoid: Deferred.Deferred<undefined> } | undefined
  /** Why the program ends, if it is to. */
  private reason: string | undefined
  private readonly options: Options

  constructor(options: Options) {
    this.options = options
  }

  /** Cancels the run that works, and each that comes. */
  end(reason: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.reason = reason
      return Effect.ignore(this.options.place.cancel(reason))
    })
  }

  /** Plays a run, and those that continue it once its requests have answers. Succeeds with the outcome of the last one. */
  play(events: Events) {
    return Effect.gen({ self: this }, function* () {
      this.next = events
      while (this.next !== undefined) {
        const { next } = this
        this.next = undefined
        this.outcome = Outcome.initial
        const exit = yield* Effect.exit(this.follow(next))
        this.begun.closeUnsafe()
        if (Exit.isFailure(exit)) yield* this.failed(exit.cause)
      }
      return this.outcome
    })
  }

  /** Fails unless the events of a run that failed contain its error. Another failure is a bug. */
  private failed(cause: Cause.Cause<unknown>) {
    return Effect.gen({ self: this }, function* () {
      const error = Cause.squash(cause)
      if (error instanceof Failed || error instanceof UsageError) return yield* error
      yield* Effect.logDebug("The run failed", cause)
      if (this.outcome.status === undefined) return yield* Effect.die(error)
    })
  }

  private follow(events: Events) {
    return Effect.gen({ self: this }, function* () {
      const { isImmediate, show } = this.options
      const arrays = yield* Queue.unbounded<ReadonlyArray<AgentEvent>, Problem | Cause.Done>()
      const read = Stream.runForEachArray(events, (array) => {
        const { asked } = this
        const reason = this.begun.isOpen() ? undefined : this.reason
        this.begun.openUnsafe()
        if (asked !== undefined && array.some((event) => isEnd(event, asked.event)))
          Deferred.doneUnsafe(asked.isVoid, Effect.undefined)
        const ending = reason === undefined ? Effect.void : this.end(reason)
        const shown = isImmediate ? show(array) : Effect.void
        return Effect.andThen(ending, Effect.andThen(shown, Queue.offer(arrays, array)))
      })
      yield* Effect.forkScoped(Queue.into(read, arrays), { startImmediately: true })
      yield* Stream.runForEachWhile(Stream.fromQueue(arrays), (array) => this.take(array))
    }).pipe(Effect.scoped)
  }

  /**
   * Shows events up to each request, which a person at the terminal answers before the others are shown. Succeeds with whether the
   * program stays with the run.
   */
  private take(events: ReadonlyArray<AgentEvent>) {
    return Effect.gen({ self: this }, function* () {
      const { isImmediate, place, policy, show } = this.options
      const shown = (some: ReadonlyArray<AgentEvent>) => {
        this.outcome = some.reduce(Outcome.fold, this.outcome)
        return isImmediate ? Effect.void : show(some)
      }
      let from = 0
      for (const [index, event] of events.entries()) {
        if (!isRequest(event) || (policy.asked === "defer" && !place.isShared)) continue
        yield* shown(events.slice(from, index + 1))
        from = index + 1
        if (policy.asked === "defer") {
          this.outcome = Outcome.waiting(this.outcome, event.runId, place.sessionId)
          return false
        }
        const answered = this.answer(event)
        yield* policy.asked === "lines"
          ? Effect.forkScoped(Effect.catch(answered, ({ message }) => Screen.complain(message)))
          : answered
      }
      yield* shown(events.slice(from))
      return true
    })
  }

  /** Answers a request, unless it has its answer or is void. */
  private answer(event: Request) {
    const { hide, place } = this.options
    const id = idOf(event)
    const given = Effect.gen({ self: this }, function* () {
      const isVoid = Deferred.makeUnsafe<undefined>()
      this.asked = { event, isVoid }
      if (!(yield* place.isOpen(id))) return
      const asking = Effect.andThen(hide, this.replyTo(event))
      const reply = yield* Effect.raceFirst(asking, Deferred.await(isVoid))
      if (reply !== undefined) this.next = (yield* place.answer(id, reply)) ?? this.next
    })
    // The run has come further meanwhile, or another person was faster.
    return Effect.catch(given, (problem: Problem) =>
      moved.has(problem._tag) ? Effect.void : Effect.fail(failureOf(problem))
    )
  }

  private replyTo(event: Request): Effect.Effect<Reply, never, Requests.Services> {
    const { isOver, policy } = this.options
    const isLate = policy.asked === "lines"
    if (event._tag === "ApprovalRequested") {
      const late = Effect.as(isOver, { decision: "reject", reason: noAnswer, by: "user" } as const)
      const { argumentsHash } = event
      return Effect.map(Requests.answerApproval(policy, event, late), (reply) => ({
        ...reply,
        argumentsHash
      }))
    }
    if (policy.asked === "terminal") return Requests.answerQuestion(event)
    const reason = isLate ? noAnswer : "the program cannot ask a person"
    return Effect.as(isLate ? isOver : Effect.void, { declined: true, reason, by: "user" } as const)
  }
}

const moved: ReadonlySet<string> = new Set(["RunNotFound", "RequestNotFound", "AnswerConflict"])

const noAnswer = "no answer came on stdin"

type Request = OfTag<"ApprovalRequested"> | OfTag<"QuestionAsked">

const isRequest = (event: AgentEvent): event is Request =>
  event._tag === "ApprovalRequested" || event._tag === "QuestionAsked"

const idOf = (event: Request) => (event._tag === "ApprovalRequested" ? event.approvalId : event.questionId)

/** Whether a request waits no longer after an event. One of a suspended run does. */
const isEnd = (event: AgentEvent, asked: Request): boolean => {
  switch (event._tag) {
    case "ApprovalAnswered":
      return event.approvalId === idOf(asked)
    case "QuestionAnswered":
      return event.questionId === idOf(asked)
    case "ToolExecutionEnd":
      return event.runId === asked.runId && event.toolCallId === asked.toolCallId
    case "RunEnd":
      return event.path === undefined && event.status !== "suspended"
    default:
      return false
  }
}
