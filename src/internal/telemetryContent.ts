/**
 * Writes messages, tools and results as the JSON of OpenTelemetry's conventions. The bytes of images and files are left out.
 */
import * as Result from "effect/Result"
import * as Struct from "effect/Struct"
import * as JsonText from "./jsonText.ts"
import * as Message from "../Message.ts"
import type { ToolDefinition } from "../Provider.ts"

/** A request, and its answer as far as it came. */
interface Exchange {
  readonly system?: string | undefined
  readonly messages: ReadonlyArray<Message.Message>
  readonly tools?: ReadonlyArray<ToolDefinition>
  readonly answer:
    | (Pick<Message.Assistant, "content"> & { readonly stopReason: Message.StopReason | undefined })
    | undefined
}

export const attributes = ({ answer, messages, system, tools = [] }: Exchange) => ({
  "gen_ai.system_instructions": system && json([{ type: "text", content: system }]),
  "gen_ai.input.messages": json(messages.filter((message) => message.role !== "custom").map(messageOf)),
  "gen_ai.tool.definitions":
    tools.length > 0 ? json(tools.map((tool) => ({ type: "function", ...tool }))) : undefined,
  "gen_ai.output.messages":
    answer &&
    json([
      { ...answerOf(answer.content), finish_reason: answer.stopReason && finishReason(answer.stopReason) }
    ])
})

/** A value as JSON; `undefined` for one that is not JSON. */
export const json = (value: unknown): string | undefined => Result.getOrUndefined(JsonText.of(value))

export const finishReason = (stopReason: Message.StopReason): string =>
  finishReasons[stopReason] ?? stopReason

const finishReasons: Partial<Record<Message.StopReason, string>> = {
  toolUse: "tool_call",
  contentFilter: "content_filter"
}

const messageOf = (message: Message.ModelMessage) => {
  switch (message.role) {
    case "user":
      return { role: message.from ?? "user", parts: message.content.flatMap(partsOf) }
    case "assistant":
      return answerOf(message.content)
    case "toolResult":
      return {
        role: "tool",
        parts: [{ type: "tool_call_response", id: message.toolCallId, response: Message.textOf(message) }]
      }
  }
}

// An answer that streams may have no block yet at an index.
const answerOf = (content: Message.Assistant["content"]) => ({
  role: "assistant",
  parts: content.filter((block) => block !== undefined).flatMap(partsOf)
})

type Block = (Message.User | Message.Assistant)["content"][number]

const partsOf = (block: Block): ReadonlyArray<object> =>
  block.type === "hostedTool" ? hostedOf(block) : [partOf(block)]

const partOf = (block: Exclude<Block, Message.HostedTool>): object => {
  switch (block.type) {
    case "text":
      return { type: "text", content: block.text }
    case "thinking":
      return { type: "reasoning", content: block.text }
    case "toolCall":
      return {
        type: "tool_call",
        id: block.id,
        name: block.name,
        arguments: block.params ?? block.rawArguments
      }
    case "image":
    case "file":
    case "media":
      return mediaOf(block)
    case "source":
      return Struct.omit(block, ["opaque"])
  }
}

/** The conventions have a part for the call, and one for its result. */
const hostedOf = ({ id, name, params, result }: Message.HostedTool): ReadonlyArray<object> => [
  ...(params === undefined && result !== undefined
    ? []
    : [{ type: "server_tool_call", id, name, server_tool_call: { type: name, arguments: params } }]),
  ...(result === undefined
    ? []
    : [
        { type: "server_tool_call_response", id, server_tool_call_response: { type: name, response: result } }
      ])
]

const mediaOf = ({ source, type }: Message.Image | Message.File | Message.Media): object => {
  const mime_type = "mediaType" in source ? source.mediaType : undefined
  const modality = type === "image" ? "image" : modalityOf(mime_type)
  if ("fileId" in source) return { type: "file", modality, file_id: source.fileId }
  return "data" in source || source.url.startsWith("data:")
    ? { type: "blob", modality, mime_type, content: "" }
    : { type: "uri", modality, mime_type, uri: source.url }
}

const modalityOf = (mediaType = ""): string => /^(image|audio|video)(?=\/)/.exec(mediaType)?.[0] ?? "document"
