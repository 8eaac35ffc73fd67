/**
 * Completes the log of a run: with the events that its session holds and the log does not, and with the ends of all that is open.
 */
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import { CompactionFailed } from "../../internal/failureReason.ts"
import * as ToolOutcome from "../../internal/toolOutcome.ts"
import { plain } from "../../internal/toolOutput.ts"
import * as Message from "../../Message.ts"
import type { LogProgress, RunProgress } from "./RunProgress.ts"
import * as Ending from "./Ending.ts"

/** The end of a run, without its numbers. */
type End = Pick<OfTag<"RunEnd">, "status" | "error" | "resume">

export class Completion {
  /** The events that the log is to have, in their order. */
  readonly added: Array<AgentEvent> = []
  private readonly log: LogProgress
  private readonly now: number
  private readonly because: { readonly reason?: string }

  /** `because`: the reason of a cancel that the log does not have. */
  constructor(log: LogProgress, now: number, because: { readonly reason?: string } = {}) {
    this.log = log
    this.now = now
    this.because = because
  }

  /** Adds an event as the next one of its run. */
  add(event: AgentEvent): void {
    const stamped = this.log.runs.get(event.runId)?.next(event) ?? { ...event, seq: 1 }
    this.log.add(stamped)
    this.added.push(stamped)
  }

  /** Adds an event of the session, with the events that belong before and behind it, unless the log has it. */
  addFact(fact: AgentEvent): void {
    if (this.log.has(fact)) return
    const run = this.log.runs.get(fact.runId)
    if (run === undefined) {
      if (fact._tag === "RunStart") this.add(fact)
      return
    }
    switch (fact._tag) {
      case "MessageEnd":
        return this.addMessage(run, fact)
      case "ToolInvoked":
      case "ToolBackgrounded":
      case "ToolExecutionEnd":
      case "ApprovalRequested":
      case "QuestionAsked":
        this.openCall(run, fact)
        return this.add(fact)
      case "Compaction":
        return this.addCompaction(run, fact)
      case "HandedOff":
        this.endTurn(run, fact.timestamp)
        return this.add(fact)
      case "RunEnd":
        return this.endRun(run, fact)
      default:
        return this.add(fact)
    }
  }

  private addMessage(run: RunProgress, fact: OfTag<"MessageEnd">): void {
    const { message } = fact
    const { timestamp, turn = 1 } = fact
    this.openTurn(run, turn, timestamp)
    const isAsked = message.role === "assistant" && message.usage !== undefined
    if (isAsked && !run.isAsking) {
      const { model } = message
      this.add({ ...run.base(timestamp), _tag: "ModelCallStart", model, messageCount: 0, options: {} })
    }
    if (run.streaming?.messageId !== message.id) {
      this.retract(run, timestamp)
      const { id: messageId, role } = message
      this.add({ ...run.base(timestamp), _tag: "MessageStart", messageId, role })
    }
    this.add(fact)
    if (message.role === "assistant") this.endModelCall(run, timestamp)
  }

  /** Ends the model call whose answer is whole. */
  endModelCall(run: RunProgress, timestamp = this.now): void {
    const { answer, isAsking } = run
    if (answer === undefined || !isAsking || isFailed(answer)) return
    const usage = answer.usage === undefined ? {} : { usage: answer.usage }
    this.add({ ...run.base(timestamp), _tag: "ModelCallEnd", messageId: answer.id, durationMs: 0, ...usage })
  }

  private addCompaction(run: RunProgress, fact: OfTag<"Compaction">): void {
    const { reason, timestamp, tokensBefore = 0, turn } = fact
    if (turn !== undefined) this.openTurn(run, turn, timestamp)
    if (run.compacting === undefined)
      this.add({ ...run.base(timestamp), _tag: "Compaction", status: "start", reason, tokensBefore })
    this.add(fact)
  }

  /** Ends the compaction that is open. */
  endCompaction({ compacting }: RunProgress): void {
    if (compacting === undefined) return
    const { timestamp: _, ...start } = compacting
    const error = new CompactionFailed({ detail: "the process of the run ended" })
    this.add({ ...start, timestamp: this.now, status: "failed", error })
  }

  private openTurn(run: RunProgress, turn: number, timestamp: number): void {
    if (run.turn >= turn) return
    this.endTurn(run, timestamp)
    this.add({ ...run.base(timestamp), turn, _tag: "TurnStart" })
  }

  /** Adds the events that come before those of a call. */
  private openCall(
    run: RunProgress,
    { timestamp, toolCallId }: AgentEvent & { readonly toolCallId: string }
  ): void {
    const toolCalls = run.answer === undefined ? [] : Message.toolCalls(run.answer)
    if (run.background.has(toolCallId)) return
    this.endModelCall(run, timestamp)
    if (!run.isDetected) this.add({ ...run.base(timestamp), _tag: "ToolsDetected", toolCalls })
    const call = toolCalls.find(({ id }) => id === toolCallId)
    if (run.calls.has(toolCallId) || call === undefined) return
    const params = call.params ?? {}
    this.add({ ...run.base(timestamp), _tag: "ToolExecutionStart", toolCallId, toolName: call.name, params })
  }

