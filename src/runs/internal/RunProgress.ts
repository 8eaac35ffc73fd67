/**
 * How far one run of a log has come: a fold of its events.
 */
import type { AgentEvent, OfTag, ToolOutput } from "../../AgentEvent.ts"
import type { Spent } from "../../internal/openTurn.ts"
import * as Message from "../../Message.ts"
import * as RunReport from "../../RunReport.ts"
import * as Usage from "../../Usage.ts"

/** A tool call of the turn. */
export interface Call {
  readonly start: OfTag<"ToolExecutionStart">
  isBegun: boolean
  /** The handle of a call that continued in the background. */
  handle?: string
  end: OfTag<"ToolExecutionEnd"> | undefined
}

/** A call that ended. */
interface Ended {
  readonly call: Message.ToolCall
  readonly output: ToolOutput
  readonly turn: number
}

const nothing: Spent = { usage: Usage.zero }

const plus = ({ childUsage, usage }: Spent, more: Spent): Spent => {
  const inside =
    more.childUsage === undefined ? childUsage : Usage.add(childUsage ?? Usage.zero, more.childUsage)
  return { usage: Usage.add(usage, more.usage), ...(inside === undefined ? {} : { childUsage: inside }) }
}

/** One run of a log. */
export class RunProgress {
  readonly start: OfTag<"RunStart">
  /** The turn of the run around it that it belongs to. */
  readonly callerTurn: number
  report = RunReport.empty
  lastSeq = 0
  lastTime: number
  /** The turn that began last. */
  turn = 0
  isTurnOpen = false
  /** The turn of the last answer, and of the last hand-off. */
  answeredTurn: number
  handedOffIn = 0
  /** Whether the turn has a model call, which has no end. */
  isAsking = false
  /** The start of the compaction that has no end. */
  compacting: OfTag<"Compaction"> | undefined
  /** The message that streams. */
  streaming: OfTag<"MessageStart"> | undefined
  answer: Message.Assistant | undefined
  isDetected = false
  calls = new Map<string, Call>()
  /** The calls of earlier turns in the background that have not ended. */
  readonly background = new Map<string, Call>()
  results: ReadonlyArray<Message.ToolResult> = []
  /** The messages that the run put into the transcript. */
  readonly messages: Array<Message.Message> = []
  private readonly endedCalls: Array<Ended> = []
  private closed = nothing
  ofTurn = nothing
  paused: { readonly reason?: string } | undefined
  isCancelled = false
  error: OfTag<"RunError"> | undefined
  end: OfTag<"RunEnd"> | undefined

  constructor(start: OfTag<"RunStart">, callerTurn: number) {
    this.start = start
    this.callerTurn = callerTurn
    this.lastTime = start.timestamp
    // The first turn of a run that resumes another one has the answer of that one.
    this.answeredTurn = start.resumes === undefined ? 0 : 1
  }

  get spent(): Spent {
    return plus(this.closed, this.ofTurn)
  }

  /** The calls that ended, in the order of the transcript. */
  get ended(): ReadonlyArray<Ended> {
    return this.endedCalls
  }

  /** The members of the next event of this run. */
  base(timestamp: number) {
    const { parent, path, runId } = this.start
    return {
      runId,
      seq: this.lastSeq + 1,
      timestamp,
      ...(this.turn === 0 ? {} : { turn: this.turn }),
      ...(parent === undefined ? {} : { parent }),
      ...(path === undefined ? {} : { path })
    }
  }

  /** The event as the next one of this run: the clock of another machine may be behind that of the one that had the run before. */
  next<Event extends AgentEvent>(event: Event): Event {
    return { ...event, seq: this.lastSeq + 1, timestamp: Math.max(event.timestamp, this.lastTime) }
  }

  add(event: AgentEvent): void {
    this.lastSeq = Math.max(this.lastSeq, event.seq)
    this.lastTime = event.timestamp
    this.report = RunReport.fold(this.report, event)
    switch (event._tag) {
      case "RunPaused":
        this.paused = event.reason === undefined ? {} : { reason: event.reason }
        break
      case "RunResumed":
        this.paused = undefined
        break
      case "RunCancelled":
        this.isCancelled = true
        break
      case "RunError":
        this.error = event
        break
      case "RunEnd":
        this.end = event
        break
      case "Compaction":
        this.compacting = event.status === "start" ? event : undefined
        if (event.usage !== undefined) this.closed = plus(this.closed, { usage: event.usage })
        break
      case "HandedOff":
        this.handedOffIn = this.turn
        break
      default:
        this.addToTurn(event)
    }
  }

  private addToTurn(event: AgentEvent): void {
    switch (event._tag) {
      case "TurnStart":
        this.beginTurn(event.turn ?? this.turn + 1)
        break
      case "TurnEnd": {
        const { childUsage, usage } = event
        this.closed = plus(this.closed, { usage, ...(childUsage === undefined ? {} : { childUsage }) })
        this.ofTurn = nothing
        this.isTurnOpen = false
        break
      }
      case "ModelCallStart":
        this.isAsking = true
        break
      case "ModelCallEnd":
        this.isAsking = false
        break
      case "MessageStart":
        this.streaming = event
        break
      case "MessageRetracted":
        this.streaming = undefined
        break
      case "MessageEnd":
        this.addMessage(event.message)
        break
      default:
        this.addToCall(event)
    }
  }

  private beginTurn(turn: number): void {
    this.turn = turn
    this.isTurnOpen = true
    this.isAsking = false
    this.answer = undefined
    this.isDetected = false
    for (const [id, call] of this.calls)
      if (call.handle !== undefined && call.end === undefined) this.background.set(id, call)
    this.calls = new Map()
    this.results = []
  }

  private addToCall(event: AgentEvent): void {
    switch (event._tag) {
      case "ToolsDetected":
        this.isDetected = true
        break
      case "ToolExecutionStart":
        this.calls.set(event.toolCallId, { start: event, isBegun: false, end: undefined })
        break
      case "ToolBackgrounded": {
        const call = this.calls.get(event.toolCallId)
        if (call !== undefined) call.handle = event.handle
        break
      }
      case "ToolInvoked": {
        const call = this.calls.get(event.toolCallId) ?? this.background.get(event.toolCallId)
        if (call !== undefined) call.isBegun = true
        break
      }
      case "ToolExecutionEnd": {
        const beside = event.background === undefined ? undefined : this.background.get(event.toolCallId)
        const call = beside ?? this.calls.get(event.toolCallId)
        if (call !== undefined) call.end = event
        if (beside !== undefined) this.background.delete(event.toolCallId)
      }
    }
  }

  private addMessage(message: Message.Message): void {
    if (this.streaming?.messageId === message.id) this.streaming = undefined
    this.messages.push(message)
    if (message.role === "assistant") {
      this.answer = message
      this.answeredTurn = this.turn
      if (message.usage !== undefined) this.spend({ usage: message.usage })
    }
    if (message.role !== "toolResult") return
    this.results = [...this.results, message]
    const { content, details, toolCallId } = message
    const call = Message.toolCalls(this.answer ?? Message.assistant("")).find(({ id }) => id === toolCallId)
    const output = this.calls.get(toolCallId)?.end?.result
    if (call === undefined) return
    const given = output ?? { content, ...(details === undefined ? {} : { details }) }
    this.endedCalls.push({ call, output: given, turn: this.turn })
  }

  /** Counts the spending of this run, or of one inside. */
  spend(spent: Spent): void {
    this.ofTurn = plus(this.ofTurn, spent)
  }
}
