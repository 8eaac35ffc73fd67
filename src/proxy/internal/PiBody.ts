/**
 * The body of a request of pi's `streamProxy`, and its request. Members that pi has for its own providers are left out.
 *
 * Source: `@earendil-works/pi-agent-core` and `pi-ai` 0.87.1. Versions before have `systemPrompt` and `tools` beside the messages; this
 * one has messages of the role `system`.
 */
import * as Schema from "effect/Schema"
import type * as Message from "../../Message.ts"
import type { ModelRequest, ToolDefinition } from "../../Provider.ts"
import { ThinkingLevel } from "../../RunOptions.ts"
import * as Usage from "../../Usage.ts"
import * as Json from "../../internal/json.ts"

const optional = Schema.optionalKey

const Text = Schema.Struct({
  type: Schema.Literal("text"),
  text: Schema.String,
  textSignature: optional(Schema.String)
})
const Thinking = Schema.Struct({
  type: Schema.Literal("thinking"),
  thinking: Schema.String,
  thinkingSignature: optional(Schema.String),
  redacted: optional(Schema.Boolean)
})
const Image = Schema.Struct({
  type: Schema.Literal("image"),
  data: Schema.String,
  mimeType: Schema.String
})
export const ToolCall = Schema.Struct({
  type: Schema.Literal("toolCall"),
  id: Schema.String,
  name: Schema.String,
  arguments: Schema.Record(Schema.String, Schema.Json),
  thoughtSignature: optional(Schema.String)
})
const Tool = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  parameters: Schema.Json
})

const timestamp = Schema.Finite
const Shown = Schema.Array(Schema.Union([Text, Image]))

const SystemMessage = Schema.Struct({
  role: Schema.Literal("system"),
  content: Schema.Union([Schema.String, Schema.Array(Text)]),
  sections: optional(Schema.Record(Schema.String, Schema.NullOr(Schema.String))),
  toolsAdded: optional(Schema.Array(Tool)),
  toolsRemoved: optional(Schema.Array(Schema.Struct({ name: Schema.String }))),
  timestamp
})
const UserMessage = Schema.Struct({
  role: Schema.Literal("user"),
  content: Schema.Union([Schema.String, Shown]),
  timestamp
})
const AssistantMessage = Schema.Struct({
  role: Schema.Literal("assistant"),
  content: Schema.Array(Schema.Union([Text, Thinking, ToolCall])),
  api: Schema.String,
  provider: Schema.String,
  model: Schema.String,
  responseId: optional(Schema.String),
  stopReason: Schema.Literals(["pending", "stop", "length", "toolUse", "error", "aborted", "deferred"]),
  errorMessage: optional(Schema.String),
  timestamp
})
const ToolResultMessage = Schema.Struct({
  role: Schema.Literal("toolResult"),
  toolCallId: Schema.String,
  toolName: Schema.String,
  content: Shown,
  isError: Schema.Boolean,
  timestamp
})
const PiMessage = Schema.Union([SystemMessage, UserMessage, AssistantMessage, ToolResultMessage])
type PiMessage = typeof PiMessage.Type
type System = typeof SystemMessage.Type
type PiAssistant = typeof AssistantMessage.Type

const Options = Schema.Struct({
  temperature: optional(Schema.Finite),
  maxTokens: optional(Schema.Int),
  reasoning: optional(ThinkingLevel),
  thinkingBudgets: optional(Schema.Record(Schema.String, Schema.Finite)),
  cacheRetention: optional(Schema.Literals(["none", "short", "long"])),
  sessionId: optional(Schema.String)
})

export const Body = Schema.Struct({
  model: Schema.Struct({ id: Schema.String, provider: optional(Schema.String) }),
  context: Schema.Struct({
    systemPrompt: optional(Schema.String),
    messages: Schema.Array(PiMessage),
    tools: optional(Schema.Array(Tool))
  }),
  options: optional(Options)
})
export type Body = typeof Body.Type

/** The request, for the model `model` of the server. */
export const toRequest = ({ context, options = {} }: Body, model: string): ModelRequest => {
  const { messages, systemPrompt = "", tools = [] } = context
  const changes = messages.filter((message) => message.role === "system")
  const system = [systemPrompt, ...systemTexts(changes)].filter((text) => text !== "").join("\n\n")
  const { reasoning, ...same } = options
  return {
    model,
    ...(system === "" ? {} : { system }),
    messages: messages.flatMap(toMessage),
    tools: toolsAfter(tools, changes),
    options: reasoning === undefined ? same : { ...same, thinkingLevel: reasoning }
  }
}

/** The content of all messages, then the last text of each section. */
const systemTexts = (messages: ReadonlyArray<System>): ReadonlyArray<string> => {
  const sections = new Map<string, string>()
  for (const message of messages) {
    for (const [name, text] of Object.entries(message.sections ?? {})) {
      if (text === null) sections.delete(name)
      else sections.set(name, text)
    }
  }
  return [...messages.map(({ content }) => textOf(content)), ...sections.values()]
}

const textOf = (content: System["content"]): string =>
  typeof content === "string" ? content : content.map(({ text }) => text).join("\n")

