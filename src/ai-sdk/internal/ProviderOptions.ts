/**
 * Data that a vendor wants back unchanged: `providerMetadata` of a part, `opaque` of a block, `providerOptions` of a prompt part. Its
 * keys are names of vendors, and each vendor reads its own.
 */
import type { SharedV4ProviderMetadata } from "@ai-sdk/provider"
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import { object, parse } from "../../internal/json.ts"
import * as PartMetadata from "../../reply/PartMetadata.ts"

/** By vendor: `{ anthropic: { signature: "…" } }`. */
export type Metadata = SharedV4ProviderMetadata

/** The metadata of a part. Members that JSON does not have are left out. */
export const fromPart = ({
  providerMetadata
}: {
  readonly providerMetadata?: Metadata | undefined
}): PartMetadata.Metadata =>
  providerMetadata === undefined ? PartMetadata.none : (object(parse(JSON.stringify(providerMetadata))) ?? {})

/** The struct field `providerOptions` of the members for vendors of a block, a message or a tool. */
export const ofVendor = (vendor: PartMetadata.Metadata = {}): { readonly providerOptions?: Metadata } =>
  PartMetadata.isNone(vendor) || !isMetadata(vendor) ? {} : { providerOptions: vendor }

/** Whether a value is an object of objects, as `providerOptions` is. */
export const isMetadata = (value: unknown): value is Metadata =>
  Predicate.isObject(value) && Object.values(value).every(Predicate.isObject)

/** Whether the part of a block has this type. */
export const isPart = ({ opaque }: { readonly opaque?: Schema.Json }, part: string): boolean =>
  Predicate.isObject(opaque) && opaque["part"] === part
