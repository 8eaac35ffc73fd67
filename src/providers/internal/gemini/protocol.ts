/**
 * Gemini's streaming `generateContent`, as Google's two APIs and gateways really send it.
 * https://ai.google.dev/api/generate-content, read in November 2026.
 */
import type { StopReason } from "../../../Message.ts"
import type { Logprob } from "../../../ModelEvent.ts"
import { InvalidRequest, type Reason, ServerError, StreamTruncated } from "../../../ProviderError.ts"
import * as Usage from "../../../Usage.ts"
import type { CallBlock, Prose, ReplyWriter } from "../../../reply/ReplyWriter.ts"
import { wholeArguments } from "../../../reply/WholeArguments.ts"
import type { Frame } from "../../Framing.ts"
import { type Call, type Decoder, type Protocol, isReason, type Question } from "../../Protocol.ts"
import { audio, tokens, badShape, detailIn, eventIn } from "../reading.ts"
import * as Json from "../json.ts"
import { type Dialect, api, hasScreen, screen } from "./api.ts"
import { toImage } from "./messages.ts"
import { Arguments, Sources, members } from "./parts.ts"
import { counter, encoder } from "./request.ts"

/** The protocol for one provider, whose id marks data that only this provider can read. */
export const googleGenerate = (provider: string, dialect: Dialect = {}): Protocol => {
  const encode = encoder(provider, dialect)
  return {
    name: "google-generative",
    provider,
    ...api,
    encode,
    refuses: (media) => (media.type === "image" ? detailIn(toImage(media)) : undefined),
    decoder: (call, reply) => new GeminiDecoder(call, reply),
    counting: {
      encode: counter(encode, dialect),
      read: (response) => tokens(Json.object(response)?.["totalTokens"])
    }
  }
}

// ───────────────────────── Chunks

// Reads the chunks of an answer: https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse

/** The first candidate of a chunk, the reason why Google blocked the prompt, and the usage. */
interface Chunk {
  readonly responseId: string | undefined
  readonly responseModel: string | undefined
  readonly candidate: Json.JsonObject | undefined
  readonly parts: ReadonlyArray<Json.Json>
  readonly finish: string | undefined
  readonly blocked: Json.JsonObject | undefined
  readonly usage: Json.JsonObject | undefined
}

const read = (data: string, model: string): Chunk | Reason => {
  const chunk = eventIn(data, model, "a chunk")
  if (isReason(chunk)) return chunk
  const { candidates, modelVersion, promptFeedback, responseId, usageMetadata } = chunk
  const candidate = Json.firstAnswer(candidates)
  const content = candidate?.["content"]
  const parts = Json.object(content)?.["parts"]
  if (!isAbsentOr(candidates, Json.isArray)) return badShape("Not a list of candidates", data)
  if (!isAbsentOr(content, Json.isObject) || !isAbsentOr(parts, Json.isArray)) {
    return badShape("Not a content", data)
  }
  const feedback = Json.object(promptFeedback)
  return {
    responseId: Json.text(responseId),
    responseModel: Json.text(modelVersion),
    candidate,
    parts: Json.array(parts),
    finish: Json.text(candidate?.["finishReason"]),
    blocked: Json.text(feedback?.["blockReason"]) === undefined ? undefined : feedback,
    usage: Json.object(usageMetadata)
  }
}

const isAbsentOr = (json: Json.Json | undefined, is: (json: Json.Json | undefined) => boolean): boolean =>
  json === undefined || json === null || is(json)

// ───────────────────────── The decoder

// Decodes the chunks of one answer, and writes its parts as blocks.

/** Bounds the cost of a server that always has more to say: a window of 1,048,576 tokens has room for 32 requests of 32,768. */
const maxContinuations = 32

/** A call whose arguments may be incomplete. */
interface OpenCall {
  readonly block: CallBlock
  readonly arguments: Arguments
  /** The id of the server, `undefined` if it sends none. */
  wireId: string | undefined
  isOpen: boolean
}

