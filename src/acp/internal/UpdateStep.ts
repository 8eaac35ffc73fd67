/** One event of a run as updates of a session, with the content of its messages and its tool calls. */
import type {
  SessionUpdate,
  ToolCallStatus,
  ToolCallUpdate,
  ContentBlock,
  ToolCallContent
} from "@agentclientprotocol/sdk"
import * as Predicate from "effect/Predicate"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import * as Streamed from "../../ui/Streamed.ts"
import * as Message from "../../Message.ts"
import type * as ModelEvent from "../../ModelEvent.ts"
import * as UpdateState from "./UpdateState.ts"
import type { State, Step } from "./UpdateState.ts"

export const step = (state: State, event: AgentEvent): Step => {
  switch (event._tag) {
    case "ToolExecutionStart":
      return callStarted(state, UpdateState.keyOf(event), event)
    case "ToolInvoked":
      return [state, [callProgressed(state, event, { status: "in_progress", rawInput: event.params })]]
    case "ToolExecutionProgress":
      return [state, [callProgressed(state, event, contentOf(state, event, event.partial))]]
    case "ToolExecutionEnd":
      return callEnded(state, event)
    default:
      // The words of a run inside are no part of the conversation: its last answer is the result of its call.
      return event.path === undefined ? ofRun(state, event) : [state, []]
  }
}

const ofRun = (state: State, event: AgentEvent): Step => {
  switch (event._tag) {
    case "RunStart": {
      const prompts = event.continued ? [] : event.prompts.map(({ id }) => id)
      return [{ ...state, prompts: new Set(prompts), lastStop: undefined }, []]
    }
    case "MessageStart": {
      if (event.role !== "assistant") return [state, []]
      return [{ ...state, answer: { messageId: event.messageId, streamed: Streamed.nothing } }, []]
    }
    case "MessageDelta":
      return appended(state, event.messageId, event.delta)
    case "MessageRetracted":
      return retracted(state, event.messageId)
    case "MessageEnd":
      return messageEnded(state, event.message)
    case "TurnEnd":
      return [{ ...state, lastStop: event.stopReason }, []]
    case "Compaction":
      return compaction(state, event)
    default:
      return [state, notice(state, event)]
  }
}

const appended = (state: State, messageId: string, delta: ModelEvent.ModelEvent): Step => {
  const { answer } = state
  // The deltas before it are gone: the message comes whole.
  if (answer?.messageId !== messageId) return [state, []]
  const streamed = Streamed.append(answer.streamed, delta)
  const next = { ...state, answer: { messageId, streamed } }
  return said(next, UpdateState.messageIdOf(state, messageId), delta, streamed)
}

const said = (
  state: State,
  messageId: string,
  delta: ModelEvent.ModelEvent,
  { reply }: Streamed.Streamed
): Step => {
  switch (delta._tag) {
    case "TextDelta":
      return [state, textChunk("agent_message_chunk", messageId, delta.delta)]
    case "ThinkingDelta":
      return [state, textChunk("agent_thought_chunk", messageId, delta.delta)]
    case "Source":
    case "Media": {
      const content = blockContent(delta._tag === "Source" ? delta.source : delta.media)
      return [state, content.map((block) => chunk("agent_message_chunk", messageId, block))]
    }
    case "HostedToolEnd": {
      const block = reply.content[delta.contentIndex]
      return block?.type === "hostedTool" ? hostedCall(state, block) : [state, []]
    }
    default:
      return [state, []]
  }
}

const textChunk = (
  kind: "agent_message_chunk" | "agent_thought_chunk",
  messageId: string,
  text: string
): ReadonlyArray<SessionUpdate> => (text === "" ? [] : [chunk(kind, messageId, { type: "text", text })])

const retracted = (state: State, messageId: string): Step => {
  const { answer } = state
  if (answer?.messageId !== messageId || answer.streamed.reply.content.length === 0)
    return [{ ...state, answer: undefined }, []]
  return [
    UpdateState.withVoid(state, messageId),
    noticeOf(
      state,
      "warning",
      "The answer broke off. The text before this is void, and the answer begins again."
    )
  ]
}

const messageEnded = (state: State, message: Message.Message): Step => {
  switch (message.role) {
    case "user":
      return state.prompts.has(message.id) ? [state, []] : [state, userChunks(message)]
    case "assistant":
      return answered(state, message)
    default:
      return [state, []]
  }
}

/** What a person wrote. The client has the ends of background calls as updates of the calls. */
const userChunks = ({ backgroundEnds, content, id }: Message.User): ReadonlyArray<SessionUpdate> =>
  (backgroundEnds === undefined ? content : [])
    .flatMap(blockContent)
    .map((block) => chunk("user_message_chunk", id, block))

