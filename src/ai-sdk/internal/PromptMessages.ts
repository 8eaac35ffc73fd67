/**
 * The conversion of a request to a prompt of version 4 of the specification.
 */
import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart
} from "@ai-sdk/provider"
import * as Result from "effect/Result"
import * as Message from "../../Message.ts"
import type { ModelRequest } from "../../Provider.ts"
import { UnsupportedContent } from "../../ProviderError.ts"
import * as CallOptions from "./CallOptions.ts"
import * as PartMetadata from "../../reply/PartMetadata.ts"

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
export const make = (
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
        ...CallOptions.ofVendor(message.vendor)
      }))
    case "assistant":
      return Result.succeed({
        role: "assistant",
        content: message.content.flatMap((block) => answerPart(block, reader)),
        ...CallOptions.ofVendor(message.vendor)
      })
    case "toolResult":
      return Result.map(resultPart(message, reader), (part) => ({ role: "tool", content: [part] }))
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
  const options = CallOptions.ofVendor(part.vendor)
  return part.type === "text"
    ? Result.succeed({ type: "text", text: part.text, ...options })
    : Result.map(filePart(part, reader), (file) => ({ ...file, ...options }))
}

const filePart = (
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
const answerPart = (
  block: Message.Assistant["content"][number],
  { provider }: Reader
): ReadonlyArray<AnswerPart> => {
  const own = PartMetadata.ofBlock(provider, block)
  const vendor = block.type === "source" ? undefined : block.vendor
  const options = CallOptions.ofVendor(PartMetadata.merge(vendor ?? {}, own ?? {}))
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

type Options = ReturnType<typeof CallOptions.ofVendor>

/** Converts a call of a hosted tool, its result, or both. */
const hostedParts = (block: Message.HostedTool, options: Options): ReadonlyArray<AnswerPart> => {
  const { id: toolCallId, isError, name: toolName, params, result } = block
  if (CallOptions.isPart(block, "custom"))
    return isKind(toolName) ? [{ type: "custom", kind: toolName, ...options }] : []
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
  const type = CallOptions.isPart(block, "reasoning-file") ? "reasoning-file" : "file"
  const part = (data: Extract<LanguageModelV4FilePart["data"], { type: "data" | "url" }>) => [
    { type, mediaType: source.mediaType, data, ...options } as const
  ]
  if ("data" in source) return part({ type: "data", data: source.data })
  const url = urlOf(source.url)
  return Result.isSuccess(url) ? part(url.success) : []
}

const resultPart = (message: Message.ToolResult, reader: Reader): Encoded<LanguageModelV4ToolResultPart> =>
  Result.map(outputOf(message, reader), (output) => ({
    type: "tool-result",
    toolCallId: message.toolCallId,
    toolName: message.toolName,
    output,
    ...CallOptions.ofVendor(message.vendor)
  }))

/** Converts the content of a result. Content with images has no mark of an error. */
const outputOf = (
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