  /** Voids the answer that streams. */
  retract(run: RunProgress, timestamp = this.now): void {
    const { streaming } = run
    if (streaming === undefined) return
    this.add({ ...run.base(timestamp), _tag: "MessageRetracted", messageId: streaming.messageId })
  }

  /** Ends the turn that is open. */
  endTurn(run: RunProgress, timestamp = this.now): void {
    if (!run.isTurnOpen) return
    this.endModelCall(run, timestamp)
    const { answer, ofTurn, results } = run
    this.add({
      ...run.base(timestamp),
      _tag: "TurnEnd",
      ...(answer === undefined ? {} : { messageId: answer.id }),
      stopReason: answer?.stopReason ?? "aborted",
      toolResultIds: results.map(({ id }) => id),
      ...ofTurn,
      toolCallCount: results.length,
      toolsContinue: results.length > 0
    })
  }

  /** Ends the calls of a run, and the runs inside of them. */
  endCalls(run: RunProgress): void {
    this.retract(run)
    for (const { end, handle, isBegun, start } of [
      ...run.background.values(),
      ...run.calls.values()
    ].reverse()) {
      if (end !== undefined) continue
      const { params: _params, label: _label, _tag, ...call } = start
      this.endInside(run, start.toolCallId)
      const named = {
        type: "toolCall",
        id: start.toolCallId,
        name: start.toolName,
        rawArguments: ""
      } as const
      const { outcome, output } = isBegun ? ToolOutcome.unknown(named) : ToolOutcome.notBegun
      const beside = handle === undefined ? {} : { background: handle, turn: start.turn ?? 0 }
      const ended = { result: plain(output), isError: true, outcome, durationMs: 0, ...beside }
      this.add({ ...call, ...run.base(this.now), _tag: "ToolExecutionEnd", ...ended })
    }
  }

  /** Ends the runs inside of a call. */
  endInside({ start }: RunProgress, toolCallId: string): void {
    for (const inside of this.log.inside(start.runId, toolCallId)) {
      if (inside.end === undefined) this.endRun(inside, { status: "failed", error: Ending.processEnded })
    }
  }

  /** Ends a run. The calls of one that is suspended stay open. */
  endRun(run: RunProgress, { error, resume, status }: End): void {
    this.endCompaction(run)
    if (status !== "suspended") this.endCalls(run)
    if (status === "cancelled" && !run.isCancelled)
      this.add({ ...run.base(this.now), _tag: "RunCancelled", ...this.because })
    this.endTurn(run)
    const { answeredTurn, lastTime, messages, start } = run
    const messageId = messages.findLast(({ role }) => role === "assistant")?.id
    const isNews = error !== undefined && run.error === undefined
    if (isNews) this.add({ ...this.behind(run), _tag: "RunError", error, retryable: false })
    this.add({
      ...this.behind(run),
      _tag: "RunEnd",
      status,
      ...(messageId === undefined ? {} : { messageId }),
      newMessageIds: messages.map(({ id }) => id),
      ...run.spent,
      turns: Math.max(run.turn, answeredTurn),
      durationMs: Math.max(0, Math.max(this.now, lastTime) - start.timestamp),
      ...(error === undefined ? {} : { error }),
      ...(resume === undefined ? {} : { resume })
    })
  }

  private behind(run: RunProgress) {
    const { turn: _, ...base } = run.base(this.now)
    return base
  }
}

const isFailed = ({ stopReason }: Message.Assistant): boolean =>
  stopReason === "error" || stopReason === "aborted"

// ───────────────────────── The events of a run that continues
//
// Joins the events of a run that continues to the log that it has: it leaves out those that the log has, and numbers the others behind
// them. Calls and runs that are left open end before the call or the run around them does.

/** The events that the log is to have for one event of a run that continues. */
export const spliced = (log: LogProgress, event: AgentEvent): ReadonlyArray<AgentEvent> => {
  const run = log.runs.get(event.runId)
  if (event._tag === "MessageDelta" || event._tag === "PartialValue")
    return run === undefined ? [] : [delta(run, event)]
  const isPaused = run?.paused !== undefined
  if (log.has(event) || (event._tag === "RunPaused" && isPaused)) return []
  // A pause that the log does not have has no end there.
  if (event._tag === "RunResumed" && !isPaused) return []
  const completion = new Completion(log, event.timestamp)
  if (run !== undefined && event._tag === "ToolExecutionEnd") completion.endInside(run, event.toolCallId)
  if (run !== undefined && event._tag === "RunEnd" && event.status !== "suspended") {
    completion.endCalls(run)
    completion.endTurn(run)
  }
  completion.add(event)
  return completion.added
}

/** The log keeps no deltas and no partial values: only their number counts for the events behind them. */
const delta = (run: RunProgress, event: OfTag<"MessageDelta" | "PartialValue">): AgentEvent => {
  const next = run.next(event)
  run.lastSeq = next.seq
  return next
}
