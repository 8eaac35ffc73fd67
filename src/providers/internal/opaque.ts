/**
 * Data that a vendor requires back unchanged. It is stored in a message with the id of its provider, and
 * returned to that provider only.
 */
import type { Json, JsonObject } from "./json.ts"
import { object } from "./json.ts"

/** The data to store in a block. */
export const make = (provider: string, fields: JsonObject): JsonObject => ({ provider, ...fields })

/** The data of this provider in a block, `undefined` if there is none. */
export const of = (
  provider: string,
  block: { readonly opaque?: Json | undefined }
): JsonObject | undefined => {
  const kept = object(block.opaque)
  return kept?.["provider"] === provider ? kept : undefined
}
