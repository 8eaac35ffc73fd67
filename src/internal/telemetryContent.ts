/**
 * Writes messages, tools and results as the JSON of OpenTelemetry's conventions. The bytes of images and files are left out.
 */
import * as Result from "effect/Result"
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
      return { role: "user", parts: message.content.map(partOf) }
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
  parts: content.filter((block) => block !== undefined).map(partOf)
})

type Block = (Message.User | Message.Assistant)["content"][number]

const partOf = (block: Block) => {
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
      return mediaOf("image", block.source)
    case "file":
      return mediaOf("document", block.source)
  }
}

const mediaOf = (modality: string, source: (Message.Image | Message.File)["source"]) => {
  if ("fileId" in source) return { type: "file", modality, file_id: source.fileId }
  if ("mediaType" in source) return { type: "blob", modality, mime_type: source.mediaType, content: "" }
  return source.url.startsWith("data:")
    ? { type: "blob", modality, content: "" }
    : { type: "uri", modality, uri: source.url }
}
