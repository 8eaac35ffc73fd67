/**
 * Data that a vendor wants back unchanged: `metadata` of a response part, `opaque` of a block, `options` of a prompt part. Its keys
 * are names of vendors, and each vendor reads its own.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { Media, VendorMembers } from "../../Message.ts"

/** By vendor: `{ anthropic: { signature: "…" } }`. */
export type Metadata = Prompt.ProviderOptions

export const none: Metadata = {}

export const isNone = (metadata: Metadata): boolean => Object.keys(metadata).length === 0

/** Metadata as a block keeps it, for the provider of this name alone. */
export const toOpaque = (provider: string, metadata: Metadata): Schema.Json => ({ provider, metadata })

/** Returns the metadata of a block for this provider, or `undefined` if another provider made the block. */
export const ofBlock = (
  provider: string,
  { opaque }: { readonly opaque?: Schema.Json }
): Metadata | undefined =>
  Predicate.isObject(opaque) && opaque["provider"] === provider && isMetadata(opaque["metadata"])
    ? opaque["metadata"]
    : undefined

/** Merges metadata field by field, later fields first: a block's end may have its signature, and its start its id. */
export const merge = (earlier: Metadata, later: Metadata): Metadata => {
  if (isNone(later)) return earlier
  const merged: Record<string, Metadata[string]> = { ...earlier }
  for (const [vendor, fields] of Object.entries(later)) {
    const known = merged[vendor]
    merged[vendor] = isFields(known) && isFields(fields) ? { ...known, ...fields } : fields
  }
  return merged
}

/** A value as JSON; `null` for one that is not JSON. */
export const toJson = (value: unknown): Schema.Json => {
  const text = JSON.stringify(value)
  return text === undefined ? null : JSON.parse(text)
}

/** The members for vendors that an application set on a part or a message. */
export const toVendor = (options: Metadata): { readonly vendor?: VendorMembers } => {
  const { [ownKey]: _, ...vendor } = options
  return isNone(vendor) || !isVendor(vendor) ? {} : { vendor }
}

const isVendor = Schema.is(VendorMembers)
const isMetadata = Schema.is(Prompt.ProviderOptions)

const isFields = (value: Schema.Json | undefined): value is Schema.JsonObject => Predicate.isObject(value)

/** The key under which a prompt has the `opaque` of a block. */
export const ownKey = "effect-agent"

/** Returns the members of media that a part has no place for as its metadata. */
export const fromMedia = ({ id, opaque, transcript }: Media): { readonly metadata?: Metadata } => {
  const rest = { id, opaque, transcript }
  return Object.values(rest).every((value) => value === undefined)
    ? {}
    : { metadata: { [ownKey]: toJson(rest) } }
}

const MediaRest = Schema.Struct(Struct.pick(Media.fields, ["id", "opaque", "transcript"]))
const isMediaRest = Schema.is(MediaRest)

/** Returns the members of media that the options of its part have. */
export const restOfMedia = (options: Metadata): typeof MediaRest.Type => {
  const rest = options[ownKey]
  return isMediaRest(rest) ? Struct.pick(rest, ["id", "opaque", "transcript"]) : {}
}

/** Returns the `opaque` of a block as the metadata of a part. */
export const fromOpaque = ({
  opaque
}: {
  readonly opaque?: Schema.Json
}): { readonly metadata?: Metadata } => (opaque === undefined ? {} : { metadata: { [ownKey]: opaque } })
