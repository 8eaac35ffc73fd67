/**
 * The turn of an agent that waits for a person, and its requests.
 */
import * as Effect from "effect/Effect"
import type { OfTag } from "../AgentEvent.ts"
import type { Interrupted } from "./interrupted.ts"
import type { Journal } from "./journal.ts"
import type * as Message from "../Message.ts"
import type {
  Answer,
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
import type { CannotAnswer } from "./errors.ts"
import type { ToolRegistry } from "../ToolRegistry.ts"

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
