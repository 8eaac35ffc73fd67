/**
 * Decodes the events of OpenAI Responses: https://platform.openai.com/docs/api-reference/responses-streaming,
 * read in November 2026.
 *
 * The `type` in the JSON identifies an event, and the output index its item. Some servers leave out the name of
 * the event in the stream, and some send another item id with each event.
 */
import type { Reason } from "../../../ProviderError.ts"
import { ServerError } from "../../../ProviderError.ts"
import * as Failure from "../failure.ts"
import * as Json from "../json.ts"
import { isReason } from "../../Protocol.ts"

/**
 * The kinds of streamed text: an answer, a refusal, a summary of the thinking, the thinking, or the arguments
 * of a call.
 */
export type Speech = "text" | "refusal" | "summary" | "thinking" | "arguments"

/** A position in the output. */
export interface Place {
  /** The index of the item, `undefined` if the server leaves it out. */
  readonly index: number | undefined
  /** The id of the item, for events without an index. */
  readonly id: string | undefined
  /** The index of the part in the item. */
  readonly part: number
}

/** The relevant parts of an event. */
export type Wire =
  | { readonly type: "delta"; readonly speech: Speech; readonly place: Place; readonly text: string }
  /** The complete text, at its end. */
  | { readonly type: "whole"; readonly speech: Speech; readonly place: Place; readonly text: string }
  | { readonly type: "annotation"; readonly place: Place; readonly annotation: Json.JsonObject }
  | { readonly type: "added" | "done"; readonly place: Place; readonly item: Json.JsonObject }
  | { readonly type: "created"; readonly response: Json.JsonObject }
  /** The end of the answer: complete, or cut by a limit or a filter. */
  | { readonly type: "ended"; readonly response: Json.JsonObject }
  /** Steps of tools at the vendor, and unknown events. */
  | { readonly type: "other" }

/** Decodes an event. A `Reason` if it reports a failure or does not belong to the protocol. */
export const read = (data: string, model: string): Wire | Reason => {
  const event = Failure.eventIn(data, model, "an event")
  if (isReason(event)) return event
  return failed(event, model) ?? wireOf(event) ?? Failure.badShape("Not an event", data)
}

const wireOf = (event: Json.JsonObject): Wire | undefined => {
  const { type } = event
  // A complete answer instead of a stream.
  if (type === undefined && event["object"] === "response") return { type: "ended", response: event }
  if (typeof type !== "string") return undefined
  const speech = deltas.get(type)
  if (speech !== undefined) return spoken("delta", speech, event, event["delta"])
  const whole = wholes.get(type)
  if (whole !== undefined) return spoken("whole", whole[0], event, event[whole[1]])
  switch (type) {
    case "response.output_item.added":
      return itemOf("added", event)
    case "response.output_item.done":
      return itemOf("done", event)
    case "response.output_text.annotation.added": {
      const annotation = Json.object(event["annotation"])
      return annotation === undefined ? other : { type: "annotation", place: placeOf(event), annotation }
    }
    case "response.created":
      return { type: "created", response: Json.object(event["response"]) ?? {} }
    default:
      return ends.has(type) ? endOf(type, Json.object(event["response"])) : other
  }
}

const other: Wire = { type: "other" }

const deltas: ReadonlyMap<string, Speech> = new Map([
  ["response.output_text.delta", "text"],
  ["response.refusal.delta", "refusal"],
  ["response.reasoning_summary_text.delta", "summary"],
  ["response.reasoning_text.delta", "thinking"],
  ["response.function_call_arguments.delta", "arguments"],
  ["response.custom_tool_call_input.delta", "arguments"]
])

/** The member that contains the complete text. */
const wholes: ReadonlyMap<string, readonly [Speech, string]> = new Map([
  ["response.output_text.done", ["text", "text"]],
  ["response.refusal.done", ["refusal", "refusal"]],
  ["response.reasoning_summary_text.done", ["summary", "text"]],
  ["response.reasoning_text.done", ["thinking", "text"]],
  ["response.function_call_arguments.done", ["arguments", "arguments"]],
  ["response.custom_tool_call_input.done", ["arguments", "input"]]
])

/** Some of OpenAI's servers end every answer with `response.done`. */
const ends: ReadonlySet<string> = new Set(["response.completed", "response.incomplete", "response.done"])

const endOf = (type: string, response: Json.JsonObject = {}): Wire => ({
  type: "ended",
  response: type === "response.incomplete" ? { ...response, status: "incomplete" } : response
})

const spoken = (
  type: "delta" | "whole",
  speech: Speech,
  event: Json.JsonObject,
  text: Json.Json | undefined
): Wire | undefined => {
  if (text === undefined || text === null) return other
  return typeof text === "string" ? { type, speech, place: placeOf(event), text } : undefined
}

const itemOf = (type: "added" | "done", event: Json.JsonObject): Wire | undefined => {
  const item = Json.object(event["item"])
  return item && { type, place: placeOf(event), item }
}

const placeOf = (event: Json.JsonObject): Place => ({
  index: Json.number(event["output_index"]),
  id: Json.text(event["item_id"] ?? Json.object(event["item"])?.["id"]),
  part: Json.number(event["content_index"]) ?? Json.number(event["summary_index"]) ?? 0
})

/** The failure of a response whose status reports one. */
const failed = (event: Json.JsonObject, model: string): Reason | undefined => {
  const response = Json.object(event["response"]) ?? event
  const { error } = response
  if (Json.isObject(error)) return Failure.ofErrorEvent(JSON.stringify({ error }), model)
  const status = event["type"] === "response.failed" ? "failed" : response["status"]
  return status === "failed" || status === "cancelled"
    ? new ServerError({ detail: `The answer ended as ${status}` })
    : undefined
}
