/**
 * OpenAI Chat Completions, the protocol of most servers, as OpenAI, gateways and local servers really stream
 * it. https://platform.openai.com/docs/api-reference/chat-streaming
 */
import { parseArguments } from "../../../ModelEvent.ts"
import type { Reason } from "../../../ProviderError.ts"
import {
  Overloaded,
  Protocol as ProtocolFault,
  ServerError,
  StreamTruncated
} from "../../../ProviderError.ts"
import { detailIn } from "../detailIn.ts"
import * as Json from "../json.ts"
import * as StopReasons from "../stopReasons.ts"
import { type Call, type Decoder, isReason, type Protocol } from "../../Protocol.ts"
import type { CallBlock, ReplyWriter } from "../../../reply/ReplyWriter.ts"
import { api } from "./api.ts"
import { Calls } from "./calls.ts"
import { type Chunk, readChunk } from "./chunk.ts"
import type { Compat } from "./compat.ts"
import { Details } from "./details.ts"
import { Extras } from "./extras.ts"
import { toMedia } from "./messages.ts"
import { encoder } from "./request.ts"
import { ThinkTags } from "./thinkTags.ts"
import { usageOf } from "./usage.ts"

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
  return native !== undefined && StopReasons.isFailure(native) ? native : finish
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
    stopReason: StopReasons.noted(finish, reply),
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
  if (StopReasons.isFailure(finish)) return new ServerError({ detail: `The answer ended with ${finish}` })
  return undefined
}
