/**
 * Options that a client asks of a run: they narrow those of the session.
 */
import * as Duration from "effect/Duration"
import * as Predicate from "effect/Predicate"
import type * as Payload from "../../api/Payload.ts"
import { type Row, type Table, table } from "../../internal/limitTable.ts"
import type { RunOptions } from "../../RunOptions.ts"

// The bounds of a run that has none of its own, as `RunOptions` documents them.
const toolConcurrencyDefault = 16
const toolTimeoutDefault = 30_000

/** The options of a run: of two bounds the smaller one, and of the tools those that both have. */
export const of = (own: RunOptions, asked: Payload.Options): Partial<RunOptions> => {
  const { activeTools, limits, modelOptions, toolConcurrency, toolTimeout, ...others } = asked
  return {
    ...others,
    ...given("activeTools", activeTools && toolsOf(own, activeTools)),
    ...given("limits", limits && narrowed(own.limits, limits)),
    ...given("modelOptions", modelOptions && modelOptionsOf(own, modelOptions)),
    ...given(
      "toolConcurrency",
      toolConcurrency && Math.min(own.toolConcurrency ?? toolConcurrencyDefault, toolConcurrency)
    ),
    ...given("toolTimeout", toolTimeout && shorter(own.toolTimeout ?? toolTimeoutDefault, toolTimeout))
  }
}

const given = <const Name extends string, A>(name: Name, value: A | undefined) =>
  value === undefined ? {} : { [name]: value }

const toolsOf = ({ activeTools }: RunOptions, asked: ReadonlyArray<string>) =>
  activeTools === undefined ? asked : asked.filter((name) => activeTools.includes(name))

const modelOptionsOf = (own: RunOptions, asked: NonNullable<Payload.Options["modelOptions"]>) => {
  const { maxTokens } = asked
  const bound = own.modelOptions?.maxTokens ?? Infinity
  return { ...asked, ...given("maxTokens", maxTokens && Math.min(bound, maxTokens)) }
}

/** The shorter of two durations in milliseconds. */
const shorter = (own: Duration.Input, asked: Duration.Input): number =>
  Math.min(Duration.toMillis(own), Duration.toMillis(asked))

/** Narrows the choice of a client. Takes the smaller of two numbers for a member without a row, and no other value. */
export const narrowed = (
  own: { readonly [name: string]: unknown } = {},
  asked: { readonly [name: string]: unknown },
  rows: Table = table
): { readonly [name: string]: unknown } =>
  Object.fromEntries(
    Object.entries(asked).flatMap(([name, wanted]) => {
      const value = wanted === undefined ? undefined : narrowedOne(rows[name], own[name], wanted)
      return value === undefined ? [] : [[name, value]]
    })
  )

const narrowedOne = (row: Row | undefined, own: unknown, wanted: unknown): unknown => {
  const bound = own ?? row?.initial
  switch (row?.narrows ?? (Predicate.isNumber(wanted) ? "smaller" : "server")) {
    case "client":
      return wanted
    case "server":
      return undefined
    case "shorter":
      return Math.min(millis(bound), millis(wanted))
    case "smaller":
      return Predicate.isNumber(wanted)
        ? Math.min(Predicate.isNumber(bound) ? bound : Infinity, wanted)
        : undefined
  }
}

const millis = (duration: unknown): number =>
  isDurationInput(duration) ? Duration.toMillis(Duration.fromInputUnsafe(duration)) : Infinity

const isDurationInput = (value: unknown): value is Duration.Input =>
  Duration.isDuration(value) ||
  Predicate.isNumber(value) ||
  Predicate.isString(value) ||
  Predicate.isObject(value)
