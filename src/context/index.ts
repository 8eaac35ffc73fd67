/**
 * Managers that keep long conversations within the context window of a model.
 *
 * **Details**
 *
 * - `Compaction`: a model summarizes older turns, and later requests start from the summary. The usual choice.
 * - `Pruning`: a note stands in place of old results of tools. Provide it to `Compaction`.
 * - `TokenWindow`: requests hold the newest messages within a number of tokens.
 * - `Tokens`, `GptTokenizer`: counts of tokens, where the provider reports none.
 *
 * **Example** (Keeping an agent within the context window)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-agent"
 * import { Compaction, Pruning } from "effect-agent/context"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const context = Compaction.layer({ contextWindow: 200_000 }).pipe(Layer.provide(Pruning.layer()))
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   const { text } = yield* agent.prompt("Hello")
 *   return text
 * }).pipe(Effect.provide([ScriptedProvider.layer([ScriptedProvider.text("Hi")]), context]), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => Hi
 * ```
 *
 * @since 0.2.0
 */
export * as Compaction from "./Compaction.ts"
export * as GptTokenizer from "./GptTokenizer.ts"
export * as Pruning from "./Pruning.ts"
export * as TokenWindow from "./TokenWindow.ts"
export * as Tokens from "./Tokens.ts"
