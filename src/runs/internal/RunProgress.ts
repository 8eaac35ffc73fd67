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

// ───────────────────────── The progress of all runs of a log
//
// How far the runs of a log have come: that of the log, and those inside of it.

/** The runs of a log. */
export class LogProgress {
  readonly runs = new Map<string, RunProgress>()
  private readonly keys = new Set<string>()
  /** The requests to a person that are open, since when, and how long there was one. */
  private readonly asked = new Set<string>()
  private askedSince = 0
  private readonly held: Array<readonly [from: number, to: number]> = []

  constructor(events: Iterable<AgentEvent> = []) {
    for (const event of events) this.add(event)
  }

  /** Whether the log has an event that a run that continues publishes again. */
  has(event: AgentEvent): boolean {
    const key = keyOf(event)
    return key !== undefined && this.keys.has(key)
  }

  add(event: AgentEvent): void {
    const key = keyOf(event)
    if (key !== undefined) this.keys.add(key)
    if (event._tag === "RunStart") {
      const caller = this.runs.get(event.parent?.runId ?? "")
      this.runs.set(event.runId, new RunProgress(event, caller?.turn ?? 0))
    }
    this.runs.get(event.runId)?.add(event)
    this.addRequest(event)
    const usage = spentIn(event)
    if (usage === undefined) return
    const around = event.path ?? []
    // A tool spends inside of its own run.
    for (const { runId } of event._tag === "ToolExecutionEnd" ? [...around, event] : around)
      this.runs.get(runId)?.spend({ usage, childUsage: usage })
  }

  private addRequest(event: AgentEvent): void {
    const before = this.asked.size
    if (event._tag === "ApprovalRequested") this.asked.add(callOf(event))
    else if (event._tag === "QuestionAsked") this.asked.add(callOf(event))
    else if (event._tag === "ApprovalAnswered") this.asked.delete(callOf(event))
    else if (event._tag === "QuestionAnswered") this.asked.delete(callOf(event))
    else if (event._tag === "ToolExecutionEnd") this.asked.delete(callOf(event))
    if (before === 0 && this.asked.size > 0) this.askedSince = event.timestamp
    if (before > 0 && this.asked.size === 0) this.held.push([this.askedSince, event.timestamp])
  }

  /** Milliseconds between two times without an open request to a person. */
  counted(from: number, to: number): number {
    const open = this.asked.size > 0 ? [[this.askedSince, to] as const] : []
    const held = [...this.held, ...open].reduce(
      (sum, [begin, end]) => sum + Math.max(0, Math.min(end, to) - Math.max(begin, from)),
      0
    )
    return Math.max(0, to - from - held)
  }

  /** The runs that a tool call of the current turn of a run started, or one in the background. */
  inside(runId: string, toolCallId: string): ReadonlyArray<RunProgress> {
    const run = this.runs.get(runId)
    const isBeside = run?.background.has(toolCallId) === true
    return [...this.runs.values()].filter(
      ({ callerTurn, start: { parent } }) =>
        parent?.runId === runId && parent.toolCallId === toolCallId && (callerTurn === run?.turn || isBeside)
    )
  }
}

/** The tokens of the model call that an event ends, and of those that made a summary, or that a tool made itself. */
const spentIn = (event: AgentEvent): Usage.Usage | undefined => {
  if (event._tag === "Compaction") return event.usage
  if (event._tag === "ToolExecutionEnd") return event.result.usage
  return event._tag === "MessageEnd" && event.message.role === "assistant" ? event.message.usage : undefined
}

const callOf = ({ runId, toolCallId }: { readonly runId: string; readonly toolCallId: string }) =>
  `${runId} ${toolCallId}`

/** A key of the events that a run has once. `undefined` for an event that it may have again. */
const keyOf = (event: AgentEvent): string | undefined => {
  const own = ownKeyOf(event)
  return own === undefined ? undefined : `${event.runId} ${event._tag} ${own}`
}

const ownKeyOf = (event: AgentEvent): string | undefined => {
  const { turn = 0 } = event
  switch (event._tag) {
    case "RunStart":
    case "RunEnd":
    case "RunCancelled":
      return ""
    case "TurnStart":
    case "TurnEnd":
    case "ModelCallStart":
    case "ToolsDetected":
      return String(turn)
    case "MessageStart":
    case "ModelCallEnd":
      return event.messageId
    case "MessageEnd":
      return event.message.id
    case "ToolExecutionStart":
    case "ToolInvoked":
    case "ToolBackgrounded":
    case "ToolExecutionEnd":
    case "HandedOff":
      return `${turn} ${event.toolCallId}`
    case "ApprovalRequested":
    case "ApprovalAnswered":
      return event.approvalId
    case "QuestionAsked":
    case "QuestionAnswered":
      return event.questionId
    case "ContextTransformed":
      return `${turn} ${event.reason} ${event.dropped} ${event.kept}`
    case "Compaction":
      return event.entryId
    case "LimitReached":
      return `${event.limit} ${event.value}`
    default:
      return undefined
  }
}
