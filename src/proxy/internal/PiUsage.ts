/**
 * Tokens as pi counts them: `input` has no tokens of the cache.
 */
import * as Schema from "effect/Schema"
import * as Usage from "../../Usage.ts"

const optional = Schema.optionalKey

export const PiUsage = Schema.Struct({
  input: Schema.Finite,
  output: Schema.Finite,
  cacheRead: Schema.Finite,
  cacheWrite: Schema.Finite,
  cacheWrite1h: optional(Schema.Finite),
  reasoning: optional(Schema.Finite),
  totalTokens: Schema.Finite,
  cost: optional(Schema.Struct({ total: Schema.Finite }))
})
type PiUsage = typeof PiUsage.Type

export const write = (usage: Usage.Usage = Usage.zero): object => {
  const { cacheRead, cacheWrite, cacheWriteLong, cost, input, output, reasoning, total } = Usage.sane(usage)
  return {
    input: Math.max(0, input - cacheRead - cacheWrite),
    output,
    cacheRead,
    cacheWrite,
    cacheWrite1h: cacheWriteLong,
    reasoning,
    totalTokens: total,
    // Only the sum is known, because vendors report one cost.
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: cost ?? 0 }
  }
}

/** `undefined` if there are no tokens. A cost of 0 is an unknown one. */
export const read = (usage: PiUsage): Usage.Usage | undefined => {
  const { cacheRead, cacheWrite, cacheWrite1h, cost, output, reasoning, totalTokens } = usage
  if (totalTokens === 0 && output === 0) return undefined
  return Usage.sane({
    input: usage.input + cacheRead + cacheWrite,
    output,
    cacheRead,
    cacheWrite,
    total: totalTokens,
    ...(cacheWrite1h === undefined ? {} : { cacheWriteLong: cacheWrite1h }),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(cost === undefined || cost.total === 0 ? {} : { cost: cost.total })
  })
}
