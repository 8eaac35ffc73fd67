/** The conversion of the parts of a stream to model events, and of failures to reasons of `ProviderError`. */
import type {
  LanguageModelV3StreamPart,
  LanguageModelV4StreamPart,
  LanguageModelV3Source,
  LanguageModelV4Citation,
  LanguageModelV4Source
} from "@ai-sdk/provider"
import * as Inspectable from "effect/Inspectable"
import * as Predicate from "effect/Predicate"
import * as Base64 from "effect/encoding/Base64"
import type * as Message from "../../Message.ts"
import type { StopReason } from "../../Message.ts"
import { type Adjustment, type ModelEvent, parseArguments } from "../../ModelEvent.ts"
import * as Reasons from "../../ProviderError.ts"
import { type Reason, ServerError, StreamTruncated } from "../../ProviderError.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import * as Usage from "../../Usage.ts"
import { parse } from "../../internal/json.ts"
import { PartReply } from "../../reply/PartReply.ts"
import * as CallOptions from "./CallOptions.ts"
import * as HttpConnection from "../../http/HttpConnection.ts"
import * as VendorFailure from "../../http/VendorFailure.ts"
import * as VendorText from "../../http/VendorText.ts"

/** A part of the stream of a model of version 3 or 4. */
export type Part = LanguageModelV3StreamPart | LanguageModelV4StreamPart

type Of<Type extends Part["type"]> = Extract<Part, { type: Type }>
type ContentPart = Exclude<
  Part,
  Of<"stream-start" | "raw" | "ping" | "error" | "response-metadata" | "finish">
>

/** The provider, the model and the options of the request, and the headers of the response. */
interface Speaker {
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
        const warned = part.warnings.map((warning) => CallOptions.ofWarning(warning, options))
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

// ───────────────────────── Failures
//
// Errors are read by their shapes and marks, not by their classes: an application may have several versions of `@ai-sdk/provider`.

/** Converts an error of any shape. `now` is milliseconds since the epoch. */
export const reasonOf = (error: unknown, model: string, now: number): Reason => {
  const inner = member(error, "lastError") ?? member(error, "cause")
  const isWrapped = numberIn(error, "statusCode") === undefined && numberIn(inner, "statusCode") !== undefined
  return isWrapped ? ofError(inner, model, now) : ofError(error, model, now)
}

const ofError = (error: unknown, model: string, now: number): Reason => {
  const report = read(error)
  const { body, facts, headers } = report
  if (facts.status !== undefined && facts.status >= 400) {
    const { shouldRetry, status } = facts
    const isAdvised = headers["x-should-retry"] !== undefined || shouldRetry === undefined
    const advised = isAdvised ? headers : { ...headers, "x-should-retry": "false" }
    return VendorFailure.ofResponse({ status, headers: advised, body, model, now, words: facts.detail })
  }
  const connection = HttpConnection.kindIn(error)
  if (connection !== undefined) return new Reasons.Transport({ ...facts, ...connection })
  // The packages know the failures that their vendor documents, and call others an answer of a wrong shape.
  const inBand = report.name.startsWith("AI_") ? VendorFailure.inText(body, model) : undefined
  return (
    inBand ?? ofName(report, model) ?? VendorFailure.ofErrorEvent(body === "" ? facts.detail : body, model)
  )
}

/** An error, whether the model threw it or sent it in its stream, without keys that a server repeats. */
interface Report {
  readonly facts: Pick<Reason, "detail" | "status" | "body" | "shouldRetry">
  /** The name of the error's class, or `""`. */
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const read = (error: unknown): Report => {
  const body = VendorText.cutOut(
    textIn(error, "responseBody") ?? dataOf(error) ?? textIn(error, "text") ?? ""
  )
  const status = numberIn(error, "statusCode") ?? numberIn(error, "status")
  return {
    facts: {
      detail: VendorText.cutOut(messageOf(error)).slice(0, maxDetail),
      ...(status === undefined ? {} : { status }),
      ...(body === "" ? {} : { body: VendorText.excerpt(body) }),
      // Only where the status alone would allow a retry.
      ...(member(error, "isRetryable") === false && (status === 429 || (status ?? 0) >= 500)
        ? { shouldRetry: false }
        : {})
    },
    name: textIn(error, "name") ?? "",
    headers: headersIn(member(error, "responseHeaders")),
    body
  }
}

const maxDetail = 1600

const headersIn = (headers: unknown): Readonly<Record<string, string>> =>
  Predicate.isObject(headers)
    ? Object.fromEntries(
        Object.entries(headers).flatMap(([name, value]) =>
          typeof value === "string" ? [[name.toLowerCase(), VendorText.cutOut(value)]] : []
        )
      )
    : {}

const member = (value: unknown, name: string): unknown =>
  Predicate.hasProperty(value, name) ? value[name] : undefined

const textIn = (value: unknown, name: string): string | undefined => {
  const found = member(value, name)
  return typeof found === "string" ? found : undefined
}

const numberIn = (value: unknown, name: string): number | undefined => {
  const found = member(value, name)
  return typeof found === "number" && Number.isInteger(found) ? found : undefined
}

/** The data of an error in a stream, which is the event of the vendor. */
const dataOf = (error: unknown): string | undefined => {
  const data =
    member(error, "data") ??
    member(error, "value") ??
    (error instanceof Error || !Predicate.isObject(error) ? undefined : error)
  return data === undefined ? undefined : Inspectable.toStringUnknown(data, 0)
}

const messageOf = (error: unknown): string => {
  const message = textIn(error, "message") ?? textIn(member(error, "error"), "message")
  return message ?? (typeof error === "string" ? error : Inspectable.toStringUnknown(error, 0))
}

/** The reason of an error that the packages raise themselves. */
const ofName = ({ facts, name }: Report, model: string): Reason | undefined => {
  switch (name) {
    case "AI_LoadAPIKeyError":
      return new Reasons.Unauthenticated(facts)
    case "AI_NoSuchModelError":
      return new Reasons.ModelNotSupported({ ...facts, model })
    case "AI_UnsupportedFunctionalityError":
    case "AI_NoSuchProviderReferenceError":
      return new Reasons.UnsupportedContent(facts)
    case "AI_InvalidPromptError":
    case "AI_InvalidArgumentError":
    case "AI_LoadSettingError":
      return new Reasons.InvalidRequest(facts)
    case "AI_JSONParseError":
      return new Reasons.Protocol({ ...facts, kind: "badJson" })
    case "AI_TypeValidationError":
    case "AI_InvalidResponseDataError":
      return new Reasons.Protocol({ ...facts, kind: "badShape" })
    case "AI_EmptyResponseBodyError":
    case "AI_NoContentGeneratedError":
      return new Reasons.Protocol({ ...facts, kind: "empty" })
    case "AI_APICallError":
      // A response that is no error, and no answer either; or no response.
      return facts.status === undefined
        ? new Reasons.Transport({ ...facts, kind: "reset" })
        : new Reasons.Protocol({ ...facts, kind: "badShape" })
    default:
      return undefined
  }
}
