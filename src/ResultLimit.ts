/**
 * The limit on the size of a tool result, and the store that keeps a larger one.
 *
 * **When to use**
 *
 * `LargeResults.layer` of `effect-agent/artifacts` provides it: the model gets the start and the end of a large result, and a tool to
 * read the rest. Provide an implementation of your own to shorten results in another way.
 *
 * **Details**
 *
 * By default a run passes results on as they are, with at most 1,000,000 characters of text in each block.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ToolOutput } from "./AgentEvent.ts"

/**
 * The call that a result belongs to.
 *
 * @category models
 * @since 0.2.0
 */
export interface Call {
  /** The id of the run. */
  readonly runId: string
  /** The id of the call. */
  readonly toolCallId: string
  /** The name of the tool, as the model wrote it. */
  readonly toolName: string
}

/**
 * An artifact that holds the whole text of a result, as the event `ArtifactStored` describes it.
 *
 * @category models
 * @since 0.2.0
 */
export interface Stored {
  /** The id by which the store returns the text. */
  readonly artifactId: string
  /** The size of the text in bytes of UTF-8. */
  readonly bytes: number
  /** The media type of the text, such as `"text/plain"`. */
  readonly mediaType: string
}

/**
 * A result that is cut, and the effect that stores its whole text.
 *
 * @category models
 * @since 0.2.0
 */
export interface Cut {
  /** The cut result for the model, where the whole text could not be stored. */
  readonly unstored: ToolOutput
  /**
   * Stores the whole text, and succeeds with the cut result for the model. If it fails, the run logs a warning and uses `unstored`.
   * A stop of the run interrupts it.
   */
  readonly store: Effect.Effect<{ readonly output: ToolOutput; readonly stored: Stored }, unknown>
}

/**
 * The service that limits tool results.
 *
 * **Details**
 *
 * The run calls it once for each result, after the `afterTool` hooks. It returns `undefined` for a result that stays as it is. The run
 * stores the whole text first, then emits `ArtifactStored`, then `ToolExecutionEnd` with the cut result. Default: all results stay.
 *
 * **Example** (Cutting results without storing them)
 *
 * ```ts
 * import { Effect, Layer, References } from "effect"
 * import { Agent, Message, ResultLimit, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const short = Layer.succeed(ResultLimit.ResultLimit, (_, output) => {
 *   const text = Message.textOf(output)
 *   if (text.length <= 10) return undefined
 *   const unstored = Tool.output(`${text.slice(0, 10)} [cut]`)
 *   return { unstored, store: Effect.fail("there is no store") }
 * })
 * const log = Tool.make({ name: "log", description: "Reads the log.", execute: () => Effect.succeed("a".repeat(99)) })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [log] })
 *   const { newMessages } = yield* agent.prompt("Read the log.")
 *   return newMessages.map(Message.textOf)[2]
 * }).pipe(Effect.scoped, Effect.provide(short), Effect.provideService(References.MinimumLogLevel, "None"))
 *
 * const script = [ScriptedProvider.toolCall("log", {}), ScriptedProvider.text("Done.")]
 * console.log(await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script)))))
 * // => aaaaaaaaaa [cut]
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export const ResultLimit = Context.Reference<(call: Call, output: ToolOutput) => Cut | undefined>(
  "effect-agent/ResultLimit",
  { defaultValue: () => () => undefined }
)
