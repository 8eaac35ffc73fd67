/**
 * OpenAI Responses, as OpenAI and compatible servers really send it.
 * https://platform.openai.com/docs/api-reference/responses, read in November 2026.
 *
 * An answer is a list of items. Items without a counterpart in `Message` (summaries of a long conversation, and items that
 * are not known yet) become an empty text block that stores the original and returns it to the vendor.
 */
import type { StopReason } from "../../../Message.ts"
import type { Logprob } from "../../../ModelEvent.ts"
import { type Reason, StreamTruncated } from "../../../ProviderError.ts"
import * as Usage from "../../../Usage.ts"
import type { ReplyWriter } from "../../../reply/ReplyWriter.ts"
import { type Protocol, isReason } from "../../Protocol.ts"
import * as Counting from "../reading.ts"
import { byMembers } from "../writing.ts"
import * as Json from "../json.ts"
import * as Items from "./item.ts"
import * as Places from "./item.ts"
import { type Item, type Place, read, type Speech, type Wire } from "./item.ts"
import { toMedia } from "./items.ts"
import { api, encoder } from "./request.ts"

/** The protocol for one provider, whose id marks data that only this provider can read. */
export const openAiResponses = (provider: string): Protocol => ({
  name: "openai-responses",
  provider,
  ...api,
  encode: encoder(provider),
  refuses: (media) => Counting.detailIn(toMedia(media)),
  counting: byMembers(encoder(provider), counted),
  decoder: ({ model }, reply) => {
    const state = initial(reply)
    return {
      step: ({ data }) => {
        const event = read(data, model)
        return isReason(event) ? event : (strange(state, event) ?? step(state, event))
      },
      end: (_sawEnd, isLenient) => end(state, isLenient)
    }
  }
})

/** https://platform.openai.com/docs/api-reference/responses/input-tokens */
const counted: ReadonlyArray<string> = [
  "conversation",
  "input",
  "instructions",
  "model",
  "parallel_tool_calls",
  "previous_response_id",
  "reasoning",
  "text",
  "tool_choice",
  "tools",
  "truncation"
]

/** A gateway that retries sends a second answer after the start of the first. */
const strange = ({ places, responseId }: State, event: Wire): Reason | undefined =>
  event.type === "created" &&
  places.items.length > 0 &&
  responseId !== undefined &&
  event.response["id"] !== responseId
    ? new StreamTruncated({ detail: "Another answer began in the middle of this one" })
    : undefined

interface State {
  readonly reply: ReplyWriter
  readonly places: Places.Places<Item>
  readonly logprobs: Array<Logprob>
  responseId: string | undefined
  /** The last event, which proves that nothing is missing. */
  response: Json.JsonObject | undefined
  /** Whether the last event lists calls, but not each that ended before. */
  isDisputed: boolean
}

const initial = (reply: ReplyWriter): State => ({
  reply,
  places: new Places.Places(),
  logprobs: [],
  responseId: undefined,
  response: undefined,
  isDisputed: false
})

const step = (state: State, event: Wire): boolean => {
  switch (event.type) {
    case "delta":
    case "whole":
      stepSpeech(state, event)
      return false
    case "added":
      stepAdded(state, event.place, event.item)
      return false
    case "done":
      stepDone(state, event.place, event.item)
      return false
    case "annotation":
      stepAnnotation(state, event.place, event.annotation)
      return false
    case "created":
      start(state, event.response)
      return false
    case "ended":
      start(state, event.response)
      settle(state, Json.array(event.response["output"]))
      state.response = event.response
      return true
    case "other":
      return false
  }
}

const start = (state: State, response: Json.JsonObject): void => {
  const { reply } = state
  if (reply.isStarted) return
  state.responseId = Json.text(response["id"])
  reply.name({ responseId: state.responseId, responseModel: Json.text(response["model"]) })
  reply.start()
}

// ───────────────────────── Items

const stepAdded = (state: State, place: Place, wireItem: Json.JsonObject): void => {
  const known = state.places.at(place.index)
  if (known !== undefined && isSame(known, wireItem)) return
  const call = state.places.callAt(place, wireItem)
  // A call may begin once more at its place, behind an item that took it.
  const isAgain = place.index !== undefined && call?.index === place.index
  if (call?.isDone !== true && !isAgain) begin(state, place, wireItem)
}

const isSame = ({ type, wire: known }: Item, wireItem: Json.JsonObject): boolean =>
  type === Places.typeOf(wireItem) &&
  (known["call_id"] === undefined || known["call_id"] === wireItem["call_id"])

const stepDone = (state: State, place: Place, wireItem: Json.JsonObject): void => {
  const known = state.places.find(place, Places.typeOf(wireItem))
  const isIt = known?.kind === Items.kindOfItem(wireItem)
  const item = isIt ? known : state.places.callAt(place, wireItem)
  finish(state, item ?? begin(state, place, wireItem), wireItem)
}

const stepAnnotation = ({ places }: State, place: Place, annotation: Json.JsonObject): void => {
  const item = places.find(place, "message")
  if (item?.kind === "message") item.parts.get(place.part)?.annotations.push(annotation)
}

/** Adds the items that earlier events left out or did not end. */
const settle = (state: State, output: ReadonlyArray<Json.Json>): void => {
  const wireItems = output.filter(Json.isObject)
  const known = state.places.match(wireItems)
  const listed = new Set(known)
  const isMissing = (item: Item) => isCall(item) && item.isDone && !listed.has(item)
  state.isDisputed = known.some(isCall) && state.places.items.some(isMissing)
  for (const [index, wireItem] of wireItems.entries()) {
    finish(state, known[index] ?? begin(state, nowhere, wireItem), wireItem)
  }
}