class GeminiDecoder implements Decoder {
  private readonly call: Call
  /** The tools of the agent, if the model controls a screen by other functions. */
  private readonly tools: ReadonlySet<string> | undefined
  private readonly reply: ReplyWriter
  private readonly sources = new Sources()
  private readonly calls: Array<OpenCall> = []
  private readonly logprobs: Array<Logprob> = []
  /** The block of the last signature, and the signed ranges of its text. */
  private signed: { readonly prose: Prose; readonly ranges: Array<Json.JsonObject> } | undefined = undefined
  /** The number of calls of Google's tools, and the id of the last one. */
  private hosted = 0
  private hostedId: string | undefined = undefined
  /** Whether the answer has the calls of searches as parts. */
  private hasSearches = false
  /** Whether a chunk had no finish reason. */
  private hadUnfinished = false
  private isBlocked = false
  private finish: string | undefined = undefined
  private finishMessage: string | undefined = undefined
  /** The token with which the same request requests the rest of the answer. */
  private token: string | undefined = undefined
  private continuations = 0
  private usage: Json.JsonObject | undefined = undefined
  /** The usage of the requests before the current one. */
  private earlier: Usage.Usage | undefined = undefined
  /** The reason why Google blocked the prompt, or cut the answer. */
  private notes: Json.JsonObject = {}

  constructor(call: Call, reply: ReplyWriter) {
    this.call = call
    this.reply = reply
    const { question } = call
    if (question !== undefined && hasScreen(question.options))
      this.tools = new Set(question.tools.map(({ name }) => name))
  }

  step({ data }: Frame): boolean | Reason {
    const chunk = read(data, this.call.model)
    if (isReason(chunk)) return chunk
    // Some servers send a finish reason with every chunk, so that only the end of the body ends the answer. If an earlier
    // chunk had none, the chunk with a finish reason and usage is the last one.
    const isLast = this.hadUnfinished && chunk.usage !== undefined && chunk.finish !== undefined
    this.read(chunk)
    return isLast
  }

  isComplete(): boolean {
    return this.finish !== undefined || this.isBlocked
  }

  end(_sawEnd: boolean, isLenient = false): Reason | undefined {
    if (isLenient && this.calls.every(({ isOpen }) => !isOpen)) this.finish ??= "STOP"
    const { finish, logprobs, notes, reply } = this
    const incomplete = missing(this.ending)
    if (incomplete !== undefined) return incomplete
    if (this.isPaused) return undefined
    if (Object.keys(notes).length > 0) reply.block("text").keep(notes)
    reply.endProse()
    const stopReason = stopReasonOf(finish)
    for (const { arguments: args, block, isOpen } of this.calls) {
      // Incomplete arguments stay incomplete, so that they are not taken for complete ones.
      block.end(isOpen && stopReason === "length" ? args.shown || "{" : args.json)
    }
    this.sources.write(reply, this.hasSearches, () => this.nextHosted(undefined))
    const { serviceTier, trafficType } = this.usage ?? {}
    const tier = Json.text(serviceTier) ?? Json.text(trafficType)
    reply.finish({
      stopReason,
      usage: this.total,
      ...(logprobs.length === 0 ? {} : { logprobs }),
      ...(tier === undefined ? {} : { serviceTier: tier })
    })
    return undefined
  }

  /** Repeats the request with the token. The answer continues where this one stops, in the middle of a text or of a call. */
  resume(question: Question): Question | undefined {
    const { isPaused, token = "" } = this
    if (!isPaused) return undefined
    this.earlier = this.total
    this.continuations++
    this.finish = undefined
    this.hadUnfinished = false
    this.token = undefined
    this.usage = undefined
    return { ...question, vendor: { ...question.vendor, continuationToken: token } }
  }

  private get isPaused(): boolean {
    const { continuations, finish, token } = this
    return finish === continuation && token !== undefined && continuations < maxContinuations
  }

  /** The usage of all requests of the answer. */
  private get total(): Usage.Usage | undefined {
    const { earlier } = this
    const own = this.usage === undefined ? undefined : usageOf(this.usage)
    return own === undefined || earlier === undefined ? (own ?? earlier) : Usage.add(earlier, own)
  }

