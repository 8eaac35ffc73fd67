/**
 * A call of a `LanguageModel` as a request, and the answer as the parts of a response.
 *
 * Each message is converted once, so that a chat that sends the same prompt again, with more at its end, is encoded once.
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as AiTool from "effect/ai/Tool"
import * as Base64 from "effect/encoding/Base64"
import * as Message from "../../Message.ts"
import type { ModelRequest, ToolDefinition } from "../../Provider.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import * as AiParts from "./AiParts.ts"
import * as PartMetadata from "../../reply/PartMetadata.ts"
import * as ModelEvents from "../../ModelEvent.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import type { ProviderError } from "../../ProviderError.ts"
import type { Usage } from "../../Usage.ts"

/** The provider, the model and the options of the requests. */
interface Target {
  readonly provider: string
  readonly model: string
  readonly options: ModelOptions
}

/** Makes a function that converts calls for this target. It joins all system messages. */
export const reader = (target: Target): ((call: LanguageModel.ProviderOptions) => ModelRequest) => {
  const known = new WeakMap<Prompt.Message, ReadonlyArray<Message.ModelMessage>>()
  const messagesOf = (message: Prompt.Message) => {
    const found = known.get(message) ?? read(target, message)
    known.set(message, found)
    return found
  }
  return ({ prompt, responseFormat, toolChoice, tools }) => {
    const system = prompt.content.flatMap((message) => (message.role === "system" ? [message.content] : []))
    return {
      model: target.model,
      ...(system.length === 0 ? {} : { system: system.join("\n\n") }),
      messages: prompt.content.flatMap(messagesOf),
      tools: tools.map(definitionOf),
      options: {
        ...target.options,
        ...(tools.length === 0 ? {} : { toolChoice: toolChoiceOf(toolChoice) }),
        ...(responseFormat.type === "text" ? {} : { output: outputOf(responseFormat) })
      }
    }
  }
}

/** Returns the reason why no request can have the content of a call, or `undefined`. */
export const unsupported = ({ tools }: LanguageModel.ProviderOptions): AiError.AiErrorReason | undefined => {
  const hosted = tools.find(AiTool.isProviderDefined)
  return hosted === undefined
    ? undefined
    : new AiError.ToolConfigurationError({
        toolName: hosted.name,
        description: "a tool that a vendor defines cannot be used with this model"
      })
}

const strictOf = (tool: AiTool.Any): Pick<ToolDefinition, "strict"> => {
  const strict = AiTool.getStrictMode(tool)
  return strict === undefined ? {} : { strict }
}

const definitions = new WeakMap<AiTool.Any, ToolDefinition>()

const definitionOf = (tool: AiTool.Any): ToolDefinition => {
  const made = definitions.get(tool) ?? {
    name: tool.name,
    description: AiTool.getDescription(tool) ?? "",
    parameters: toJson(AiTool.getJsonSchema(tool)),
    ...strictOf(tool)
  }
  definitions.set(tool, made)
  return made
}

/** Converts a choice. `oneOf` has selected the tools already. */
const toolChoiceOf = (choice: LanguageModel.ToolChoice<string>): NonNullable<ModelOptions["toolChoice"]> => {
  if (typeof choice === "string") return choice
  return "tool" in choice ? { name: choice.tool } : (choice.mode ?? "auto")
}

const outputOf = ({
  objectName,
  schema
}: Extract<LanguageModel.ProviderOptions["responseFormat"], { readonly type: "json" }>) => ({
  name: objectName,
  schema: toJson(AiTool.getJsonSchemaFromSchema(schema))
})

const toJson = (value: unknown): Schema.Json => JSON.parse(JSON.stringify(value))

const read = (target: Target, message: Prompt.Message): ReadonlyArray<Message.ModelMessage> => {
  switch (message.role) {
    case "system":
      return []
    case "user":
      return [{ ...Message.user(message.content.map(readUser)), ...AiParts.toVendor(message.options) }]
    case "assistant":
      return readAnswer(target, message)
    case "tool":
      return message.content.flatMap((part) => (part.type === "tool-result" ? [readResult(part)] : []))
  }
}

/** Only parts of the user have members for vendors: the options of an answer are data of the model that gave it. */
const readUser = (part: Prompt.UserMessagePart): Message.User["content"][number] => ({
  ...(part.type === "text" ? Message.text(part.text) : AiParts.fileOf(part)),
  ...AiParts.toVendor(part.options)
})

const readAnswer = (
  { model, provider }: Target,
  { content }: Prompt.AssistantMessage
): ReadonlyArray<Message.Assistant> => {
  const blocks = content.flatMap((part): ReadonlyArray<Message.Assistant["content"][number]> => {
    switch (part.type) {
      case "text":
        return [{ type: "text", text: part.text, ...opaqueOf(part) }]
      case "reasoning":
        return [{ type: "thinking", text: part.text, ...opaqueOf(part) }]
      case "tool-call":
        return [part.providerExecuted ? readHostedCall(part) : readCall(part)]
      case "tool-result":
        return part.providerExecuted ? [readHostedResult(part)] : []
      case "file":
        return readMedia(part)
      case "tool-approval-request":
        return []
    }
  })
  const stopReason = blocks.some((block) => block.type === "toolCall") ? "toolUse" : "stop"
  return blocks.length === 0 ? [] : [Message.assistant(blocks, { model, provider, stopReason })]
}

