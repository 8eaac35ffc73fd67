/** One event of a run as chunks. */
import * as Struct from "effect/Struct"
import { type AgentEvent, isInside, type OfTag } from "../../AgentEvent.ts"
import * as Asking from "../../ui/Asking.ts"
import { CallSet, from } from "../../internal/callSet.ts"
import * as Streamed from "../../ui/Streamed.ts"
import type * as Message from "../../Message.ts"
import {
  dataOf,
  initial,
  type State,
  type Step,
  type Chunk,
  type FinishReason,
  type Metadata
} from "./ChatState.ts"
import * as UiMessages from "./UiMessages.ts"

export const step = (before: State, event: AgentEvent): Step => {
  if (event._tag === "PartialValue") return [before, []]
  const asking = Asking.step(before.asking, event)
  const state = asking === before.asking ? before : { ...before, asking }
  return isInside(event, state.runId) ? child(state, event) : own(state, event)
}

const own = (state: State, event: AgentEvent): Step => {
  switch (event._tag) {
    case "RunStart":
      return started(state, event)
    case "ModelCallStart":
      // A later call may have the id of an earlier one.
      return [
        { ...state, isInStep: true, notes: [], approvals: new Map() },
        state.isInStep ? [] : [{ type: "start-step" }]
      ]
    case "MessageStart":
      return event.role === "assistant"
        ? [{ ...state, answerId: event.messageId, streamed: Streamed.nothing }, []]
        : [state, []]
    case "MessageDelta": {
      const streamed = Streamed.append(state.streamed, event.delta)
      return withParts(
        { ...state, streamed },
        UiMessages.chunks(event.messageId, streamed, event.delta, state.flags)
      )
    }
    case "MessageRetracted":
      return retracted(state)
    case "MessageEnd":
      return ended(state, event.message)
    case "TurnEnd":
      return [
        { ...state, isInStep: false, stopReason: event.stopReason },
        state.isInStep ? [{ type: "finish-step" }] : []
      ]
    case "RunCancelled":
      return [{ ...state, cancelReason: event.reason }, []]
    case "RunEnd":
      return finished(state, event)
    default:
      return ofCall(state, event)
  }
}

/** The events of tool calls, and the events without a chunk of their own. */
const ofCall = (state: State, event: AgentEvent): Step => {
  switch (event._tag) {
    case "ToolExecutionStart":
      return andEvent(UiMessages.shown(state, event), event, event.label === undefined ? "silent" : "kept")
    case "ToolExecutionProgress":
    case "ToolExecutionEnd":
    case "ApprovalRequested":
      return inCall(state, event)
    case "ApprovalAnswered":
    case "QuestionAsked":
      return andEvent(inCall(state, event), event, "kept")
    case "ToolInvoked":
      return andEvent([state, []], event, event.modified ? "kept" : "silent")
    case "ModelCallEnd":
      return andEvent([state, []], event, event.adjusted === undefined ? "transient" : "kept")
    case "QueueUpdate":
      return andEvent([state, []], event, "transient")
    case "TurnStart":
    case "ToolsDetected":
    case "ModelCallError":
    case "RunError":
      return [state, []]
    default:
      return andEvent([state, []], event, "kept")
  }
}

const andEvent = ([state, chunks]: Step, event: AgentEvent, kind: "silent" | "transient" | "kept"): Step => {
  if (kind === "silent") return [state, chunks]
  const chunk = dataOf("data-event", event, kind === "transient")
  const notes = kind === "kept" && state.isInStep ? [...state.notes, chunk] : state.notes
  return [{ ...state, notes }, [...chunks, chunk]]
}

/** Events of runs inside that a client follows live, and does not keep. */
const fleeting: ReadonlySet<AgentEvent["_tag"]> = new Set([
  "TurnStart",
  "ModelCallStart",
  "ModelCallEnd",
  "ModelCallError",
  "MessageStart",
  "MessageDelta",
  "MessageRetracted",
  "ToolsDetected",
  "ToolExecutionProgress",
  "QueueUpdate",
  "TurnEnd"
])

/** A run inside. Its calls are parts where a person has to answer. */
const child = (state: State, event: AgentEvent): Step => {
  const [next, chunks] = inCall(state, event)
  return [next, [...chunks, dataOf("data-child", event, fleeting.has(event._tag))]]
}

/** The events that change the part of a call, of this run and of those inside. */
const inCall = (state: State, event: AgentEvent): Step => {
  switch (event._tag) {
    case "ToolExecutionProgress":
      return UiMessages.progressed(state, event)
    case "ToolExecutionEnd":
      return UiMessages.ended(state, event)
    case "ApprovalRequested":
      return UiMessages.requested(state, event)
    case "ApprovalAnswered":
      return UiMessages.answered(state, event)
    case "QuestionAsked":
      return UiMessages.asked(state, event)
    default:
      return [state, []]
  }
}

