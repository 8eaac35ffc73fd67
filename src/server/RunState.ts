/**
 * The state of a run, as its events show it.
 */
import * as Struct from "effect/Struct"
import type { AgentEvent, OfTag } from "../AgentEvent.ts"
import type * as Payload from "../api/Payload.ts"
import type * as Approval from "../Approval.ts"
import * as Usage from "../Usage.ts"

/** The decision about an approval, and the hash that it is about. */
export interface Decision {
  readonly decision: Approval.Answer["decision"]
  readonly argumentsHash: string
}

export class RunState {
  private status: Payload.Run["status"] = "queued"
  private usage: Usage.Usage = Usage.zero
  private turns = 0
  private error: Payload.Run["error"]
  private readonly approvals = new Map<string, Approval.Request>()
  private readonly questions = new Map<string, Approval.Question>()
  private readonly hashes = new Map<string, string>()
  /** The approvals that have an answer. */
  readonly decisions = new Map<string, Decision>()
  /** The answers of questions. */
  readonly answers = new Map<string, Approval.QuestionAnswer>()
  /** The run whose open turn this one began with. */
  resumes: string | undefined

  get isOver(): boolean {
    return this.status !== "queued" && this.status !== "running" && this.status !== "paused"
  }

  get isPaused(): boolean {
    return this.status === "paused"
  }

  get isSuspended(): boolean {
    return this.status === "suspended"
  }

  /** The run as the API shows it. */
  of(runId: string, sessionId: string, created: number): Payload.Run {
    const { error, status, turns, usage } = this
    const pending = { approvals: [...this.approvals.values()], questions: [...this.questions.values()] }
    const failure = error === undefined ? {} : { error }
    return { runId, sessionId, status, created, usage, turns, pending, ...failure }
  }

  /** Forgets the requests that another run has taken over. */
  handOver(): void {
    this.approvals.clear()
    this.questions.clear()
  }

  readonly add = (event: AgentEvent): void => {
    this.addRequest(event)
    if (event.path !== undefined) return
    switch (event._tag) {
      case "RunStart":
        this.resumes = event.resumes
        this.status = "running"
        break
      case "RunPaused":
        this.status = "paused"
        break
      case "RunResumed":
        this.status = "running"
        break
      case "TurnStart":
        this.turns = event.turn ?? this.turns + 1
        break
      case "TurnEnd":
        this.usage = Usage.add(this.usage, event.usage)
        break
      case "RunEnd":
        this.end(event)
    }
  }

  private end({ error, status, turns, usage }: OfTag<"RunEnd">): void {
    this.status = status
    this.usage = usage
    this.turns = turns
    this.error = error
    if (status !== "suspended") this.handOver()
  }

  private addRequest(event: AgentEvent): void {
    switch (event._tag) {
      case "ApprovalRequested":
        this.approvals.set(event.approvalId, requestOf(event))
        this.hashes.set(event.approvalId, event.argumentsHash)
        break
      case "ApprovalAnswered": {
        const { approvalId, decision } = event
        this.approvals.delete(approvalId)
        this.decisions.set(approvalId, { decision, argumentsHash: this.hashes.get(approvalId) ?? "" })
        break
      }
      case "QuestionAsked":
        this.questions.set(event.questionId, questionOf(event))
        break
      case "QuestionAnswered":
        this.questions.delete(event.questionId)
        this.answers.set(event.questionId, event)
        break
      case "ToolExecutionEnd":
        this.endCall(event)
    }
  }

  /** A request without its answer is void with the end of its call. */
  private endCall({ runId, toolCallId }: OfTag<"ToolExecutionEnd">): void {
    const isOfCall = (request: Approval.Request | Approval.Question) =>
      request.runId === runId && request.toolCallId === toolCallId
    for (const [id, request] of this.approvals) if (isOfCall(request)) this.approvals.delete(id)
    for (const [id, request] of this.questions) if (isOfCall(request)) this.questions.delete(id)
  }
}

const ofEvent = ["_tag", "parent", "seq", "timestamp", "turn"] as const
const requestOf = (event: OfTag<"ApprovalRequested">) => Struct.omit(event, ofEvent)
const questionOf = (event: OfTag<"QuestionAsked">) => Struct.omit(event, ofEvent)
