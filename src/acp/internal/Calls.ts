/** The tool calls of a run as updates of a session. */
import type { SessionUpdate, ToolCallStatus, ToolCallUpdate } from "@agentclientprotocol/sdk"
import type { OfTag } from "../../AgentEvent.ts"
import type * as Message from "../../Message.ts"
import * as Content from "./Content.ts"
import * as State from "./State.ts"
import * as ToolView from "./ToolView.ts"

type State = State.State
type Step = State.Step

const viewOf = ({ options }: State, toolName: string, params: unknown): ToolView.View =>
  (options.view ?? ToolView.of)(toolName, params, options.cwd)

interface Started {
  readonly toolName: string
  readonly params: unknown
  readonly label?: string
}

export const started = (before: State, key: string, { label, params, toolName }: Started): Step => {
  const { content = [], kind, locations = [], title } = viewOf(before, toolName, params)
  // The run that resumes another one starts its open calls again.
  const known = before.calls.get(key)
  const [state, { id }] = known === undefined ? State.opened(before, key, content) : [before, known]
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
  state: State,
  event: OfCall,
  update: Omit<ToolCallUpdate, "toolCallId">
): SessionUpdate => ({
  sessionUpdate: "tool_call_update",
  toolCallId: State.callIdOf(state, event),
  ...update
})

export const contentOf = (
  state: State,
  event: OfCall,
  { content, details }: Pick<Message.ToolResult, "content" | "details">
) => ({
  content: [...(state.calls.get(State.keyOf(event))?.changes ?? []), ...Content.ofResult(content)],
  ...(details === undefined ? {} : { rawOutput: details })
})

export const ended = (state: State, event: OfTag<"ToolExecutionEnd">): Step => {
  const status: ToolCallStatus = event.isError ? "failed" : "completed"
  const { outcome, result } = event
  const update = {
    status,
    ...contentOf(state, event, result),
    _meta: { "effect-agent": { outcome } }
  }
  return [State.closed(state, State.keyOf(event)), [progressed(state, event, update)]]
}

/** A call of a tool that the vendor ran. */
export const hosted = (before: State, block: Message.HostedTool): Step => {
  const { id, isError = false, name, params, result } = block
  const [state, shown] = started(before, id, { toolName: name, params: params ?? {} })
  if (result === undefined) return [state, shown]
  const update: SessionUpdate = {
    sessionUpdate: "tool_call_update",
    toolCallId: state.calls.get(id)?.id ?? id,
    status: isError ? "failed" : "completed",
    rawOutput: result
  }
  return [State.closed(state, id), [...shown, update]]
}

/** The result of a call in a conversation from before. */
export const replayed = (before: State, message: Message.ToolResult): Step => {
  const { content, details, isError, outcome, toolCallId } = message
  const call = before.calls.get(toolCallId)
  const update: SessionUpdate = {
    sessionUpdate: "tool_call_update",
    toolCallId: call?.id ?? toolCallId,
    status: isError ? "failed" : "completed",
    content: [...(call?.changes ?? []), ...Content.ofResult(content)],
    ...(details === undefined ? {} : { rawOutput: details }),
    _meta: { "effect-agent": { outcome } }
  }
  return [State.closed(before, toolCallId), [update]]
}

/** The call of a request, as the client sees it. */
export const requested = (
  state: State,
  request: Pick<OfTag<"ApprovalRequested">, "path" | "toolCallId" | "toolName" | "params">
): ToolCallUpdate => {
  const { content = [], kind, locations = [], title } = viewOf(state, request.toolName, request.params)
  return {
    toolCallId: State.callIdOf(state, request),
    title,
    kind,
    status: "pending",
    rawInput: request.params,
    ...(content.length === 0 ? {} : { content: [...content] }),
    ...(locations.length === 0 ? {} : { locations: [...locations] })
  }
}
