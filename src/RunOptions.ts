/**
 * The options of a run, as data.
 *
 * **Details**
 *
 * `beforeExecution` and `prepareNextTurn` hooks may change options, and a durable run can store them. Anything that is a function
 * is a hook or a service instead.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { DurationInput } from "./internal/durationInput.ts"
import { VendorMembers } from "./Message.ts"
import { StopCondition } from "./StopCondition.ts"

/**
 * The effort that the model puts into reasoning before it answers, from none to the most.
 *
 * **Details**
 *
 * A provider sends the level in the model's own terms: as a budget of tokens, an effort, or the nearest lower level that the model
 * has. It reports a change in `ModelCallEnd.adjusted`.
 *
 * @category options
 * @since 0.1.0
 */
export const ThinkingLevel = Schema.Literals(["off", "minimal", "low", "medium", "high", "xhigh", "max"])
export type ThinkingLevel = typeof ThinkingLevel.Type

const whole = (least: number) =>
  Schema.Int.check(Schema.isGreaterThanOrEqualTo(least, { expected: `a whole number from ${least}` }))

const hosted = {
  /** Members of the definition of the tool by provider id, such as `{ openai: { search_context_size: "low" } }`. Default none. */
  vendor: Schema.optionalKey(VendorMembers)
}

/**
 * A tool that the vendor runs, or that it defines.
 *
 * **Details**
 *
 * - `"webSearch"`: the vendor searches the web.
 * - `"codeExecution"`: the vendor runs code of the model in a sandbox.
 * - `"fileSearch"`: the vendor searches files that the application uploaded to its stores.
 * - `"computerUse"`: the model controls a screen of `width` times `height` pixels. The application performs the actions, with a tool of
 *   its own that has the name `computer`; the provider sends the definition of the vendor in place of that tool's.
 *
 * The answer has the calls that the vendor runs as blocks `hostedTool`, and their findings as blocks `source`. A provider leaves out a
 * tool, or a member of one, that its vendor does not have, and reports it in `ModelCallEnd.adjusted`.
 *
 * @category options
 * @since 0.2.0
 */
export const HostedToolDefinition = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("webSearch"),
    /** The most searches of one answer. Default: the vendor's. */
    maxUses: Schema.optionalKey(whole(1)),
    /** The domains to search, such as `"example.com"`. Default: all. */
    allowedDomains: Schema.optionalKey(Schema.Array(Schema.String)),
    /** The domains to leave out. Default none. */
    blockedDomains: Schema.optionalKey(Schema.Array(Schema.String)),
    /** The place of the user, for results that depend on it. Default none. */
    location: Schema.optionalKey(
      Schema.Struct({
        city: Schema.optionalKey(Schema.String),
        region: Schema.optionalKey(Schema.String),
        /** Two letters of ISO 3166, such as `"NO"`. */
        country: Schema.optionalKey(Schema.String),
        /** A name of the IANA database, such as `"Europe/Oslo"`. */
        timezone: Schema.optionalKey(Schema.String)
      })
    ),
    ...hosted
  }),
  Schema.Struct({ type: Schema.Literal("codeExecution"), ...hosted }),
  Schema.Struct({
    type: Schema.Literal("fileSearch"),
    /** The ids of the stores at the vendor. */
    stores: Schema.Array(Schema.String),
    /** The most results of one search. Default: the vendor's. */
    maxResults: Schema.optionalKey(whole(1)),
    ...hosted
  }),
  Schema.Struct({
    type: Schema.Literal("computerUse"),
    /** The width of the screen in pixels. */
    width: whole(1),
    /** The height of the screen in pixels. */
    height: whole(1),
    ...hosted
  })
]).annotate({
  expected: 'an object with the type "webSearch", "codeExecution", "fileSearch" or "computerUse"'
})
export type HostedToolDefinition = typeof HostedToolDefinition.Type

/**
 * The options of a model call, besides the conversation and the tools.
 *
 * **Details**
 *
 * An absent option leaves the choice to the provider.
 *
 * @category options
 * @since 0.1.0
 */