const toolsAfter = (
  tools: ReadonlyArray<ToolDefinition>,
  messages: ReadonlyArray<System>
): ReadonlyArray<ToolDefinition> => {
  const current = new Map(tools.map((tool) => [tool.name, tool]))
  for (const { toolsAdded = [], toolsRemoved = [] } of messages) {
    for (const { name } of toolsRemoved) current.delete(name)
    for (const tool of toolsAdded) current.set(tool.name, tool)
  }
  return [...current.values()]
}

const toMessage = (message: PiMessage, index: number): ReadonlyArray<Message.ModelMessage> => {
  const base = { id: `pi_${index}`, timestamp: message.timestamp }
  switch (message.role) {
    case "system":
      return []
    case "user":
      return [{ role: "user", content: shown(message.content), ...base }]
    case "assistant":
      return [toAssistant(message, base)]
    case "toolResult": {
      const { content, isError, toolCallId, toolName } = message
      const outcome = isError ? "error" : "success"
      return [
        { role: "toolResult", toolCallId, toolName, content: shown(content), isError, outcome, ...base }
      ]
    }
  }
}

const shown = (
  content: string | ReadonlyArray<typeof Text.Type | typeof Image.Type>
): ReadonlyArray<Message.Text | Message.Image> =>
  typeof content === "string"
    ? [{ type: "text", text: content }]
    : content.map((part) =>
        part.type === "text"
          ? { type: "text", text: part.text }
          : { type: "image", source: { data: part.data, mediaType: part.mimeType } }
      )

const toAssistant = (
  message: PiAssistant,
  base: Pick<Message.Assistant, "id" | "timestamp">
): Message.Assistant => {
  const { api, errorMessage, model, responseId, stopReason } = message
  const content = message.content.map(toBlock)
  const provider = ownerOf(content) ?? message.provider
  return {
    role: "assistant",
    content,
    stopReason: stopReason === "pending" || stopReason === "deferred" ? "aborted" : stopReason,
    provider,
    model: model.startsWith(`${provider}/`) ? model.slice(provider.length + 1) : model,
    protocol: api,
    ...(responseId === undefined ? {} : { responseId }),
    ...(errorMessage === undefined ? {} : { errorMessage }),
    ...base
  }
}

type Block = Message.Assistant["content"][number]

/** The provider that the data of a block names. pi's clients name their own. */
const ownerOf = (blocks: ReadonlyArray<Block>): string | undefined => {
  for (const { opaque } of blocks) {
    if (typeof opaque !== "object" || opaque === null || !("provider" in opaque)) continue
    if (typeof opaque.provider === "string") return opaque.provider
  }
  return undefined
}

const toBlock = (block: PiAssistant["content"][number]): Block => {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text, ...opaque(block.textSignature) }
    case "thinking":
      return {
        type: "thinking",
        text: block.thinking,
        ...(block.redacted === undefined ? {} : { redacted: block.redacted }),
        ...opaque(block.thinkingSignature)
      }
    case "toolCall": {
      const { arguments: params, id, name, thoughtSignature } = block
      const rawArguments = JSON.stringify(params)
      return { type: "toolCall", id, name, rawArguments, params, ...opaque(thoughtSignature) }
    }
  }
}

export const write = (opaque: Schema.Json): string =>
  typeof opaque === "string" && Json.parse(opaque) === undefined ? opaque : JSON.stringify(opaque)

const read = (signature: string): Schema.Json => Json.parse(signature) ?? signature

/** The member `opaque` of a block, absent without a signature. */
export const opaque = (signature: string | undefined): { readonly opaque?: Schema.Json } =>
  signature === undefined || signature === "" ? {} : { opaque: read(signature) }

// ───────────────────────── Usage

const optionalUsage = Schema.optionalKey

export const PiUsage = Schema.Struct({
  input: Schema.Finite,
  output: Schema.Finite,
  cacheRead: Schema.Finite,
  cacheWrite: Schema.Finite,
  cacheWrite1h: optionalUsage(Schema.Finite),
  reasoning: optionalUsage(Schema.Finite),
  totalTokens: Schema.Finite,
  cost: optionalUsage(Schema.Struct({ total: Schema.Finite }))
})
type PiUsage = typeof PiUsage.Type

export const writeUsage = (usage: Usage.Usage = Usage.zero): object => {
  const { cacheRead, cacheWrite, cacheWriteLong, cost, input, output, reasoning, total } = Usage.sane(usage)
  return {
    input: Math.max(0, input - cacheRead - cacheWrite),
    output,
    cacheRead,
    cacheWrite,
    cacheWrite1h: cacheWriteLong,
    reasoning,
    totalTokens: total,
    // Only the sum is known, because vendors report one cost.
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: cost ?? 0 }
  }
}

/** `undefined` if there are no tokens. A cost of 0 is an unknown one. */
export const readUsage = (usage: PiUsage): Usage.Usage | undefined => {
  const { cacheRead, cacheWrite, cacheWrite1h, cost, output, reasoning, totalTokens } = usage
  if (totalTokens === 0 && output === 0) return undefined
  return Usage.sane({
    input: usage.input + cacheRead + cacheWrite,
    output,
    cacheRead,
    cacheWrite,
    total: totalTokens,
    ...(cacheWrite1h === undefined ? {} : { cacheWriteLong: cacheWrite1h }),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(cost === undefined || cost.total === 0 ? {} : { cost: cost.total })
  })
}
