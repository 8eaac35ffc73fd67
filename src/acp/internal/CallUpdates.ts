/** The tool calls of a run as updates of a session. */
import type { SessionUpdate, ToolCallStatus, ToolCallUpdate } from "@agentclientprotocol/sdk"
import type { OfTag } from "../../AgentEvent.ts"
import type * as Message from "../../Message.ts"
import * as AcpContent from "./AcpContent.ts"
import * as UpdateState from "./UpdateState.ts"
import * as ToolView from "./ToolView.ts"

type UpdateState = UpdateState.State
type Step = UpdateState.Step

const viewOf = ({ options }: UpdateState, toolName: string, params: unknown): ToolView.View =>
  (options.view ?? ToolView.of)(toolName, params, options.cwd)

interface Started {
  readonly toolName: string
  readonly params: unknown
  readonly label?: string
}

export const started = (before: UpdateState, key: string, { label, params, toolName }: Started): Step => {
  const { content = [], kind, locations = [], title } = viewOf(before, toolName, params)
  // The run that resumes another one starts its open calls again.
  const known = before.calls.get(key)
  const [state, { id }] = known === undefined ? UpdateState.opened(before, key, content) : [before, known]
  const call = {
    toolCallId: id,
    // A label is equal for all calls of a tool.
    title: title === toolName ? (label ?? title) : title,
    name: toolName,
    kind,
    status: "pending" as const,
    rawInput: params,
    ...(content.length === 0 ? {} : { content: [...content] }),
    ...(locations.length === 0 ? {} : { locations: [...locations] })
  }
  return [
    state,
    [
      known === undefined
        ? { sessionUpdate: "tool_call", ...call }
        : { sessionUpdate: "tool_call_update", ...call }
    ]
  ]
}

type OfCall = OfTag<"ToolInvoked" | "ToolExecutionProgress" | "ToolExecutionEnd">

export const progressed = (
  state: UpdateState,
  event: OfCall,
  update: Omit<ToolCallUpdate, "toolCallId">
): SessionUpdate => ({
  sessionUpdate: "tool_call_update",
  toolCallId: UpdateState.callIdOf(state, event),
  ...update
})

export const contentOf = (
  state: UpdateState,
  event: OfCall,
  { content, details }: Pick<Message.ToolResult, "content" | "details">
) => ({
  content: [...(state.calls.get(UpdateState.keyOf(event))?.changes ?? []), ...AcpContent.ofResult(content)],
  ...(details === undefined ? {} : { rawOutput: details })
})

export const ended = (state: UpdateState, event: OfTag<"ToolExecutionEnd">): Step => {
  const status: ToolCallStatus = event.isError ? "failed" : "completed"
  const { outcome, result } = event
  const update = {
    status,
    ...contentOf(state, event, result),
    _meta: { "effect-agent": { outcome } }
  }
  return [UpdateState.closed(state, UpdateState.keyOf(event)), [progressed(state, event, update)]]
}

/** A call of a tool that the vendor ran. */
export const hosted = (before: UpdateState, block: Message.HostedTool): Step => {
  const { id, isError = false, name, params, result } = block
  const [state, shown] = started(before, id, { toolName: name, params: params ?? {} })
  if (result === undefined) return [state, shown]
  const update: SessionUpdate = {
    sessionUpdate: "tool_call_update",
    toolCallId: state.calls.get(id)?.id ?? id,
    status: isError ? "failed" : "completed",
    rawOutput: result
  }
  return [UpdateState.closed(state, id), [...shown, update]]
}

/** The result of a call in a conversation from before. */
export const replayed = (before: UpdateState, message: Message.ToolResult): Step => {
  const { content, details, isError, outcome, toolCallId } = message
  const call = before.calls.get(toolCallId)
  const update: SessionUpdate = {
    sessionUpdate: "tool_call_update",
    toolCallId: call?.id ?? toolCallId,
    status: isError ? "failed" : "completed",
    content: [...(call?.changes ?? []), ...AcpContent.ofResult(content)],
    ...(details === undefined ? {} : { rawOutput: details }),
    _meta: { "effect-agent": { outcome } }
  }
  return [UpdateState.closed(before, toolCallId), [update]]
}

/** The call of a request, as the client sees it. */
export const requested = (
  state: UpdateState,
  request: Pick<OfTag<"ApprovalRequested">, "path" | "toolCallId" | "toolName" | "params">
): ToolCallUpdate => {
  const { content = [], kind, locations = [], title } = viewOf(state, request.toolName, request.params)
  return {
    toolCallId: UpdateState.callIdOf(state, request),
    title,
    kind,
    status: "pending",
    rawInput: request.params,
    ...(content.length === 0 ? {} : { content: [...content] }),
    ...(locations.length === 0 ? {} : { locations: [...locations] })
  }
}