export const ModelOptions = Schema.Struct({
  /**
   * The most tokens of one answer, reasoning included. Default: the provider's; on Anthropic the most that the model answers with.
   */
  maxTokens: Schema.optionalKey(Schema.Int),
  /** The randomness of the answer: 0 chooses the most probable tokens, and the most is 1 or 2, by vendor. Default: the vendor's. */
  temperature: Schema.optionalKey(Schema.Finite),
  /**
   * Nucleus sampling: the model chooses among the most probable tokens that together have this probability, 0 to 1. Default: the vendor's.
   */
  topP: Schema.optionalKey(Schema.Finite),
  /** The texts that end an answer where the model writes them. Default none. */
  stop: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The effort of reasoning. Default: the model's. */
  thinkingLevel: Schema.optionalKey(ThinkingLevel),
  /**
   * The tokens of reasoning for a level, by the name of the level, such as `{ high: 20_000 }`. Default: the provider's.
   */
  thinkingBudgets: Schema.optionalKey(Schema.Record(Schema.String, Schema.Finite)),
  /**
   * Whether the model may (`"auto"`), must not (`"none"`) or must (`"required"`, or one tool by `name`) call tools. Default `"auto"`.
   */
  toolChoice: Schema.optionalKey(
    Schema.Union([Schema.Literals(["auto", "none", "required"]), Schema.Struct({ name: Schema.String })])
  ),
  /** A name of the conversation, by which a vendor can route its calls to one cache. Default none. */
  sessionId: Schema.optionalKey(Schema.String),
  /** The time for which the vendor caches the prompt: not at all, minutes, or up to a day. Default `"short"`. */
  cacheRetention: Schema.optionalKey(Schema.Literals(["none", "short", "long"])),
  /**
   * How a change of the system prompt, the tools or the thinking level reaches a model within a conversation: in place of what the
   * earlier requests began with (`"replace"`), or behind the messages that they had (`"append"`), so that the cache of the vendor keeps
   * them. Default `"replace"`.
   *
   * A provider that cannot append reports that in `ModelCallEnd.adjusted`. A change that the vendor has no items for is made in place.
   */
  promptChanges: Schema.optionalKey(Schema.Literals(["replace", "append"])),
  /** The JSON Schema that the answer must match, and its name. Default: the answer is free text. */
  output: Schema.optionalKey(Schema.Struct({ name: Schema.String, schema: Schema.Json })),
  /** Whether one answer may have several tool calls. Default: the vendor's, mostly `true`. */
  parallelToolCalls: Schema.optionalKey(Schema.Boolean),
  /** The tools that the vendor runs for the model. Default none. */
  hostedTools: Schema.optionalKey(Schema.Array(HostedToolDefinition)),
  /** The service tier of the vendor, such as `"flex"` or `"priority"`. Default: the vendor's. */
  serviceTier: Schema.optionalKey(Schema.String),
  /** A number that makes answers repeatable as far as the vendor can. Default none. */
  seed: Schema.optionalKey(Schema.Int),
  /**
   * The number of alternatives to each token whose probabilities `ModelCallEnd.logprobs` has; 0 for the tokens of the answer alone.
   * Default: no probabilities.
   */
  logprobs: Schema.optionalKey(whole(0)),
  /** Whether the vendor stores the answer. Default: the provider's. */
  store: Schema.optionalKey(Schema.Boolean),
  /**
   * The `responseId` of an answer that the vendor stored and that the request continues. Default none.
   *
   * The provider leaves the messages up to that answer out of the request.
   */
  previousResponseId: Schema.optionalKey(Schema.String),
  /**
   * Members of the request's body by provider id, such as `{ openai: { user: "ada" } }`. Default none.
   *
   * A provider reads the entry of its own id. It merges objects with its own members, adds `tools` to those of the run, and replaces
   * everything else. `betas`, a list of texts, becomes the header of the vendor: `anthropic-beta` or `openai-beta`.
   */
  vendor: Schema.optionalKey(VendorMembers),
  /**
   * HTTP headers of the request, besides those of the provider, which they replace: but lists, such as `anthropic-beta`, are joined, and
   * the headers of the credentials stay. Default none.
   *
   * Events, sessions and recordings do not have them. Keys belong to `Credentials`.
   */
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
})
export interface ModelOptions extends Schema.Schema.Type<typeof ModelOptions> {}

