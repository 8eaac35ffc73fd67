/**
 * The last events of a run that could not write them: its process ended, or it could not begin.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Struct from "effect/Struct"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import * as FailureReason from "../../internal/failureReason.ts"
import { InvalidInput } from "../../internal/invalidInput.ts"
import { plain } from "../../internal/toolOutput.ts"
import { RunFailed } from "../../Run.ts"
import { SessionError, StorageFailed } from "../../Session.ts"
import type { RunKey, RunLogError } from "../RunLogStore.ts"
import * as Tool from "../../Tool.ts"
import * as Usage from "../../Usage.ts"

type Error = FailureReason.EventError
type Start = OfTag<"ToolExecutionStart">
type Message = OfTag<"MessageStart">

/** The end of a run. */
export type End =
  | { readonly status: "failed"; readonly error: Error }
  | { readonly status: "cancelled" }
  | { readonly status: "suspended"; readonly resume: RunKey }

/** The error of a run whose process ended. */
export const processEnded: Error = FailureReason.defect("The process of the server ended before the run did")

/** The error of a run whose log the store has refused. */
export const refused = (sessionId: string, { detail }: RunLogError): SessionError =>
  new SessionError({ sessionId, reason: new StorageFailed({ operation: "the log of the run", detail }) })

/** The end of a run whose events stopped. */
export const ofExit = (exit: Exit.Exit<void, unknown>): End => {
  if (Exit.isSuccess(exit))
    return { status: "failed", error: FailureReason.defect("The run ended without RunEnd") }
  if (Cause.hasInterruptsOnly(exit.cause)) return { status: "cancelled" }
  const error = Cause.squash(exit.cause)
  const isTyped = error instanceof InvalidInput || error instanceof SessionError
  const expected = error instanceof RunFailed ? error.reason : isTyped ? error : undefined
  return { status: "failed", error: expected ?? FailureReason.defect(error) }
}

/** The numbers and times of the events of runs: those of a run never go back. */
class Order {
  private readonly seqs = new Map<string, number>()
  private readonly times = new Map<string, number>()
  private readonly now: number

  /** `shown`: the highest number of a delta that watchers may have seen, of the messages that are open. */
  constructor(events: ReadonlyArray<AgentEvent>, now: number, shown: number) {
    this.now = now
    for (const { runId, seq, timestamp } of events) this.see(runId, seq, timestamp)
    for (const { runId } of openMessages(events)) this.see(runId, shown, 0)
  }

  private see(runId: string, seq: number, timestamp: number): void {
    this.seqs.set(runId, Math.max(seq, this.seqs.get(runId) ?? 0))
    this.times.set(runId, Math.max(timestamp, this.times.get(runId) ?? 0))
  }

  /** The clock of this machine may be behind that of the one that had the run. */
  timeOf(runId: string): number {
    return Math.max(this.now, this.times.get(runId) ?? 0)
  }

  next<Event extends { readonly runId: string }>(event: Event) {
    const { runId } = event
    const seq = (this.seqs.get(runId) ?? 0) + 1
    this.seqs.set(runId, seq)
    return { ...event, seq, timestamp: this.timeOf(runId) }
  }
}

/**
 * The events that end a log whose last events are `events`, at the time `now`. `shown` is the highest position that watchers of another
 * process may have seen, of which no log keeps the deltas.
 */
export const of = (
  { runId }: Pick<RunKey, "runId">,
  events: ReadonlyArray<AgentEvent>,
  end: End,
  now: number,
  shown = 0
): ReadonlyArray<AgentEvent> => {
  const order = new Order(events, now, shown)
  const inner = end.status === "suspended" ? [] : closed(events)
  const { error } = { error: undefined, ...end }
  const failure = error === undefined ? [] : [{ runId, _tag: "RunError" as const, error, retryable: false }]
  const last = { ...spentBy(runId, events), ...end, newMessageIds: messageIds(runId, events) }
  const durationMs = lasted(runId, events, order.timeOf(runId))
  return [
    ...inner.map((event) => order.next(event)),
    ...failure.map((event) => order.next(event)),
    order.next({ runId, _tag: "RunEnd" as const, ...last, durationMs })
  ]
}

const spentBy = (runId: string, events: ReadonlyArray<AgentEvent>) => {
  let usage = Usage.zero
  let turns = 0
  for (const event of events) {
    if (event.runId !== runId) continue
    if (event._tag === "TurnStart") turns++
    if (event._tag === "TurnEnd") usage = Usage.add(usage, event.usage)
  }
  return { usage, turns }
}

const messageIds = (runId: string, events: ReadonlyArray<AgentEvent>) =>
  events.flatMap((event) => (event._tag === "MessageEnd" && event.runId === runId ? [event.message.id] : []))

const lasted = (runId: string, events: ReadonlyArray<AgentEvent>, now: number): number =>
  now - (events.find((event) => event.runId === runId)?.timestamp ?? now)

/** The messages that are open. */
const openMessages = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<Message> => {
  const messages = new Map<string, Message>()
  for (const event of events) {
    if (event._tag === "MessageStart") messages.set(event.messageId, event)
    if (event._tag === "MessageRetracted") messages.delete(event.messageId)
    if (event._tag === "MessageEnd") messages.delete(event.message.id)
  }
  return [...messages.values()]
}

/** The ends of the calls and messages that are open, innermost first. */
const closed = (events: ReadonlyArray<AgentEvent>) => {
  const calls = new Map<string, Start>()
  const begun = new Set<string>()
  for (const event of events) {
    if (event._tag === "ToolExecutionStart") calls.set(keyOf(event), event)
    if (event._tag === "ToolInvoked") begun.add(keyOf(event))
    if (event._tag === "ToolExecutionEnd") calls.delete(keyOf(event))
  }
  return [
    ...openMessages(events).map((event) => ({
      ...Struct.omit(event, ["role"]),
      _tag: "MessageRetracted" as const
    })),
    ...[...calls.values()].reverse().map((event) => endOf(event, begun.has(keyOf(event))))
  ]
}

const keyOf = ({ runId, toolCallId }: { readonly runId: string; readonly toolCallId: string }) =>
  `${runId} ${toolCallId}`

const endOf = (event: Start, isBegun: boolean): OfTag<"ToolExecutionEnd"> => {
  const text = isBegun
    ? `The run ended while tool ${event.toolName} ran, and the end of the call is not known. It may have had effects: check before you call it again.`
    : "Not run: the run ended before this call began."
  const outcome = isBegun ? ("unknown" as const) : ("aborted" as const)
  const result = plain(Tool.failure(text))
  const call = Struct.omit(event, ["label", "params"])
  return { ...call, _tag: "ToolExecutionEnd", result, isError: true, outcome, durationMs: 0 }
}
