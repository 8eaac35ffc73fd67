/**
 * The agent loop without an agent: asks the model, runs the tools it calls, and asks again, until it stops calling.
 *
 * The loop keeps nothing between runs: it takes the messages so far, and its result has the new ones. It requires a
 * `Provider` and a `ToolRegistry`; hooks and a context manager come from their references. `Agent` keeps a conversation.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "./AgentEvent.ts"
import { Compactions } from "./internal/compactions.ts"
import * as Continuation from "./internal/continuation.ts"
import type { Reader } from "./internal/reader.ts"
import * as Execution from "./internal/execution.ts"
import * as Input from "./internal/invalidInput.ts"
import type { OpenTurn } from "./internal/openTurn.ts"
import type { OutputOf, OutputOptions } from "./internal/output.ts"
import { type Prompted, readRun, type RetryOptions, type RunIdOptions } from "./internal/options.ts"
import { Queues } from "./internal/queues.ts"
import type { RunSpec } from "./internal/runSpec.ts"
import * as Waiting from "./internal/waiting.ts"
import type * as Message from "./Message.ts"
import type { Provider } from "./Provider.ts"
import type { RunFailed, RunResult } from "./Run.ts"
import type { RunOptions } from "./RunOptions.ts"
import type { ToolRegistry } from "./ToolRegistry.ts"
import type * as Transcript from "./Transcript.ts"

export { InvalidContinuation } from "./internal/continuation.ts"
export { InvalidInput } from "./internal/invalidInput.ts"
export type { StartedRun } from "./internal/execution.ts"

/**
 * The conversation before the prompt.
 *
 * @category models
 * @since 0.2.0
 */
export interface History {
  /** Messages so far, oldest first. */
  readonly messages: ReadonlyArray<Message.Message>
  /** The summary to start from, as `compaction` of a result has it. Default: none. */
  readonly compaction?: Transcript.Compaction | undefined
  /**
   * The turn that a run left open, as its result has it. `continue` resumes it, and `run` and `stream` close it before the prompt.
   * Default: none.
   */
  readonly open?: OpenTurn | undefined
}

/**
 * The options of a run, its retries and its output, which has the type `A`.
 *
 * @category options
 * @since 0.2.0
 */
export type Options<A = never> = RunOptions & RetryOptions & OutputOptions<A> & RunIdOptions

/**
 * Runs the loop as a stream of its events.
 *
 * **Details**
 *
 * The stream is cold: each execution is one run. It ends after `RunEnd`, and fails with `RunFailed` after the `RunEnd` of a
 * run that failed, or with `InvalidInput` before any event. A run waits with further deltas while its reader is more than 64
 * events behind. Leaving the stream cancels the run and waits for its end.
 *
 * **Example** (Printing the events of a run)
 *
 * ```ts
 * import { Effect, Layer, Stream } from "effect"
 * import { Loop, ToolRegistry } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const events = Loop.stream("Hello", { messages: [] }, { model: "any" }).pipe(
 *   Stream.map((event) => event._tag),
 *   Stream.runForEach((tag) => Effect.sync(() => console.log(tag))),
 *   Effect.provide(Layer.merge(ScriptedProvider.layer([ScriptedProvider.text("Hi.")]), ToolRegistry.layer()))
 * )
 *
 * await Effect.runPromise(events)
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const stream = (
  prompt: Message.Input,
  history: History,
  options: Options<unknown>
): Stream.Stream<AgentEvent, RunFailed | Input.InvalidInput, Provider | ToolRegistry> =>
  streamOf(options, (now, read) => fresh(Input.prompt(prompt, now), history, read, now))

/**
 * Runs the loop for its result.
 *
 * **Details**
 *
 * A cancelled run succeeds with status `"cancelled"`. A failed one fails with `RunFailed`, which has the result too.
 * Interrupting the effect cancels the run and waits for its end.
 *
 * With an `output` schema the result has the decoded `output`. A run that ends without one then fails: with reason `OutputInvalid`
 * after the repairs, and with `OutputMissing` if it was cancelled or stopped.
 *
 * **Example** (Answering a prompt)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Loop, ToolRegistry } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Loop.run("Hello", { messages: [] }, { model: "any" }).pipe(
 *   Effect.provide(Layer.merge(ScriptedProvider.layer([ScriptedProvider.text("Hi.")]), ToolRegistry.layer()))
 * )
 *
 * const { status } = await Effect.runPromise(program)
 * console.log(status) // => completed
 * ```
 *
 * **Example** (Decoding the output)
 *
 * ```ts
 * import { Effect, Layer, Schema } from "effect"
 * import { Loop, ToolRegistry } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const script = [ScriptedProvider.toolCall("final_answer", { grade: 2 })]
 *
 * const program = Loop.run("Review my essay.", { messages: [] }, {
 *   model: "any",
 *   output: Schema.Struct({ grade: Schema.Int })
 * }).pipe(Effect.provide(Layer.merge(ScriptedProvider.layer(script), ToolRegistry.layer())))
 *
 * const { output } = await Effect.runPromise(program)
 * console.log(output.grade) // => 2
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const run = <A = never>(
  prompt: Message.Input,
  history: History,
  options: Options<A>
): Effect.Effect<RunResult & OutputOf<A>, RunFailed | Input.InvalidInput, Provider | ToolRegistry> =>
  withOptions(options, (read) =>
    Effect.flatMap(
      Execution.join(begin((now) => fresh(Input.prompt(prompt, now), history, read, now))),
      read.typed.result
    )
  )

/**
 * Starts a run of the loop, and returns its handle with the events and the result.
 *
 * **Details**
 *
 * The run ends with the scope at the latest. It waits for no reader of its events.
 *
 * **Example** (Reading events and result)
 *
 * ```ts
 * import { Effect, Layer, Stream } from "effect"
 * import { AgentEvent, Loop, ToolRegistry } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const run = yield* Loop.start("Hello", { messages: [] }, { model: "any" })
 *   const pieces = yield* run.events.pipe(AgentEvent.textOnly, Stream.runCollect)
 *   const { status } = yield* run.result
 *   return [status, ...pieces]
 * }).pipe(
 *   Effect.provide(Layer.merge(ScriptedProvider.layer([ScriptedProvider.text(["Hi", "."])]), ToolRegistry.layer())),
 *   Effect.scoped
 * )
 *
 * console.log(await Effect.runPromise(program)) // => [ 'completed', 'Hi', '.' ]
 * ```
 *
 * @category running
 * @since 0.2.0
 */
