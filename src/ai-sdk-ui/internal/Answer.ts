/** The deltas of an answer as chunks. */
import type * as Schema from "effect/Schema"
import type * as Message from "../../Message.ts"
import * as ModelEvent from "../../ModelEvent.ts"
import * as Streamed from "../../ui/Streamed.ts"
import type { Chunk } from "./Chunk.ts"
import type { Flags } from "./State.ts"

/** The chunks of a delta. `streamed` is the answer with it. */
export const chunks = (
  messageId: string,
  streamed: Streamed.Streamed,
  event: ModelEvent.ModelEvent,
  flags: Flags
): ReadonlyArray<Chunk> => {
  if (!("contentIndex" in event)) return []
  const { contentIndex } = event
  const id = blockId(messageId, contentIndex)
  const block = streamed.reply.content[contentIndex]
  switch (event._tag) {
    case "TextStart":
      return [{ type: "text-start", id }]
    case "TextDelta":
      return [{ type: "text-delta", id, delta: event.delta }]
    case "TextEnd":
      return [{ type: "text-end", id }]
    case "ThinkingStart":
      return [{ type: "reasoning-start", id }]
    case "ThinkingDelta":
      return [{ type: "reasoning-delta", id, delta: event.delta }]
    case "ThinkingEnd":
      return [{ type: "reasoning-end", id }]
    case "Source":
      return [source(id, event.source)]
    case "Media":
      return [{ type: "file", ...media(event.media.source) }]
    default:
      return block === undefined ? [] : toolChunks(streamed, block, event, flags)
  }
}

type ToolEvent = Extract<
  ModelEvent.ModelEvent,
  {
    readonly _tag: "ToolCallStart" | "ToolCallDelta" | "ToolCallEnd" | "HostedToolStart" | "HostedToolEnd"
  }
>

const toolChunks = (
  { reply: { content } }: Streamed.Streamed,
  block: Message.Assistant["content"][number],
  event: ToolEvent,
  flags: Flags
): ReadonlyArray<Chunk> => {
  if (block.type === "hostedTool") {
    if (event._tag !== "HostedToolEnd") return []
    const isFirst = content.find((other) => other?.type === "hostedTool" && other.id === block.id) === block
    return hostedTool(block, isFirst ? {} : undefined, flags)
  }
  if (block.type !== "toolCall") return []
  const { id: toolCallId, name: toolName, rawArguments } = block
  switch (event._tag) {
    case "ToolCallStart":
      return [{ type: "tool-input-start", toolCallId, toolName, ...flags(toolName) }]
    case "ToolCallDelta":
      return [{ type: "tool-input-delta", toolCallId, inputTextDelta: event.delta }]
    default: {
      // Arguments that are not JSON stay text: the result of the call is an error.
      const input = ModelEvent.parseArguments(rawArguments) ?? rawArguments
      return [{ type: "tool-input-available", toolCallId, toolName, input, ...flags(toolName) }]
    }
  }
}

/** A vendor may give the call and its result in two blocks. */
const hostedTool = (
  { id, isError, name, params, result }: Message.HostedTool,
  unknownParams: Schema.Json | undefined,
  flags: Flags
): ReadonlyArray<Chunk> => {
  const given = params ?? unknownParams
  const part = { toolCallId: id, ...flags(name), providerExecuted: true } as const
  const input: ReadonlyArray<Chunk> =
    given === undefined ? [] : [{ type: "tool-input-available", ...part, toolName: name, input: given }]
  if (result === undefined) return input
  return [
    ...input,
    isError === true
      ? { type: "tool-output-error", ...part, errorText: textOf(result) }
      : { type: "tool-output-available", ...part, output: result }
  ]
}

export const textOf = (json: Schema.Json): string => (typeof json === "string" ? json : JSON.stringify(json))

/** The ends of the blocks that the answer leaves open. */
export const ends = (messageId: string, streamed: Streamed.Streamed): ReadonlyArray<Chunk> =>
  Streamed.open(streamed).flatMap(([contentIndex, { type }]): ReadonlyArray<Chunk> => {
    const id = blockId(messageId, contentIndex)
    if (type === "text") return [{ type: "text-end", id }]
    return type === "thinking" ? [{ type: "reasoning-end", id }] : []
  })

const blockId = (messageId: string, contentIndex: number) => `${messageId}:${contentIndex}`

export const source = (
  id: string,
  block: Message.Source
): Extract<Chunk, { readonly type: "source-url" | "source-document" }> => {
  const { citedText, fileName, mediaType = "text/plain", sourceType, title, url } = block
  const given = {
    sourceId: block.id ?? id,
    ...(citedText === undefined ? {} : { providerMetadata: { effectAgent: { citedText } } })
  }
  if (sourceType === "url" && url !== undefined) {
    return { type: "source-url", ...given, url, ...(title === undefined ? {} : { title }) }
  }
  return {
    type: "source-document",
    ...given,
    mediaType,
    title: title ?? fileName ?? url ?? "",
    ...(fileName === undefined ? {} : { filename: fileName })
  }
}

/** The address of a file, and its media type. */
export const media = (
  source: Message.Media["source"] | Message.Image["source"] | Message.File["source"]
): { readonly url: string; readonly mediaType: string } => {
  if ("data" in source) {
    return { url: `data:${source.mediaType};base64,${source.data}`, mediaType: source.mediaType }
  }
  if ("fileId" in source) return { url: `file:${source.fileId}`, mediaType: "application/octet-stream" }
  const given = "mediaType" in source ? source.mediaType : undefined
  return { url: source.url, mediaType: given ?? "image" }
}
