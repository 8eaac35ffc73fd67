/**
 * What a run is told, as data: a durable run journals it, `beforeExecution` and `prepareNextTurn` patch it. What is a
 * function is a hook or a service.
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { DurationInput } from "./internal/durationInput.ts"

export const ThinkingLevel = Schema.Literals(["off", "minimal", "low", "medium", "high", "xhigh", "max"])
export type ThinkingLevel = typeof ThinkingLevel.Type

/** What a provider is asked for, besides the conversation. Absent means the provider's own default. */
export const ModelOptions = Schema.Struct({
  maxTokens: Schema.optionalKey(Schema.Int),
  temperature: Schema.optionalKey(Schema.Finite),
  topP: Schema.optionalKey(Schema.Finite),
  stop: Schema.optionalKey(Schema.Array(Schema.String)),
  thinkingLevel: Schema.optionalKey(ThinkingLevel),
  /** Tokens per level. */
  thinkingBudgets: Schema.optionalKey(Schema.Record(Schema.String, Schema.Finite)),
  toolChoice: Schema.optionalKey(
    Schema.Union([Schema.Literals(["auto", "none", "required"]), Schema.Struct({ name: Schema.String })])
  ),
  /** Lets a vendor route the calls of one conversation to one cache. */
  sessionId: Schema.optionalKey(Schema.String),
  cacheRetention: Schema.optionalKey(Schema.Literals(["none", "short", "long"])),
  /** The answer must be JSON of this schema. */
  output: Schema.optionalKey(Schema.Struct({ name: Schema.String, schema: Schema.Json })),
  /**
   * Members of the request's body by provider id: `{ openai: { seed: 7 } }`. A provider reads the entry of its own id and
   * ignores the others. It merges objects with its own members, adds `tools` to those of the run, and replaces all else.
   */
  vendor: Schema.optionalKey(Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Json)))
})
export type ModelOptions = typeof ModelOptions.Type

const bound = (expected: string, isFine: (value: number) => boolean) =>
  Schema.Number.check(Schema.makeFilter(isFine, { expected }))

/** `Infinity`: no bound. */
const Count = bound(
  "a whole number from 0, or Infinity",
  (value) => value >= 0 && (Number.isInteger(value) || value === Infinity)
)
const Amount = bound("a number from 0, or Infinity", (value) => value >= 0)
const Price = bound("a number from 0", (value) => value >= 0 && Number.isFinite(value))

/** Where a run stops by itself. */
export const Limits = Schema.Struct({
  /** Default 50; `Infinity` is allowed. */
  maxTurns: Schema.optionalKey(Count),
  /** Default "fail". `wrapUp` asks once more, without tools, for a summary. */
  onMaxTurns: Schema.optionalKey(Schema.Literals(["fail", "stop", "wrapUp"])),
  /** What `wrapUp` says to the model, as the user. Default: that it has no more turns, and is to say how far it came. */
  wrapUpInstruction: Schema.optionalKey(Schema.String),
  /** From the beginning of the run, pauses included. Work in flight is cut. Default none. */
  executionTime: Schema.optionalKey(DurationInput),
  /** Every call counts, also one that is refused. Those beyond are answered, not run, and the run fails. Default none. */
  maxToolCalls: Schema.optionalKey(Count),
  /** UTF-8 bytes of the messages of one request. Default none. */
  maxContextSize: Schema.optionalKey(Amount),
  /**
   * Of this run, its retries and the runs inside of it. What a provider does not tell is estimated at four characters a
   * token, and so is an answer while it is said: it is cut where it goes beyond.
   * Default none.
   */
  maxTotalTokens: Schema.optionalKey(Amount),
  /** In the currency of `Usage.cost`, and counted likewise. Default none. */
  maxCost: Schema.optionalKey(Amount),
  /** Of a million tokens, for where the provider tells no cost: without them `maxCost` does not see it. */
  prices: Schema.optionalKey(Schema.Struct({ input: Price, output: Price })),
  /**
   * Same tool, same params, same result, in a row or in a cycle of up to three calls. The model is warned in a result before
   * the last round, and the run ends only after an answer that could know of the warning. Limits of 1 and 2 leave no round in
   * which to warn. Default 5.
   */
  maxIdenticalToolCalls: Schema.optionalKey(Count),
  /** How often an `afterTool` hook may ask for the same call again. Default 1. */
  maxToolRetries: Schema.optionalKey(Count)
})
export type Limits = typeof Limits.Type