  private get ending() {
    const { finish, finishMessage, isBlocked } = this
    return { finish, finishMessage, isBlocked }
  }

  private read({ blocked, candidate, finish, parts, responseId, responseModel, usage }: Chunk): void {
    this.reply.name({ responseId, responseModel })
    // Some chunks have an object of this name without token counts.
    if (Json.number(usage?.["promptTokenCount"] ?? usage?.["totalTokenCount"]) !== undefined)
      this.usage = usage
    if (blocked !== undefined) {
      this.isBlocked = true
      this.notes = { ...this.notes, promptFeedback: blocked }
    }
    if (candidate === undefined) return
    this.reply.start()
    if (finish === undefined) this.hadUnfinished = true
    else this.readFinish(finish, candidate)
    this.sources.read(candidate)
    this.logprobs.push(...logprobsOf(candidate["logprobsResult"]))
    for (const part of parts) {
      if (Json.isObject(part)) this.readPart(part)
    }
  }

  private readFinish(finish: string, candidate: Json.JsonObject): void {
    this.finish = finish
    this.finishMessage = Json.text(candidate["finishMessage"])
    this.token = Json.text(candidate["continuationToken"]) ?? this.token
    if (stopReasonOf(finish) !== "contentFilter") return
    this.notes = { ...this.notes, filter: Json.without(candidate, "content", ...members) }
  }

  // ───────────────────────── Parts

  /** A part has one kind. Its signature belongs to it only. */
  private readPart(part: Json.JsonObject): void {
    const { text } = part
    const signature = Json.text(part["thoughtSignature"])
    const call = Json.object(part["functionCall"])
    const isThought = part["thought"] === true
    if (call !== undefined) this.readCall(call, signature)
    else if (typeof text === "string") this.say(isThought ? "thinking" : "text", text, signature)
    else if (Object.keys(part).some((key) => key !== "thought" && key !== "thoughtSignature"))
      this.readOther(part, isThought)
    else if (signature !== undefined) this.say("text", "", signature)
  }

  /**
   * A part with a signature must return to the server unchanged, even if it is empty. It does not split a text.
   */
  private say(kind: Prose["kind"], delta: string, thoughtSignature: string | undefined): void {
    if (delta === "" && thoughtSignature === undefined) return
    const prose = this.reply.block(kind)
    const from = prose.length
    prose.write(delta)
    if (thoughtSignature === undefined) return
    if (this.signed?.prose !== prose) {
      this.signed = { prose, ranges: [] }
      prose.keep({ signed: this.signed.ranges })
    }
    this.signed.ranges.push({ from, to: prose.length, thoughtSignature })
  }

  /** A file of the model, a call of a tool of Google, or a part of a kind that Google adds later. */
  private readOther(part: Json.JsonObject, isThought: boolean): void {
    const { codeExecutionResult, executableCode, toolCall, toolResponse } = part
    const file = fileOf(part)
    const call = Json.object(executableCode) ?? Json.object(toolCall)
    const result = Json.object(codeExecutionResult) ?? Json.object(toolResponse)
    if (isThought || (file ?? call ?? result) === undefined) this.keep(isThought ? "thinking" : "text", part)
    else if (file !== undefined) {
      const kept = Json.without(part, "inlineData", "fileData")
      this.reply.media({ source: file }, Object.keys(kept).length === 0 ? undefined : kept)
    } else if (call !== undefined) {
      this.hasSearches ||= toolCall !== undefined
      const { args, id: _, toolType, ...params } = call
      const id = this.nextHosted(Json.text(call["id"]))
      this.reply.hostedTool(id, toolName(toolType)).end({ params: args ?? params }, { part })
    } else if (result !== undefined) {
      const { id: _, response, toolType, ...outcome } = result
      const id = Json.text(result["id"]) ?? this.hostedId ?? this.nextHosted(undefined)
      const isError = "outcome" in outcome && outcome["outcome"] !== "OUTCOME_OK"
      this.reply
        .hostedTool(id, toolName(toolType))
        .end({ result: response ?? outcome, ...(isError ? { isError } : {}) }, { part })
    }
  }

