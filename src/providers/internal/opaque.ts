/**
 * What a vendor wants back verbatim, as it is kept in a message: tagged by the provider that made it, and given back to
 * no other.
 */
import type { Json, JsonObject } from "./json.ts"
import { object } from "./json.ts"

/** What a block carries for its provider. */
export const make = (provider: string, fields: JsonObject): JsonObject => ({ provider, ...fields })

/** What this provider left in a block. */
export const of = (
  provider: string,
  block: { readonly opaque?: Json | undefined }
): JsonObject | undefined => {
  const kept = object(block.opaque)
  return kept?.["provider"] === provider ? kept : undefined
}
