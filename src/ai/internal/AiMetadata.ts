/**
 * The metadata of the parts of `effect/ai`: `metadata` of a response part, `options` of a prompt part.
 */
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { Media, VendorMembers } from "../../Message.ts"
import * as PartMetadata from "../../reply/PartMetadata.ts"

/** A value as JSON; `null` for one that is not JSON. */
export const toJson = (value: unknown): Schema.Json => {
  const text = JSON.stringify(value)
  return text === undefined ? null : JSON.parse(text)
}

/** The members for vendors that an application set on a part or a message. */
export const toVendor = (options: PartMetadata.Metadata): { readonly vendor?: VendorMembers } => {
  const { [ownKey]: _, ...vendor } = options
  return PartMetadata.isNone(vendor) || !isVendor(vendor) ? {} : { vendor }
}

const isVendor = Schema.is(VendorMembers)

/** The key under which a prompt has the `opaque` of a block. */
export const ownKey = "effect-agent"

/** Returns the members of media that a part has no place for as its metadata. */
export const fromMedia = ({
  id,
  opaque,
  transcript
}: Media): { readonly metadata?: PartMetadata.Metadata } => {
  const rest = { id, opaque, transcript }
  return Object.values(rest).every((value) => value === undefined)
    ? {}
    : { metadata: { [ownKey]: toJson(rest) } }
}

const MediaRest = Schema.Struct(Struct.pick(Media.fields, ["id", "opaque", "transcript"]))
const isMediaRest = Schema.is(MediaRest)

/** Returns the members of media that the options of its part have. */
export const restOfMedia = (options: PartMetadata.Metadata): typeof MediaRest.Type => {
  const rest = options[ownKey]
  return isMediaRest(rest) ? Struct.pick(rest, ["id", "opaque", "transcript"]) : {}
}

/** Returns the `opaque` of a block as the metadata of a part. */
export const fromOpaque = ({
  opaque
}: {
  readonly opaque?: Schema.Json
}): { readonly metadata?: PartMetadata.Metadata } =>
  opaque === undefined ? {} : { metadata: { [ownKey]: opaque } }
