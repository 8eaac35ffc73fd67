/** A transcript as the messages of a page. */
import type * as Schema from "effect/Schema"
import * as Message from "../../Message.ts"
import * as ModelEvent from "../../ModelEvent.ts"
import * as Streamed from "../../ui/Streamed.ts"
import type { Chunk, UserPart } from "./UiChunk.ts"
import { initial, type Options, type Flags as AnswerFlags } from "./ChatState.ts"
import { automatic, isRefused, outputOf } from "./ToolParts.ts"

/**
 * The state of a tool part of a stored message.
 *
 * @since 0.2.0
 * @category models
 */
export type UiToolState =
  | { readonly state: "input-available" }
  | { readonly state: "output-available"; readonly output: Schema.Json }
  | { readonly state: "output-error"; readonly errorText: string }
  | {
      readonly state: "output-denied"
      readonly approval: { readonly id: string; readonly approved: false; readonly reason: string }
    }

/**
 * The tool part of a stored message.
 *
 * @since 0.2.0
 * @category models
 */
export type UiToolPart = UiToolState & {
  readonly toolCallId: string
  readonly input: Schema.Json
  readonly providerExecuted?: boolean
  readonly toolMetadata?: { [key: string]: Schema.Json }
} & ({ readonly type: `tool-${string}` } | { readonly type: "dynamic-tool"; readonly toolName: string })

/**
 * A part of a stored message.
 *
 * @since 0.2.0
 * @category models
 */
export type UiPart =
  | UserPart
  | { readonly type: "step-start" }
  | { readonly type: "reasoning"; readonly text: string; readonly state: "done" }
  | UiToolPart
  | Extract<Chunk, { readonly type: "source-url" | "source-document" }>
  | { readonly type: "data-message"; readonly id: string; readonly data: Schema.Json }

/**
 * A message of a page, as the type `UIMessage` of the AI SDK.
 *
 * @since 0.2.0
 * @category models
 */
export interface UiMessage {
  /** The id of the message. */
  readonly id: string
  /** The author of the message. */
  readonly role: "user" | "assistant"
  /** The parts of the message. */
  readonly parts: Array<UiPart>
}

/** The messages of a page for a transcript: an answer with its calls and their results, up to the next message of the user, is one. */
export const of = (transcript: ReadonlyArray<Message.Message>, options: Options): Array<UiMessage> => {
  const { flags } = initial(options)
  const all: Array<UiMessage> = []
  /** The whole messages that stand before the next answer: a page has those of the user in its list already. */
  let before: Array<UiPart> = []
  let answer: UiMessage | undefined
  transcript.forEach((message, at) => {
    const whole = { type: "data-message", id: message.id, data: { ...message } } as const
    const keep = () => void (answer === undefined ? before : answer.parts).push(whole)
    switch (message.role) {
      case "user":
        // The run wrote it, and no person.
        if (message.backgroundEnds !== undefined) return keep()
        all.push({ id: message.id, role: "user", parts: message.content.map(userPart) })
        answer = undefined
        before.push(whole)
        break
      case "assistant": {
        if (answer === undefined) {
          answer = { id: message.id, role: "assistant", parts: before }
          all.push(answer)
          before = []
        }
        const results = resultsOf(transcript, at)
        const parts = message.content.flatMap((block, index) =>
          partsOf(block, `${message.id}:${index}`, results, flags)
        )
        answer.parts.push({ type: "step-start" }, ...parts, whole)
        break
      }
      default:
        keep()
    }
  })
  return all
}

/** The results of the calls of an answer. */
const resultsOf = (
  transcript: ReadonlyArray<Message.Message>,
  at: number
): ReadonlyMap<string, Message.ToolResult> => {
  const results = new Map<string, Message.ToolResult>()
  for (const message of transcript.slice(at + 1)) {
    if (message.role === "assistant") break
    if (message.role === "toolResult") results.set(message.toolCallId, message)
  }
  return results
}

