/**
 * Removes secrets from a recording. A request has no API key and no headers, but texts and vendor options may have secrets.
 */
import * as Redacted from "effect/Redacted"
import type * as Schema from "effect/Schema"
import { isObject } from "../../internal/json.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import * as VendorKeys from "../../http/VendorKeys.ts"

/** Replaces the secrets in a text. */
export type Redact = (text: string) => string

/** Removes these values, and texts that look like the key of a known vendor. */
export const make = (secrets: ReadonlyArray<Redacted.Redacted>): Redact => {
  const values = secrets
    .map(Redacted.value)
    .filter((value) => value !== "")
    .sort((a, b) => b.length - a.length)
  return (text) =>
    VendorKeys.cutOut(values.reduce((rest, value) => rest.replaceAll(value, VendorKeys.redacted), text))
}

/** Removes the secrets from every text of a value. */
export const inJson = (json: Schema.Json, redact: Redact): Schema.Json => {
  if (typeof json === "string") return redact(json)
  if (Array.isArray(json)) return json.map((item) => inJson(item, redact))
  if (!isObject(json)) return json
  return mapValues(json, (value) => inJson(value, redact))
}

/** Removes the secrets from a request: from every text, and vendor options with the name of a secret. */
export const inRequest = (request: Schema.Json, redact: Redact): Schema.Json => {
  const plain = inJson(request, redact)
  if (!isObject(plain) || !isObject(plain["options"])) return plain
  const { hostedTools, vendor } = plain["options"]
  return {
    ...plain,
    options: {
      ...plain["options"],
      ...(hostedTools === undefined ? {} : { hostedTools: unnamed(hostedTools) }),
      ...(vendor === undefined ? {} : { vendor: unnamed(vendor) })
    }
  }
}

/**
 * Removes the secrets from deltas. A secret may be split over several: the first delta of its block then gets the whole text.
 */
export const inDeltas = (
  batches: ReadonlyArray<ReadonlyArray<ModelEvent>>,
  redact: Redact
): ReadonlyArray<ReadonlyArray<ModelEvent>> => {
  const texts = new Map<string, string>()
  const parts = partsOf(batches)
  for (const { block, event } of parts.flat()) {
    if ("delta" in event) texts.set(block, (texts.get(block) ?? "") + event.delta)
  }
  const clean = new Map(
    [...texts].flatMap(([block, text]) => (redact(text) === text ? [] : [[block, redact(text)] as const]))
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

/** Each event with the name of its block. The numbers of blocks start again after `Retracted`. */
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
