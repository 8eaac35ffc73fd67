/** The conversion of a request to the options of a call, with its prompt, and the options that get lost. */
import type {
  LanguageModelV3CallOptions,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4ProviderTool,
  LanguageModelV4Prompt,
  LanguageModelV3DataContent,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3ToolResultOutput,
  LanguageModelV3ToolResultPart,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderMetadata,
  SharedV3Warning,
  SharedV4Warning,
  LanguageModelV4TextPart
} from "@ai-sdk/provider"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Base64 from "effect/encoding/Base64"
import type { ModelRequest, ToolDefinition } from "../../Provider.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import { object, parse } from "../../internal/json.ts"
import * as PartMetadata from "../../reply/PartMetadata.ts"
import type { Adjustment } from "../../ModelEvent.ts"
import * as Message from "../../Message.ts"
import { UnsupportedContent } from "../../ProviderError.ts"

/** A tool of the vendor, as the packages make them: `openai.tools.webSearch()`. */
export interface ProviderTool {
  /** The kind of the tool. */
  readonly type: "provider"
  /** The id of the tool, such as `"openai.web_search"`. */
  readonly id: `${string}.${string}`
  /** The settings of the tool. */
  readonly args: Record<string, unknown>
}

/** Tools of the vendor, by name. */
export type ProviderTools = Readonly<Record<string, ProviderTool>>
type Schema7 = LanguageModelV4FunctionTool["inputSchema"]

/** The options that both versions have. */
type Shared = Omit<LanguageModelV3CallOptions, "prompt"> &
  Omit<LanguageModelV4CallOptions, "prompt" | "reasoning">

/** Converts a request for a model of version 4. */
export const version4 = (
  request: ModelRequest,
  prompt: LanguageModelV4Prompt,
  providerTools: ProviderTools,
  abortSignal: AbortSignal
): LanguageModelV4CallOptions => {
  const { thinkingLevel } = request.options
  return {
    prompt,
    ...shared(request, providerTools, abortSignal),
    ...(thinkingLevel === undefined ? {} : { reasoning: thinkingLevel === "off" ? "none" : thinkingLevel })
  }
}

/** Converts a request for a model of version 3, which has no thinking level. */
export const version3 = (
  request: ModelRequest,
  prompt: LanguageModelV4Prompt,
  providerTools: ProviderTools,
  abortSignal: AbortSignal
): LanguageModelV3CallOptions => ({
  prompt: promptOf(prompt),
  ...shared(request, providerTools, abortSignal)
})

