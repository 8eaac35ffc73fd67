/**
 * OpenAI Chat Completions, the protocol of most servers, as OpenAI, gateways and local servers really stream
 * it. https://platform.openai.com/docs/api-reference/chat-streaming
 */
import { parseArguments } from "../../../ModelEvent.ts"
import {
  Overloaded,
  Protocol as ProtocolFault,
  type Reason,
  ServerError,
  StreamTruncated
} from "../../../ProviderError.ts"
import * as Usage from "../../../Usage.ts"
import type { CallBlock, ReplyWriter } from "../../../reply/ReplyWriter.ts"
import { type Call, type Decoder, type Protocol, isReason } from "../../Protocol.ts"
import { isFailure, noted, badShape, detailIn, eventIn } from "../reading.ts"
import * as Counting from "../reading.ts"
import * as Json from "../json.ts"
import { type Compat, api } from "./compat.ts"
import { Calls, Details, Extras, ThinkTags } from "./parts.ts"
import { encoder, toMedia } from "./request.ts"

/** The protocol for one provider, whose id marks data that only this provider can read. */
export const openAiChat = (provider: string, compat: Compat): Protocol => ({
  name: "openai-chat",
  provider,
  ...api,
  schemas: compat.schemas,
  encode: encoder(provider, compat),
  refuses: (media) => detailIn(toMedia(compat, media)),
  sentinel: "[DONE]",
  decoder: (call, reply) => {
    const state = initial(call, reply, compat)
    const decoder: Decoder = {
      step: ({ data }) => {
        const chunk = readChunk(data, state.model)
        if (isReason(chunk)) return chunk
        step(state, chunk)
        // The usage comes after the finish reason, so only the sentinel or the end of the body ends the answer.
        return false
      },
      isComplete: () => state.finish !== undefined,
      end: (sawEnd, isLenient) => end(state, sawEnd, isLenient)
    }
    return decoder
  }
})

interface State {
  readonly model: string
  readonly reply: ReplyWriter
  readonly details: Details
  readonly extras: Extras
  readonly calls: Calls
  readonly tags: ThinkTags
  /** Whether thinking goes back in the field in which it came. */
  readonly keepsField: boolean
  finish: string | undefined
  usage: Json.JsonObject | undefined
  serviceTier: string | undefined
}

const initial = ({ model, question }: Call, reply: ReplyWriter, compat: Compat): State => ({
  model,
  reply,
  details: new Details(reply),
  extras: new Extras(reply),
  calls: new Calls(reply, question),
  tags: new ThinkTags(reply, compat.thinkTags),
  keepsField: compat.replayThinking === "received",
  finish: undefined,
  usage: undefined,
  serviceTier: undefined
})

const step = (state: State, { choice, delta, finish, id, json, message, model, usage }: Chunk): void => {
  const { extras, reply } = state
  extras.addChunk(json, choice)
  if (usage !== undefined) state.usage = usage
  if (finish !== undefined) state.finish = finishOf(finish, choice)
  state.serviceTier = Json.text(json["service_tier"]) ?? state.serviceTier
  if (!reply.isStarted) reply.name({ responseId: id, responseModel: model })
  if (delta === undefined) return
  reply.start()
  stepDelta(state, delta)
  if (message !== undefined && finish !== undefined && reply.length === 0) stepDelta(state, message)
}

/** OpenRouter says `stop` where a vendor broke the answer off. */
const finishOf = (finish: string, choice: Json.JsonObject | undefined): string => {
  const native = Json.text(choice?.["native_finish_reason"])
  return native !== undefined && isFailure(native) ? native : finish
}

const stepDelta = (state: State, delta: Json.JsonObject): void => {
  const { extras, reply, tags } = state
  stepThinking(state, delta)
  const { content, function_call: fn, refusal, tool_calls: calls } = delta
  if (typeof content === "string") {
    if (content !== "") tags.write(content)
  } else
    for (const part of Json.isObject(content) ? [content] : Json.array(content))
      stepPart(state, Json.object(part))
  if (typeof refusal === "string" && refusal !== "") {
    tags.end()
    reply.isRefusal = true
    reply.text(refusal)
  }
  const pieces = Json.isObject(calls) ? [calls] : Json.array(calls)
  if (pieces.length > 0 || Json.isObject(fn)) tags.end()
  for (const call of pieces) if (Json.isObject(call)) state.calls.add(call)
  if (Json.isObject(fn)) state.calls.addOld(fn)
  extras.addDelta(delta)
}

