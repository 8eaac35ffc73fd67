/**
 * The last events of a run that could not write them: its process ended, or it could not begin.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Struct from "effect/Struct"
import type { AgentEvent, OfTag } from "../AgentEvent.ts"
import * as FailureReason from "../internal/failureReason.ts"
import { InvalidInput } from "../internal/invalidInput.ts"
import { RunFailed } from "../RunFailed.ts"
import type { RunKey } from "./RunLogStore.ts"
import * as Tool from "../Tool.ts"
import * as Usage from "../Usage.ts"

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

/** The end of a run whose events stopped. */
export const ofExit = (exit: Exit.Exit<void, unknown>): End => {
  if (Exit.isSuccess(exit))
    return { status: "failed", error: FailureReason.defect("The run ended without RunEnd") }
  if (Cause.hasInterruptsOnly(exit.cause)) return { status: "cancelled" }
  const error = Cause.squash(exit.cause)
  const expected =
    error instanceof RunFailed ? error.reason : error instanceof InvalidInput ? error : undefined
  return { status: "failed", error: expected ?? FailureReason.defect(error) }
}

/** The events that end a log whose last events are `events`, at the time `now`. */
export const of = (
  { runId }: Pick<RunKey, "runId">,
  events: ReadonlyArray<AgentEvent>,
  end: End,
  now: number
): ReadonlyArray<AgentEvent> => {
  let seq = events.findLast((event) => event.runId === runId)?.seq ?? 0
  const base = () => ({ runId, timestamp: now, seq: ++seq })
  const inner = end.status === "suspended" ? [] : closed(events, now)
  const own = (tag: (typeof inner)[number]) => (tag.runId === runId ? { ...tag, seq: ++seq } : tag)
  const { error } = { error: undefined, ...end }
  const failure =
    error === undefined ? [] : [{ ...base(), _tag: "RunError" as const, error, retryable: false }]
  const closing = inner.map(own)
  const spent = spentBy(runId, events)
  const last = { ...spent, ...end, newMessageIds: messageIds(runId, events) }
  return [
    ...closing,
    ...failure,
    { ...base(), _tag: "RunEnd", ...last, durationMs: lasted(runId, events, now) }
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

/** The ends of the calls and messages that are open, innermost first. */
const closed = (events: ReadonlyArray<AgentEvent>, now: number) => {
  const calls = new Map<string, Start>()
  const begun = new Set<string>()
  const messages = new Map<string, Message>()
  for (const event of events) {
    switch (event._tag) {
      case "ToolExecutionStart":
        calls.set(keyOf(event), event)
        break
      case "ToolInvoked":
        begun.add(keyOf(event))
        break
      case "ToolExecutionEnd":
        calls.delete(keyOf(event))
        break
      case "MessageStart":
        messages.set(event.messageId, event)
        break
      case "MessageRetracted":
        messages.delete(event.messageId)
        break
      case "MessageEnd":
        messages.delete(event.message.id)
    }
  }
  return [
    ...[...messages.values()].map((event) => ({
      ...Struct.omit(event, ["role"]),
      _tag: "MessageRetracted" as const,
      timestamp: now
    })),
    ...[...calls.values()].reverse().map((event) => endOf(event, begun.has(keyOf(event)), now))
  ]
}

const keyOf = ({ runId, toolCallId }: { readonly runId: string; readonly toolCallId: string }) =>
  `${runId} ${toolCallId}`

const endOf = (event: Start, isBegun: boolean, now: number): OfTag<"ToolExecutionEnd"> => {
  const text = isBegun
    ? `The process ended while tool ${event.toolName} ran, and its end is not known. It may have had effects: check before you call it again.`
    : "Not run: the process ended before this call began."
  const outcome = isBegun ? ("unknown" as const) : ("aborted" as const)
  const result = Tool.failure(text)
  const call = Struct.omit(event, ["label", "params"])
  return { ...call, _tag: "ToolExecutionEnd", timestamp: now, result, isError: true, outcome, durationMs: 0 }
}
