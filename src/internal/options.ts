/**
 * Reads the options of a run, which are `RunOptions`, its output and its retries, and the options of an agent.
 */
import type * as Duration from "effect/Duration"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { DurationInput } from "./durationInput.ts"
import type * as Hook from "../Hook.ts"
import * as InvalidHook from "./invalidHook.ts"
import * as Input from "./invalidInput.ts"
import type * as Message from "../Message.ts"
import type { OutputOf, OutputOptions } from "./output.ts"
import * as Ending from "./ending.ts"
import { Retries } from "./attempts.ts"
import type { QueueMode } from "./queues.ts"
import type { ProviderError } from "../ProviderError.ts"
import * as RunOptions from "../RunOptions.ts"
import type { Session } from "../Session.ts"
import type * as Tool from "../Tool.ts"
import * as Transcript from "../Transcript.ts"

/**
 * The options of the retries of a run.
 *
 * **When to use**
 *
 * Use them for outages that are longer than the retries of one model call, which `Retry.layer` makes.
 *
 * **Details**
 *
 * A turn whose model call fails with a retryable `ProviderError` does not fail the run. Its failed answer stays in the transcript, and
 * after the delay the run continues from there with another turn: finished tools do not run again, and the prompt stands in the
 * transcript once. The run is still one run, with one `RunEnd`, one result and one `usage`. Its other bounds count the delays and the
 * failed turns, but `maxTurns` does not count a turn that failed and was retried.
 *
 * A delay that the provider names counts if it is longer than that of the schedule. `RunRetry` announces each retry. A cancel, an
 * interruption and `limits.executionTime` end the delay at once, and a pause holds the run after it.
 *
 * **Example** (Continuing after an outage)
 *
 * ```ts
 * import { Effect, Schedule } from "effect"
 * import { Agent, ProviderError, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const order = Tool.make({
 *   name: "order",
 *   description: "Orders a coat.",
 *   execute: () => Effect.sync(() => console.log("ordered"))
 * })
 *
 * const script = [
 *   ScriptedProvider.toolCall("order", {}),
 *   ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "at capacity" })),
 *   ScriptedProvider.text("Your coat is on its way.")
 * ]
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({
 *     model: "gpt-5.4-mini",
 *     tools: [order],
 *     retry: Schedule.exponential("10 millis").pipe(Schedule.upTo({ times: 5 }))
 *   })
 *   const { text } = yield* agent.prompt("Order me a coat.")
 *   return text
 * }).pipe(Effect.provide(ScriptedProvider.layer(script)), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program))
 * // => ordered
 * // => Your coat is on its way.
 * ```
 *
 * @category options
 * @since 0.2.0
 */
export interface RetryOptions {
  /**
   * The number of retries and the delays between them. Default: none, so that the first failure fails the run.
   *
   * The schedule decides on retryable errors alone: see `ProviderError.isRetryable`. It begins anew after a turn that ended well.
   */
  readonly retry?: Schedule.Schedule<unknown, ProviderError>
  /** The longest delay that a provider may name before the run fails at once, a duration. Default 5 minutes. */
  readonly maxRetryAfter?: Duration.Input
}

/**
 * The options of one prompt: changes to the options of the agent, and an output and retries of its own.
 *
 * @category options
 * @since 0.2.0
 */
export type PromptOptions<A = never> = Partial<RunOptions.RunOptions> &
  RetryOptions &
  OutputOptions<A> &
  RunIdOptions

/**
 * The id of a run that the application chose.
 *
 * @category options
 * @since 0.2.0
 */
export interface RunIdOptions {
  /** The id of the run, which no other run has. Default: a new one. */
  readonly runId?: string
}

/** The output and retry options as the application gave them, not checked yet: types do not guard plain JavaScript. */
export type Unread = { readonly [Name in keyof Beside]-?: Beside[Name] | undefined }

type Beside = RetryOptions & OutputOptions<unknown>

/** The schemas of the output and retry options. */
export const fields = {
  output: Schema.optionalKey(
    Schema.declare((value) => Schema.isSchema(value) || Predicate.hasProperty(value, "~standard"), {
      expected: "a Schema or a Standard Schema"
    })
  ),
  outputRetries: Schema.optionalKey(
    Schema.Number.check(
      Schema.makeFilter((count) => Number.isInteger(count) && count >= 0, {
        expected: "a whole number from 0"
      })
    )
  ),
  retry: Schema.optionalKey(Schema.declare(Schedule.isSchedule, { expected: "a Schedule" })),
  maxRetryAfter: Schema.optionalKey(DurationInput)
}
const readBeside = Input.reader(
  Schema.Struct({ ...fields, runId: Schema.optionalKey(Schema.NonEmptyString) })
)

/** The options of a run after they were checked and decoded. */
export interface Prompted<Options, O = {}> {
  /** The id of the run. Default: a new one. */
  readonly runId?: string | undefined
  readonly options: Options
  readonly typed: Ending.Typed<O>
  readonly retry: Retries | undefined
}

type Read<A> = (input: unknown, beside: ReadonlyArray<string>) => Result.Result<A, Input.InvalidInput>

const reading =
  <Options>(readData: Read<Options>) =>
  <A = never>(
    given?: PromptOptions<A>,
    agent?: Unread
  ): Result.Result<Prompted<Options, OutputOf<A>>, Input.InvalidInput> =>
    Result.gen(function* () {
      const all = { ...agent, ...RunOptions.given(given, 1) }
      const { maxRetryAfter, output, outputRetries, retry, runId, ...data } = all
      yield* readBeside({ maxRetryAfter, output, outputRetries, retry, runId })
      return {
        runId,
        options: yield* readData(data, [...Object.keys(fields), "runId"]),
        typed: Ending.typed<A>(output, outputRetries),
        retry: retry === undefined ? undefined : new Retries(retry, maxRetryAfter ?? "5 minutes")
      }
    })

