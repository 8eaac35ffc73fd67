/**
 * How far the runs of a log have come: that of the log, and those inside of it.
 */
import type { AgentEvent } from "../../AgentEvent.ts"
import type { Usage } from "../../Usage.ts"
import { RunProgress } from "./RunProgress.ts"

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
const spentIn = (event: AgentEvent): Usage | undefined => {
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
