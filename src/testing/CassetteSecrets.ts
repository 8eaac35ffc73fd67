/**
 * Keeps secrets out of a recording. A request of ours holds no key and no header, but a text may, and so may what is
 * passed through to a vendor.
 */
import * as Redacted from "effect/Redacted"
import type * as Schema from "effect/Schema"
import { isObject } from "../internal/jsonCoercion.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import * as VendorKeys from "../internal/vendorKeys.ts"

/** Replaces what must not be written. */
export type Redact = (text: string) => string

/** Cuts out these values, and whatever looks like the key of a known vendor. */
export const make = (secrets: ReadonlyArray<Redacted.Redacted>): Redact => {
  const values = secrets
    .map(Redacted.value)
    .filter((value) => value !== "")
    .sort((a, b) => b.length - a.length)
  return (text) =>
    VendorKeys.cutOut(values.reduce((rest, value) => rest.replaceAll(value, VendorKeys.redacted), text))
}

/** In every text of a value. */
export const inJson = (json: Schema.Json, redact: Redact): Schema.Json => {
  if (typeof json === "string") return redact(json)
  if (Array.isArray(json)) return json.map((item) => inJson(item, redact))
  if (!isObject(json)) return json
  return mapValues(json, (value) => inJson(value, redact))
}

/** In a request: in every text, and whatever has the name of a secret among the options for the vendor. */
export const inRequest = (request: Schema.Json, redact: Redact): Schema.Json => {
  const plain = inJson(request, redact)
  if (!isObject(plain) || !isObject(plain["options"])) return plain
  const { vendor } = plain["options"]
  return vendor === undefined
    ? plain
    : { ...plain, options: { ...plain["options"], vendor: unnamed(vendor) } }
}

/** In what was said piece by piece: a secret may lie across pieces. Those of its block then come as one, in the first. */
export const inDeltas = (
  batches: ReadonlyArray<ReadonlyArray<ModelEvent>>,
  redact: Redact
): ReadonlyArray<ReadonlyArray<ModelEvent>> => {
  const said = new Map<string, string>()
  const parts = partsOf(batches)
  for (const { block, event } of parts.flat()) {
    if ("delta" in event) said.set(block, (said.get(block) ?? "") + event.delta)
  }
  const clean = new Map(
    [...said].flatMap(([block, text]) => (redact(text) === text ? [] : [[block, redact(text)] as const]))
  )
  if (clean.size === 0) return batches
  return parts.map((batch) =>
    batch.map(({ block, event }) => {
      const delta = clean.get(block)
      if (!("delta" in event) || delta === undefined) return event
      clean.set(block, "")
      return { ...event, delta }
    })
  )
}

/** Each event with the name of its block: numbers start again when an answer is taken back. */
const partsOf = (batches: ReadonlyArray<ReadonlyArray<ModelEvent>>) => {
  let answer = 0
  return batches.map((batch) =>
    batch.map((event) => {
      if (event._tag === "Retracted") answer++
      return { event, block: "contentIndex" in event ? `${answer} ${event.contentIndex}` : "" }
    })
  )
}

const secretName = /auth|key|token|secret|cookie|password/i

const unnamed = (json: Schema.Json): Schema.Json => {
  if (Array.isArray(json)) return json.map(unnamed)
  if (!isObject(json)) return json
  return mapValues(json, (value, name) =>
    typeof value === "string" && secretName.test(name) ? VendorKeys.redacted : unnamed(value)
  )
}

const mapValues = (
  json: Schema.JsonObject,
  f: (value: Schema.Json, name: string) => Schema.Json
): Schema.JsonObject =>
  Object.fromEntries(Object.entries(json).map(([name, value]) => [name, f(value, name)]))
