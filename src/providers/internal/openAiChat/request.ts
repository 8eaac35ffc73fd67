/**
 * Encodes requests for OpenAI Chat Completions. https://platform.openai.com/docs/api-reference/chat/create,
 * read in November 2026.
 */
import { memoize } from "effect/Function"
import type * as Message from "../../../Message.ts"
import type { ToolDefinition } from "../../../Provider.ts"
import { type Reason, UnsupportedContent } from "../../../ProviderError.ts"
import type { ModelOptions } from "../../../RunOptions.ts"
import { goesOnFrom } from "../../../Transcript.ts"
import { isReason, type Question } from "../../Protocol.ts"
import {
  argumentsText,
  fit,
  nameFor,
  into,
  keptFor,
  membersOf,
  over,
  cachingFields,
  dataUrl,
  encodeContent,
  type Part
} from "../writing.ts"
import * as Json from "../json.ts"
import * as OpenAiSchema from "../toolSchemas.ts"
import type { Compat } from "./compat.ts"

/** Encodes bodies for one provider. Encodes each message and each tool once. */
export const encoder = (provider: string, compat: Compat): ((question: Question) => string | Reason) => {
  const messagesOf = writer(provider, compat)
  const toolOf = memoize((tool: ToolDefinition) => into(provider, tool, Json.encode(toTool(tool))))
  return (question) => {
    const messages = messagesOf(question.messages)
    if (typeof messages !== "string") return messages
    const system = question.system ? Json.encode({ role: compat.systemRole, content: question.system }) : ""
    const { tools: theirs, ...vendor } = question.vendor
    const own = (name: string, json: string) => (name in vendor ? "" : `${JSON.stringify(name)}:${json},`)
    const listed = [...question.tools.map(toolOf), ...Json.array(theirs).map(Json.encode)]
    const tools = listed.length === 0 ? "" : `"tools":[${listed.join(",")}],`
    const rest = Json.encode(Json.merge(parameters(provider, question, compat), vendor))
    return `{${own("model", Json.encode(question.model))}${own("messages", `[${join(system, messages)}]`)}${tools}${rest.slice(1)}`
  }
}

const toTool = ({ description, name, parameters, strict }: ToolDefinition) => {
  const isStrict = strict === true && OpenAiSchema.isClosed(parameters) ? { strict } : {}
  return { type: "function", function: { name, description, parameters, ...isStrict } }
}

const parameters = (provider: string, question: Question, compat: Compat): Json.JsonObject => {
  const { options, thinking, tools } = question
  const own = Json.defined({
    ...compat.body,
    stream: true,
    stream_options: compat.streamUsage ? { include_usage: true } : undefined,
    [compat.maxTokensField]: options.maxTokens,
    temperature: options.temperature,
    top_p: options.topP,
    stop: options.stop,
    seed: options.seed,
    ...toLogprobs(options.logprobs),
    service_tier: options.serviceTier,
    store: options.store,
    tool_choice: tools.length === 0 ? undefined : toChoice(options.toolChoice),
    parallel_tool_calls: tools.length === 0 ? undefined : options.parallelToolCalls,
    ...toWebSearch(provider, options.hostedTools, compat),
    ...toOutput(options.output, compat),
    ...(compat.cacheKey ? cachingFields(options, question.rule) : {})
  })
  return Json.merge(own, thinking)
}

const toChoice = (choice: ModelOptions["toolChoice"]) =>
  typeof choice === "object" ? { type: "function", function: { name: choice.name } } : choice

const toLogprobs = (count: ModelOptions["logprobs"]): Json.JsonObject =>
  count === undefined ? {} : { logprobs: true, ...(count === 0 ? {} : { top_logprobs: count }) }

/** OpenAI's search models and Perplexity have options, and OpenRouter a plugin. */
const toWebSearch = (
  provider: string,
  tools: ModelOptions["hostedTools"] = [],
  { webSearch }: Compat
): Json.JsonObject => {
  const search = tools.find(({ type }) => type === "webSearch")
  if (search?.type !== "webSearch") return {}
  const { allowedDomains, location, vendor } = search
  const own = vendor?.[provider] ?? {}
  if (webSearch === "plugin")
    return { plugins: [Json.merge(Json.defined({ id: "web", include_domains: allowedDomains }), own)] }
  const place = location && { user_location: { type: "approximate", approximate: { ...location } } }
  return { web_search_options: Json.merge({ ...place }, own) }
}

const toOutput = (output: ModelOptions["output"], compat: Compat): Json.JsonObject => {
  if (output === undefined) return {}
  if (compat.output === "json_object") return { response_format: { type: "json_object" } }
  return { response_format: { type: "json_schema", json_schema: OpenAiSchema.format(output) } }
}