  /** Keeps a part that no block stands for in an empty block. */
  private keep(kind: Prose["kind"], part: Json.JsonObject): void {
    this.reply.endProse()
    this.reply.block(kind).keep({ part })
    this.reply.endProse()
  }

  private nextHosted(id: string | undefined): string {
    this.hostedId = id ?? `hosted_${this.call.seed}_${this.hosted++}`
    return this.hostedId
  }

  // ───────────────────────── Calls

  private readCall(wireCall: Json.JsonObject, thoughtSignature: string | undefined): void {
    const call = this.callOf(wireCall)
    if (call === undefined) return
    const { arguments: args, block } = call
    const id = Json.text(wireCall["id"])
    if (call.wireId === undefined && id !== undefined) {
      call.wireId = id
      block.keep({ id })
    }
    if (thoughtSignature !== undefined && block.kept?.["thoughtSignature"] === undefined)
      block.keep({ thoughtSignature })
    call.isOpen = wireCall["willContinue"] === true
    const members = objectIn(wireCall["args"])
    if (members !== undefined) args.assign(members)
    for (const piece of Json.array(wireCall["partialArgs"])) {
      if (!Json.isObject(piece)) continue
      const shown = args.add(piece)
      if (shown === "") this.reply.weigh(Json.text(piece["stringValue"])?.length ?? 1)
      block.write(shown)
    }
    if (!call.isOpen) block.write(args.finish())
  }

  /** The call to which a part belongs. A part without a name continues the last call. */
  private callOf(wireCall: Json.JsonObject): OpenCall | undefined {
    const called = Json.text(wireCall["name"])
    const wireId = Json.text(wireCall["id"])
    const last = this.calls.at(-1)
    if (last?.isOpen === true && (called === undefined || (wireId !== undefined && wireId === last.wireId))) {
      return last
    }
    if (called === undefined && wireCall["args"] === undefined && wireCall["partialArgs"] === undefined)
      return undefined
    const isAction = called !== undefined && this.tools?.has(called) === false
    const block = this.reply.openCall(wireId, isAction ? screen : (called ?? ""))
    const call = { block, arguments: new Arguments(), wireId: undefined, isOpen: false }
    if (isAction) {
      block.keep({ action: called })
      call.arguments.assign({ action: called })
    }
    this.calls.push(call)
    return call
  }
}

/** The arguments, which servers that imitate Google may send as JSON text. */
const objectIn = (args: Json.Json | undefined): Json.JsonObject | undefined =>
  Json.object(typeof args === "string" ? Json.parseShallow(wholeArguments(args)) : args)

const fileOf = ({
  fileData,
  inlineData
}: Json.JsonObject):
  | { readonly data: string; readonly mediaType: string }
  | { readonly url: string; readonly mediaType: string }
  | undefined => {
  const { data, mimeType: inlineType } = Json.object(inlineData) ?? {}
  const { fileUri, mimeType } = Json.object(fileData) ?? {}
  if (typeof data === "string") return { data, mediaType: Json.text(inlineType) ?? unknownType }
  const url = Json.text(fileUri)
  return url === undefined ? undefined : { url, mediaType: Json.text(mimeType) ?? unknownType }
}

const unknownType = "application/octet-stream"

/** `google_search_web` of `GOOGLE_SEARCH_WEB`. Code has no type. */
const toolName = (type: Json.Json | undefined): string => Json.text(type)?.toLowerCase() ?? "code_execution"

// ───────────────────────── The end

// The end of an answer: its stop reason, its failure and its usage.

/** The end of an answer as far as the server has sent it. */
interface Ending {
  /** Whether Google blocked the prompt. */
  readonly isBlocked: boolean
  readonly finish: string | undefined
  readonly finishMessage: string | undefined
}

/**
 * The failure of an incomplete answer, `undefined` for a complete one. A finish reason, or a blocked prompt,
 * proves completeness.
 */