/** Servers may send one text under several names. */
const stepThinking = (state: State, delta: Json.JsonObject): void => {
  const { details, reply } = state
  const { reasoning, reasoning_content: content, reasoning_details: list, reasoning_text: thought } = delta
  const plain = Json.text(content) ?? Json.text(reasoning) ?? Json.text(thought)
  if (plain !== undefined) think(state, plain, fieldIn(delta))
  for (const detail of Json.array(list)) {
    if (!Json.isObject(detail)) continue
    const text = details.add(detail)
    if (plain === undefined && text !== undefined) reply.thinking(text)
  }
}

/** Writes thinking, and notes the field in which it goes back. */
const think = ({ keepsField, reply }: State, text: string, field: string): void => {
  reply.thinking(text)
  const { prose } = reply
  if (keepsField && prose?.kind === "thinking" && prose.kept === undefined)
    prose.keep({ thinkingField: field })
}

const fieldIn = ({ reasoning, reasoning_content: content }: Json.JsonObject): string =>
  Json.text(content) !== undefined
    ? "reasoning_content"
    : Json.text(reasoning) !== undefined
      ? "reasoning"
      : "reasoning_text"

/** Mistral sends content as parts, and thinking as parts within a part. */
const stepPart = (state: State, part: Json.JsonObject | undefined): void => {
  const { extras, reply } = state
  const thinking = part?.["thinking"]
  if (typeof thinking === "string") think(state, thinking, "content")
  for (const thought of Json.array(thinking)) {
    think(state, Json.text(Json.object(thought)?.["text"]) ?? "", "content")
  }
  if (part === undefined || thinking !== undefined) return
  if (typeof part["text"] === "string") reply.text(part["text"])
  else extras.addPart(part)
}

// ───────────────────────── The end

const end = (state: State, sawEnd: boolean, isLenient = false): Reason | undefined => {
  state.tags.end()
  const incomplete = missing(state, sawEnd, isLenient)
  if (incomplete !== undefined) return incomplete
  const { calls, extras, finish = "stop", reply, serviceTier, usage } = state
  reply.endProse()
  calls.end()
  const logprobs = extras.end()
  reply.finish({
    stopReason: noted(finish, reply),
    usage: usage === undefined ? undefined : usageOf(usage),
    ...(logprobs.length === 0 ? {} : { logprobs }),
    ...(serviceTier === undefined ? {} : { serviceTier })
  })
  return undefined
}

/**
 * The failure of an incomplete answer, `undefined` for a complete one. A finish reason proves completeness.
 * Some servers never send one: then their sentinel counts, if the answer has content and the arguments of all
 * calls are valid JSON.
 */
const missing = (
  { extras, finish, reply: { calls, length } }: State,
  sawEnd: boolean,
  isLenient: boolean
): Reason | undefined => {
  if (finish === undefined) {
    if (sawEnd && length === 0 && extras.isEmpty)
      return new ProtocolFault({ kind: "empty", detail: "The answer was empty" })
    const isWhole = ({ arguments: args, isText, json }: CallBlock) =>
      isText || ((sawEnd || json !== "") && parseArguments(args) !== undefined)
    return (sawEnd || isLenient) && calls.every(isWhole)
      ? undefined
      : new StreamTruncated({ detail: "The answer stopped before its end" })
  }
  if (finish === "insufficient_system_resource") return new Overloaded({ detail: finish })
  if (isFailure(finish)) return new ServerError({ detail: `The answer ended with ${finish}` })
  return undefined
}

// ───────────────────────── Chunks

// Reads the chunks of OpenAI Chat Completions: https://platform.openai.com/docs/api-reference/chat-streaming

