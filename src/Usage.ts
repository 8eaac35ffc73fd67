/**
 * The tokens of model calls, and their cost.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Sums from "./internal/usageSum.ts"

/**
 * The origin of a cost.
 *
 * **Details**
 *
 * - `"reported"`: the provider reports it.
 * - `"computed"`: the run computes it from the tokens, with `limits.prices` or the service `Prices`.
 * - `"mixed"`: a sum of both.
 *
 * @category models
 * @since 0.2.0
 */
export const CostSource = Schema.Literals(["reported", "computed", "mixed"])
export type CostSource = typeof CostSource.Type

/**
 * The tokens of one model call, or the sum of several.
 *
 * @category models
 * @since 0.1.0
 */
export const Usage = Schema.Struct({
  /** Tokens of the request, with cached reads and cache writes. */
  input: Schema.Finite,
  /** Tokens of the answer, with reasoning. */
  output: Schema.Finite,
  /** Tokens of the request that the vendor read from its cache, a part of `input`. */
  cacheRead: Schema.Finite,
  /** Tokens of the request that the vendor wrote to its cache, a part of `input`. */
  cacheWrite: Schema.Finite,
  /**
   * Tokens that the vendor wrote to its cache for an hour, a part of `cacheWrite`; absent if the provider does not report them apart.
   */
  cacheWriteLong: Schema.optionalKey(Schema.Finite),
  /** Tokens of audio in the request, a part of `input`; absent if there are none, or the provider does not report them. */
  inputAudio: Schema.optionalKey(Schema.Finite),
  /** Tokens of audio in the answer, a part of `output`; absent if there are none, or the provider does not report them. */
  outputAudio: Schema.optionalKey(Schema.Finite),
  /** Tokens of reasoning, a part of `output`; absent if the provider does not report them. */
  reasoning: Schema.optionalKey(Schema.Finite),
  /** All tokens. */
  total: Schema.Finite,
  /**
   * Tokens that the run estimated, a part of `total`: those of answers that were broken off, before the provider reported them. Absent if
   * there are none.
   */
  estimated: Schema.optionalKey(Schema.Finite),
  /**
   * The calls of each tool that the vendor runs, as it counts and charges them, such as `{ web_search: 2 }`; absent if there are none, or
   * the provider does not report them.
   */
  hostedToolCalls: Schema.optionalKey(Schema.Record(Schema.String, Schema.Finite)),
  /**
   * The cost in the provider's currency, mostly US dollars; absent if the provider does not report it and no price is known. A sum
   * has the cost of the calls whose cost is known.
   */
  cost: Schema.optionalKey(Schema.Finite),
  /** The origin of `cost`; absent without a cost, and before a run has received the answer. */
  costSource: Schema.optionalKey(CostSource)
})
export interface Usage extends Schema.Schema.Type<typeof Usage> {}

/**
 * No tokens.
 *
 * @category constants
 * @since 0.1.0
 */
export const zero: Usage = Sums.zero

/**
 * Makes a `Usage` from the numbers that are known.
 *
 * **Details**
 *
 * A missing number is 0, and a missing `total` is `input + output`. Numbers that cannot be counts are corrected as {@link sane}
 * does.
 *
 * **Example** (Making a usage)
 *
 * ```ts
 * import { Usage } from "effect-agent"
 *
 * console.log(Usage.make({ input: 100, output: 20 }).total) // => 120
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (usage: Partial<Usage>): Usage =>
  sane({
    ...zero,
    ...usage,
    total: usage.total ?? Sums.bounded(usage.input ?? 0) + Sums.bounded(usage.output ?? 0)
  })

/**
 * Corrects numbers that cannot be added or encoded.
 *
 * **When to use**
 *
 * Use on numbers that a server reports, before adding them up.
 *
 * **Details**
 *
 * A negative number and `NaN` become 0 tokens; in `total` they become `input + output`, and as `cost` they are left out. A number
 * above `Number.MAX_SAFE_INTEGER`, infinity too, becomes `Number.MAX_SAFE_INTEGER`.
 *
 * **Example** (Correcting a report)
 *
 * ```ts
 * import { Usage } from "effect-agent"
 *
 * const reported = { ...Usage.zero, input: 100, output: -1, total: Number.NaN }
 *
 * console.log(Usage.sane(reported).output, Usage.sane(reported).total) // => 0 100
 * ```
 *
 * @category transforming
 * @since 0.2.0
 */
export const sane: (usage: Usage) => Usage = Sums.sane

/**
 * Adds two usages.
 *
 * **Details**
 *
 * A number that is optional is absent when both sides lack it. Both sides are corrected as {@link sane} does, and so is the sum:
 * it is never less than either side, and a schema can always encode it.
 *
 * **Example** (Adding up the calls of a conversation)
 *
 * ```ts
 * import { Usage } from "effect-agent"
 *
 * const calls = [Usage.make({ input: 100, output: 20 }), Usage.make({ input: 150, output: 5 })]
 *
 * console.log(calls.reduce(Usage.add, Usage.zero).total) // => 275
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const add: (self: Usage, that: Usage) => Usage = Sums.add
