/**
 * Counts of tokens by the package `gpt-tokenizer`, where it is installed.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Tokens from "./Tokens.ts"

/** The time to count a text without spaces grows with the square of its length: longer texts are counted in pieces. */
const maxPiece = 1_000

/** With the handler, bundlers do without a package that is not installed. */
const load = () =>
  import(/* webpackIgnore: true */ "gpt-tokenizer/encoding/o200k_base").catch(() => undefined)

type Count = (text: string, options: { readonly disallowedSpecial: Set<string> }) => number

/** Names of special tokens in a text count as text: a tool may read a file that has some. */
const asText = { disallowedSpecial: new Set<string>() }

const inPieces = (count: Count) => (text: string) => {
  let sum = 0
  for (let start = 0; start < text.length; start += maxPiece) {
    sum += count(text.slice(start, start + maxPiece), asText)
  }
  return sum
}

/**
 * Counts tokens with the encoding `o200k_base` of OpenAI's models.
 *
 * **Details**
 *
 * Other vendors do not publish the encodings of their models; for text of theirs the count is a better estimate than
 * `Tokens.estimate`. The layer loads the package when it is built. If the package is not installed, the layer logs a warning, and
 * tokens are estimated at four characters for one.
 *
 * **Example** (Counting for a compaction)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-agent"
 * import { Compaction, GptTokenizer } from "effect-agent/context"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const compaction = Compaction.layer().pipe(Layer.provide(GptTokenizer.layer))
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   return (yield* agent.prompt("Hello")).text
 * }).pipe(
 *   Effect.provide([ScriptedProvider.layer([ScriptedProvider.text("Hi")]), compaction]),
 *   Effect.scoped
 * )
 *
 * console.log(await Effect.runPromise(program)) // => Hi
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer: Layer.Layer<never> = Layer.effect(
  Tokens.Tokens,
  Effect.gen(function* () {
    const loaded = yield* Effect.promise(load)
    if (loaded !== undefined) return { count: inPieces(loaded.countTokens) }
    yield* Effect.logWarning(notInstalled)
    return { count: Tokens.estimate }
  })
)

const notInstalled =
  "gpt-tokenizer is not installed, so tokens are estimated at four characters for one. To count them: npm install gpt-tokenizer"