/** The part of a message that the client does not have, or the whole message under another id if it contradicts what the client has. */
const answered = (state: State, message: Message.Assistant): Step => {
  const streamed = state.answer?.messageId === message.id ? state.answer.streamed : Streamed.nothing
  const rest = Streamed.rest(streamed, message)
  const start: State =
    rest === undefined
      ? UpdateState.withVoid(state, message.id)
      : { ...state, answer: { messageId: message.id, streamed } }
  const deltas = rest ?? Streamed.rest(Streamed.nothing, message) ?? []
  const begun: State =
    rest === undefined ? { ...start, answer: { messageId: message.id, streamed: Streamed.nothing } } : start
  const [after, updates] = deltas.reduce<Step>(
    ([state, updates], delta) => {
      const [next, more] = appended(state, message.id, delta)
      return [next, [...updates, ...more]]
    },
    [begun, []]
  )
  return [{ ...after, answer: undefined }, updates]
}

const compaction = (state: State, event: OfTag<"Compaction">): Step => {
  const { error, runId, seq, status } = event
  if (state.options.compaction !== true) return [state, []]
  const compactionId = state.compactionId ?? `${runId}:${seq}`
  const words = { start: "in_progress", end: "completed", failed: "failed" } as const
  const update: SessionUpdate = {
    sessionUpdate: "compaction_update",
    compactionId,
    status: words[status],
    ...(error === undefined ? {} : { error: error.message })
  }
  return [{ ...state, compactionId: status === "start" ? compactionId : undefined }, [update]]
}

const notice = (state: State, event: AgentEvent): ReadonlyArray<SessionUpdate> => {
  switch (event._tag) {
    case "ModelCallRetry":
    case "RunRetry": {
      const next = `Attempt ${event.attempt + 1} follows in ${Math.ceil(event.delayMs / 1000)} seconds.`
      return noticeOf(state, "warning", event.error.message, next)
    }
    case "HandedOff":
      return noticeOf(state, "info", `The conversation continues with the agent ${event.to}.`)
    case "LimitReached":
      return noticeOf(state, "warning", `The run reached its limit ${event.limit}: ${event.max}.`)
    default:
      return []
  }
}

const noticeOf = (
  { options }: State,
  severity: "info" | "warning",
  title: string,
  description?: string
): ReadonlyArray<SessionUpdate> =>
  options.notices === true
    ? [{ sessionUpdate: "notice", severity, title, ...(description === undefined ? {} : { description }) }]
    : []

/** The updates of a message of a conversation that the client has not seen. */
export const replayed = (before: State, message: Message.Message): Step => {
  switch (message.role) {
    case "user":
      return [before, userChunks(message)]
    case "assistant": {
      const [state, updates] = answered(before, message)
      return Message.toolCalls(message).reduce<Step>(
        ([state, updates], { id, name, params = {} }) => {
          const [next, more] = callStarted(state, id, { toolName: name, params })
          return [next, [...updates, ...more]]
        },
        [state, updates]
      )
    }
    case "toolResult":
      return replayedResult(before, message)
    default:
      return [before, []]
  }
}

// ───────────────────────── Tool calls

const viewIn = ({ options }: State, toolName: string, params: unknown): UpdateState.View =>
  (options.view ?? UpdateState.viewOf)(toolName, params, options.cwd)

interface Started {
  readonly toolName: string
  readonly params: unknown
  readonly label?: string
}