const isCall = (item: Item | undefined): boolean => item?.kind === "call"

const nowhere: Place = { index: undefined, id: undefined, part: 0 }

const begin = ({ places, reply }: State, place: Place, wireItem: Json.JsonObject): Item => {
  const item = Items.begin(reply, place, wireItem)
  places.add(item)
  return item
}

const finish = ({ logprobs, places, reply }: State, item: Item, wireItem: Json.JsonObject): void => {
  if (item.isDone) return
  const { call_id } = item.wire
  Items.finish(reply, item, wireItem)
  if (item.wire["call_id"] !== call_id) places.addCall(item)
  if (item.kind !== "message") return
  for (const part of Json.array(wireItem["content"]))
    logprobs.push(...Counting.logprobsOf(Json.object(part)?.["logprobs"]))
}

// ───────────────────────── Speech

const speakers: Readonly<Record<Speech, string>> = {
  text: "message",
  refusal: "message",
  summary: "reasoning",
  thinking: "reasoning",
  arguments: "function_call"
}

/** Reads a piece of an item's text, or its complete text. */
const stepSpeech = (state: State, event: Items.Spoken): void => {
  const { place, speech, text } = event
  if (text === "") return
  const type = speakers[speech]
  const item = state.places.find(place, type) ?? begin(state, place, { type })
  if (!item.isDone && item.kind === Items.kindOf(type)) Items.say(state.reply, item, event)
}

// ───────────────────────── The end

const end = (state: State, isLenient = false): Reason | undefined => {
  const { isDisputed, logprobs, places, reply } = state
  const { items } = places
  const isWhole = isLenient && items.every((item) => !isCall(item) || item.isDone)
  const response = state.response ?? (isWhole ? {} : undefined)
  if (response === undefined) return new StreamTruncated({ detail: "The answer stopped before its end" })
  if (isDisputed)
    return new StreamTruncated({ detail: "The last event lists other calls than those before it" })
  const reason = stopReason(response)
  if (reason === "stop" && items.some(Items.lacksArguments)) {
    return new StreamTruncated({ detail: "A call came without arguments, not even empty ones" })
  }
  for (const item of items) if (!item.isDone) Items.endOpen(reply, item)
  for (const item of items) Items.endCall(reply, item)
  const unanswered = items.flatMap((item) => (isUnanswered(item, items) ? item.type : []))
  const serviceTier = Json.text(response["service_tier"])
  reply.finish({
    stopReason: reason,
    usage: usage(response),
    ...(serviceTier === undefined ? {} : { serviceTier }),
    ...(logprobs.length === 0 ? {} : { logprobs }),
    ...(unanswered.length === 0 ? {} : { unanswered })
  })
  return undefined
}

/** Whether the application has to run the tool of the vendor that an item calls: the vendor gives no output for it. */
const isUnanswered = ({ kind, type, wire }: Item, items: ReadonlyArray<Item>): boolean =>
  kind === "hosted" &&
  type.endsWith("_call") &&
  type !== "custom_tool_call" &&
  typeof wire["call_id"] === "string" &&
  !items.some((other) => other.type !== type && other.wire["call_id"] === wire["call_id"])

// ───────────────────────── The end

// The stop reason and the usage in the last event of OpenAI Responses.

const stopReason = (response: Json.JsonObject): StopReason => {
  const reason = Json.object(response["incomplete_details"])?.["reason"]
  if (reason === "content_filter") return "contentFilter"
  return response["status"] === "incomplete" || reason !== undefined ? "length" : "stop"
}

/** `undefined` if the server counted neither the request nor the answer. */
const usage = (response: Json.JsonObject): Usage.Usage | undefined => {
  const wireUsage = Json.object(response["usage"]) ?? {}
  const [inputTokens, outputTokens] = ["input_tokens", "output_tokens"].map((name) =>
    Counting.tokens(wireUsage[name])
  )
  if (inputTokens === undefined && outputTokens === undefined) return undefined
  const input = Json.object(wireUsage["input_tokens_details"])
  const output = Json.object(wireUsage["output_tokens_details"])
  const reasoning = Counting.tokens(output?.["reasoning_tokens"])
  const total = Counting.tokens(wireUsage["total_tokens"])
  const cost = costOf(wireUsage)
  return Usage.make({
    input: inputTokens ?? 0,
    output: outputTokens ?? 0,
    cacheRead: Counting.tokens(input?.["cached_tokens"]) ?? 0,
    cacheWrite: Counting.tokens(input?.["cache_write_tokens"]) ?? 0,
    ...Counting.audio(Counting.first(input, "audio_tokens"), Counting.first(output, "audio_tokens")),
    ...Counting.hostedToolCalls(response["tool_usage"] ?? wireUsage["server_side_tool_usage_details"]),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(total === undefined ? {} : { total }),
    ...(cost === undefined ? {} : { cost })
  })
}

/** OpenRouter sends dollars, xAI ten billionths of a dollar. */
const costOf = (wireUsage: Json.JsonObject): number | undefined => {
  const ticks = Json.number(wireUsage["cost_in_usd_ticks"])
  return Counting.cost(wireUsage["cost"]) ?? Counting.cost(ticks === undefined ? undefined : ticks / 1e10)
}
