/**
 * What a model call cost, in tokens.
 */
import * as Schema from "effect/Schema"

/**
 * Tokens of one call, or of several added up.
 *
 * `input` includes cached reads and cache writes, `output` includes reasoning. `cost` is in the currency the
 * provider reports, mostly US dollars, and only there when the provider reports it.
 */
export const Usage = Schema.Struct({
  input: Schema.Finite,
  output: Schema.Finite,
  cacheRead: Schema.Finite,
  cacheWrite: Schema.Finite,
  reasoning: Schema.optionalKey(Schema.Finite),
  total: Schema.Finite,
  cost: Schema.optionalKey(Schema.Finite)
})
export type Usage = typeof Usage.Type

/** No tokens at all. */
export const zero: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }

/** Builds a `Usage`; what is left out is zero, and `total` is `input + output` unless given. */
export const make = (usage: Partial<Usage>): Usage => ({
  ...zero,
  ...usage,
  total: usage.total ?? (usage.input ?? 0) + (usage.output ?? 0)
})

/** Adds two usages. `reasoning` and `cost` stay absent when neither side has them. */
export const add = (self: Usage, that: Usage): Usage => {
  const sum: Usage = {
    input: self.input + that.input,
    output: self.output + that.output,
    cacheRead: self.cacheRead + that.cacheRead,
    cacheWrite: self.cacheWrite + that.cacheWrite,
    total: self.total + that.total
  }
  const reasoning = sumOf(self.reasoning, that.reasoning)
  const cost = sumOf(self.cost, that.cost)
  if (reasoning === undefined) return cost === undefined ? sum : { ...sum, cost }
  return cost === undefined ? { ...sum, reasoning } : { ...sum, reasoning, cost }
}

const sumOf = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined ? other : one + (other ?? 0)
