/**
 * The request that a run begins with: as its log keeps it, so that another process can begin the run, and its options.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Payload from "../../api/Payload.ts"
import * as Message from "../../Message.ts"
import * as Duration from "effect/Duration"
import * as Predicate from "effect/Predicate"
import { type Row, type Table, table } from "../../internal/limitTable.ts"
import type { RunOptions } from "../../RunOptions.ts"

/** The beginning of a run. */
export interface Task {
  readonly prompt: Message.Input
  readonly options: Payload.Options
  /** The id of the message that the prompt replaces. Default: none. */
  readonly replaces?: string
  /** The place of the run in a trace, as the header `traceparent` has it. Default: none. */
  readonly trace?: string
}

/** The version of the beginnings that this version of the package writes. */
const version = 1

const Prompt = Schema.Union([
  Schema.String,
  Schema.Array(Schema.Union([Message.Text, Message.Image, Message.File])),
  Message.Message,
  Schema.Array(Message.Message)
])

const Stored = Schema.toCodecJson(
  Schema.Struct({
    v: Schema.Literal(version),
    prompt: Prompt,
    options: Payload.Options,
    replaces: Schema.optionalKey(Schema.String),
    trace: Schema.optionalKey(Schema.String)
  })
)

const encodeStored = Schema.encodeUnknownOption(Stored)
const decodeStored = Schema.decodeUnknownOption(Stored)

/** The JSON of a beginning; `undefined` for one that is no JSON. */
export const encode = (task: Task): Schema.Json | undefined =>
  Option.getOrUndefined(encodeStored({ v: version, ...task }))

/** Reads a beginning; `undefined` for one of a later version. */
export const decode = (request: Schema.Json | undefined): Task | undefined =>
  Option.getOrUndefined(decodeStored(request))

// ───────────────────────── Narrowing
//
// The options that a client asks of a run narrow those of the session.

// The bounds of a run that has none of its own, as `RunOptions` documents them.
const toolConcurrencyDefault = 16
const toolTimeoutDefault = 30_000

/** The options of a run: of two bounds the smaller one, and of the tools those that both have. */
export const narrow = (own: RunOptions, asked: Payload.Options): Partial<RunOptions> => {
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