/** The relevant parts of a chunk: the first choice, and the usage. */
interface Chunk {
  readonly json: Json.JsonObject
  readonly choice: Json.JsonObject | undefined
  readonly id: string | undefined
  readonly model: string | undefined
  readonly delta: Json.JsonObject | undefined
  /** The message of a chunk whose delta is empty. */
  readonly message: Json.JsonObject | undefined
  readonly finish: string | undefined
  readonly usage: Json.JsonObject | undefined
}

/** The chunk of an event, or the reason if the event reports a failure or is no chunk. */
const readChunk = (data: string, model: string): Chunk | Reason => {
  const json = eventIn(data, model, "a chunk")
  if (isReason(json)) return json
  const choice = Json.firstAnswer(json["choices"])
  const [delta, message] = [Json.object(choice?.["delta"]), Json.object(choice?.["message"])]
  const own = delta ?? message
  if (own !== undefined && !isReadable(own)) return badShape("Not a delta", data)
  return {
    json,
    choice,
    id: Json.text(json["id"]),
    model: Json.text(json["model"]),
    // A complete answer has a message instead of a delta. Some servers send both.
    delta: own,
    message: delta === undefined || message === undefined || !isReadable(message) ? undefined : message,
    finish: Json.text(choice?.["finish_reason"]),
    usage: usageIn(json, choice)
  }
}

/** Groq and Moonshot send the usage in other places. */
const usageIn = (
  { usage, x_groq: groq }: Json.JsonObject,
  choice: Json.JsonObject | undefined
): Json.JsonObject | undefined => {
  const elsewhere = groq === undefined ? undefined : Json.object(groq)?.["usage"]
  return Json.object(usage ?? elsewhere ?? choice?.["usage"])
}

/** Whether decoding the delta loses nothing. */
const isReadable = ({ content, tool_calls: calls }: Json.JsonObject): boolean =>
  (content === undefined || content === null || typeof content === "string" || typeof content === "object") &&
  (calls === undefined || calls === null || typeof calls === "object")

// ───────────────────────── Usage

// The tokens of an answer of Chat Completions, by the names that servers give them.

/** `undefined` if the server counted neither the request nor the answer. */
const usageOf = (wireUsage: Json.JsonObject): Usage.Usage | undefined => {
  const details = (side: "prompt" | "input" | "completion" | "output") =>
    Json.object(wireUsage[`${side}_tokens_details`])
  const prompt = details("prompt") ?? details("input")
  const completion = details("completion") ?? details("output")
  const input = Counting.first(wireUsage, "prompt_tokens", "input_tokens")
  const completionTokens = Counting.first(wireUsage, "completion_tokens", "output_tokens")
  if (input === undefined && completionTokens === undefined) return undefined
  const reasoning = Counting.first(completion, "reasoning_tokens")
  const total = Counting.first(wireUsage, "total_tokens")
  // xAI excludes reasoning from the completion tokens, but includes it in the total.
  const output =
    reasoning !== undefined && total === (input ?? 0) + (completionTokens ?? 0) + reasoning
      ? (completionTokens ?? 0) + reasoning
      : completionTokens
  const cost =
    Counting.cost(wireUsage["cost"]) ?? Counting.cost(Json.object(wireUsage["cost"])?.["total_cost"])
  return Usage.make({
    input: input ?? 0,
    output: output ?? 0,
    cacheRead:
      Counting.first(prompt, "cached_tokens") ??
      // DeepSeek, Kimi, LiteLLM
      Counting.first(wireUsage, "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens") ??
      0,
    cacheWrite:
      // OpenAI and OpenRouter, DashScope, gateways to Anthropic
      Counting.first(prompt, "cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens") ??
      // LiteLLM, Vercel
      Counting.first(wireUsage, "cache_creation_input_tokens") ??
      0,
    ...Counting.audio(Counting.first(prompt, "audio_tokens"), Counting.first(completion, "audio_tokens")),
    ...Counting.hostedToolCalls(wireUsage["server_tool_use"]),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(total === undefined ? {} : { total }),
    ...(cost === undefined ? {} : { cost })
  })
}
