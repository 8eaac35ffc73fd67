/**
 * The conversion of the parts of a stream to model events.
 */
import type {
  LanguageModelV3StreamPart,
  LanguageModelV4StreamPart,
  LanguageModelV3Source,
  LanguageModelV4Citation,
  LanguageModelV4Source
} from "@ai-sdk/provider"
import * as Base64 from "effect/encoding/Base64"
import type * as Message from "../../Message.ts"
import type { StopReason } from "../../Message.ts"
import { type Adjustment, type ModelEvent, parseArguments } from "../../ModelEvent.ts"
import { type Reason, ServerError, StreamTruncated } from "../../ProviderError.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import * as Usage from "../../Usage.ts"
import { parse } from "../../internal/json.ts"
import { PartReply } from "../../reply/PartReply.ts"
import * as Adjusted from "./Adjusted.ts"
import * as CallOptions from "./CallOptions.ts"

/** A part of the stream of a model of version 3 or 4. */
export type Part = LanguageModelV3StreamPart | LanguageModelV4StreamPart

type Of<Type extends Part["type"]> = Extract<Part, { type: Type }>
type ContentPart = Exclude<
  Part,
  Of<"stream-start" | "raw" | "ping" | "error" | "response-metadata" | "finish">
>

/** The provider, the model and the options of the request, and the headers of the response. */
export interface Speaker {
  readonly provider: string
  readonly model: string
  readonly options: ModelOptions
  /** The headers of the response. */
  readonly headers: Readonly<Record<string, string>>
}

/** One answer as it comes. */
export class Answer {
  /** The end of the answer: a `Finish`, a failure, or an error as the model reported it. */
  outcome: "complete" | { readonly reason: Reason } | { readonly error: unknown } | undefined = undefined
  private readonly speaker: Speaker
  private adjusted: ReadonlyArray<Adjustment>
  private begun: PartReply | undefined = undefined
  private asksApproval = false

  constructor(speaker: Speaker, adjusted: ReadonlyArray<Adjustment>) {
    this.speaker = speaker
    this.adjusted = adjusted
  }

  /** Converts a part. */
  add(part: Part): ReadonlyArray<ModelEvent> {
    this.part(part)
    return this.begun?.take() ?? []
  }

  private part(part: Part): void {
    switch (part.type) {
      case "stream-start": {
        const { options } = this.speaker
        const warned = part.warnings.map((warning) => Adjusted.ofWarning(warning, options))
        this.adjusted = [...this.adjusted, ...warned]
        return
      }
      case "raw":
      case "ping":
        return
      case "error":
        this.outcome = { error: part.error }
        return
      case "response-metadata":
        this.begin(part)
        return
      case "finish":
        return this.finish(part)
      default:
        return this.content(part, this.begin({}))
    }
  }

  private begin({ id, modelId }: { readonly id?: string; readonly modelId?: string }): PartReply {
    if (this.begun !== undefined) return this.begun
    const { adjusted, speaker } = this
    const { headers, model, provider } = speaker
    const reply = new PartReply({ provider, name: "ai-sdk" }, { model, seed: "", adjusted })
    reply.name({ responseId: id, responseModel: modelId })
    if (Object.keys(headers).length > 0) reply.respond({ headers })
    reply.start()
    this.begun = reply
    return reply
  }

  private content(part: ContentPart, reply: PartReply): void {
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end":
        reply.addProse("text", part, CallOptions.fromPart(part))
        if ("citations" in part) for (const citation of part.citations ?? []) writeWhole(citation, reply)
        return
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        return reply.addProse("thinking", part, CallOptions.fromPart(part))
      case "tool-input-start": {
        const { id, providerExecuted, toolName } = part
        if (providerExecuted === true) return void reply.beginHosted(id, toolName)
        const { block } = reply.beginCall(id, toolName, CallOptions.fromPart(part))
        // Version 3 has no encoding.
        block.isText = "inputEncoding" in part && part.inputEncoding === "text"
        return
      }
      case "tool-input-delta":
        return reply.growCall(part.id, part.delta)
      case "tool-input-end":
        return
      case "tool-call": {
        const { input, providerExecuted, toolCallId: id, toolName: name } = part
        const metadata = CallOptions.fromPart(part)
        if (providerExecuted !== true) return reply.endCall(id, name, metadata, () => input)
        const params = parseArguments(input)
        return reply.addHosted(id, name, params === undefined ? {} : { params }, metadata)
      }
      case "tool-approval-request":
        this.asksApproval = true
        return
      default:
        return writeWhole(part, reply)
    }
  }

  private finish({ finishReason, usage }: Of<"finish">): void {
    const failure = failureOf(finishReason)
    if (failure !== undefined) {
      this.outcome = { reason: failure }
      return
    }
    this.outcome = "complete"
    const reply = this.begin({})
    reply.finish({
      stopReason: stopReasonOf(finishReason, reply.calls.length > 0),
      usage: usageOf(usage),
      ...(this.asksApproval ? { unrepresented: ["toolApprovals"] } : {})
    })
  }
}

