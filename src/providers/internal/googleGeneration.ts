/**
 * What Gemini's models differ in, told by their ids, and how each is asked to think.
 * https://ai.google.dev/gemini-api/docs/generate-content/thinking, read in November 2026.
 */
import type { ModelOptions } from "../../RunOptions.ts"
import type * as Json from "./json.ts"
import { budgets } from "./thinkingBudgets.ts"

/**
 * The generation of a model: 2.5 of "gemini-2.5-flash", 0 of what is no Gemini. A Gemini without a number, such as
 * "gemini-flash-latest", is the newest.
 */
export const generation = (model: string): number => {
  const name = nameOf(model)
  const version = /\d+(?:\.\d+)?/.exec(name)?.[0]
  return name === "" ? 0 : version === undefined ? Infinity : Number(version)
}

/** "2.5-flash" of "models/gemini-2.5-flash". */
const nameOf = (model: string): string => /gemini-(.*)/.exec(model)?.[1] ?? ""

/** The `thinkingConfig` for the level that is asked for, if one is, of a model that knows any. */
export const thinkingConfig = (model: string, options: ModelOptions): Json.JsonObject | undefined => {
  const version = generation(model)
  const name = nameOf(model)
  if (options.thinkingLevel === undefined || version < 2.5 || /image|tts|audio|live/.test(name))
    return undefined
  const includeThoughts = options.thinkingLevel !== "off"
  return version < 3
    ? { includeThoughts, thinkingBudget: budget(name, options.thinkingLevel, options) }
    : { includeThoughts, thinkingLevel: level(name, version, options.thinkingLevel) }
}

type Level = NonNullable<ModelOptions["thinkingLevel"]>

/** Gemini 3 and later. They cannot stop thinking: the least is the nearest to it. */
const level = (name: string, version: number, asked: Level): string => {
  const isPro = /\bpro\b/.test(name)
  const hasMinimal = !isPro && (version < 3.7 || name.includes("lite"))
  switch (asked) {
    case "off":
    case "minimal":
      return hasMinimal ? "minimal" : "low"
    case "low":
      return "low"
    case "medium":
      return isPro && version === 3 ? "high" : "medium"
    case "high":
    case "xhigh":
      return "high"
  }
}

/** Gemini 2.5, in tokens. */
const budget = (name: string, asked: Level, { maxTokens, thinkingBudgets }: ModelOptions): number => {
  const { least, most, off } = ranges.find(([part]) => name.includes(part))?.[1] ?? flash
  const own = thinkingBudgets?.[asked]
  // Both say something else than an amount: as much as it likes, and not at all.
  if (own === -1 || (own === 0 && off === 0)) return own
  if (asked === "off") return off
  // Thoughts count as output: with all of it spent on them, nothing would be said.
  const room = maxTokens === undefined ? Infinity : Math.floor(maxTokens / 2)
  return Math.min(most, Math.max(least, own ?? Math.min(budgets[asked], room)))
}

interface Range {
  readonly least: number
  readonly most: number
  /** The nearest to no thinking. */
  readonly off: number
}

const flash: Range = { least: 1, most: 24_576, off: 0 }

const ranges: ReadonlyArray<readonly [part: string, range: Range]> = [
  ["lite", { least: 512, most: 24_576, off: 0 }],
  ["pro", { least: 128, most: 32_768, off: 128 }]
]