const callStarted = (before: State, key: string, { label, params, toolName }: Started): Step => {
  const { content = [], kind, locations = [], title } = viewIn(before, toolName, params)
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

const callProgressed = (
  state: State,
  event: OfCall,
  update: Omit<ToolCallUpdate, "toolCallId">
): SessionUpdate => ({
  sessionUpdate: "tool_call_update",
  toolCallId: UpdateState.callIdOf(state, event),
  ...update
})

const contentOf = (
  state: State,
  event: OfCall,
  { content, details }: Pick<Message.ToolResult, "content" | "details">
) => ({
  content: [...(state.calls.get(UpdateState.keyOf(event))?.changes ?? []), ...resultContent(content)],
  ...(details === undefined ? {} : { rawOutput: details })
})

const callEnded = (state: State, event: OfTag<"ToolExecutionEnd">): Step => {
  const status: ToolCallStatus = event.isError ? "failed" : "completed"
  const { outcome, result } = event
  const update = {
    status,
    ...contentOf(state, event, result),
    _meta: { "effect-agent": { outcome } }
  }
  return [UpdateState.closed(state, UpdateState.keyOf(event)), [callProgressed(state, event, update)]]
}

/** A call of a tool that the vendor ran. */
const hostedCall = (before: State, block: Message.HostedTool): Step => {
  const { id, isError = false, name, params, result } = block
  const [state, shown] = callStarted(before, id, { toolName: name, params: params ?? {} })
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
const replayedResult = (before: State, message: Message.ToolResult): Step => {
  const { content, details, isError, outcome, toolCallId } = message
  const call = before.calls.get(toolCallId)
  const update: SessionUpdate = {
    sessionUpdate: "tool_call_update",
    toolCallId: call?.id ?? toolCallId,
    status: isError ? "failed" : "completed",
    content: [...(call?.changes ?? []), ...resultContent(content)],
    ...(details === undefined ? {} : { rawOutput: details }),
    _meta: { "effect-agent": { outcome } }
  }
  return [UpdateState.closed(before, toolCallId), [update]]
}

/** The call of a request, as the client sees it. */
export const requestedCall = (
  state: State,
  request: Pick<OfTag<"ApprovalRequested">, "path" | "toolCallId" | "toolName" | "params">
): ToolCallUpdate => {
  const { content = [], kind, locations = [], title } = viewIn(state, request.toolName, request.params)
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

// ───────────────────────── Blocks of messages as content

type Block = Message.User["content"][number] | Message.Media | Message.Source

/** A block as content, none where ACP has no place for it: a file by its id at a vendor, a source without an address. */
const blockContent = (block: Block): ReadonlyArray<ContentBlock> => {
  switch (block.type) {
    case "text":
      return block.text === "" ? [] : [{ type: "text", text: block.text }]
    case "image":
      return "url" in block.source
        ? [{ type: "resource_link", name: "image", uri: block.source.url }]
        : [inline(block.source, "image")]
    case "source":
      return block.url === undefined
        ? []
        : [{ type: "resource_link", name: block.title ?? block.url, uri: block.url }]
    case "media":
    case "file":
      return fileOf(block)
  }
}

const fileOf = (block: Message.File | Message.Media): ReadonlyArray<ContentBlock> => {
  const { source } = block
  const name = ("name" in block ? block.name : undefined) ?? "file"
  if ("data" in source) return [inline(source, name)]
  if (!("url" in source)) return []
  const { mediaType, url } = source
  return [
    { type: "resource_link", name, uri: url, ...(mediaType === undefined ? {} : { mimeType: mediaType }) }
  ]
}

const inline = (
  { data, mediaType }: { readonly data: string; readonly mediaType: string },
  name: string
): ContentBlock => {
  if (mediaType.startsWith("image/")) return { type: "image", data, mimeType: mediaType }
  if (mediaType.startsWith("audio/")) return { type: "audio", data, mimeType: mediaType }
  return {
    type: "resource",
    resource: { blob: data, mimeType: mediaType, uri: `attachment:${encodeURIComponent(name)}` }
  }
}

/** The content of a tool result. */
const resultContent = (content: Message.ToolResult["content"]): Array<ToolCallContent> =>
  content.flatMap(blockContent).map((block) => ({ type: "content", content: block }))

type Chunk = "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk"

/** A piece of a message. */
const chunk = (sessionUpdate: Chunk, messageId: string, content: ContentBlock): SessionUpdate => ({
  sessionUpdate,
  messageId,
  content
})

/** Joins the pieces of text that stand beside one another in a message. */
export const joined = (updates: ReadonlyArray<SessionUpdate>): ReadonlyArray<SessionUpdate> => {
  const all: Array<SessionUpdate> = []
  for (const update of updates) {
    const whole = together(all.at(-1), update)
    if (whole === undefined) all.push(update)
    else all[all.length - 1] = whole
  }
  return all
}

const together = (before: SessionUpdate | undefined, update: SessionUpdate): SessionUpdate | undefined => {
  if (before === undefined || !isText(before) || !isText(update)) return undefined
  if (before.sessionUpdate !== update.sessionUpdate || before.messageId !== update.messageId) return undefined
  const text = before.content.text + update.content.text
  return { ...update, content: { type: "text", text } }
}

type TextChunk = Extract<SessionUpdate, { readonly sessionUpdate: Chunk }> & {
  readonly content: Extract<ContentBlock, { readonly type: "text" }>
}

const isText = (update: SessionUpdate): update is TextChunk =>
  (update.sessionUpdate === "agent_message_chunk" || update.sessionUpdate === "agent_thought_chunk") &&
  Predicate.hasProperty(update.content, "type") &&
  update.content.type === "text"
