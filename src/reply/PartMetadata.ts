/**
 * The metadata of parts, which a vendor wants back unchanged. Its keys are names of vendors, and each vendor reads its own.
 */
import type * as Schema from "effect/Schema"
import { isObject } from "../internal/json.ts"

/** By vendor: `{ anthropic: { signature: "…" } }`. */
export type Metadata = Readonly<Record<string, Schema.Json>>

export const none: Metadata = {}

export const isNone = (metadata: Metadata): boolean => Object.keys(metadata).length === 0

/** Merges metadata field by field, later fields first: a block's end may have its signature, and its start its id. */
export const merge = (earlier: Metadata, later: Metadata): Metadata => {
  if (isNone(later)) return earlier
  const merged: Record<string, Schema.Json> = { ...earlier }
  for (const [vendor, fields] of Object.entries(later)) {
    const known = merged[vendor]
    merged[vendor] = isObject(known) && isObject(fields) ? { ...known, ...fields } : fields
  }
  return merged
}

/** Returns the metadata of a block for this provider, or `undefined` if another provider made the block. */
export const ofBlock = (
  provider: string,
  { opaque }: { readonly opaque?: Schema.Json }
): Metadata | undefined => {
  if (!isObject(opaque) || opaque["provider"] !== provider) return undefined
  const { metadata } = opaque
  return isObject(metadata) ? metadata : undefined
}
