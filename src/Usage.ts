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

/**
 * Builds a `Usage`. What is left out is zero, and `total` is `input + output` unless given. Numbers that cannot be counts are
 * corrected, see `sane`.
 */
export const make = (usage: Partial<Usage>): Usage =>
  sane({ ...zero, ...usage, total: usage.total ?? bounded(usage.input ?? 0) + bounded(usage.output ?? 0) })

/**
 * The same with numbers that can be added and encoded, whatever a server said. What is negative or no number is 0 tokens, in
 * `total` the sum of `input` and `output`, and no `cost`. More than `Number.MAX_SAFE_INTEGER`, infinity too, is that many.
 */
export const sane = (usage: Usage): Usage => {
  if (isSane(usage)) return usage
  const [input, output] = [bounded(usage.input), bounded(usage.output)]
  return {
    input,
    output,
    cacheRead: bounded(usage.cacheRead),
    cacheWrite: bounded(usage.cacheWrite),
    total: bounded(usage.total >= 0 ? usage.total : input + output),
    ...(usage.reasoning === undefined ? {} : { reasoning: bounded(usage.reasoning) }),
    ...(usage.cost === undefined || !(usage.cost >= 0) ? {} : { cost: bounded(usage.cost) })
  }
}

/**
 * Adds two usages. `reasoning` and `cost` stay absent when neither side has them. Both sides are taken as `sane` reads them,
 * and so is the sum: it is never less than either side, and can always be encoded.
 */
export const add = (self: Usage, that: Usage): Usage => {
  const one = sane(self)
  const other = sane(that)
  const reasoning = sumOf(one.reasoning, other.reasoning)
  const cost = sumOf(one.cost, other.cost)
  return sane({
    input: one.input + other.input,
    output: one.output + other.output,
    cacheRead: one.cacheRead + other.cacheRead,
    cacheWrite: one.cacheWrite + other.cacheWrite,
    total: one.total + other.total,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(cost === undefined ? {} : { cost })
  })
}

const isSane = ({ cacheRead, cacheWrite, cost = 0, input, output, reasoning = 0, total }: Usage): boolean =>
  [input, output, cacheRead, cacheWrite, reasoning, total, cost].every(
    (claimed) => claimed >= 0 && claimed <= Number.MAX_SAFE_INTEGER
  )

const bounded = (claimed: number): number => (claimed > 0 ? Math.min(claimed, Number.MAX_SAFE_INTEGER) : 0)

const sumOf = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined ? other : one + (other ?? 0)
