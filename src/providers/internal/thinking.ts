/**
 * A thinking level in the words of a model: which members of the body ask for it, and how far they are from the level.
 */
import type { ThinkingLevel } from "../../RunOptions.ts"
import * as Json from "./json.ts"
import type { Endpoint, Thinking, Word } from "./models/rule.ts"

/** The levels besides `off`, from the least to the most. */
const ladder = ["minimal", "low", "medium", "high", "xhigh", "max"] as const

/** How a level is sent. */
export interface Sent {
  /** Members of the body. */
  readonly members: Json.JsonObject
  /** The vendor's word, where it is not the level itself; `null` where nothing is sent. */
  readonly word?: string | number | null
}

/** What an application asks for, besides the level. */
export interface Budgets {
  /** Its own budget for the level, in tokens. */
  readonly own: number | undefined
  /** The most that the answer may have, thinking included. */
  readonly maxTokens: number | undefined
}

/** The members that ask for a level at an endpoint. */
export const send = (
  thinking: Thinking,
  endpoint: Endpoint,
  level: ThinkingLevel,
  { maxTokens, own }: Budgets
): Sent => {
  const word = wordOf(thinking, endpoint, level)
  const wire = thinking.wire?.[endpoint]
  const budgetWire = thinking.budget?.wire?.[endpoint]
  if (own !== undefined && level !== "off" && budgetWire !== undefined)
    return { members: fill(budgetWire, bounded(thinking, endpoint, own, maxTokens, own)) }
  if (word === undefined || word === null) return { members: {}, word: null }
  if (typeof word === "object") return { members: word }
  if (wire === undefined) return { members: {}, word: null }
  if (typeof word === "string")
    return { members: level === "off" ? hidden(fill(wire, word)) : fill(wire, word), ...shown(level, word) }
  if (level === "off")
    return { members: hidden(fill(wire, own ?? word)), ...(word === 0 ? {} : { word: own ?? word }) }
  if (endpoint === "messages" && maxTokens !== undefined && maxTokens <= minBudget)
    return { members: {}, word: null }
  return { members: fill(wire, bounded(thinking, endpoint, word, maxTokens, own)) }
}

const shown = (level: ThinkingLevel, word: string): Pick<Sent, "word"> =>
  word === level || (level === "off" && word === "none") ? {} : { word }

/** The least budget that Anthropic accepts, and what it leaves of `max_tokens` for the answer. */
const minBudget = 1024

/** A budget of tokens as the model accepts it. */
const bounded = (
  { budget = {}, levels = {} }: Thinking,
  endpoint: Endpoint,
  usual: number,
  maxTokens: number | undefined,
  own: number | undefined
): number => {
  // Gemini's words for "as much as it likes" and "not at all".
  if (endpoint === "generateContent" && (own === -1 || (own === 0 && levels.off === 0))) return own
  const room = roomFor(endpoint, maxTokens, own)
  return Math.max(budget.min ?? 0, Math.min(budget.max ?? Infinity, room, Math.floor(own ?? usual)))
}

/** Thinking counts as output: with all of it spent on thoughts the model could not answer. */
const roomFor = (endpoint: Endpoint, maxTokens: number | undefined, own: number | undefined): number => {
  if (maxTokens === undefined) return Infinity
  if (endpoint === "messages") return maxTokens - minBudget
  return own === undefined ? Math.floor(maxTokens / 2) : Infinity
}

/**
 * The vendor's word for a level. One that is left out is the next lower one, else the next higher one. "none" stands for
 * `off` alone.
 */
const wordOf = (
  { levels = {}, perEndpoint }: Thinking,
  endpoint: Endpoint,
  level: ThinkingLevel
): Word | undefined => {
  const known = { ...levels, ...perEndpoint?.[endpoint] }
  if (level === "off") return known.off === undefined ? lowest(known) : known.off
  const at = ladder.indexOf(level)
  const nearest = [...ladder.slice(0, at + 1).reverse(), ...ladder.slice(at + 1)]
  return nearest.map((near) => known[near]).find((word) => word !== undefined && word !== "none")
}

const lowest = (known: NonNullable<Thinking["levels"]>): Word | undefined =>
  ladder.map((level) => known[level]).find((word) => word !== undefined && word !== "none")

/** The members with the word in the place of each "$". */
const fill = (wire: Json.JsonObject, word: string | number): Json.JsonObject =>
  Object.fromEntries(Object.entries(wire).map(([name, value]) => [name, filled(value, word)]))

const filled = (value: Json.Json, word: string | number): Json.Json =>
  value === "$" ? word : Json.isObject(value) ? fill(value, word) : value

/** The members less those that ask to show the thoughts: a model that cannot stop thinking thinks to itself. */
const hidden = (members: Json.JsonObject): Json.JsonObject =>
  Object.fromEntries(
    Object.entries(members)
      .filter(([name]) => name !== "summary" && name !== "display")
      .map(([name, value]) => [
        name,
        name === "includeThoughts" ? false : Json.isObject(value) ? hidden(value) : value
      ])
  )

/** Whether the model thinks when it is asked for a level, or for none. */
export const isOn = (thinking: Thinking, level: ThinkingLevel | undefined): boolean => {
  if (level === undefined || thinking.kind === "none") return thinking.omitted !== "doesNotThink"
  if (level !== "off") return true
  return (
    thinking.kind === "always-on" || (thinking.levels?.off === null && thinking.omitted !== "doesNotThink")
  )
}