// ───────────────────────── Messages

// Encodes conversations for OpenAI Chat Completions.
// https://platform.openai.com/docs/api-reference/chat/create, read in November 2026.

/** A message as JSON, empty if there is nothing to send. */
interface Encoded {
  readonly json: string
  /**
   * Parts as JSON that a tool message cannot contain. A user message contains them, after all results of the
   * answer.
   */
  readonly images: ReadonlyArray<string>
}

/** The encoded start of a conversation, and the images that still have to follow it. */
interface Written {
  readonly messages: ReadonlyArray<Message.ModelMessage>
  readonly json: string
  readonly images: ReadonlyArray<string>
  readonly afterTools: boolean
}

const nothing: Written = { messages: [], json: "", images: [], afterTools: false }

/**
 * Encodes messages for one provider, each of them once. For a conversation that continues an earlier one,
 * encodes only the new messages. It compares messages by identity.
 */
const writer = (
  provider: string,
  compat: Compat
): ((messages: ReadonlyArray<Message.ModelMessage>) => string | Reason) => {
  const messageOf = memoize((message: Message.ModelMessage) => encodeMessage(provider, compat, message))
  const known = new WeakMap<Message.ModelMessage, Written>()
  return (messages) => {
    const [first] = messages
    const last = first === undefined ? undefined : known.get(first)
    const start = last !== undefined && goesOnFrom(messages, last.messages) ? last : nothing
    let { afterTools, images, json } = start
    for (let index = start.messages.length; index < messages.length; index++) {
      const message = messages[index]
      if (message === undefined) continue
      const encoded = messageOf(message)
      if (isReason(encoded)) return encoded
      if (message.role !== "toolResult") {
        json = withImages(compat, { afterTools, images, json })
        afterTools = afterTools && images.length === 0
        images = []
      }
      json =
        message.role === "user"
          ? toUser(compat, { json, afterTools }, encoded.json)
          : join(json, encoded.json)
      if (encoded.images.length > 0) images = [...images, ...encoded.images]
      afterTools = message.role === "toolResult"
    }
    if (first !== undefined) known.set(first, { messages: messages.slice(), json, images, afterTools })
    return withImages(compat, { afterTools, images, json })
  }
}

/** Joins two parts of a JSON list, either of which may be empty. */
const join = (json: string, next: string): string =>
  json === "" ? next : next === "" ? json : `${json},${next}`

const toUser = (
  compat: Compat,
  { afterTools, json }: Pick<Written, "afterTools" | "json">,
  message: string
): string => join(afterTools && compat.assistantAfterTools ? join(json, bridge) : json, message)

/** Appends the images of results, which come after the last result of an answer. */
const withImages = (compat: Compat, written: Omit<Written, "messages">): string =>
  written.images.length === 0
    ? written.json
    : toUser(compat, written, `{"role":"user","content":[${[attached, ...written.images].join(",")}]}`)

const attached = JSON.stringify({ type: "text", text: "Attached image(s) from tool result:" })
const bridge = JSON.stringify({ role: "assistant", content: "I have the results of the tools." })

const encodeMessage = (provider: string, compat: Compat, message: Message.ModelMessage): Encoded | Reason => {
  switch (message.role) {
    case "user":
      return encodeUser(provider, compat, message)
    case "assistant":
      return alone(encodeAssistant(provider, compat, message))
    case "toolResult":
      return encodeResult(provider, compat, message)
  }
}

const alone = (json: string): Encoded => ({ json, images: [] })

const encodeUser = (provider: string, compat: Compat, message: Message.User): Encoded | Reason => {
  const json = encodeContent(provider, message.content, "text", (block) => toMedia(compat, block))
  if (isReason(json)) return json
  // Models of other servers take instructions at the start alone.
  const role = message.from === "developer" && compat.systemRole === "developer" ? "developer" : "user"
  return alone(into(provider, message, `{"role":"${role}","content":${json}}`))
}

export const toMedia = (compat: Compat, block: Message.Image | Message.File): Part | Reason => {
  if (block.type === "image") return toImage(compat, block)
  const { source } = block
  if (!compat.files) return new UnsupportedContent({ detail: "This provider does not take files" })
  if ("fileId" in source) return { type: "file", file: { file_id: source.fileId } }
  if ("url" in source) {
    // Gateways read files from the web. OpenAI does not.
    if (!compat.gateway)
      return new UnsupportedContent({ detail: "This provider takes no file by its address" })
    return { type: "file", file: { filename: block.name ?? "file", file_data: source.url } }
  }
  const [kind, subtype = ""] = source.mediaType.split("/")
  if (kind === "audio") {
    return {
      type: "input_audio",
      input_audio: { data: source.data, format: subtype === "mpeg" ? "mp3" : subtype.replace("x-", "") }
    }
  }
  const filename = block.name ?? `file.${subtype}`
  return { type: "file", file: { filename, file_data: dataUrl(source) } }
}

