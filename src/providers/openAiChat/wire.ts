/**
 * Decodes the chunks of OpenAI Chat Completions: https://platform.openai.com/docs/api-reference/chat-streaming
 *
 * Nearly all chunks of an answer contain only the next piece of one text, which has a fast path.
 */
import type { Reason } from "../../ProviderError.ts"
import * as Failure from "../internal/failure.ts"
import * as Json from "../internal/json.ts"
import * as Extras from "./extras.ts"
import { isReason } from "../Protocol.ts"
import { type Hole, type Kind, piece, Repeat } from "../internal/repeat.ts"

export type Wire = Chunk | Piece

/** The relevant parts of a chunk: the first choice, and the usage. */
export interface Chunk {
  readonly type: "chunk"
  /** The id of the answer, at the latest with the first delta. */
  readonly id: string | undefined
  /** The id of the model, at the latest with the first delta. */
  readonly model: string | undefined
  readonly delta: Json.JsonObject | undefined
  readonly finish: string | undefined
  readonly usage: Json.JsonObject | undefined
  /** Members beside the delta: see `Extras`. */
  readonly extras: Json.JsonObject | undefined
}

/** A chunk with one piece of text and nothing else. */
export type Piece =
  | { readonly type: "text" | "thinking"; readonly text: string }
  /** `call` is the call of the delta without its arguments. */
  | { readonly type: "arguments"; readonly call: Json.JsonObject; readonly text: string }

/** Decodes the chunks of one answer. */
export class Chunks {
  private readonly model: string
  private readonly pieces = new Repeat<Wire, string>(piece)
  private readonly deltas = new Repeat<Chunk, Json.JsonObject>(readable)
  private isBegun = false

  constructor(model: string) {
    this.model = model
  }

  read(padded: string): Wire | Reason {
    const data = withoutPadding(padded)
    const repeated = this.pieces.match(data)
    if (repeated !== undefined) return repeated
    const chunk = this.deltas.match(data) ?? this.readChunk(data)
    if (!isReason(chunk)) this.pieces.learn(data, () => pieceOf(chunk), rereadPiece)
    return chunk
  }

  private readChunk(data: string): Chunk | Reason {
    const json = Json.parse(data)
    if (json === undefined) return Failure.badJson(data)
    if (!Json.isObject(json)) return Failure.badShape("Not a chunk", data)
    const failure = Failure.inBand(json, data, this.model)
    if (failure !== undefined) return failure
    const choice = Json.firstAnswer(json["choices"])
    const delta = deltaOf(choice)
    if (delta !== undefined && !isReadable(delta)) return Failure.badShape("Not a delta", data)
    const chunk: Chunk = {
      type: "chunk",
      id: this.isBegun ? undefined : Json.text(json["id"]),
      model: this.isBegun ? undefined : Json.text(json["model"]),
      delta,
      finish: Json.text(choice?.["finish_reason"]),
      usage: usageIn(json, choice),
      extras: Extras.ofChunk(json, choice)
    }
    this.isBegun ||= delta !== undefined
    this.deltas.learn(data, () => frameOf(chunk), rereadDelta)
    return chunk
  }
}

/**
 * Removes the padding of random length that OpenAI and Azure add to each chunk, so that chunks differ in their text only. A
 * text cannot contain it: JSON escapes the quotes of a text.
 */
const withoutPadding = (data: string): string => {
  const start = data.indexOf(padding)
  if (start === -1) return data
  const end = data.indexOf('"', start + padding.length)
  return end === -1 || data[end - 1] === "\\" ? data : data.slice(0, start) + data.slice(end + 1)
}

const padding = ',"obfuscation":"'

/** Groq and Moonshot send the usage in other places. */
const usageIn = (
  { usage, x_groq: groq }: Json.JsonObject,
  choice: Json.JsonObject | undefined
): Json.JsonObject | undefined => {
  const elsewhere = groq === undefined ? undefined : Json.object(groq)?.["usage"]
  return Json.object(usage ?? elsewhere ?? choice?.["usage"])
}

