/**
 * The person that a run or an agent waits for: the policy of a run, the turn that stays open with its requests, and the time that stands
 * still meanwhile.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { OfTag } from "../AgentEvent.ts"
import * as Approval from "../Approval.ts"
import type { CannotAnswer } from "./errors.ts"
import type { Journal } from "./journal.ts"
import { Stopwatch } from "./limits.ts"
import type * as Message from "../Message.ts"
import type {
  Answer,
  Interrupted,
  OpenCall,
  OpenTurn,
  Question,
  QuestionAnswer,
  QuestionReply,
  Reply,
  Request,
  Suspended
} from "./openTurn.ts"
import { Requests } from "./requests.ts"
import * as Resumption from "./resumption.ts"
import type { RecordedEvent } from "../Session.ts"
import type { Task } from "./task.ts"
import { ToolContext } from "../Tool.ts"
import type { ToolRegistry } from "../ToolRegistry.ts"

/** The run around a run that starts in a tool or in a hook. */
interface OuterRun {
  readonly id: string
  readonly waiting: Waiting
}

export class Waiting {
  readonly policy: Approval.Policy
  /** Whether the run is inside of another one that could not resume it. */
  readonly isInner: boolean
  /** The open requests of the outermost agent; `undefined` without an agent. */
  readonly requests: Requests | undefined
  /** The time of the run that counts for the limit on it. */
  readonly stopwatch: Stopwatch
  /** The turn that an earlier run left open, and later the one that this run leaves open. */
  turn: OpenTurn | undefined
  /** The stopwatch of each tool call in flight, by the id of the call. */
  private readonly stopwatches = new Map<string, Stopwatch>()
  private readonly clock: Clock.Clock

  /** Whether an agent resumes the run, and with it those inside of its calls. */
  private readonly isResumable: boolean
  /** The agents inside of calls that wait for a person, by the ids of the calls. The next run of the agent has them too. */
  readonly inner: Map<string, Suspended>

  /** `parent`: the outer run, if this one belongs to a call of it that can wait. */
  constructor(
    task: Task,
    outer: OuterRun | undefined,
    context: Context.Context<never>,
    parent: OuterRun | undefined
  ) {
    const caller = Context.getOrUndefined(context, ToolContext)
    const call = caller?.runId === outer?.id ? caller?.toolCallId : undefined
    this.clock = Context.get(context, Clock.Clock)
    this.policy = Context.get(context, Approval.Approval)
    this.isInner = outer !== undefined && parent?.waiting.isResumable !== true
    this.isResumable = !this.isInner && task.inner !== undefined
    this.inner = task.inner ?? new Map()
    this.requests = outer === undefined ? task.requests : outer.waiting.requests
    const { countedMs, durationMs } = task.interrupted ?? {}
    this.stopwatch = new Stopwatch(this.clock, outer?.waiting.stopwatchOf(call), durationMs, countedMs)
    this.turn = task.open
  }

  /** Whether a person can answer. A run that a tool started cannot defer if the run around it could not resume it. */
  get hasPerson(): boolean {
    const { asked } = this.policy
    return asked !== "deny" && !(asked === "defer" && this.isInner)
  }

  /** Begins to count the time of a tool call. */
  startCall(toolCallId: string): Stopwatch {
    const stopwatch = new Stopwatch(this.clock, this.stopwatch)
    this.stopwatches.set(toolCallId, stopwatch)
    return stopwatch
  }

  endCall(toolCallId: string): void {
    this.stopwatches.delete(toolCallId)
  }

  /** The stopwatch of a tool call in flight, else that of the run. */
  stopwatchOf(toolCallId = ""): Stopwatch {
    return this.stopwatches.get(toolCallId) ?? this.stopwatch
  }
}

// ───────────────────────── The open turn of an agent

/** An answer that no run emits. */
type Answered = Unaddressed<"ApprovalAnswered"> | Unaddressed<"QuestionAnswered">
type Unaddressed<T extends "ApprovalAnswered" | "QuestionAnswered"> = Omit<
  OfTag<T>,
  "runId" | "toolCallId" | "seq" | "timestamp"
