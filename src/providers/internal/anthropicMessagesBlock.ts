/**
 * A block of an answer in the language of Anthropic Messages, as it grows. What deltas add is added in place: how many
 * there are is up to the server.
 */
import type { Index } from "./anthropicMessagesWire.ts"
import * as Json from "./json.ts"

export interface Block {
  readonly kind: "text" | "thinking" | "redacted" | "call" | "other"
  readonly contentIndex: number
  /** As the wire numbers it. */
  readonly index: Index
  /** Of a call; unique in the answer. */
  readonly id: string
  /** As it began. */
  readonly begun: Json.JsonObject
  /** The members that deltas replaced, or added. */
  readonly added: Map<string, Json.Json>
  /** That deltas added to those it began with. */
  readonly citations: Array<Json.Json>
  /** The text so far, or the JSON of the input. */
  text: string
}

/** A block that begins. */
export const make = (fields: Pick<Block, "kind" | "contentIndex" | "index" | "id" | "begun">): Block => ({
  ...fields,
  added: new Map(),
  citations: [],
  text: ""
})

/** Adds what a delta holds: a citation to the others, a signature in its place, and text to text. */
export const grow = (
  { added, begun, citations }: Block,
  { type: _type, citation, signature, ...rest }: Json.JsonObject
): void => {
  if (citation !== undefined) citations.push(citation)
  if (signature !== undefined) added.set("signature", signature)
  for (const [field, value] of Object.entries(rest)) {
    const before = added.has(field) ? added.get(field) : begun[field]
    added.set(field, typeof before === "string" && typeof value === "string" ? before + value : value)
  }
}

/** The block as far as it came. */
export const wireOf = ({ added, begun, citations }: Block): Json.JsonObject => ({
  ...begun,
  ...(citations.length === 0 ? {} : { citations: [...Json.array(begun["citations"]), ...citations] }),
  ...Object.fromEntries(added)
})
