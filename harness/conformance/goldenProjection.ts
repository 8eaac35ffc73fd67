/**
 * What a run showed, in the words of the scenarios.
 */
import { AgentEvent, type Message, type RunReport } from "effect-agent"
import * as LimitTable from "../../src/internal/limitTable.ts"
import type { NameOf, Stage } from "./stage.ts"
import { errorKinds, eventTypes, fromLibrary, type Words } from "./words.ts"

/** The projection, of values as the library gave them: one that changed later shows. */
export const project = (stage: Stage): object => {
  const events: ReadonlyArray<AgentEvent.AgentEvent> = stage.events
  const ended = new Map<string, Message.Message>()
  for (const event of events) if (event._tag === "MessageEnd") ended.set(event.message.id, event.message)
  const runs = [...new Set(events.map((event) => event.runId))]
  let view = AgentEvent.initial()
  return {
    ...stage.recorded,
    maxConcurrentTools: stage.running.most,
    events: events.flatMap((event) => {
      view = AgentEvent.fold(view, event)
      const type = eventTypes[event._tag]
      return type === undefined ? [] : [{ ...fieldsOf(event, ended, AgentEvent.partial(view)), type }]
    }),
    native: events.filter((event) => eventTypes[event._tag] === undefined).map(nativeOf),
    runs: events.filter((event) => event._tag === "RunEnd").map((event) => runOf(event, events)),
    seq: runs.map((id) => events.filter((event) => event.runId === id).map((event) => event.seq)),
    requests: stage.requests.map(requestOf),
    finalMessages: stage.session.messages().map(messageOf),
    callerMessages: stage.session.callerMessages?.()
  }
}

/** How the scenarios name an event. `roles`: the application's own, by message id. */
export const nameOf: NameOf = ({ _tag, delta, message, messageId, role, toolCallId }, roles) => {
  const own = roles.get(message?.id ?? messageId)
  const ofMessage = _tag.startsWith("Message") ? (own ?? role ?? message?.role) : undefined
  const detail = toolCallId ?? (delta === undefined ? ofMessage : kindOf(delta))
  const type = eventTypes[_tag]
  return { type, label: `${type ?? `native:${_tag}`}${detail === undefined ? "" : `:${detail}`}` }
}

/** Of `ToolCallStart` it is `toolcall_start`. */
const kindOf = ({ _tag }: Words): string => _tag.replace(/(Start|Delta|End)$/, "_$1").toLowerCase()

const fieldsOf = (event: Words, ended: ReadonlyMap<string, Words>, partial: Words): object => {
  const index = event.delta?.contentIndex
  const known = event.message ?? partial ?? ended.get(event.messageId)
  const message = event._tag.startsWith("Message") ? known : undefined
  const content = message?.content ?? event.partial?.content ?? event.result?.content ?? []
  const of = (type: string) => content.filter((block: Words) => block.type === type)
  const textOf = (type: string) =>
    of(type).reduce((all: string, { text }: Words) => all + text, "") || undefined
  return {
    ...event,
    ...(message && messageOf(message)),
    text: textOf("text") ?? message?.data?.text,
    thinking: textOf("thinking"),
    images: of("image").length || undefined,
    toolCalls: of("toolCall").length === 0 ? undefined : of("toolCall").map((call: Words) => call.id),
    kind: event.delta && kindOf(event.delta),
    index,
    delta: event.delta?.delta,
    toolCallId: event.toolCallId ?? message?.toolCallId ?? content[index]?.id,
    args: event.params,
    toolResults: event.toolResultIds?.map((id: string) => ended.get(id)?.toolCallId),
    newMessages: event.newMessageIds?.length
  }
}

const nativeOf = (event: Words): object => {
  const hook = event.hook && fromLibrary(event.hook)
  return {
    ...event,
    limit: limitOf(event.limit),
    tag: event._tag,
    hook,
    kind: event.error && errorKind(event.error)
  }
}

const runOf = ({ error, runId, status }: Words, events: ReadonlyArray<Words>): object => {
  const turns = events.filter((event) => event._tag === "TurnStart" && event.runId === runId).length
  return { status, turns, error: error && errorKind(error), limit: limitOf(error?.limit) }
}

/** The scenarios have the names of version 0.1.0. */
const limitOf = (limit: unknown): unknown =>
  Object.entries(formerly).find(([name]) => name === limit)?.[1].formerly ?? limit

const formerly: LimitTable.Table = LimitTable.table

/** The scenario's word for an error; what has a reason is known by it. */
export const errorKind = ({ _tag, limit, reason }: Words): string => {
  if (typeof reason === "object") return errorKind(reason)
  return limit === "maxIdenticalToolCalls" ? "repetitiveToolCall" : (errorKinds[_tag] ?? _tag)
}

const requestOf = ({ apiKey, request }: Words): object => {
  const { maxTokens, temperature, thinkingLevel, ...options } = request.options
  return {
    ...options,
    apiKey,
    model: request.model,
    systemPrompt: request.system ?? "",
    tools: request.tools.map((tool: Words) => tool.name),
    messages: request.messages.map(messageOf),
    thinkingLevel: thinkingLevel === "off" ? undefined : thinkingLevel,
    options: { maxTokens, temperature }
  }
}

const messageOf = ({ content, data, kind, role, ...message }: Words): object => ({
  ...message,
  ...(role === "custom" ? { role: kind, text: data.text } : { role, content: content.map(blockOf) })
})

const blockOf = (block: Words): object => {
  if (block.type === "thinking") return { ...block, thinking: block.text, signature: block.opaque }
  if (block.type === "toolCall") return { ...block, arguments: block.params }
  return block.type === "image" ? { ...block, ...block.source, mimeType: block.source.mediaType } : block
}

export const reportOf = ({ audit, history, usage, ...counts }: RunReport.RunReport): object => ({
  ...counts,
  inputTokens: usage.input,
  outputTokens: usage.output,
  totalTokens: usage.total,
  historyEntries: history.length,
  audit: audit.map(({ type }) => type).filter((type) => !later.has(type))
})

/** The kinds of entries that the scenarios do not know. */
const later: ReadonlySet<string> = new Set(["tool_failed", "tool_timeout", "hook_executed"])