>

export class OpenTurns {
  /** The open requests of the agent, and of the runs inside its runs. */
  readonly requests = new Requests()
  /** The agents inside of its calls. */
  readonly inner = new Map<string, Suspended>()
  /** The turn that waits for a person, or that the last process left open. */
  current: OpenTurn | undefined
  /** The calls in the background whose ends the next run reports. */
  background: ReadonlyArray<OpenCall> = []
  /** The run that the next one continues, unless it begins with a prompt. */
  interrupted: Interrupted | undefined
  private readonly registry: () => ToolRegistry["Service"]
  private readonly record: (event: RecordedEvent) => Effect.Effect<void>

  /** `record` writes an event to the session. */
  constructor(
    registry: () => ToolRegistry["Service"],
    record: (event: RecordedEvent) => Effect.Effect<void>
  ) {
    this.registry = registry
    this.record = record
  }

  /** Gives an answer, and writes the first one: a crash after that does not lose it. */
  answer(id: string, reply: Reply | QuestionReply): Effect.Effect<Answer | QuestionAnswer, CannotAnswer> {
    return Effect.suspend(() => {
      const { approvals, questions } = this.requests.open
      const open =
        approvals.find(({ approvalId }) => approvalId === id) ??
        questions.find(({ questionId }) => questionId === id)
      return Effect.tap(this.requests.answer(id, reply), (answer) =>
        open === undefined ? Effect.void : this.recorded(id, open, answer)
      )
    })
  }

  private recorded(
    id: string,
    { runId, toolCallId }: Request | Question,
    answer: Answer | QuestionAnswer
  ): Effect.Effect<void> {
    const answered: Answered =
      "decision" in answer
        ? { _tag: "ApprovalAnswered", approvalId: id, ...answer }
        : { _tag: "QuestionAnswered", questionId: id, ...answer }
    return Effect.clockWith((clock) =>
      this.record({ ...answered, runId, toolCallId, seq: 0, timestamp: clock.currentTimeMillisUnsafe() })
    )
  }

  /** Takes the interrupted run, which is lost if the run that begins is another one. */
  take(continued: Interrupted | undefined, journal: Journal | undefined): Effect.Effect<void> {
    const { interrupted } = this
    this.interrupted = undefined
    return (continued === undefined && journal?.lose(interrupted?.runId)) || Effect.void
  }

  /** Keeps a turn for the run that resumes it, in place of the one before. */
  keep(turn: OpenTurn | undefined): void {
    if (turn === undefined && this.current !== undefined)
      this.withdraw({ open: this.current, inner: this.inner })
    if (turn === undefined) this.inner.clear()
    if (turn === undefined) this.background = []
    if (turn !== undefined) this.requests.restore(turn, this.registry())
    this.current = turn
  }

  /** The agent as `reopen` of another one takes it, if its last run ended suspended. */
  suspended(messages: ReadonlyArray<Message.Message>): Suspended | undefined {
    const { current: open, inner } = this
    return open && { messages, open, inner }
  }

  /** Takes the turn of an agent whose last run ended suspended. */
  reopen({ inner, open }: Suspended): void {
    for (const [toolCallId, suspended] of inner) this.inner.set(toolCallId, suspended)
    this.keep(open)
  }

  private withdraw({ inner, open }: Omit<Suspended, "messages">): void {
    this.requests.withdrawAll(open)
    for (const suspended of inner.values()) this.withdraw(suspended)
  }

  /** Forgets the turn, which no run resumes. Returns the results of its calls. */
  close(messages: ReadonlyArray<Message.Message>, now: number): ReadonlyArray<Message.ToolResult> {
    if (this.current === undefined) return []
    const results = Resumption.closing(this.requests.answersOf(this.current), messages, now)
    this.keep(undefined)
    return results
  }
}