/**
 * The agent of a run, as telemetry names it.
 *
 * @category options
 * @since 0.2.0
 */
export const Agent = Schema.Struct({
  /** The name of the agent, such as `"coder"`. Metrics have a series for each name. */
  name: Schema.NonEmptyString,
  /** The id of the agent, such as that of its definition in a database. Default none. */
  id: Schema.optionalKey(Schema.String),
  /** The purpose of the agent. Default none. */
  description: Schema.optionalKey(Schema.String)
})
export type Agent = typeof Agent.Type

const bound = (expected: string, isFine: (value: number) => boolean) =>
  Schema.Number.check(Schema.makeFilter(isFine, { expected }))

/** `Infinity` stands for no bound. */
const Count = bound(
  "a whole number from 0, or Infinity",
  (value) => value >= 0 && (Number.isInteger(value) || value === Infinity)
)
const CountFrom1 = Count.check(
  Schema.isGreaterThanOrEqualTo(1, { expected: "a whole number from 1, or Infinity" })
)
const Amount = bound("a number from 0, or Infinity", (value) => value >= 0)
const Price = bound("a number from 0", (value) => value >= 0 && Number.isFinite(value))

/**
 * The bounds of a run.
 *
 * **Details**
 *
 * A run that reaches a bound fails with `LimitExceeded`; `onMaxTurns` can end it without a failure instead. Each bound has its own
 * unit, and `Infinity` stands for no bound.
 *
 * @category options
 * @since 0.1.0
 */
export const Limits = Schema.Struct({
  /** The most turns, each a model call and its tool calls. Turns that the option `retry` repeats do not count. Default 50. */
  maxTurns: Schema.optionalKey(Count),
  /**
   * The end of a run that reaches `maxTurns`. Default `"fail"`.
   *
   * - `"fail"`: it fails with `LimitExceeded`.
   * - `"stop"`: it ends with status `"incomplete"`.
   * - `"wrapUp"`: it asks the model once more, without tools, for a summary, and ends with status `"incomplete"`.
   */
  onMaxTurns: Schema.optionalKey(Schema.Literals(["fail", "stop", "wrapUp"])),
  /**
   * The user message that requests the summary of `"wrapUp"`. Default: a request to say what is done and what is left.
   */
  wrapUpInstruction: Schema.optionalKey(Schema.String),
  /**
   * The longest time of the run, pauses included: a duration such as `"5 minutes"`, or milliseconds. Default: no bound.
   *
   * The run interrupts work in flight at the bound.
   */
  executionTime: Schema.optionalKey(DurationInput),
  /**
   * The most tool calls, refused ones included. Default: no bound.
   *
   * Calls beyond the bound get a result and do not run, and the run fails.
   */
  maxToolCalls: Schema.optionalKey(Count),
  /** The largest size of the messages of one request, as JSON in bytes of UTF-8. Default: no bound. */
  maxContextSize: Schema.optionalKey(Amount),
  /**
   * The most tokens, of requests and answers. Default: no bound.
   *
   * The tokens of retries and of runs that tools start count too. The run estimates tokens that a provider does not report at four
   * characters for one token. It estimates an answer while it arrives, and ends it where it exceeds the bound.
   */
  maxTotalTokens: Schema.optionalKey(Amount),
  /** The highest cost, in the currency of the `cost` of a usage, counted as `maxTotalTokens` counts. Default: no bound. */
  maxCost: Schema.optionalKey(Amount),
  /**
   * The prices of a million tokens of `input` and of `output`, for providers that report no cost. Default: those of the service `Prices`.
   *
   * They win over the service. For a model without a reported cost and without a price, `maxCost` has no effect, and the run logs a
   * warning.
   */
  prices: Schema.optionalKey(Schema.Struct({ input: Price, output: Price })),
  /**
   * The most rounds of equal tool calls with equal results, in a row or in a cycle of up to three calls. Default 5.
   *
   * The result before the last round warns the model, and the run fails only after an answer that follows the warning. A bound of 1
   * or 2 leaves no round for a warning.
   */
  maxIdenticalToolCalls: Schema.optionalKey(Count),
  /** The most retries of one call that an `afterTool` hook may request. Default 1. */
  maxToolRetries: Schema.optionalKey(Count)
})
export interface Limits extends Schema.Schema.Type<typeof Limits> {}