export const start = <A = never>(
  prompt: Message.Input,
  history: History,
  options: Options<A>
): Effect.Effect<
  Execution.StartedRun<OutputOf<A>>,
  Input.InvalidInput,
  Provider | ToolRegistry | Scope.Scope
> =>
  withOptions(options, (read) =>
    Execution.handle(
      (reader) =>
        Effect.acquireRelease(
          begin((now) => fresh(Input.prompt(prompt, now), history, read, now), reader),
          (started) => Execution.stopAndWait(started, "the scope of the run closed")
        ),
      read.typed.result
    )
  )

/** The namespace exports it as `continue`, which cannot be the name of a function. */
const continueFrom = (
  history: History,
  options: Options<unknown>
): Stream.Stream<
  AgentEvent,
  RunFailed | Input.InvalidInput | Continuation.InvalidContinuation,
  Provider | ToolRegistry
> => {
  const { messages, open } = history
  if (open !== undefined) {
    return streamOf(options, (now, read) =>
      Result.map(fresh(Result.succeed([]), { messages }, read, now), (spec) => ({
        ...spec,
        continued: true,
        open
      }))
    )
  }
  if (messages.length === 0) {
    return Stream.fail(
      new Continuation.InvalidContinuation({ detail: "Cannot continue: no messages in context" })
    )
  }
  if (!Continuation.isUnanswered(messages)) return Stream.fail(Continuation.answered())
  return streamOf(options, (now, read) =>
    Result.map(
      fresh(Result.succeed(Continuation.missingResults(messages, now)), history, read, now),
      (spec) => ({
        ...spec,
        continued: true
      })
    )
  )
}

export {
  /**
   * Runs without a new prompt, from messages that the model has not answered.
   *
   * **Details**
   *
   * With `open`, the result of a suspended run, it begins with that turn: add the answers to its approvals and questions.
   *
   * The messages may end with a user message, a tool result or a custom message; with calls that have no result, which get an
   * error result first and do not run; or with an answer that failed or was cancelled, which the model answers again.
   * Fails with `InvalidContinuation` before any event if there are no messages, or the last one is a complete answer.
   *
   * **Example** (Asking again)
   *
   * ```ts
   * import { Effect, Layer, Stream } from "effect"
   * import { Loop, Message, ToolRegistry } from "effect-agent"
   * import { ScriptedProvider } from "effect-agent/testing"
   *
   * const program = Loop.continue({ messages: [Message.user("Hello")] }, { model: "any" }).pipe(
   *   Stream.runCollect,
   *   Effect.provide(Layer.merge(ScriptedProvider.layer([ScriptedProvider.text("Hi.")]), ToolRegistry.layer()))
   * )
   *
   * const events = await Effect.runPromise(program)
   * console.log(events.at(-1)?._tag) // => RunEnd
   * ```
   *
   * @category running
   * @since 0.2.0
   */
  continueFrom as continue
}

type Reading<A> = Result.Result<A, Input.InvalidInput>

const withOptions = <O, A, E, R>(
  options: Options<O>,
  use: (read: Prompted<RunOptions, OutputOf<O>>) => Effect.Effect<A, E, R>
) => Effect.suspend(() => Effect.flatMap(Effect.fromResult(readRun(options)), use))

const streamOf = (
  options: Options<unknown>,
  spec: (now: number, read: Prompted<RunOptions>) => Reading<RunSpec>
) => Execution.stream((reader) => withOptions(options, (read) => begin((now) => spec(now, read), reader)))

const begin = (spec: (now: number) => Reading<RunSpec>, reader?: Reader) =>
  Effect.gen(function* () {
    const made = yield* Effect.fromResult(spec(yield* Clock.currentTimeMillis))
    return yield* Execution.start(made, { reader })
  })

const fresh = (
  prompts: Reading<ReadonlyArray<Message.Message>>,
  history: History,
  { options, retry, runId, typed }: Prompted<RunOptions>,
  now: number
): Reading<RunSpec> =>
  Result.gen(function* () {
    const messages = yield* Input.messages(history.messages)
    return {
      prompts: [...closing(history, now), ...(yield* prompts)],
      messages,
      compactions: new Compactions(messages, history.compaction),
      options,
      output: typed.output,
      retry,
      runId,
      continued: false,
      pollFirst: true,
      queues: new Queues(),
      nextTurn: () => undefined
    }
  })

/** Makes results for the calls of an open turn that a prompt closes. */
const closing = ({ messages, open }: History, now: number): ReadonlyArray<Message.Message> =>
  open === undefined ? [] : Waiting.closing(open, messages, now)
