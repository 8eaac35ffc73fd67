/**
 * Data that a vendor wants back unchanged: `providerMetadata` of a part, `opaque` of a block, `providerOptions` of a prompt part. Its
 * keys are names of vendors, and each vendor reads its own.
 */
import type { SharedV4ProviderMetadata } from "@ai-sdk/provider"
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import { parse } from "../../internal/json.ts"
import type { VendorMembers } from "../../Message.ts"

/** By vendor: `{ anthropic: { signature: "…" } }`. */
export type Metadata = SharedV4ProviderMetadata

export const none: Metadata = {}

export const isNone = (metadata: Metadata): boolean => Object.keys(metadata).length === 0

/**
 * Metadata as a block keeps it, for the provider of this name alone. Members that JSON does not have are left out. `part` is the type
 * of the part, where the block can stand for several.
 */
export const toOpaque = (provider: string, metadata: Metadata, part?: string): Schema.Json => ({
  provider,
  metadata: parse(JSON.stringify(metadata)) ?? {},
  ...(part === undefined ? {} : { part })
})

/** Returns the metadata of a block for this provider, or `undefined` if another provider made the block. */
export const ofBlock = (
  provider: string,
  { opaque }: { readonly opaque?: Schema.Json }
): Metadata | undefined =>
  Predicate.isObject(opaque) && opaque["provider"] === provider && isMetadata(opaque["metadata"])
    ? opaque["metadata"]
    : undefined

/** Merges metadata field by field, later fields first: a block's end may have its signature, and its start its id. */
export const merge = (earlier: Metadata, later: Metadata | undefined): Metadata => {
  if (later === undefined || isNone(later)) return earlier
  const merged: Metadata = { ...earlier }
  for (const [vendor, fields] of Object.entries(later)) merged[vendor] = { ...merged[vendor], ...fields }
  return merged
}

/** The struct field `providerOptions`, absent if there is no metadata. */
export const asOptions = (metadata: Metadata | undefined): { readonly providerOptions?: Metadata } =>
  metadata === undefined || isNone(metadata) ? {} : { providerOptions: metadata }

/** The struct field `providerOptions` of the members for vendors of a block, a message or a tool. */
export const ofVendor = (vendor: VendorMembers | undefined): { readonly providerOptions?: Metadata } =>
  isMetadata(vendor) ? asOptions(vendor) : {}

/** Whether a value is an object of objects, as `providerOptions` is. */
export const isMetadata = (value: unknown): value is Metadata =>
  Predicate.isObject(value) && Object.values(value).every(Predicate.isObject)

/** Whether the part of a block has this type. */
export const isPart = ({ opaque }: { readonly opaque?: Schema.Json }, part: string): boolean =>
  Predicate.isObject(opaque) && opaque["part"] === part