const started = (before: State, event: OfTag<"RunStart">): Step => {
  const messageId = before.messageId ?? event.resumes ?? event.runId
  const isContinued = before.runId !== undefined
  const state: State = {
    ...initial({ messageId }),
    asking: before.asking,
    flags: before.flags,
    // A run that resumes another one continues its parts.
    ...(isContinued ? Struct.pick(before, ["shown", "approvals"]) : {}),
    runId: event.runId,
    prompts: new Set(event.prompts.map(({ id }) => id))
  }
  const messageMetadata = { runId: event.runId, model: event.model }
  return [state, [{ type: "start", messageId, messageMetadata }]]
}

/** Notes the tool parts that the chunks open. */
const withParts = (state: State, chunks: ReadonlyArray<Chunk>): Step => {
  const shown = chunks.reduce(
    (all, chunk) => (chunk.type === "tool-input-available" ? all.with(chunk.toolCallId) : all),
    from(state.shown)
  )
  return [shown === state.shown ? state : { ...state, shown }, chunks]
}

const retracted = (state: State): Step => [
  { ...state, streamed: Streamed.nothing, shown: state.isInStep ? CallSet.empty : state.shown },
  [...(state.isInStep ? [{ type: "reset-step" } as const] : []), ...state.notes]
]

const ended = (state: State, message: Message.Message): Step => {
  // A spread: an interface has no index signature.
  const whole: Chunk = { type: "data-message", id: message.id, data: { ...message } }
  if (message.role === "assistant") {
    const [next, chunks] = completed(state, message)
    return [{ ...next, streamed: Streamed.nothing, notes: [] }, [...chunks, whole]]
  }
  const isWritten = message.role === "user" && message.backgroundEnds === undefined
  if (!isWritten || state.prompts.has(message.id)) return [state, [whole]]
  return [
    state,
    [whole, { type: "steering-message", id: message.id, parts: message.content.map(UiMessages.userPart) }]
  ]
}

/** The rest of an answer. An answer that contradicts its deltas takes their place. */
const completed = (before: State, message: Message.Assistant): Step => {
  const continued = before.answerId === message.id ? before : { ...before, streamed: Streamed.nothing }
  const rest = Streamed.rest(continued.streamed, message)
  const [state, reset] = rest === undefined ? retracted(continued) : ([continued, []] as const)
  const events = rest ?? Streamed.rest(state.streamed, message) ?? []
  return events.reduce<Step>(
    ([state, chunks], event) => {
      const streamed = Streamed.append(state.streamed, event)
      const [next, more] = withParts(
        { ...state, streamed },
        UiMessages.chunks(message.id, streamed, event, state.flags)
      )
      return [next, [...chunks, ...more]]
    },
    [state, reset]
  )
}

const finished = (state: State, event: OfTag<"RunEnd">): Step => {
  const { error, status } = event
  const messageMetadata: Metadata = {
    ...Struct.pick(event, ["runId", "status", "usage", "turns", "durationMs"]),
    ...(event.childUsage === undefined ? {} : { childUsage: event.childUsage }),
    ...(event.resume === undefined ? {} : { resume: event.resume }),
    ...(error === undefined ? {} : { error: { _tag: error._tag, message: error.message } })
  }
  const ends: ReadonlyArray<Chunk> = [
    ...UiMessages.ends(state.answerId, state.streamed),
    ...(state.isInStep ? [{ type: "finish-step" } as const] : [])
  ]
  const next = { ...state, streamed: Streamed.nothing, isInStep: false, hasEnded: true }
  if (status === "cancelled") {
    const reason = state.cancelReason === undefined ? {} : { reason: state.cancelReason }
    return [next, [...ends, { type: "message-metadata", messageMetadata }, { type: "abort", ...reason }]]
  }
  const finish: Chunk = { type: "finish", finishReason: finishReason(state, status), messageMetadata }
  // A client reads nothing after an error.
  const failed: ReadonlyArray<Chunk> =
    status === "failed" ? [{ type: "error", errorText: error?.message ?? "The run failed" }] : []
  return [next, [...ends, finish, ...failed]]
}

const finishReason = ({ asking, stopReason }: State, status: OfTag<"RunEnd">["status"]): FinishReason => {
  if (status === "failed") return "error"
  if (status === "suspended") return Asking.requests(asking).length > 0 ? "tool-calls" : "interrupted"
  if (status !== "completed") return "other"
  if (stopReason === "length") return "length"
  return stopReason === "contentFilter" || stopReason === "refusal" ? "content-filter" : "stop"
}