const readCall = (part: Prompt.ToolCallPart): Message.ToolCall => {
  const params = toJson(part.params ?? {})
  return {
    type: "toolCall",
    id: part.id,
    name: part.name,
    rawArguments: JSON.stringify(params),
    params,
    ...opaqueOf(part)
  }
}

const readHostedCall = (part: Prompt.ToolCallPart): Message.HostedTool => ({
  type: "hostedTool",
  id: part.id,
  name: part.name,
  params: AiParts.toJson(part.params),
  ...opaqueOf(part)
})

const readHostedResult = (part: Prompt.ToolResultPart): Message.HostedTool => ({
  type: "hostedTool",
  id: part.id,
  name: part.name,
  result: AiParts.toJson(part.result),
  ...(part.isFailure ? { isError: true } : {}),
  ...opaqueOf(part)
})

const readMedia = (part: Prompt.FilePart): ReadonlyArray<Message.Media> => {
  const source = AiParts.sourceOfFile(part)
  return "fileId" in source ? [] : [{ type: "media", source, ...AiParts.restOfMedia(part.options) }]
}

const opaqueOf = ({
  options
}: {
  readonly options: PartMetadata.Metadata
}): { readonly opaque?: Schema.Json } => {
  const opaque = options[AiParts.ownKey] ?? undefined
  return opaque === undefined ? {} : { opaque }
}

const readResult = (part: Prompt.ToolResultPart): Message.ToolResult =>
  Message.toolResult(part, part.modelOutput?.map(AiParts.blockOfOutput) ?? textOf(part.result), {
    isError: part.isFailure
  })

const textOf = (result: unknown): string =>
  typeof result === "string" ? result : (JSON.stringify(result) ?? "")

// ───────────────────────── The answer, as parts of a response

type Event<Tag extends ModelEvent["_tag"]> = Extract<ModelEvent, { readonly _tag: Tag }>
type Part = Response.StreamPartEncoded

/** Writes one answer as parts. */
export class Writer {
  isFinished = false
  /** The failure that made the parts void. No part can take back another, so the answer fails with it. */
  retracted: ProviderError | undefined = undefined
  private failure: ProviderError | undefined = undefined
  private hasWritten = false
  private readonly open = new Map<number, "text" | "reasoning">()
  private readonly calls = new Map<number, { readonly id: string; readonly name: string }>()

  add(events: ReadonlyArray<ModelEvent>): ReadonlyArray<Part> {
    const out: Array<Part> = []
    for (const event of events) {
      if (this.retracted === undefined) this.event(event, out)
    }
    return out
  }

  private event(event: ModelEvent, out: Array<Part>): void {
    switch (event._tag) {
      case "Start":
        out.push(metadataOf(event))
        return
      case "Attempt":
        this.failure = event.error
        return
      case "Retracted":
        if (this.hasWritten) this.retracted = this.failure
        // Without a failure, the same answer follows in another form.
        this.endOpen(out)
        return
      case "Finish":
        this.endOpen(out)
        this.isFinished = true
        out.push(finishOf(event))
        return
      default:
        this.hasWritten = true
        return this.block(event, out)
    }
  }

  private block(
    event: Exclude<ModelEvent, Event<"Start" | "Attempt" | "Retracted" | "Finish">>,
    out: Array<Part>
  ) {
    switch (event._tag) {
      case "Source":
        out.push(...sourceOf(event.source, event.contentIndex))
        return
      case "Media":
        out.push(...fileOf(event.media, event.contentIndex))
        return
      case "HostedToolStart":
      case "HostedToolEnd":
        return
      case "TextStart":
      case "TextDelta":
      case "TextEnd":
        return this.prose("text", event, out)
      case "ThinkingStart":
      case "ThinkingDelta":
      case "ThinkingEnd":
        return this.prose("reasoning", event, out)
      case "ToolCallStart": {
        const { contentIndex, id, name } = event
        this.calls.set(contentIndex, { id, name })
        out.push({ type: "tool-params-start", id, name })
        return
      }
      case "ToolCallDelta":
      case "ToolCallEnd":
        return this.call(event, out)
    }
  }

  private endOpen(out: Array<Part>): void {
    for (const [index, kind] of this.open) out.push({ type: `${kind}-end`, id: String(index) })
    this.open.clear()
  }

