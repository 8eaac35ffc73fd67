/** Converts a thinking level to the members of the body that a model accepts. */
import type { ThinkingLevel } from "../../RunOptions.ts"
import type { Budget } from "../Protocol.ts"
import * as Json from "./json.ts"
import type { Endpoint, Thinking, Word } from "./models/rule.ts"

/** The levels besides `off`, ascending. */
const ladder = ["minimal", "low", "medium", "high", "xhigh", "max"] as const

/** The encoded level. */
export interface Sent {
  /** Members of the body. */
  readonly members: Json.JsonObject
  /** The value of the vendor if it differs from the level, `null` if nothing is sent. */
  readonly word?: string | number | null
}

/** The budgets of the application. */
export interface Budgets {
  /** The budget for the level, in tokens. */
  readonly own: number | undefined
  /** Maximum tokens of the answer, including thinking. */
  readonly maxTokens: number | undefined
}

/** An API, and how it counts budgets. */
export interface Way {
  readonly endpoint: Endpoint
  readonly budget: Budget | undefined
}

/** Encodes a level for an API. */
export const send = (
  thinking: Thinking,
  { budget: counts = {}, endpoint }: Way,
  level: ThinkingLevel,
  { maxTokens, own }: Budgets
): Sent => {
  const word = wordOf(thinking, endpoint, level)
  const wire = thinking.wire?.[endpoint]
  const budgetWire = thinking.budget?.wire?.[endpoint]
  if (own !== undefined && level !== "off" && budgetWire !== undefined)
    return { members: fill(budgetWire, bounded(thinking, counts, own, maxTokens, own)) }
  if (word === undefined || word === null) return { members: {}, word: null }
  if (typeof word === "object") return { members: word }
  if (wire === undefined) return { members: {}, word: null }
  if (typeof word === "string")
    return { members: level === "off" ? hidden(fill(wire, word)) : fill(wire, word), ...shown(level, word) }
  if (level === "off")
    return { members: hidden(fill(wire, own ?? word)), ...(word === 0 ? {} : { word: own ?? word }) }
  if (maxTokens !== undefined && maxTokens <= (counts.leaves ?? 0)) return { members: {}, word: null }
  return { members: fill(wire, bounded(thinking, counts, word, maxTokens, own)) }
}

const shown = (level: ThinkingLevel, word: string): Pick<Sent, "word"> =>
  word === level || (level === "off" && word === "none") ? {} : { word }

/** A token budget within the bounds of the model. */
const bounded = (
  { budget = {}, levels = {} }: Thinking,
  counts: Budget,
  usual: number,
  maxTokens: number | undefined,
  own: number | undefined
): number => {
  if (own !== undefined && (own === counts.unlimited || (own === 0 && levels.off === 0))) return own
  const room = roomFor(counts, maxTokens, own)
  return Math.max(budget.min ?? 0, Math.min(budget.max ?? Infinity, room, Math.floor(own ?? usual)))
}

/** Thinking counts as output, so the budget must leave tokens for the answer. */
const roomFor = ({ leaves }: Budget, maxTokens: number | undefined, own: number | undefined): number => {
  if (maxTokens === undefined) return Infinity
  if (leaves !== undefined) return maxTokens - leaves
  return own === undefined ? Math.floor(maxTokens / 2) : Infinity
}

/**
 * The value of the vendor for a level, else that of the next lower level, else that of the next higher one.
 * `none` only stands for `off`.
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

/** Replaces each `"$"` by the value. */
const fill = (wire: Json.JsonObject, word: string | number): Json.JsonObject =>
  Object.fromEntries(Object.entries(wire).map(([name, value]) => [name, filled(value, word)]))

const filled = (value: Json.Json, word: string | number): Json.Json =>
  value === "$" ? word : Json.isObject(value) ? fill(value, word) : value

/** The members without those that show the thinking, for a model that cannot stop thinking. */
const hidden = (members: Json.JsonObject): Json.JsonObject =>
  Object.fromEntries(
    Object.entries(members)
      .filter(([name]) => name !== "summary" && name !== "display")
      .map(([name, value]) => [
        name,
        name === "includeThoughts" ? false : Json.isObject(value) ? hidden(value) : value
      ])
  )

/** Whether the model thinks at a level, or without one. */
export const isOn = (thinking: Thinking, level: ThinkingLevel | undefined): boolean => {
  if (level === undefined || thinking.kind === "none") return thinking.omitted !== "doesNotThink"
  if (level !== "off") return true
  return (
    thinking.kind === "always-on" || (thinking.levels?.off === null && thinking.omitted !== "doesNotThink")
  )
}
