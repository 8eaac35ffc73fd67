/**
 * Decodes the events of Anthropic Messages: https://docs.anthropic.com/en/docs/build-with-claude/streaming
 *
 * The `type` in the JSON identifies an event, not the name of the event in the stream, which some servers leave
 * out.
 */
import type { Reason } from "../../../ProviderError.ts"
import * as Failure from "../failure.ts"
import * as Json from "../json.ts"
import { isReason } from "../../Protocol.ts"

/** The relevant parts of an event. */
export type Wire =
  | { readonly type: "message_start"; readonly message: Json.JsonObject }
  | { readonly type: "content_block_start"; readonly index: Index; readonly block: Json.JsonObject }
  | { readonly type: "content_block_delta"; readonly index: Index; readonly delta: Json.JsonObject }
  | { readonly type: "content_block_stop"; readonly index: Index }
  | {
      readonly type: "message_delta"
      readonly delta: Json.JsonObject | undefined
      readonly usage: Json.JsonObject | undefined
    }
  | { readonly type: "message_stop" }
  /** A complete answer instead of a stream. */
  | { readonly type: "message"; readonly message: Json.JsonObject }
  /** Pings and unknown events. The vendor documents that new events may appear. */
  | { readonly type: "other" }

/** The block of an event, `undefined` if the server leaves it out. */
export type Index = number | undefined

/** Decodes an event. A `Reason` if it reports a failure or does not belong to the protocol. */
export const read = (data: string, model: string): Wire | Reason => {
  const event = Failure.eventIn(data, model, "an event")
  return isReason(event) ? event : (wireOf(event) ?? Failure.badShape("Not an event", data))
}

const wireOf = (event: Json.JsonObject): Wire | undefined => {
  const { type } = event
  const index = Json.number(event["index"])
  switch (type) {
    case "content_block_delta": {
      const delta = Json.object(event["delta"])
      return delta && { type, index, delta }
    }
    case "content_block_start": {
      const block = Json.object(event["content_block"])
      return block && { type, index, block }
    }
    case "content_block_stop":
      return { type, index }
    case "message_start": {
      const message = Json.object(event["message"])
      return message && { type, message }
    }
    case "message_delta":
      return { type, delta: Json.object(event["delta"]), usage: Json.object(event["usage"]) }
    case "message_stop":
      return { type }
    case "message":
      return { type, message: event }
    default:
      return typeof type === "string" ? other : undefined
  }
}

const other: Wire = { type: "other" }