  private prose(
    kind: "text" | "reasoning",
    event: Event<"TextStart" | "TextDelta" | "TextEnd" | "ThinkingStart" | "ThinkingDelta" | "ThinkingEnd">,
    out: Array<Part>
  ): void {
    const id = String(event.contentIndex)
    if (!this.open.has(event.contentIndex)) {
      this.open.set(event.contentIndex, kind)
      out.push({ type: `${kind}-start`, id })
    }
    if (event._tag === "TextDelta" || event._tag === "ThinkingDelta") {
      out.push({ type: `${kind}-delta`, id, delta: event.delta })
    }
    if (event._tag === "TextEnd" || event._tag === "ThinkingEnd") {
      this.open.delete(event.contentIndex)
      out.push({ type: `${kind}-end`, id, ...AiParts.fromOpaque(event) })
    }
  }

  private call(event: Event<"ToolCallDelta" | "ToolCallEnd">, out: Array<Part>): void {
    const call = this.calls.get(event.contentIndex)
    if (call === undefined) return
    if (event._tag === "ToolCallDelta") {
      out.push({ type: "tool-params-delta", id: call.id, delta: event.delta })
      return
    }
    out.push({ type: "tool-params-end", id: call.id }, callOf(call, event))
  }
}

/** Converts a whole answer, or returns `undefined` if it is not complete. */
export const ofReply = ({
  content,
  finish,
  start
}: ModelEvents.Reply): Array<Response.PartEncoded> | undefined => {
  if (finish === undefined) return undefined
  return [...(start === undefined ? [] : [metadataOf(start)]), ...content.flatMap(blockOf), finishOf(finish)]
}

const blockOf = (
  block: Message.Assistant["content"][number],
  index: number
): ReadonlyArray<Response.PartEncoded> => {
  switch (block.type) {
    case "text":
      return [{ type: "text", text: block.text, ...AiParts.fromOpaque(block) }]
    case "thinking":
      return [{ type: "reasoning", text: block.text, ...AiParts.fromOpaque(block) }]
    case "toolCall":
      return [callOf(block, block)]
    case "source":
      return sourceOf(block, index)
    case "media":
      return fileOf(block, index)
    // LanguageModel fails an answer with a part of a tool that its caller has not declared.
    case "hostedTool":
      return []
  }
}

type SourcePart = Response.UrlSourcePartEncoded | Response.DocumentSourcePartEncoded

/** Converts a source. One without a URL becomes a document, since parts have a URL or a media type. */
const sourceOf = (source: Message.Source, index: number): ReadonlyArray<SourcePart> => {
  const { citedText, fileName, id = String(index), mediaType = "text/plain", url } = source
  const title = source.title ?? fileName ?? url ?? ""
  const own = {
    type: "source",
    id,
    title,
    ...(citedText === undefined ? {} : { metadata: { [AiParts.ownKey]: { citedText } } })
  } as const
  return url !== undefined && URL.canParse(url)
    ? [{ ...own, sourceType: "url", url }]
    : [{ ...own, sourceType: "document", mediaType, ...(fileName === undefined ? {} : { fileName }) }]
}

/** Converts media. Parts of a file have its bytes, so that one at an address becomes a source. */
const fileOf = (
  media: Message.Media,
  index: number
): ReadonlyArray<Response.FilePartEncoded | SourcePart> => {
  const { source } = media
  if ("url" in source) {
    const { mediaType, url } = source
    return sourceOf({ type: "source", sourceType: "url", url, title: mediaType }, index)
  }
  const { data, mediaType } = source
  return Result.isSuccess(Base64.decode(data))
    ? [{ type: "file", data, mediaType, ...AiParts.fromMedia(media) }]
    : []
}

/** Converts a call. Arguments that are not valid JSON stay text, which the schema of the tool refuses. */
const callOf = (
  { id, name }: { readonly id: string; readonly name: string },
  end: Pick<Event<"ToolCallEnd">, "rawArguments" | "opaque">
): Response.ToolCallPartEncoded => {
  const params = ModelEvents.parseArguments(end.rawArguments) ?? end.rawArguments
  return { type: "tool-call", id, name, params, ...AiParts.fromOpaque(end) }
}

const metadataOf = ({
  model,
  responseId,
  responseModel
}: Event<"Start">): Response.ResponseMetadataPartEncoded => ({
  type: "response-metadata",
  modelId: responseModel ?? model,
  ...(responseId === undefined ? {} : { id: responseId })
})

const finishOf = ({ stopReason, usage }: Event<"Finish">): Response.FinishPartEncoded => ({
  type: "finish",
  reason: reasons[stopReason],
  usage: usageOf(usage)
})

const reasons: Readonly<Record<Message.StopReason, Response.FinishReason>> = {
  stop: "stop",
  length: "length",
  toolUse: "tool-calls",
  contentFilter: "content-filter",
  refusal: "content-filter",
  error: "error",
  aborted: "other"
}

const usageOf = (usage: Usage | undefined): Response.FinishPartEncoded["usage"] => {
  if (usage === undefined) return { inputTokens: {}, outputTokens: {} }
  const { cacheRead, cacheWrite, input, output, reasoning } = usage
  return {
    inputTokens: { total: input, uncached: input - cacheRead - cacheWrite, cacheRead, cacheWrite },
    outputTokens: {
      total: output,
      ...(reasoning === undefined ? {} : { reasoning, text: output - reasoning })
    }
  }
}