export const RunOptions = Schema.Struct({
  /** `"claude-…"` for one provider, `"anthropic/claude-…"` through a router. */
  model: Schema.String.check(
    Schema.makeFilter((model: string) => model.trim() !== "", {
      expected: 'the id of a model, such as "gpt-5-mini"'
    })
  ),
  system: Schema.optionalKey(Schema.String),
  /** Names of the tools the model may call. Default: all that are registered. */
  activeTools: Schema.optionalKey(Schema.Array(Schema.String)),
  modelOptions: Schema.optionalKey(ModelOptions),
  /** Default "parallel". */
  toolExecution: Schema.optionalKey(Schema.Literals(["parallel", "sequential"])),
  /** Default 16. */
  toolConcurrency: Schema.optionalKey(Count),
  /** Default 30 seconds; a tool's own wins. */
  toolTimeout: Schema.optionalKey(DurationInput),
  /** Default "continue": the model reads the failure. */
  toolFailureMode: Schema.optionalKey(Schema.Literals(["continue", "fail"])),
  limits: Schema.optionalKey(Limits),
  /** Default "afterTurn". */
  steeringPolicy: Schema.optionalKey(Schema.Literals(["afterTurn", "skipRemaining"])),
  /** What to do with a transcript a provider would refuse. Default "repair", in the request only. */
  transcript: Schema.optionalKey(Schema.Literals(["repair", "strict"])),
  /**
   * What to do with an answer that says nothing. "retry" asks twice more, after 1 and 5 seconds, and then accepts. Default
   * "accept".
   */
  emptyResponse: Schema.optionalKey(Schema.Literals(["accept", "retry", "fail"])),
  /** Default "warn". Guards fail closed whatever this says. */
  hookFailureMode: Schema.optionalKey(Schema.Literals(["fail", "warn", "ignore"])),
  /** Default 5 seconds. */
  hookTimeout: Schema.optionalKey(DurationInput),
  /** Default none: a person may take long. */
  approvalTimeout: Schema.optionalKey(DurationInput)
})
export type RunOptions = typeof RunOptions.Type

/** Options that are laid over others: none is required. */
export const Patch = Schema.Struct({
  ...RunOptions.fields,
  model: Schema.optionalKey(RunOptions.fields.model)
})

/** Without the members that are `undefined`, also those of `limits` and `modelOptions`: they count as not given. */
export const given = <A>(options: A, depth = 2): A => {
  if (!Predicate.isObject(options) || depth === 0) return options
  const members = Object.entries(options).filter(([, value]) => value !== undefined)
  const isWhole = members.length === Object.keys(options).length
  const inner = members.map(([key, value]) => [key, given(value, depth - 1)] as const)
  const isSame = isWhole && inner.every(([key, value]) => value === options[key])
  return isSame
    ? options
    : Object.assign(Object.create(Object.getPrototypeOf(options)), Object.fromEntries(inner))
}

/**
 * Lays a patch over options. `limits` and `modelOptions` are merged field by field, the rest is replaced; members that are
 * `undefined` change nothing.
 */
export const patch = <Options extends Partial<RunOptions>>(
  options: Options,
  changes: Partial<RunOptions> | undefined
): Options => {
  if (changes === undefined) return options
  const { limits, modelOptions, ...others } = given(changes)
  return {
    ...options,
    ...others,
    ...(limits === undefined ? {} : { limits: { ...options.limits, ...limits } }),
    ...(modelOptions === undefined ? {} : { modelOptions: { ...options.modelOptions, ...modelOptions } })
  }
}
