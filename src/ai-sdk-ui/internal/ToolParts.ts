/** The calls of tools, and the requests to a person about them, as chunks. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentEvent, OfTag, ToolOutput } from "../../AgentEvent.ts"
import { from } from "../../internal/callSet.ts"
import { textOf, type ToolOutcome } from "../../Message.ts"
import type { Chunk } from "./UiChunk.ts"
import { partId, type State, type Step } from "./ChatState.ts"

type CallEvent = AgentEvent & { readonly toolCallId: string }

/** Shows the call as a part, if the client has none of it. */
export const shown = (
  state: State,
  event: CallEvent & { readonly toolName: string; readonly params: Schema.Json }
): Step => {
  const toolCallId = partId(state.runId, event)
  if (state.shown.has(toolCallId)) return [state, []]
  const { params: input, toolName } = event
  return [
    { ...state, shown: from(state.shown).with(toolCallId) },
    [{ type: "tool-input-available", toolCallId, toolName, input, ...state.flags(toolName) }]
  ]
}

export const progressed = (state: State, event: OfTag<"ToolExecutionProgress">): Step => {
  const toolCallId = partId(state.runId, event)
  if (!state.shown.has(toolCallId)) return [state, []]
  return [
    state,
    [
      {
        type: "tool-output-available",
        toolCallId,
        output: outputOf(event.partial),
        preliminary: true,
        ...state.flags(event.toolName)
      }
    ]
  ]
}

/** The part of a call that a person refused, or that did not run for want of a yes, is denied. */
export const ended = (state: State, event: OfTag<"ToolExecutionEnd">): Step => {
  const toolCallId = partId(state.runId, event)
  if (!state.shown.has(toolCallId)) return [state, []]
  const approval = state.approvals.get(toolCallId)
  if (approval === undefined ? isRefused(event.outcome) : approval.approved !== true) {
    const [next, chunks] = denied(state, toolCallId, textOf(event.result))
    return [next, [...chunks, { type: "tool-output-denied", toolCallId }]]
  }
  const { durationMs, isError, outcome, result, toolName } = event
  const flags = { toolCallId, ...state.flags(toolName), toolMetadata: { outcome, durationMs } }
  return [
    state,
    isError
      ? [{ type: "tool-output-error", ...flags, errorText: textOf(result) }]
      : [{ type: "tool-output-available", ...flags, output: outputOf(result) }]
  ]
}

/** Whether a call did not run for want of a yes. */
export const isRefused = (outcome: ToolOutcome): boolean =>
  outcome === "rejected" || outcome === "blocked" || outcome === "expired"

/** A denied part has an approval: that of a call that no person decided about is automatic. */
const denied = (state: State, toolCallId: string, reason: string): Step => {
  const approval = state.approvals.get(toolCallId)
  if (approval?.approved === false) return [state, []]
  const approvalId = approval?.approvalId ?? automatic(toolCallId)
  const requested: ReadonlyArray<Chunk> =
    approval === undefined
      ? [{ type: "tool-approval-request", approvalId, toolCallId, isAutomatic: true }]
      : []
  return [
    decided(state, toolCallId, { approvalId, approved: false }),
    [...requested, { type: "tool-approval-response", approvalId, approved: false, reason }]
  ]
}

export const automatic = (toolCallId: string) => `auto_${toolCallId}`

const decided = (
  state: State,
  toolCallId: string,
  approval: { readonly approvalId: string; readonly approved: boolean | undefined }
): State => ({ ...state, approvals: new Map(state.approvals).set(toolCallId, approval) })

export const requested = (before: State, event: OfTag<"ApprovalRequested">): Step => {
  const [state, input] = shown(before, event)
  const { approvalId, argumentsHash, expiresAt, params, path, reason, toolName } = event
  const toolCallId = partId(state.runId, event)
  const descriptor = {
    toolName,
    params,
    argumentsHash,
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...(path === undefined ? {} : { path: path.map((caller) => ({ ...caller })) })
  }
  const request: Chunk = {
    type: "tool-approval-request",
    approvalId,
    toolCallId,
    approvalDescriptor: descriptor,
    ...(reason === undefined ? {} : { reason })
  }
  const [next, around] = surrounding(state, event)
  return [decided(next, toolCallId, { approvalId, approved: undefined }), [...input, ...around, request]]
}

export const answered = (state: State, event: OfTag<"ApprovalAnswered">): Step => {
  const toolCallId = partId(state.runId, event)
  if (!state.approvals.has(toolCallId)) return [state, []]
  const { approvalId, decision, reason } = event
  const approved = decision === "approve"
  return [
    decided(state, toolCallId, { approvalId, approved }),
    [
      {
        type: "tool-approval-response",
        approvalId,
        approved,
        ...(reason === undefined ? {} : { reason })
      }
    ]
  ]
}

export const asked = (before: State, event: OfTag<"QuestionAsked">): Step => {
  const { question, schema } = event
  const call = { ...event, toolName: "ask_user", params: { question, schema } }
  const [state, input] = shown(before, call)
  const [next, around] = surrounding(state, event)
  return [next, [...input, ...around]]
}

/**
 * The call of this run that a request of a run inside waits in, as approved: clients continue by themselves once every part has an
 * output or an answer.
 */
const surrounding = (state: State, event: CallEvent): Step => {
  const caller = event.path?.find(({ runId }) => runId === state.runId)
  if (caller === undefined || !state.shown.has(caller.toolCallId)) return [state, []]
  const { toolCallId } = caller
  const approvalId = state.approvals.get(toolCallId)?.approvalId ?? automatic(toolCallId)
  const requested: ReadonlyArray<Chunk> = state.approvals.has(toolCallId)
    ? []
    : [{ type: "tool-approval-request", approvalId, toolCallId, isAutomatic: true }]
  return [
    decided(state, toolCallId, { approvalId, approved: true }),
    [...requested, { type: "tool-approval-response", approvalId, approved: true }]
  ]
}

/** The value that a tool returned, as JSON. Content that the tool chose itself stands beside its details. */
export const outputOf = ({
  content,
  details,
  isJson
}: Pick<ToolOutput, "content" | "details" | "isJson">): Schema.Json => {
  const isText = content.every(({ type }) => type === "text")
  const text = isText ? textOf({ content }) : undefined
  if (text !== undefined && isJson === true) return Option.getOrElse(decodeJson(text), () => text)
  if (text !== undefined && (details === undefined || details === text)) return text
  return { content: content.map((block) => ({ ...block })), ...(details === undefined ? {} : { details }) }
}

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))
