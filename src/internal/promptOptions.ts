/**
 * The options of one run: `RunOptions`, which are data, and beside them its output and its retries.
 */
import type * as Duration from "effect/Duration"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { DurationInput } from "./durationInput.ts"
import * as Input from "./invalidInput.ts"
import type { OutputOf, OutputOptions } from "./output.ts"
import * as OutputReview from "./outputReview.ts"
import { Patience } from "./patience.ts"
import type { ProviderError } from "../ProviderError.ts"
import * as RunOptions from "../RunOptions.ts"

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

/** The options beside `RunOptions`, as an application gave them. Types do not guard plain JavaScript. */
export type Unread = { readonly [Name in keyof Beside]-?: Beside[Name] | undefined }

type Beside = RetryOptions & OutputOptions<unknown>

/** The schemas of the options beside `RunOptions`. */
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

/** The options of a run, read. */
export interface Prompted<Options, O = {}> {
  /** The id of the run. Default: a new one. */
  readonly runId?: string | undefined
  readonly options: Options
  readonly typed: OutputReview.Typed<O>
  readonly retry: Patience | undefined
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
        typed: OutputReview.typed<A>(output, outputRetries),
        retry: retry === undefined ? undefined : new Patience(retry, maxRetryAfter ?? "5 minutes")
      }
    })

/** Reads the options of a prompt. Those beside `RunOptions` are those of the agent, unless the prompt has its own. */
export const readPrompt = reading(Input.patch)

/** Reads the options of a run without an agent. */
export const readRun = reading(Input.options)