const toImage = (compat: Compat, { detail, source }: Message.Image): Part | Reason =>
  compat.images
    ? { type: "image_url", image_url: { url: "url" in source ? source.url : dataUrl(source), detail } }
    : new UnsupportedContent({ detail: "This provider does not take images" })

/**
 * Text and calls. Thinking returns only to the provider that it came from, in the form that the provider
 * requires.
 */
const encodeAssistant = (provider: string, compat: Compat, message: Message.Assistant): string => {
  const text = message.content.reduce((all, block) => (block.type === "text" ? all + block.text : all), "")
  const calls = message.content.flatMap((block) =>
    block.type === "toolCall" ? [toCall(provider, compat, block)] : []
  )
  if (text === "" && calls.length === 0) return ""
  const json = Json.encode({
    role: "assistant",
    content: text === "" ? null : (marked(provider, message.content) ?? text),
    ...replayedThinking(provider, compat, message, text === "" ? null : text),
    ...(calls.length === 0 ? {} : { tool_calls: calls })
  })
  return into(provider, message, json)
}

/** The texts as parts, of a message of which a text has members of its own. */
const marked = (
  provider: string,
  content: Message.Assistant["content"] | Message.ToolResult["content"]
): ReadonlyArray<object> | undefined => {
  const texts = content.flatMap((block) => (block.type === "text" && block.text !== "" ? [block] : []))
  return texts.some((block) => membersOf(provider, block) !== undefined)
    ? texts.map((block) => over(provider, block, { type: "text", text: block.text }))
    : undefined
}

const replayedThinking = (
  provider: string,
  compat: Compat,
  message: Message.Assistant,
  content: string | null
): Readonly<Record<string, unknown>> => {
  const thoughts = message.content.filter((block) => block.type === "thinking")
  const own = thoughts.map((block) => ({ text: block.text, kept: keptFor(provider, block) ?? {} }))
  const list = own.flatMap(({ kept }) => Json.array(kept["reasoningDetails"]))
  const details = list.length === 0 ? {} : { reasoning_details: list }
  const { replayThinking: field } = compat
  if (field === "none" || (field === "received" && list.length > 0)) return details
  if (field === "received") {
    const came = own.find(({ kept }) => kept["thinkingField"] !== undefined)?.kept["thinkingField"]
    if (typeof came !== "string") return {}
    const text = textOf(own.filter(({ kept }) => kept["thinkingField"] === came))
    return { [came]: came === "content" ? partsOf(text, content) : text }
  }
  return { ...details, [field]: message.provider === provider ? textOf(own) : "" }
}

/** Mistral's content with thinking. */
const partsOf = (thinking: string, text: string | null): ReadonlyArray<object> => [
  { type: "thinking", thinking: [{ type: "text", text: thinking }] },
  ...(text === null ? [] : [{ type: "text", text }])
]

const textOf = (thoughts: ReadonlyArray<{ readonly text: string }>): string =>
  thoughts.map(({ text }) => text).join("")

const nameLength = 64

const toCall = (provider: string, compat: Compat, call: Message.ToolCall): object => {
  const { custom, extraContent: extra } = keptFor(provider, call) ?? {}
  const id = fit(call.id, compat.callIds)
  const name = nameFor(call.name, nameLength)
  if (custom === true) return { id, type: "custom", custom: { name, input: call.rawArguments } }
  return over(provider, call, {
    id,
    type: "function",
    function: { name, arguments: argumentsText(call.rawArguments) },
    ...(extra === undefined ? {} : { extra_content: extra })
  })
}

const encodeResult = (provider: string, compat: Compat, result: Message.ToolResult): Encoded | Reason => {
  const texts: Array<string> = []
  const images: Array<string> = []
  for (const block of result.content) {
    if (block.type === "text") texts.push(block.text)
    if (block.type !== "image") continue
    const part = toImage(compat, block)
    if (isReason(part)) return part
    images.push(into(provider, block, Json.encode(part)))
  }
  const text = texts.join("\n")
  const content =
    text === "" && images.length > 0 ? "(see attached image)" : (marked(provider, result.content) ?? text)
  const answered = { role: "tool", tool_call_id: fit(result.toolCallId, compat.callIds) }
  const json = compat.toolName
    ? Json.encode({ ...answered, name: nameFor(result.toolName, nameLength), content })
    : Json.encode({ ...answered, content })
  return { json: into(provider, result, json), images }
}
