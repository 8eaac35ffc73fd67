/**
 * Data of a vendor as pi's signatures, which are texts: JSON, or the text itself where it is no JSON.
 */
import type * as Schema from "effect/Schema"
import * as Json from "../../internal/json.ts"

export const write = (opaque: Schema.Json): string =>
  typeof opaque === "string" && Json.parse(opaque) === undefined ? opaque : JSON.stringify(opaque)

export const read = (signature: string): Schema.Json => Json.parse(signature) ?? signature

/** The member `opaque` of a block, absent without a signature. */
export const opaque = (signature: string | undefined): { readonly opaque?: Schema.Json } =>
  signature === undefined || signature === "" ? {} : { opaque: read(signature) }
