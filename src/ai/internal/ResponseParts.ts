/**
 * The conversion of model events to the parts of a response of `effect/ai`.
 */
import type * as Response from "effect/ai/Response"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type { Assistant, Media, Source, StopReason } from "../../Message.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import * as ModelEvents from "../../ModelEvent.ts"
import type { ProviderError } from "../../ProviderError.ts"
import type { Usage } from "../../Usage.ts"
import * as AiMetadata from "./AiMetadata.ts"

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
      out.push({ type: `${kind}-end`, id, ...AiMetadata.fromOpaque(event) })
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

const blockOf = (block: Assistant["content"][number], index: number): ReadonlyArray<Response.PartEncoded> => {
  switch (block.type) {
    case "text":
      return [{ type: "text", text: block.text, ...AiMetadata.fromOpaque(block) }]
    case "thinking":
      return [{ type: "reasoning", text: block.text, ...AiMetadata.fromOpaque(block) }]
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
const sourceOf = (source: Source, index: number): ReadonlyArray<SourcePart> => {
  const { citedText, fileName, id = String(index), mediaType = "text/plain", url } = source
  const title = source.title ?? fileName ?? url ?? ""
  const own = {
    type: "source",
    id,
    title,
    ...(citedText === undefined ? {} : { metadata: { [AiMetadata.ownKey]: { citedText } } })
  } as const
  return url !== undefined && URL.canParse(url)
    ? [{ ...own, sourceType: "url", url }]
    : [{ ...own, sourceType: "document", mediaType, ...(fileName === undefined ? {} : { fileName }) }]
}

/** Converts media. Parts of a file have its bytes, so that one at an address becomes a source. */
const fileOf = (media: Media, index: number): ReadonlyArray<Response.FilePartEncoded | SourcePart> => {
  const { source } = media
  if ("url" in source) {
    const { mediaType, url } = source
    return sourceOf({ type: "source", sourceType: "url", url, title: mediaType }, index)
  }
  const { data, mediaType } = source
  return Result.isSuccess(Base64.decode(data))
    ? [{ type: "file", data, mediaType, ...AiMetadata.fromMedia(media) }]
    : []
}

/** Converts a call. Arguments that are not valid JSON stay text, which the schema of the tool refuses. */
const callOf = (
  { id, name }: { readonly id: string; readonly name: string },
  end: Pick<Event<"ToolCallEnd">, "rawArguments" | "opaque">
): Response.ToolCallPartEncoded => {
  const params = ModelEvents.parseArguments(end.rawArguments) ?? end.rawArguments
  return { type: "tool-call", id, name, params, ...AiMetadata.fromOpaque(end) }
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

const reasons: Readonly<Record<StopReason, Response.FinishReason>> = {
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