/**
 * The turns that the report of a run keeps.
 *
 * @category options
 * @since 0.2.0
 */
export const History = Schema.Struct({
  /**
   * The extent of `history` of the report. Default `"summary"`.
   *
   * - `"none"`: no turns.
   * - `"summary"`: the number, time, duration, tokens and calls of each turn.
   * - `"full"`: the messages of each turn too. The run then emits `HookExecuted` for each call of a hook, which `audit` has.
   */
  mode: Schema.optionalKey(Schema.Literals(["none", "summary", "full"])),
  /** The most turns, the newest. Default 10. */
  size: Schema.optionalKey(Count)
})
export interface History extends Schema.Schema.Type<typeof History> {}

/**
 * The options of a run.
 *
 * **Details**
 *
 * A duration is milliseconds, a text such as `"30 seconds"`, an object such as `{ minutes: 5 }`, `"Infinity"` or a `Duration`. As
 * JSON it becomes milliseconds.
 *
 * **Example** (Limiting a run)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, type RunOptions } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const options: RunOptions.RunOptions = {
 *   model: "gpt-5.4-mini",
 *   system: "Answer in one sentence.",
 *   toolTimeout: "1 minute",
 *   limits: { maxTurns: 10, maxTotalTokens: 50_000 }
 * }
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make(options)
 *   const { status } = yield* agent.prompt("Do I need a coat in Oslo?")
 *   return status
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Yes.")])), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => completed
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export const RunOptions = Schema.Struct({
  /** The id of the model: `"claude-…"` for one provider, `"anthropic/claude-…"` for a router. */
  model: Schema.String.check(
    Schema.makeFilter((model: string) => model.trim() !== "", {
      expected: 'the id of a model, such as "gpt-5.4-mini"'
    })
  ),
  /** The system prompt. Default none. */
  system: Schema.optionalKey(Schema.String),
  /** The names of the tools that the model may call. Default: all registered tools. */
  activeTools: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The options of each model call. Default: the provider's. */
  modelOptions: Schema.optionalKey(ModelOptions),
  /** The order of the tool calls of one answer: together, or one after the other. Default `"parallel"`. */
  toolExecution: Schema.optionalKey(Schema.Literals(["parallel", "sequential"])),
  /** The most tool calls that run at the same time. Default 16. */
  toolConcurrency: Schema.optionalKey(Count),
  /** The longest time of one tool call, a duration; a tool's own timeout wins. Default 30 seconds. */
  toolTimeout: Schema.optionalKey(DurationInput),
  /**
   * Whether the model reads the failure of a tool (`"continue"`), or the run fails with `ToolFailed` (`"fail"`). Default `"continue"`.
   */
  toolFailureMode: Schema.optionalKey(Schema.Literals(["continue", "fail"])),
  /**
   * Whether a call also means the only tool whose name differs from it in upper and lower case. Default `false`.
   */
  caseInsensitiveTools: Schema.optionalKey(Schema.Boolean),
  /**
   * The treatment of arguments that are not JSON. Default `"error"`.
   *
   * - `"error"`: the call gets an error result and does not run.
   * - `"emptyObject"`: the call has the arguments `{}`. The calls of an answer that was cut do not run.
   */
  invalidJsonArguments: Schema.optionalKey(Schema.Literals(["error", "emptyObject"])),
  /**
   * Whether the run emits `PartialValue` events: the arguments of tool calls, and the typed output, as far as they have come. Default
   * `false`.
   */
  partialValues: Schema.optionalKey(Schema.Boolean),
  /** The bounds of the run. Default: 50 turns, and 5 rounds of equal tool calls. */
  limits: Schema.optionalKey(Limits),
  /**
   * The condition that ends the run after a turn, with status `"stopped"`, such as `StopCondition.hasToolCall("submit")`. Default none.
   *
   * A run that ends by itself with that turn has the status of that end.
   */
  stopWhen: Schema.optionalKey(StopCondition),
  /**
   * Whether a steering message waits for the calls of its turn, or skips those that have not begun. Default `"afterTurn"`.
   */
  steeringPolicy: Schema.optionalKey(Schema.Literals(["afterTurn", "skipRemaining"])),
  /**
   * Whether the run repairs requests from a transcript that a provider would refuse, or fails with `InvalidTranscript`. Default `"repair"`.
   */
  transcript: Schema.optionalKey(Schema.Literals(["repair", "strict"])),
  /**
   * The treatment of an answer without text, media and tool calls. Default `"accept"`.
   *
   * - `"accept"`: it is an answer.
   * - `"retry"`: the run asks again after 1 second and after 5 more, and accepts the third answer.
   * - `"fail"`: the run fails with a `ProviderError` of reason `Protocol`.
   */
  emptyResponse: Schema.optionalKey(Schema.Literals(["accept", "retry", "fail"])),
  /**
   * The treatment of a hook that fails: the run fails, emits a `HookError`, or ignores it. Default `"warn"`.
   *
   * It does not apply to guards, to hooks that shape requests, and to `afterTool`: see `Hook`.
   */
  hookFailureMode: Schema.optionalKey(Schema.Literals(["fail", "warn", "ignore"])),
  /**
   * The most failures of a hook in a row: a run then does not call it again, and a guard or review rejects. Default 3.
   *
   * A success of the hook, `enable` of its `HookManager` and the next run begin the count anew.
   */
  maxConsecutiveHookErrors: Schema.optionalKey(CountFrom1),
  /**
   * How the hooks of one point run, but for those that shape requests and turns, which are sequential. Default `"sequential"`: each sees
   * what those before it changed.
   *
   * With `"parallel"` all start at once with the input of the first, and their outputs count in the order of registration: the last
   * `params`, and the last of each member of a result, win. The first guard that denies a call interrupts the others.
   */
  hookExecution: Schema.optionalKey(Schema.Literals(["sequential", "parallel"])),
  /** The longest time of one call of a hook other than `approveTool`, a duration. Default 5 seconds. */
  hookTimeout: Schema.optionalKey(DurationInput),
  /**
   * The longest time of one call of an `approveTool` hook, a duration. Default: no bound, since it may ask a person.
   */
  approvalTimeout: Schema.optionalKey(DurationInput),
  /** The turns that the report keeps, set when the run begins. Default: a summary of the last 10. */
  history: Schema.optionalKey(History),
  /** The agent that runs, for telemetry: the name of the span is `invoke_agent` and the name of the agent. Default none. */
  agent: Schema.optionalKey(Agent)
})
export interface RunOptions extends Schema.Schema.Type<typeof RunOptions> {}

