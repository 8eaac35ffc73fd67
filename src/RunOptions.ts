/**
 * What a run is told, as data: a durable run journals it, `beforeExecution` and `prepareNextTurn` patch it. What is a
 * function is a hook or a service.
 */
import * as Schema from "effect/Schema"
import { DurationInput } from "./DurationInput.ts"

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

/** A number that may be `Infinity`: no bound. */
const Bound = Schema.Number

/** Where a run stops by itself. */
export const Limits = Schema.Struct({
  /** Default 50; `Infinity` is allowed. */
  maxTurns: Schema.optionalKey(Bound),
  /** Default "fail". `wrapUp` asks once more, without tools, for a summary. */
  onMaxTurns: Schema.optionalKey(Schema.Literals(["fail", "stop", "wrapUp"])),
  /** What `wrapUp` says to the model, as the user. Default: that it has no more turns, and is to say how far it came. */
  wrapUpInstruction: Schema.optionalKey(Schema.String),
  /** From the beginning of the run, pauses included. Work in flight is cut. Default none. */
  executionTime: Schema.optionalKey(DurationInput),
  /** Every call counts, also one that is refused. Those beyond are answered, not run, and the run fails. Default none. */
  maxToolCalls: Schema.optionalKey(Bound),
  /** UTF-8 bytes of the messages of one request. Default none. */
  maxContextSize: Schema.optionalKey(Bound),
  /**
   * Of this run, its retries and the runs inside of it. What a provider does not tell is estimated at four characters a
   * token, and so is an answer while it is said: it is cut where it goes beyond.
   * Default none.
   */
  maxTotalTokens: Schema.optionalKey(Bound),
  /** In the currency of `Usage.cost`, and counted likewise. Default none. */
  maxCost: Schema.optionalKey(Bound),
  /** Of a million tokens, for where the provider tells no cost: without them `maxCost` does not see it. */
  prices: Schema.optionalKey(Schema.Struct({ input: Schema.Finite, output: Schema.Finite })),
  /**
   * Same tool, same params, same result, in a row or in a cycle of up to three calls. The model is warned in a result before
   * the last round, and the run ends only after an answer that could know of the warning. Limits of 1 and 2 leave no round in
   * which to warn. Default 5.
   */
  maxIdenticalToolCalls: Schema.optionalKey(Bound),
  /** How often an `afterTool` hook may ask for the same call again. Default 1. */
  maxToolRetries: Schema.optionalKey(Bound)
})
export type Limits = typeof Limits.Type

export const RunOptions = Schema.Struct({
  /** `"claude-…"` for one provider, `"anthropic/claude-…"` through a router. */
  model: Schema.String,
  system: Schema.optionalKey(Schema.String),
  /** Names of the tools the model may call. Default: all that are registered. */
  activeTools: Schema.optionalKey(Schema.Array(Schema.String)),
  modelOptions: Schema.optionalKey(ModelOptions),
  /** Default "parallel". */
  toolExecution: Schema.optionalKey(Schema.Literals(["parallel", "sequential"])),
  /** Default 16. */
  toolConcurrency: Schema.optionalKey(Bound),
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

/** Lays a patch over options. `limits` and `modelOptions` are merged field by field, the rest is replaced. */
export const patch = <Options extends Partial<RunOptions>>(
  options: Options,
  changes: Partial<RunOptions> | undefined
): Options =>
  changes === undefined
    ? options
    : {
        ...options,
        ...changes,
        ...(options.limits && changes.limits ? { limits: { ...options.limits, ...changes.limits } } : {}),
        ...(options.modelOptions && changes.modelOptions
          ? { modelOptions: { ...options.modelOptions, ...changes.modelOptions } }
          : {})
      }
