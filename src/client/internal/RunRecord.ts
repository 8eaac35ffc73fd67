/**
 * The record of a run, from which its result is made: its events, without deltas.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { type AgentEvent, isInside, type OfTag } from "../../AgentEvent.ts"
import type * as Approval from "../../Approval.ts"
import { type EventError, FailureReason } from "../../internal/failureReason.ts"
import * as Message from "../../Message.ts"
import { RunFailed, type RunResult } from "../../Run.ts"
import * as RunReport from "../../RunReport.ts"
import { RunDied, type RunError, ServerUnreachable } from "../ClientError.ts"

const isReason = Schema.is(FailureReason)

export class RunRecord {
  private readonly runId: string
  private readonly messages = new Map<string, Message.Message>()
  private report = RunReport.empty
  private readonly turn: Array<AgentEvent> = []
  private end: OfTag<"RunEnd"> | undefined

  constructor(runId: string) {
    this.runId = runId
  }

  readonly add = (event: AgentEvent): void => {
    if (event._tag === "MessageDelta" || event._tag === "PartialValue") return
    if (event.runId !== this.runId || isInside(event, this.runId)) return
    this.report = RunReport.fold(this.report, event)
    if (event._tag === "TurnStart") this.turn.length = 0
    this.turn.push(event)
    if (event._tag === "MessageEnd") this.messages.set(event.message.id, event.message)
    if (event._tag === "RunEnd") this.end = event
  }

  /** The result of the run, or its failure. */
  readonly outcome: Effect.Effect<RunResult, RunError> = Effect.suspend(
    (): Effect.Effect<RunResult, RunError> => {
      const { end } = this
      if (end === undefined) return Effect.fail(new ServerUnreachable({ detail: "the run showed no end" }))
      const result = this.resultOf(end)
      return end.error === undefined ? Effect.succeed(result) : Effect.fail(failure(end.error, result))
    }
  )

  private resultOf(end: OfTag<"RunEnd">): RunResult {
    const { runId, status, turns, usage } = end
    const newMessages = end.newMessageIds.flatMap((id) => this.messages.get(id) ?? [])
    const message = newMessages.findLast((message) => message.role === "assistant")
    const open = status === "suspended" ? this.open : undefined
    return {
      runId,
      status,
      turns,
      usage,
      newMessages,
      report: this.report,
      undelivered: [],
      ...(message === undefined ? {} : { message }),
      text: message === undefined ? "" : Message.textOf(message),
      duration: Duration.millis(end.durationMs),
      ...(open === undefined ? {} : { open })
    }
  }

  /** The turn that waits for a person; `undefined` where another run has its answer. */
  private get open(): Approval.OpenTurn | undefined {
    const { runId, turn } = this
    const message = turn.findLast(
      (event) => event._tag === "MessageEnd" && event.message.role === "assistant"
    )
    if (message?._tag !== "MessageEnd" || message.message.role !== "assistant") return undefined
    const of = <T extends AgentEvent["_tag"]>(tag: T): ReadonlyArray<OfTag<T>> =>
      turn.filter((event): event is OfTag<T> => event._tag === tag)
    const decisions = new Map(of("ApprovalAnswered").map((event) => [event.approvalId, decisionOf(event)]))
    const answers = new Map(of("QuestionAnswered").map((event) => [event.questionId, answerOf(event)]))
    return {
      runId,
      message: message.message,
      isSuspended: true,
      ended: of("ToolExecutionEnd").map(({ outcome, result, toolCallId }) => ({
        toolCallId,
        outcome,
        output: result
      })),
      begun: of("ToolInvoked").map(({ toolCallId }) => toolCallId),
      approvals: of("ApprovalRequested").map((event) =>
        answered(Struct.omit(event, ofEvent), decisions.get(event.approvalId))
      ),
      questions: of("QuestionAsked").map((event) =>
        answered(Struct.omit(event, ofEvent), answers.get(event.questionId))
      )
    }
  }
}

const ofEvent = ["_tag", "parent", "seq", "timestamp", "turn"] as const

const decisionOf = (event: OfTag<"ApprovalAnswered">): Approval.Answer =>
  Struct.omit(event, [...ofEvent, "runId", "path", "approvalId", "toolCallId"])
const answerOf = (event: OfTag<"QuestionAnswered">): Approval.QuestionAnswer =>
  Struct.omit(event, [...ofEvent, "runId", "path", "questionId", "toolCallId"])

const answered = <R, A>(request: R, answer: A | undefined) =>
  answer === undefined ? { request } : { request, answer }

const failure = (error: EventError, result: RunResult): RunError => {
  if (isReason(error)) return new RunFailed({ reason: error, result })
  return error._tag === "Defect" ? new RunDied({ detail: error.message, result }) : error
}