/**
 * The schema of changes to options, in which no member is required.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Patch = Schema.Struct({
  ...RunOptions.fields,
  /** The id of the model. Default: unchanged. */
  model: Schema.optionalKey(RunOptions.fields.model)
})

type Unsettable<A, Kept = never> = { readonly [Name in Exclude<keyof A, Kept>]?: A[Name] | null }

/**
 * The changes of options that `agent.update` takes.
 *
 * **Details**
 *
 * `null` unsets an option, also one of `limits` and `modelOptions`. The model stays set.
 *
 * @category options
 * @since 0.2.0
 */
export type Update = Unsettable<RunOptions, "model" | "limits" | "modelOptions"> & {
  /** The id of the model. Default: unchanged. */
  readonly model?: string
  /** The bounds to change. Default: unchanged. */
  readonly limits?: Unsettable<Limits> | null
  /** The model options to change. Default: unchanged. */
  readonly modelOptions?: Unsettable<ModelOptions> | null
}

/**
 * Copies options without the members that are `undefined`, those of `limits` and `modelOptions` included.
 *
 * **Details**
 *
 * A member that is `undefined` counts as absent. Returns the same object if no member is `undefined`. `depth` is the number of
 * levels to look at. Default 2.
 *
 * **Example** (Removing undefined members)
 *
 * ```ts
 * import { RunOptions } from "effect-agent"
 *
 * console.log(RunOptions.given({ model: "gpt-5.4-mini", system: undefined })) // => { model: 'gpt-5.4-mini' }
 * ```
 *
 * @category transforming
 * @since 0.2.0
 */