/** Reads the options of a prompt. Its output and retries default to those of the agent. */
export const readPrompt = reading(Input.patch)

/** Reads the options of a run without an agent. */
export const readRun = reading(Input.options)

/** Makes the task of a run that begins with a prompt. */
export const prompted = (input: Message.Input) => (now: number) =>
  Result.map(Input.prompt(input, now), (prompts) => ({ prompts, continued: false, pollFirst: true }))

// ───────────────────────── The options of an agent

/**
 * A list of tools whose types the compiler keeps.
 *
 * **Details**
 *
 * A list that is made at run time is a `ReadonlyArray<Tool.Runnable>`.
 *
 * @category models
 * @since 0.1.0
 */
export type Tools = ReadonlyArray<Tool.Any>

/**
 * A list of hooks whose types the compiler keeps.
 *
 * **Details**
 *
 * A list that is made at run time is a `ReadonlyArray<Hook.Runnable>`.
 *
 * @category models
 * @since 0.1.0
 */
export type Hooks = ReadonlyArray<Hook.Hook>

/**
 * The options of an agent: those of its runs, and those of the agent itself.
 *
 * @category options
 * @since 0.1.0
 */
export type AgentOptions<T extends Tools, H extends Hooks> = RunOptions.RunOptions &
  RetryOptions & {
    /** The transcript that the conversation begins with, oldest message first. Default: none. */
    readonly messages?: ReadonlyArray<Message.Message>
    /**
     * The session that keeps the conversation: the agent continues from its messages, queues and changed options, and writes each
     * change before others see it. Not together with `messages`. Default: none.
     */
    readonly session?: Session
    /**
     * Whether a prompt continues the conversation. Default `true`. With `false` each begins from `messages` and `compaction`, or from
     * what `setMessages` or `reset` put in their place since the last run; `continue` begins from the last run. Not together with
     * `session`.
     */
    readonly preserveHistory?: boolean
    /** The summary that the conversation begins with, as `state` of an agent has it. Default: none. */
    readonly compaction?: Transcript.Compaction
    /** The tools that the model may call, beside those of a `ToolRegistry` around `Agent.make`, over which they win. Default: none. */
    readonly tools?: T
    /** The hooks, which a run calls in this order. Default: none. */
    readonly hooks?: H
    /** The number of steering messages that a turn takes. Default `"one-at-a-time"`. */
    readonly steeringMode?: QueueMode
    /** The number of follow-up messages that a turn takes. Default `"one-at-a-time"`. */
    readonly followUpMode?: QueueMode
  }

const listOf = (item: Schema.Codec<unknown>) =>
  Schema.optionalKey(Schema.Array(item).annotate({ identifier: "a list" }))
const mode = Schema.optionalKey(
  Schema.Literals(["one-at-a-time", "all"]).annotate({ expected: '"one-at-a-time" or "all"' })
)

const decode = Input.reader(
  Schema.Struct({
    ...RunOptions.RunOptions.fields,
    messages: Schema.optionalKey(Schema.Unknown),
    session: Schema.optionalKey(Schema.Unknown),
    compaction: Schema.optionalKey(Transcript.Compaction),
    preserveHistory: Schema.optionalKey(Schema.Boolean),
    tools: listOf(Schema.Unknown),
    hooks: listOf(Schema.Unknown.check(Schema.makeFilter(InvalidHook.of))),
    steeringMode: mode,
    followUpMode: mode,
    ...fields
  })
)

/** Reads the options of an agent. Members that are `undefined` count as not given. `beside` are names of further options. */
export const readAgent = <T extends Tools, H extends Hooks>(
  options: AgentOptions<T, H> & OutputOptions<unknown>,
  beside: ReadonlyArray<string> = []
) =>
  Result.gen(function* () {
    const decoded = yield* decode(options ?? {}, beside)
    const { followUpMode = "one-at-a-time", preserveHistory = true, steeringMode = "one-at-a-time" } = decoded
    const { maxRetryAfter, messages, output, outputRetries, retry, session } = options
    if (messages !== undefined && session !== undefined) return yield* Result.fail(twoTranscripts)
    if (!preserveHistory && session !== undefined) return yield* Result.fail(notKept)
    const runOptions = Struct.pick(decoded, Struct.keys(RunOptions.RunOptions.fields))
    return {
      session,
      runOptions: RunOptions.patch(
        RunOptions.without(runOptions, session?.restored.unset ?? []),
        session?.restored.options
      ),
      messages: session?.restored.messages ?? (yield* Input.messages(messages ?? [])),
      compaction: session?.restored.compaction ?? decoded.compaction,
      preserveHistory,
      tools: options.tools ?? [],
      hooks: options.hooks ?? [],
      modes: { steering: steeringMode, followUp: followUpMode },
      ofRuns: { maxRetryAfter, output, outputRetries, retry }
    }
  })

/** The options of an agent after they were checked and decoded. */
export type Definition<T extends Tools, H extends Hooks> = Result.Result.Success<
  ReturnType<typeof readAgent<T, H>>
>

const twoTranscripts = new Input.InvalidInput({
  subject: "options",
  faults: [
    "messages is given beside session, which has messages of its own. Use agent.setMessages to replace them"
  ]
})

const notKept = new Input.InvalidInput({
  subject: "options",
  faults: ["preserveHistory is false beside session, which keeps the conversation. Give one of them"]
})
