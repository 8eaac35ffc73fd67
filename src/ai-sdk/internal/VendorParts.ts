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
import * as Base64 from "effect/encoding/Base64"
import { parse } from "../../internal/json.ts"
import type * as Message from "../../Message.ts"
import * as Metadata from "./Metadata.ts"
import type { PartReply } from "../../reply/PartReply.ts"

type Part = LanguageModelV3StreamPart | LanguageModelV4StreamPart
type Of<Type extends Part["type"]> = Extract<Part, { type: Type }>
type FilePart = Of<"file" | "reasoning-file">

/** A part of a stream that is a block, or the citation of a text. */
export type Whole = FilePart | Of<"source" | "tool-result" | "custom"> | LanguageModelV4Citation

/** Writes the block, which is none for a result that is not final. */
export const write = (part: Whole, reply: PartReply): void => {
  if (!("type" in part)) {
    const { citedText, source } = part
    return writeSource(source, reply, citedText === undefined ? {} : { citedText })
  }
  switch (part.type) {
    case "source":
      return writeSource(part, reply)
    case "file":
    case "reasoning-file": {
      // Marked as this provider's even without metadata, so that it goes back to it.
      const kept = { metadata: Metadata.fromPart(part), ...(part.type === "file" ? {} : { part: part.type }) }
      return reply.media({ source: sourceOfFile(part.data, part.mediaType) }, kept)
    }
    case "tool-result": {
      const { isError, preliminary, result, toolCallId: id, toolName: name } = part
      const run = { result: parse(JSON.stringify(result)) ?? null, ...(isError === true ? { isError } : {}) }
      if (preliminary !== true) reply.addHosted(id, name, run, Metadata.fromPart(part))
      return
    }
    case "custom": {
      const { kind } = part
      if (kind === messageStart) return
      const kept = { metadata: Metadata.fromPart(part), part: "custom" }
      return reply.hostedTool(`${kind} ${reply.length}`, kind).end({}, kept)
    }
  }
}

/** The part that `@ai-sdk/anthropic` begins each answer with, and leaves out of requests. */
const messageStart = "anthropic.message_start"

const writeSource = (
  part: LanguageModelV3Source | LanguageModelV4Source,
  reply: PartReply,
  cited: { readonly citedText?: string } = {}
): void => {
  const { id, providerMetadata, sourceType, title } = part
  const common = { sourceType, id, ...(title === undefined ? {} : { title }), ...cited }
  const kept = providerMetadata === undefined ? undefined : { metadata: Metadata.fromPart(part) }
  if (part.sourceType === "url") return reply.source({ ...common, url: part.url }, kept)
  const { filename, mediaType } = part
  reply.source({ ...common, mediaType, ...(filename === undefined ? {} : { fileName: filename }) }, kept)
}

const sourceOfFile = (data: FilePart["data"], mediaType: string): Message.Media["source"] => {
  if (typeof data === "string") return { data, mediaType }
  if (data instanceof Uint8Array) return { data: Base64.encode(data), mediaType }
  return data.type === "url"
    ? { url: data.originalUrl ?? data.url.href, mediaType }
    : sourceOfFile(data.data, mediaType)
}
