/**
 * What a scenario showed: kept as it happened, read at the end as the judge wants it.
 */
import { AgentEvent, type Message, type Provider } from "effect-agent"

/** A part of a scenario or of what it showed: JSON whose format is declared beside the scenarios, not here. */
export type Words = ReturnType<typeof JSON.parse>

/** Values are kept as the library gave them until `project`, so that one changed later shows. */
export interface Recording {
  readonly events: Array<AgentEvent.AgentEvent>
  readonly requests: Array<{ readonly request: Provider.ModelRequest; readonly apiKey: string | undefined }>
  readonly order: Array<string>
  readonly running: { now: number; most: number }
  readonly [field: string]: Words
}

/** `ToolCallStart` is `toolcall_start`, `RunStart` is `agent_start`. */
const snake = (tag: string): string => {
  const words = tag.replace("ToolCall", "Toolcall").replace("Run", "Agent")
  return words.replaceAll(/(?<=.)[A-Z]/g, "_$&").toLowerCase()
}

/** One of the ten types of the scenarios, or nothing for an event only the library has. */
export const typeOf = ({ _tag }: AgentEvent.AgentEvent): string | undefined =>
  /^(Run(Start|End)|Turn|Message(Start|Delta|End)|ToolExecution)/.test(_tag)
    ? snake(_tag).replace(/delta|progress/, "update")
    : undefined

/** `roles`: what the application calls its custom messages, by id. */
export const labelOf = (event: AgentEvent.AgentEvent, roles: ReadonlyMap<string, string>): string => {
  const { delta, message, messageId, role = message?.role, toolCallId }: Words = event
  const ofMessage = event._tag.startsWith("Message")
    ? (roles.get(message?.id ?? messageId) ?? role)
    : undefined
  const detail = toolCallId ?? (delta === undefined ? ofMessage : snake(delta._tag))
  return [typeOf(event) ?? `native:${event._tag}`, ...(detail === undefined ? [] : [detail])].join(":")
}

/** The projection, but for what only one api has. */
export const project = (recording: Recording, finalMessages: ReadonlyArray<Message.Message>): Words => {
  const { events } = recording
  const messages = new Map<string, Message.Message>()
  for (const event of events) if (event._tag === "MessageEnd") messages.set(event.message.id, event.message)
  const runs = [...new Set(events.map((event) => event.runId))]
  let view = AgentEvent.initial()
  return {
    ...recording,
    maxConcurrentTools: recording.running.most,
    events: events.flatMap((event) => {
      view = AgentEvent.fold(view, event)
      const type = typeOf(event)
      return type === undefined ? [] : [{ ...fieldsOf(event, messages, AgentEvent.partial(view)), type }]
    }),
    native: events.filter((event) => typeOf(event) === undefined).map(nativeOf),
    runs: events.filter((event) => event._tag === "RunEnd").map((event) => runOf(event, events)),
    seq: runs.map((id) => events.filter((event) => event.runId === id).map((event) => event.seq)),
    requests: recording.requests.map(requestOf),
    finalMessages: finalMessages.map(projectMessage)
  }
}

const fieldsOf = (event: Words, messages: ReadonlyMap<string, Words>, partial: Words): object => {
  const index = event.delta?.contentIndex
  const known = event.message ?? partial ?? messages.get(event.messageId)
  const message = event._tag.startsWith("Message") ? known : undefined
  const content = message?.content ?? event.partial?.content ?? event.result?.content ?? []
  const of = (type: string) => content.filter((block: Words) => block.type === type)
  const joined = (type: string) =>
    of(type)
      .map((block: Words) => block.text)
      .join("") || undefined
  return {
    ...event,
    ...(message === undefined ? {} : projectMessage(message)),
    text: joined("text") ?? message?.data?.text,
    thinking: joined("thinking"),
    images: of("image").length || undefined,
    toolCalls: of("toolCall").length === 0 ? undefined : of("toolCall").map((call: Words) => call.id),
    kind: event.delta && snake(event.delta._tag),
    index,
    delta: event.delta?.delta,
    toolCallId: event.toolCallId ?? message?.toolCallId ?? content[index]?.id,
    args: event.params,
    toolResults: event.toolResultIds?.map((id: string) => messages.get(id)?.toolCallId),
    newMessages: event.newMessageIds?.length
  }
}

const points: Readonly<Record<string, string>> = { beforeModel: "beforeLlm", afterModel: "afterLlm" }
const nativeOf = (event: Words): object => ({
  ...event,
  tag: event._tag,
  hook: points[event.hook] ?? event.hook,
  kind: event.error && errorKind(event.error)
})

const runOf = ({ error, runId, status }: Words, events: Recording["events"]): object => ({
  status,
  turns: events.filter((event) => event._tag === "TurnStart" && event.runId === runId).length,
  error: error && errorKind(error),
  limit: error?.limit
})

const errorKinds: Readonly<Record<string, string>> = {
  AgentBusy: "busy",
  ModelCallSkipped: "llmSkipped",
  TransformFailed: "contextTransform",
  Unauthenticated: "providerAuth",
  RateLimited: "providerRateLimit",
  QuotaExceeded: "providerRateLimit",
  Transport: "providerTransport",
  Protocol: "streamProtocol"
}
const http = /^(ServerError|InvalidRequest|NotFound|Forbidden|Overloaded)$/
/** The scenario's word for an error; what has a reason is known by it. */
export const errorKind = ({ _tag = "Defect", limit, reason }: Words): string => {
  if (typeof reason === "object") return errorKind(reason)
  if (limit === "identicalToolCalls") return "repetitiveToolCall"
  return http.test(_tag) ? "providerHttp" : (errorKinds[_tag] ?? _tag[0].toLowerCase() + _tag.slice(1))
}

const requestOf = ({ apiKey, request }: Recording["requests"][number]): object => {
  const { maxTokens, temperature, thinkingLevel, ...options } = request.options
  return {
    ...options,
    apiKey,
    model: request.model,
    systemPrompt: request.system ?? "",
    tools: request.tools.map((tool) => tool.name),
    messages: request.messages.map(projectMessage),
    thinkingLevel: thinkingLevel === "off" ? undefined : thinkingLevel,
    options: { maxTokens, temperature }
  }
}

const projectMessage = ({ content, data, id, kind, role, ...message }: Words): object => ({
  ...message,
  ...(role === "custom" ? { role: kind, text: data.text } : { role, content: content.map(projectBlock) })
})

const projectBlock = (block: Words): object => {
  if (block.type === "thinking") return { ...block, thinking: block.text, signature: block.opaque }
  if (block.type === "toolCall") return { ...block, arguments: block.params }
  return block.type === "image" ? { ...block, ...block.source, mimeType: block.source.mediaType } : block
}