export const userPart = (block: Message.User["content"][number]): UserPart => {
  if (block.type === "text") return { type: "text", text: block.text }
  const name = block.type === "file" ? block.name : undefined
  return { type: "file", ...media(block.source), ...(name === undefined ? {} : { filename: name }) }
}

type Flags = ReturnType<typeof initial>["flags"]

const partsOf = (
  block: Message.Assistant["content"][number],
  id: string,
  results: ReadonlyMap<string, Message.ToolResult>,
  flags: Flags
): ReadonlyArray<UiPart> => {
  switch (block.type) {
    case "text":
      return block.text === "" ? [] : [{ type: "text", text: block.text }]
    case "thinking":
      return [{ type: "reasoning", text: block.text, state: "done" }]
    case "toolCall": {
      const input = ModelEvent.parseArguments(block.rawArguments) ?? block.rawArguments
      const result = results.get(block.id)
      const metadata = result === undefined ? {} : { toolMetadata: { outcome: result.outcome } }
      const call = { toolCallId: block.id, input, ...metadata, ...stateOf(block.id, result) }
      return [{ ...call, ...nameOf(block.name, flags) }]
    }
    case "hostedTool": {
      const { id: toolCallId, isError, name, params = {}, result } = block
      const call = { toolCallId, input: params, providerExecuted: true, ...nameOf(name, flags) }
      if (result === undefined) return [{ ...call, state: "input-available" }]
      return isError === true
        ? [{ ...call, state: "output-error", errorText: textOf(result) }]
        : [{ ...call, state: "output-available", output: result }]
    }
    case "source":
      return [source(id, block)]
    case "media":
      return [{ type: "file", ...media(block.source) }]
  }
}

const nameOf = (toolName: string, flags: Flags) =>
  flags(toolName).dynamic === true
    ? { type: "dynamic-tool" as const, toolName }
    : { type: `tool-${toolName}` as const }

const stateOf = (toolCallId: string, result: Message.ToolResult | undefined): UiToolState => {
  if (result === undefined) return { state: "input-available" }
  const text = Message.textOf(result)
  if (isRefused(result.outcome))
    return {
      state: "output-denied",
      approval: { id: automatic(toolCallId), approved: false, reason: text }
    }
  return result.isError
    ? { state: "output-error", errorText: text }
    : { state: "output-available", output: outputOf(result) }
}

// ───────────────────────── Answers

/** The chunks of a delta. `streamed` is the answer with it. */
export const chunks = (
  messageId: string,
  streamed: Streamed.Streamed,
  event: ModelEvent.ModelEvent,
  flags: AnswerFlags
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
  flags: AnswerFlags
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
  flags: AnswerFlags
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

const textOf = (json: Schema.Json): string => (typeof json === "string" ? json : JSON.stringify(json))

/** The ends of the blocks that the answer leaves open. */
export const ends = (messageId: string, streamed: Streamed.Streamed): ReadonlyArray<Chunk> =>
  Streamed.open(streamed).flatMap(([contentIndex, { type }]): ReadonlyArray<Chunk> => {
    const id = blockId(messageId, contentIndex)
    if (type === "text") return [{ type: "text-end", id }]
    return type === "thinking" ? [{ type: "reasoning-end", id }] : []
  })

const blockId = (messageId: string, contentIndex: number) => `${messageId}:${contentIndex}`

const source = (
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
const media = (
  source: Message.Media["source"] | Message.Image["source"] | Message.File["source"]
): { readonly url: string; readonly mediaType: string } => {
  if ("data" in source) {
    return { url: `data:${source.mediaType};base64,${source.data}`, mediaType: source.mediaType }
  }
  if ("fileId" in source) return { url: `file:${source.fileId}`, mediaType: "application/octet-stream" }
  const given = "mediaType" in source ? source.mediaType : undefined
  return { url: source.url, mediaType: given ?? "image" }
}
