/**
 * A block of an answer of Anthropic Messages while it grows. Deltas change it in place, because a server may
 * send any number of them.
 */
import type { Index } from "./wire.ts"
import * as Json from "../internal/json.ts"

export interface Block {
  readonly kind: "text" | "thinking" | "redacted" | "call" | "other"
  readonly contentIndex: number
  /** The index of the server. */
  readonly index: Index
  /** The id of a call, unique in the answer. */
  readonly id: string
  /** The block at its start. */
  readonly begun: Json.JsonObject
  /** The members that deltas replaced or added. */
  readonly added: Map<string, Json.Json>
  /** The citations that deltas added. */
  readonly citations: Array<Json.Json>
  /** The text so far, or the JSON of the input. */
  text: string
}

/** Makes a block at its start. */
export const make = (fields: Pick<Block, "kind" | "contentIndex" | "index" | "id" | "begun">): Block => ({
  ...fields,
  added: new Map(),
  citations: [],
  text: ""
})

/** Applies a delta: appends a citation, replaces a signature, appends text to text. */
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

/** The block so far, as the server would send it. */
export const wireOf = ({ added, begun, citations }: Block): Json.JsonObject => ({
  ...begun,
  ...(citations.length === 0 ? {} : { citations: [...Json.array(begun["citations"]), ...citations] }),
  ...Object.fromEntries(added)
})