const missing = ({ finish, finishMessage, isBlocked }: Ending): Reason | undefined => {
  if (finish === undefined) {
    return isBlocked ? undefined : new StreamTruncated({ detail: "The answer stopped before its end" })
  }
  if (stopReasons.has(finish)) return undefined
  const detail = `The answer ended with ${finish}${finishMessage === undefined ? "" : `: ${finishMessage}`}`
  // Google adds finish reasons for new failures, so an unknown one is a failure. Most are temporary: a
  // malformed call, or a call of an unknown function.
  return finish === "MISSING_THOUGHT_SIGNATURE" ? new InvalidRequest({ detail }) : new ServerError({ detail })
}

/** The stop reason of a complete answer. A blocked prompt has no finish reason. */
const stopReasonOf = (finish: string | undefined): StopReason =>
  finish === undefined ? "contentFilter" : (stopReasons.get(finish) ?? "error")

/** The answer is longer than one request gives: https://ai.google.dev/gemini-api/docs/generate-content/long-decode */
const continuation = "CONTINUATION"

const stopReasons: ReadonlyMap<string, StopReason> = new Map([
  ["STOP", "stop"],
  // Servers that imitate Google send this.
  ["FUNCTION_CALL", "stop"],
  ["MAX_TOKENS", "length"],
  // The end of one request of a long answer, if no further request continues it.
  [continuation, "length"],
  ["SAFETY", "contentFilter"],
  ["RECITATION", "contentFilter"],
  ["LANGUAGE", "contentFilter"],
  ["BLOCKLIST", "contentFilter"],
  ["PROHIBITED_CONTENT", "contentFilter"],
  ["SPII", "contentFilter"],
  ["MODEL_ARMOR", "contentFilter"],
  // SDK 3.3: a rule of escalation, and an account that is limited for what it did against the policies.
  ["ESCALATION", "contentFilter"],
  ["PUP_LIMITED_DISABLED", "contentFilter"],
  ["IMAGE_SAFETY", "contentFilter"],
  ["IMAGE_PROHIBITED_CONTENT", "contentFilter"],
  ["IMAGE_RECITATION", "contentFilter"]
])

/**
 * The prompt count includes cached tokens, but not those that Google's own tools add. The candidate count
 * excludes thinking.
 */
const usageOf = (wireUsage: Json.JsonObject): Usage.Usage => {
  const count = (name: string) => tokens(wireUsage[name])
  const reasoning = count("thoughtsTokenCount")
  const total = count("totalTokenCount")
  return Usage.make({
    input: (count("promptTokenCount") ?? 0) + (count("toolUsePromptTokenCount") ?? 0),
    output: (count("candidatesTokenCount") ?? 0) + (reasoning ?? 0),
    cacheRead: count("cachedContentTokenCount") ?? 0,
    ...audio(
      audioIn(wireUsage["promptTokensDetails"]) + audioIn(wireUsage["toolUsePromptTokensDetails"]),
      audioIn(wireUsage["candidatesTokensDetails"])
    ),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(total === undefined ? {} : { total })
  })
}

const audioIn = (details: Json.Json | undefined): number =>
  Json.array(details).reduce<number>((sum, detail) => {
    const { modality, tokenCount } = Json.object(detail) ?? {}
    return modality === "AUDIO" ? sum + (tokens(tokenCount) ?? 0) : sum
  }, 0)

/** The probabilities of the tokens of a chunk: https://ai.google.dev/api/generate-content#LogprobsResult */
const logprobsOf = (result: Json.Json | undefined): ReadonlyArray<Logprob> => {
  const { chosenCandidates, topCandidates } = Json.object(result) ?? {}
  const tops = Json.array(topCandidates)
  return Json.array(chosenCandidates).flatMap((chosen, index) => {
    const top = Json.array(Json.object(tops[index])?.["candidates"]).flatMap(tokenOf)
    return tokenOf(chosen).map((token) => (top.length === 0 ? token : { ...token, top }))
  })
}

const tokenOf = (candidate: Json.Json): ReadonlyArray<Pick<Logprob, "token" | "logprob">> => {
  const { logProbability: logprob, token } = Json.object(candidate) ?? {}
  return typeof token === "string" && typeof logprob === "number" ? [{ token, logprob }] : []
}