const shared = (
  { options, tools }: ModelRequest,
  providerTools: ProviderTools,
  abortSignal: AbortSignal
): Shared => {
  const { headers, maxTokens, output, seed, stop, temperature, topP, vendor } = options
  return {
    abortSignal,
    ...(headers === undefined ? {} : { headers }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(seed === undefined ? {} : { seed }),
    ...(stop === undefined ? {} : { stopSequences: [...stop] }),
    ...toolsOf(tools, providerTools, options),
    ...(output === undefined
      ? {}
      : { responseFormat: { type: "json", name: output.name, schema: schemaOf(output.schema) } }),
    ...(isMetadata(vendor) ? { providerOptions: vendor } : {})
  }
}

/** A tool of the vendor takes the place of a tool of the run that has its name. */
const toolsOf = (
  definitions: ReadonlyArray<ToolDefinition>,
  providerTools: ProviderTools,
  { toolChoice = "auto" }: ModelOptions
): Pick<Shared, "tools" | "toolChoice"> => {
  const tools: Array<LanguageModelV4FunctionTool | LanguageModelV4ProviderTool> = [
    ...definitions.filter(({ name }) => !Object.hasOwn(providerTools, name)).map(toolOf),
    ...Object.entries(providerTools).map(([name, { args, id, type }]) => ({ type, id, name, args }))
  ]
  if (tools.length === 0) return {}
  return {
    tools,
    toolChoice:
      typeof toolChoice === "string" ? { type: toolChoice } : { type: "tool", toolName: toolChoice.name }
  }
}

const toolOf = ({
  description,
  inputExamples,
  name,
  parameters,
  strict,
  vendor
}: ToolDefinition): LanguageModelV4FunctionTool => ({
  type: "function",
  name,
  description,
  inputSchema: schemaOf(parameters),
  ...(strict === undefined ? {} : { strict }),
  ...(inputExamples === undefined
    ? {}
    : { inputExamples: inputExamples.map((input) => ({ input: { ...input } })) }),
  ...ofVendor(vendor)
})

const schemaOf = (schema: unknown): Schema7 => (isSchema(schema) ? schema : { type: "object" })

const isSchema = (schema: unknown): schema is Schema7 => Predicate.isObject(schema)

// ───────────────────────── Prompts of version 3

type FileData = LanguageModelV4FilePart["data"]
type Content<V, Type> = Extract<V, { type: Type }>

/** Converts a prompt. */
const promptOf = (prompt: LanguageModelV4Prompt): LanguageModelV3Prompt => prompt.map(messageOf)

const messageOf = (message: LanguageModelV4Message): LanguageModelV3Message => {
  switch (message.role) {
    case "system":
      return message
    case "user":
      return {
        ...message,
        content: message.content.map((part) => (part.type === "file" ? filePart(part) : part))
      }
    case "assistant":
      return { ...message, content: message.content.flatMap(answerPart) }
    case "tool":
      return {
        ...message,
        content: message.content.map((part) => (part.type === "tool-result" ? resultPart(part) : part))
      }
  }
}

type Answer = Extract<LanguageModelV4Message, { role: "assistant" }>["content"][number]
type Answer3 = Extract<LanguageModelV3Message, { role: "assistant" }>["content"][number]

/** Converts a part of an answer. Version 3 has no files of reasoning, and no parts of a vendor's own. */
const answerPart = (part: Answer): ReadonlyArray<Answer3> => {
  switch (part.type) {
    case "file":
      return [filePart(part)]
    case "tool-result":
      return [resultPart(part)]
    case "reasoning-file":
    case "custom":
      return []
    default:
      return [part]
  }
}

const filePart = (part: LanguageModelV4FilePart) => ({ ...part, data: dataOf(part.data) })

/** Converts the data of a file. Vendors read a text as the id of a file where it has the form of one. */
const dataOf = (data: FileData): LanguageModelV3DataContent => {
  switch (data.type) {
    case "data":
      return data.data
    case "url":
      return data.url
    case "text":
      return new TextEncoder().encode(data.text)
    case "reference":
      return Object.values(data.reference)[0] ?? ""
  }
}

const resultPart = (part: LanguageModelV4ToolResultPart): LanguageModelV3ToolResultPart => ({
  ...part,
  output: outputOf(part.output)
})

const outputOf = (output: LanguageModelV4ToolResultOutput): LanguageModelV3ToolResultOutput =>
  output.type === "content"
    ? {
        type: "content",
        value: output.value.map((item) => (item.type === "file" ? outputFile(item) : item))
      }
    : output

type Output = Content<LanguageModelV4ToolResultOutput, "content">["value"][number]
type Output3 = Content<LanguageModelV3ToolResultOutput, "content">["value"][number]

const outputFile = ({ data, mediaType }: Content<Output, "file">): Output3 => {
  const isImage = mediaType.startsWith("image")
  switch (data.type) {
    case "data": {
      const base64 = typeof data.data === "string" ? data.data : Base64.encode(data.data)
      return { type: isImage ? "image-data" : "file-data", data: base64, mediaType }
    }
    case "url":
      return { type: isImage ? "image-url" : "file-url", url: data.url.href }
    case "text":
      return { type: "text", text: data.text }
    case "reference":
      return { type: isImage ? "image-file-id" : "file-id", fileId: data.reference }
  }
}

// ───────────────────────── Options of a vendor

// Data that a vendor wants back unchanged: `providerMetadata` of a part, `opaque` of a block, `providerOptions` of a prompt part. Its
// keys are names of vendors, and each vendor reads its own.

/** By vendor: `{ anthropic: { signature: "…" } }`. */
type Metadata = SharedV4ProviderMetadata

/** The metadata of a part. Members that JSON does not have are left out. */
export const fromPart = ({
  providerMetadata
}: {
  readonly providerMetadata?: Metadata | undefined
}): PartMetadata.Metadata =>
  providerMetadata === undefined ? PartMetadata.none : (object(parse(JSON.stringify(providerMetadata))) ?? {})

/** The struct field `providerOptions` of the members for vendors of a block, a message or a tool. */
const ofVendor = (vendor: PartMetadata.Metadata = {}): { readonly providerOptions?: Metadata } =>
  PartMetadata.isNone(vendor) || !isMetadata(vendor) ? {} : { providerOptions: vendor }

/** Whether a value is an object of objects, as `providerOptions` is. */
const isMetadata = (value: unknown): value is Metadata =>
  Predicate.isObject(value) && Object.values(value).every(Predicate.isObject)

/** Whether the part of a block has this type. */
const isPart = ({ opaque }: { readonly opaque?: Schema.Json }, part: string): boolean =>
  Predicate.isObject(opaque) && opaque["part"] === part

// ───────────────────────── Options that a model does not get, or changes

/** The version of the specification that a model implements. */
type Version = "v3" | "v4"

/** The options that the specification has no place for. */
export const lost = (options: ModelOptions, version: Version): ReadonlyArray<Adjustment> =>
  [...homeless, ...(version === "v3" ? (["thinkingLevel"] as const) : [])].flatMap((option) => {
    const asked = options[option]
    const place = option === "hostedTools" ? "pass `providerTools`" : "set it in `vendor`"
    const reason = `Version ${version.slice(1)} of the specification has no place for it: ${place}.`
    return asked === undefined ? [] : [{ option, asked, sent: null, reason }]
  })

/** The options of blocks and tools that the specification has no place for. */
export const lostOfParts = ({ messages, tools }: ModelRequest): ReadonlyArray<Adjustment> => {
  const asked = new Map<string, Schema.Json>()
  for (const { content } of messages) {
    for (const block of content) {
      if (block.type === "image" && block.detail !== undefined && block.detail !== "auto")
        asked.set("image.detail", block.detail)
      if (block.type === "file" && block.citations !== undefined) asked.set("file.citations", block.citations)
    }
  }
  for (const { allowedCallers } of tools)
    if (allowedCallers !== undefined) asked.set("tool.allowedCallers", allowedCallers)
  const reason = "The specification has no place for it: set it in `vendor` of the block or the tool."
  return Array.from(asked, ([option, asked]) => ({ option, asked, sent: null, reason }))
}

const homeless = [
  "thinkingBudgets",
  "parallelToolCalls",
  "promptChanges",
  "hostedTools",
  "serviceTier",
  "logprobs",
  "store",
  "previousResponseId"
] as const

/** Converts a warning. An option that the model takes in another way counts as sent. */
export const ofWarning = (warning: SharedV3Warning | SharedV4Warning, options: ModelOptions): Adjustment => {
  switch (warning.type) {
    case "unsupported":
    case "compatibility": {
      const { details, feature: option, type } = { ...warning, feature: nameOf(warning.feature) }
      const asked = valueOf(options, option)
      const reason =
        details ??
        (type === "unsupported" ? "The model does not support it." : "The model takes it in another way.")
      return { option, asked, sent: type === "unsupported" ? null : asked, reason }
    }
    case "deprecated": {
      const option = nameOf(warning.setting)
      const asked = valueOf(options, option)
      return { option, asked, sent: asked, reason: warning.message }
    }
    case "other":
      return { option: "request", asked: null, sent: null, reason: warning.message }
  }
}

const nameOf = (feature: string): string => names.get(feature) ?? feature

const names: ReadonlyMap<string, string> = new Map([
  ["maxOutputTokens", "maxTokens"],
  ["stopSequences", "stop"],
  ["reasoning", "thinkingLevel"],
  ["responseFormat", "output"]
])

const valueOf = (options: ModelOptions, name: string): Schema.Json => {
  const values: { readonly [option: string]: Schema.Json | undefined } = { ...options }
  return values[name] ?? null
}

// ───────────────────────── Prompts of version 4

/** The provider that a prompt is for. */
interface Reader {
  /** The id of the provider, by which it knows its own blocks. */
  readonly provider: string
  /** The name of the vendor, under which it finds the id of an uploaded file. */
  readonly vendor: string
}

type Encoded<A> = Result.Result<A, UnsupportedContent>
type AnswerPart = Extract<LanguageModelV4Message, { role: "assistant" }>["content"][number]

/** Converts a request. It fails for content that no prompt can have. */
export const promptMaker = (
  { messages, system }: ModelRequest,
  reader: Reader
): Result.Result<LanguageModelV4Prompt, UnsupportedContent> => {
  const prompt: LanguageModelV4Prompt = system === undefined ? [] : [{ role: "system", content: system }]
  for (const message of messages) {
    const encoded = encode(message, reader)
    if (Result.isFailure(encoded)) return Result.fail(encoded.failure)
    if (encoded.success.content.length === 0) continue
    const last = prompt.at(-1)
    // The results of one answer are one message.
    if (last?.role === "tool" && encoded.success.role === "tool") {
      last.content.push(...encoded.success.content)
    } else prompt.push(encoded.success)
  }
  return Result.succeed(prompt)
}

const encode = (message: Message.ModelMessage, reader: Reader): Encoded<LanguageModelV4Message> => {
  switch (message.role) {
    case "user":
      if (message.from === "developer")
        return Result.succeed({ role: "system", content: Message.textOf(message) })
      return Result.map(all(message.content.map((part) => userPart(part, reader))), (content) => ({
        role: "user",
        content,
        ...ofVendor(message.vendor)
      }))
    case "assistant":
      return Result.succeed({
        role: "assistant",
        content: message.content.flatMap((block) => answerPart4(block, reader)),
        ...ofVendor(message.vendor)
      })
    case "toolResult":
      return Result.map(resultPart4(message, reader), (part) => ({ role: "tool", content: [part] }))
  }
}

const all = <A>(parts: ReadonlyArray<Encoded<A>>): Encoded<Array<A>> => {
  const failed = parts.find(Result.isFailure)
  return failed === undefined
    ? Result.succeed(parts.flatMap((part) => (Result.isSuccess(part) ? [part.success] : [])))
    : Result.fail(failed.failure)
}

const userPart = (
  part: Message.User["content"][number],
  reader: Reader
): Encoded<LanguageModelV4TextPart | LanguageModelV4FilePart> => {
  const options = ofVendor(part.vendor)
  return part.type === "text"
    ? Result.succeed({ type: "text", text: part.text, ...options })
    : Result.map(filePart4(part, reader), (file) => ({ ...file, ...options }))
}

const filePart4 = (
  part: Message.Image | Message.File,
  { vendor }: Reader
): Encoded<LanguageModelV4FilePart> => {
  const { source } = part
  const filename = part.type === "file" && part.name !== undefined ? { filename: part.name } : {}
  // The part needs a media type, or its first half. Most uploaded files are PDFs.
  const usual = part.type === "image" ? "image/*" : "application/pdf"
  if ("fileId" in source) {
    const reference = { [vendor]: source.fileId }
    return Result.succeed({
      type: "file",
      mediaType: usual,
      data: { type: "reference", reference },
      ...filename
    })
  }
  if ("data" in source) {
    const { data, mediaType } = source
    return Result.succeed({ type: "file", mediaType, data: { type: "data", data }, ...filename })
  }
  const mediaType = "mediaType" in source ? (source.mediaType ?? usual) : usual
  return Result.map(urlOf(source.url), (data) => ({ type: "file", mediaType, data, ...filename }))
}

const urlOf = (url: string): Encoded<Extract<LanguageModelV4FilePart["data"], { type: "url" }>> =>
  URL.canParse(url)
    ? Result.succeed({ type: "url", url: new URL(url), originalUrl: url })
    : Result.fail(new UnsupportedContent({ detail: `The address of a file is no URL: ${url.slice(0, 200)}` }))

/** Converts a block. Blocks of a vendor go back only to the provider that made them, and sources to none. */
const answerPart4 = (
  block: Message.Assistant["content"][number],
  { provider }: Reader
): ReadonlyArray<AnswerPart> => {
  const own = PartMetadata.ofBlock(provider, block)
  const vendor = block.type === "source" ? undefined : block.vendor
  const options = ofVendor(PartMetadata.merge(vendor ?? {}, own ?? {}))
  switch (block.type) {
    case "text":
      return block.text === "" && own === undefined ? [] : [{ type: "text", text: block.text, ...options }]
    case "thinking":
      return own === undefined ? [] : [{ type: "reasoning", text: block.text, ...options }]
    case "toolCall": {
      const { id, name, params = {} } = block
      return [{ type: "tool-call", toolCallId: id, toolName: name, input: params, ...options }]
    }
    case "hostedTool":
      return own === undefined ? [] : hostedParts(block, options)
    case "media":
      return own === undefined ? [] : mediaParts(block, options)
    case "source":
      return []
  }
}

type Options = ReturnType<typeof ofVendor>

/** Converts a call of a hosted tool, its result, or both. */
const hostedParts = (block: Message.HostedTool, options: Options): ReadonlyArray<AnswerPart> => {
  const { id: toolCallId, isError, name: toolName, params, result } = block
  if (isPart(block, "custom")) return isKind(toolName) ? [{ type: "custom", kind: toolName, ...options }] : []
  const call: AnswerPart = {
    type: "tool-call",
    toolCallId,
    toolName,
    input: params ?? {},
    providerExecuted: true,
    ...options
  }
  if (result === undefined) return [call]
  const output: LanguageModelV4ToolResultOutput = {
    type: isError === true ? "error-json" : "json",
    value: result
  }
  const answer: AnswerPart = { type: "tool-result", toolCallId, toolName, output, ...options }
  return params === undefined ? [answer] : [call, answer]
}

const isKind = (name: string): name is `${string}.${string}` => name.includes(".")

const mediaParts = (block: Message.Media, options: Options): ReadonlyArray<AnswerPart> => {
  const { source } = block
  const type = isPart(block, "reasoning-file") ? "reasoning-file" : "file"
  const part = (data: Extract<LanguageModelV4FilePart["data"], { type: "data" | "url" }>) => [
    { type, mediaType: source.mediaType, data, ...options } as const
  ]
  if ("data" in source) return part({ type: "data", data: source.data })
  const url = urlOf(source.url)
  return Result.isSuccess(url) ? part(url.success) : []
}

const resultPart4 = (message: Message.ToolResult, reader: Reader): Encoded<LanguageModelV4ToolResultPart> =>
  Result.map(output4(message, reader), (output) => ({
    type: "tool-result",
    toolCallId: message.toolCallId,
    toolName: message.toolName,
    output,
    ...ofVendor(message.vendor)
  }))

/** Converts the content of a result. Content with images has no mark of an error. */
const output4 = (
  { content, isError }: Message.ToolResult,
  reader: Reader
): Encoded<LanguageModelV4ToolResultOutput> => {
  if (content.every((block) => block.type === "text" && block.vendor === undefined)) {
    const value = content.map((block) => (block.type === "text" ? block.text : "")).join("\n")
    return Result.succeed(isError ? { type: "error-text", value } : { type: "text", value })
  }
  return Result.map(all(content.map((block) => userPart(block, reader))), (value) => ({
    type: "content",
    value
  }))
}
