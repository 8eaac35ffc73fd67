/**
 * The options of a request that a model does not get, or changes, as adjustments.
 */
import type { SharedV3Warning, SharedV4Warning } from "@ai-sdk/provider"
import type * as Schema from "effect/Schema"
import type { Adjustment } from "../../ModelEvent.ts"
import type { ModelRequest } from "../../Provider.ts"
import type { ModelOptions } from "../../RunOptions.ts"

/** The version of the specification that a model implements. */
export type Version = "v3" | "v4"

/** The options that the specification has no place for. */
export const lost = (options: ModelOptions, version: Version): ReadonlyArray<Adjustment> =>
  [...homeless, ...(version === "v3" ? (["thinkingLevel"] as const) : [])].flatMap((option) => {
    const asked = options[option]
    const place = option === "hostedTools" ? "pass `providerTools`" : "set it in `vendor`"
    const reason = `Version ${version.slice(1)} of the specification has no place for it: ${place}.`
    return asked === undefined ? [] : [{ option, asked, sent: null, reason }]
  })

/** The options of blocks and tools that the specification has no place for. */
export const lostOfParts = ({ messages, tools }: ModelRequest): ReadonlyArray<Adjustment> => {
  const asked = new Map<string, Schema.Json>()
  for (const { content } of messages) {
    for (const block of content) {
      if (block.type === "image" && block.detail !== undefined && block.detail !== "auto")
        asked.set("image.detail", block.detail)
      if (block.type === "file" && block.citations !== undefined) asked.set("file.citations", block.citations)
    }
  }
  for (const { allowedCallers } of tools)
    if (allowedCallers !== undefined) asked.set("tool.allowedCallers", allowedCallers)
  const reason = "The specification has no place for it: set it in `vendor` of the block or the tool."
  return Array.from(asked, ([option, asked]) => ({ option, asked, sent: null, reason }))
}

const homeless = [
  "thinkingBudgets",
  "parallelToolCalls",
  "promptChanges",
  "hostedTools",
  "serviceTier",
  "logprobs",
  "store",
  "previousResponseId"
] as const

/** Converts a warning. An option that the model takes in another way counts as sent. */
export const ofWarning = (warning: SharedV3Warning | SharedV4Warning, options: ModelOptions): Adjustment => {
  switch (warning.type) {
    case "unsupported":
    case "compatibility": {
      const { details, feature: option, type } = { ...warning, feature: nameOf(warning.feature) }
      const asked = valueOf(options, option)
      const reason =
        details ??
        (type === "unsupported" ? "The model does not support it." : "The model takes it in another way.")
      return { option, asked, sent: type === "unsupported" ? null : asked, reason }
    }
    case "deprecated": {
      const option = nameOf(warning.setting)
      const asked = valueOf(options, option)
      return { option, asked, sent: asked, reason: warning.message }
    }
    case "other":
      return { option: "request", asked: null, sent: null, reason: warning.message }
  }
}

const nameOf = (feature: string): string => names.get(feature) ?? feature

const names: ReadonlyMap<string, string> = new Map([
  ["maxOutputTokens", "maxTokens"],
  ["stopSequences", "stop"],
  ["reasoning", "thinkingLevel"],
  ["responseFormat", "output"]
])

const valueOf = (options: ModelOptions, name: string): Schema.Json => {
  const values: { readonly [option: string]: Schema.Json | undefined } = { ...options }
  return values[name] ?? null
}
