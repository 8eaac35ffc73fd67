/**
 * Sources, files, results of hosted tools and parts of a vendor's own, as blocks.
 */
import type {
  LanguageModelV3Source,
  LanguageModelV3StreamPart,
  LanguageModelV4Citation,
  LanguageModelV4Source,
  LanguageModelV4StreamPart
} from "@ai-sdk/provider"
import type * as Schema from "effect/Schema"
import * as Base64 from "effect/encoding/Base64"
import { parse } from "../../internal/json.ts"
import type * as Message from "../../Message.ts"
import * as Metadata from "./Metadata.ts"
import type { ModelEvent } from "../../ModelEvent.ts"

type Part = LanguageModelV3StreamPart | LanguageModelV4StreamPart
type Of<Type extends Part["type"]> = Extract<Part, { type: Type }>
type FilePart = Of<"file" | "reasoning-file">

/** A part of a stream that is a block, or the citation of a text. */
export type Whole = FilePart | Of<"source" | "tool-result" | "custom"> | LanguageModelV4Citation

/** Returns the events of the block, which are none for a result that is not final. */
export const eventsOf = (part: Whole, contentIndex: number, provider: string): ReadonlyArray<ModelEvent> => {
  if (!("type" in part)) {
    const { citedText, source } = part
    const cited = citedText === undefined ? {} : { citedText }
    return [{ _tag: "Source", contentIndex, source: { ...sourceOf(source, provider), ...cited } }]
  }
  switch (part.type) {
    case "source":
      return [{ _tag: "Source", contentIndex, source: sourceOf(part, provider) }]
    case "file":
    case "reasoning-file":
      return [{ _tag: "Media", contentIndex, media: mediaOf(part, provider) }]
    case "tool-result":
      return part.preliminary === true ? [] : resultOf(part, contentIndex, provider)
    case "custom": {
      const { kind, providerMetadata = Metadata.none } = part
      if (kind === messageStart) return []
      return [
        { _tag: "HostedToolStart", contentIndex, id: `${kind} ${contentIndex}`, name: kind },
        {
          _tag: "HostedToolEnd",
          contentIndex,
          opaque: Metadata.toOpaque(provider, providerMetadata, "custom")
        }
      ]
    }
  }
}

/** The part that `@ai-sdk/anthropic` begins each answer with, and leaves out of requests. */
const messageStart = "anthropic.message_start"

const sourceOf = (part: LanguageModelV3Source | LanguageModelV4Source, provider: string): Message.Source => {
  const { id, providerMetadata, sourceType, title } = part
  const common = {
    type: "source" as const,
    sourceType,
    id,
    ...(title === undefined ? {} : { title }),
    ...(providerMetadata === undefined ? {} : { opaque: Metadata.toOpaque(provider, providerMetadata) })
  }
  if (part.sourceType === "url") return { ...common, url: part.url }
  const { filename, mediaType } = part
  return { ...common, mediaType, ...(filename === undefined ? {} : { fileName: filename }) }
}

/** Marked as this provider's even without metadata, so that it goes back to it. */
const mediaOf = (part: FilePart, provider: string): Message.Media => {
  const { data, mediaType, providerMetadata = Metadata.none, type } = part
  return {
    type: "media",
    source: sourceOfFile(data, mediaType),
    opaque: Metadata.toOpaque(provider, providerMetadata, type === "file" ? undefined : type)
  }
}

const sourceOfFile = (data: FilePart["data"], mediaType: string): Message.Media["source"] => {
  if (typeof data === "string") return { data, mediaType }
  if (data instanceof Uint8Array) return { data: Base64.encode(data), mediaType }
  return data.type === "url"
    ? { url: data.originalUrl ?? data.url.href, mediaType }
    : sourceOfFile(data.data, mediaType)
}

const resultOf = (
  part: Of<"tool-result">,
  contentIndex: number,
  provider: string
): ReadonlyArray<ModelEvent> => {
  const { isError, providerMetadata = Metadata.none, result, toolCallId: id, toolName: name } = part
  const json: Schema.Json = parse(JSON.stringify(result)) ?? null
  return [
    { _tag: "HostedToolStart", contentIndex, id, name },
    {
      _tag: "HostedToolEnd",
      contentIndex,
      result: json,
      ...(isError === true ? { isError } : {}),
      opaque: Metadata.toOpaque(provider, providerMetadata)
    }
  ]
}