/** A complete answer has a message instead of a delta. Some servers send both. */
const deltaOf = (choice: Json.JsonObject | undefined): Json.JsonObject | undefined =>
  Json.object(choice?.["delta"]) ?? Json.object(choice?.["message"])

const readable: Kind<Json.JsonObject> = {
  fits: (json): json is Json.JsonObject => Json.isObject(json) && isReadable(json),
  probe: { another: "" }
}

/** Whether decoding the delta loses nothing. */
const isReadable = ({ content, tool_calls: calls }: Json.JsonObject): boolean =>
  (content === undefined || content === null || typeof content === "string" || Json.isArray(content)) &&
  (calls === undefined || calls === null || Json.isArray(calls))

// ───────────────────────── What differs between a chunk and the next one

/** Usually the delta differs. */
const frameOf = (chunk: Chunk): Hole<Chunk, Json.JsonObject> | undefined =>
  chunk.delta && { member: "delta", value: chunk.delta, fill: (delta) => ({ ...chunk, delta }) }

const rereadDelta = (event: Json.Json | undefined): Json.JsonObject | undefined =>
  deltaOf(Json.firstAnswer(Json.object(event)?.["choices"]))

/** Usually a text differs. */
const pieceOf = (chunk: Chunk): Hole<Wire, string> | undefined => {
  const { delta } = chunk
  if (delta === undefined) return undefined
  for (const [member, type] of texts) {
    const value = Json.text(delta[member])
    if (value === undefined) continue
    return saysOnly(chunk, delta, member)
      ? { member, value, fill: (text) => ({ type, text }) }
      : { member, value, fill: (text) => ({ ...chunk, delta: { ...delta, [member]: text } }) }
  }
  const call = onlyCall(delta)
  const fn = Json.object(call?.["function"])
  const value = Json.text(fn?.["arguments"])
  if (call === undefined || value === undefined) return undefined
  const member = "arguments"
  if (saysOnly(chunk, delta, "tool_calls") && isSilent(fn?.["name"]) && call["extra_content"] === undefined) {
    return { member, value, fill: (text) => ({ type: member, call, text }) }
  }
  const fill = (text: string) => ({
    ...chunk,
    delta: { ...delta, tool_calls: [{ ...call, function: { ...fn, arguments: text } }] }
  })
  return { member, value, fill }
}

const texts: ReadonlyArray<readonly ["content" | "reasoning_content" | "reasoning", "text" | "thinking"]> = [
  ["content", "text"],
  ["reasoning_content", "thinking"],
  ["reasoning", "thinking"]
]

const rereadPiece = (event: Json.Json | undefined): string | undefined => {
  const delta = rereadDelta(event)
  if (delta === undefined) return undefined
  for (const [member] of texts) {
    const value = Json.text(delta[member])
    if (value !== undefined) return value
  }
  return Json.text(Json.object(onlyCall(delta)?.["function"])?.["arguments"])
}

const onlyCall = (delta: Json.JsonObject): Json.JsonObject | undefined => {
  const calls = Json.array(delta["tool_calls"])
  return calls.length === 1 ? Json.object(calls[0]) : undefined
}

/** Whether the chunk has no content besides that member. */
const saysOnly = (chunk: Chunk, delta: Json.JsonObject, member: string): boolean =>
  chunk.finish === undefined &&
  chunk.usage === undefined &&
  chunk.extras === undefined &&
  !Extras.isIn(delta) &&
  speaking.every((other) => other === member || isSilent(delta[other]))

const speaking: ReadonlyArray<string> = [
  "content",
  "reasoning",
  "reasoning_content",
  "reasoning_details",
  "reasoning_text",
  "refusal",
  "tool_calls"
]

const isSilent = (json: Json.Json | undefined): boolean =>
  json === undefined || json === null || json === "" || (Json.isArray(json) && json.length === 0)