// ───────────────────────── The end of an answer

type Finish = Extract<LanguageModelV3StreamPart | LanguageModelV4StreamPart, { type: "finish" }>
type FinishReason = Finish["finishReason"]

/** Packages report an answer that was cut as `"interrupted"`, and older ones as `"other"` without a reason of the vendor. */
const failureOf = ({ raw, unified }: FinishReason): Reason | undefined => {
  if (unified === "error") return new ServerError({ detail: `The answer ended with an error${quoted(raw)}` })
  if (unified === "interrupted" || (unified === "other" && raw === undefined)) {
    return new StreamTruncated({ detail: "the answer ended before it was finished" })
  }
  return undefined
}

const quoted = (raw: string | undefined): string => (raw === undefined ? "" : ` (${raw.slice(0, 100)})`)

/** Tool calls, also those that the model forgot, make it `toolUse`, unless the answer was cut. A pause is an answer that the run does not continue. */
const stopReasonOf = ({ raw, unified }: FinishReason, hasCalls: boolean): StopReason => {
  if (unified === "length") return "length"
  // OpenAI has no reason of its own for an answer that the model declined.
  if (unified === "content-filter") return refusals.includes(raw) ? "refusal" : "contentFilter"
  if (hasCalls || unified === "tool-calls") return "toolUse"
  return raw === "pause_turn" ? "length" : "stop"
}

const refusals: ReadonlyArray<string | undefined> = ["refusal", "stop", undefined]

/** Converts the usage, or returns `undefined` if the vendor reports none. */
const usageOf = ({ inputTokens, outputTokens }: Finish["usage"]): Usage.Usage | undefined => {
  const counts = [...Object.values(inputTokens), ...Object.values(outputTokens)]
  if (counts.every((count) => count === undefined)) return undefined
  const { cacheRead = 0, cacheWrite = 0, noCache = 0 } = inputTokens
  const { reasoning, text = 0 } = outputTokens
  return Usage.make({
    input: inputTokens.total ?? noCache + cacheRead + cacheWrite,
    output: outputTokens.total ?? text + (reasoning ?? 0),
    cacheRead,
    cacheWrite,
    ...(reasoning === undefined ? {} : { reasoning })
  })
}

// ───────────────────────── Parts that are whole blocks

type AnyPart = LanguageModelV3StreamPart | LanguageModelV4StreamPart
type OfType<Type extends AnyPart["type"]> = Extract<AnyPart, { type: Type }>
type FilePart = OfType<"file" | "reasoning-file">

/** A part of a stream that is a block, or the citation of a text. */
type Whole = FilePart | OfType<"source" | "tool-result" | "custom"> | LanguageModelV4Citation

/** Writes the block, which is none for a result that is not final. */
const writeWhole = (part: Whole, reply: PartReply): void => {
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
      const kept = {
        metadata: CallOptions.fromPart(part),
        ...(part.type === "file" ? {} : { part: part.type })
      }
      return reply.media({ source: sourceOfFile(part.data, part.mediaType) }, kept)
    }
    case "tool-result": {
      const { isError, preliminary, result, toolCallId: id, toolName: name } = part
      const run = { result: parse(JSON.stringify(result)) ?? null, ...(isError === true ? { isError } : {}) }
      if (preliminary !== true) reply.addHosted(id, name, run, CallOptions.fromPart(part))
      return
    }
    case "custom": {
      const { kind } = part
      if (kind === messageStart) return
      const kept = { metadata: CallOptions.fromPart(part), part: "custom" }
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
  const kept = providerMetadata === undefined ? undefined : { metadata: CallOptions.fromPart(part) }
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