export const given = <A>(options: A, depth = 2): A => {
  if (!Predicate.isObject(options) || depth === 0) return options
  const members: Array<readonly [string, unknown]> = []
  let isSame = true
  for (const [key, value] of Object.entries(options)) {
    const inner = depth > 1 && Predicate.isObject(value) ? given(value, depth - 1) : value
    if (value !== inner || value === undefined) isSame = false
    if (value !== undefined) members.push([key, inner])
  }
  return isSame
    ? options
    : Object.assign(Object.create(Object.getPrototypeOf(options)), Object.fromEntries(members))
}

/**
 * Copies options without members, each named as `"system"` or `"limits.maxTurns"`.
 *
 * **Example** (Removing options)
 *
 * ```ts
 * import { RunOptions } from "effect-agent"
 *
 * const options = { model: "m", system: "Be brief.", limits: { maxTurns: 5, maxToolCalls: 9 } }
 *
 * console.log(RunOptions.without(options, ["system", "limits.maxTurns"]))
 * // => { model: 'm', limits: { maxToolCalls: 9 } }
 * ```
 *
 * @category transforming
 * @since 0.2.0
 */
export const without = <Options extends Partial<RunOptions>>(
  options: Options,
  names: ReadonlyArray<string>
): Options => {
  if (names.length === 0) return options
  const gone = (of: object, path: string): object =>
    Object.fromEntries(
      Object.keys(of).flatMap((name) => (names.includes(path + name) ? [[name, undefined]] : []))
    )
  const { limits, modelOptions } = options
  return given({
    ...options,
    ...(limits === undefined ? {} : { limits: { ...limits, ...gone(limits, "limits.") } }),
    ...(modelOptions === undefined
      ? {}
      : { modelOptions: { ...modelOptions, ...gone(modelOptions, "modelOptions.") } }),
    ...gone(options, "")
  })
}

/**
 * Applies changes to options.
 *
 * **Details**
 *
 * It merges `limits` and `modelOptions` member by member, and replaces the other members. A member that is `undefined` changes
 * nothing.
 *
 * **Example** (Changing one limit)
 *
 * ```ts
 * import { RunOptions } from "effect-agent"
 *
 * const options = RunOptions.patch(
 *   { model: "gpt-5.4-mini", limits: { maxTurns: 10, maxToolCalls: 20 } },
 *   { limits: { maxTurns: 5 } }
 * )
 *
 * console.log(options.limits) // => { maxTurns: 5, maxToolCalls: 20 }
 * ```
 *
 * @category transforming
 * @since 0.1.0
 */
export const patch = <Options extends Partial<RunOptions>>(
  options: Options,
  changes: Partial<RunOptions> | undefined
): Options => {
  if (changes === undefined || Object.keys(changes).length === 0) return options
  const { limits, modelOptions, ...others } = given(changes)
  return {
    ...options,
    ...others,
    ...(limits === undefined ? {} : { limits: { ...options.limits, ...limits } }),
    ...(modelOptions === undefined ? {} : { modelOptions: { ...options.modelOptions, ...modelOptions } })
  }
}
