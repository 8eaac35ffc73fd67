/**
 * Gives the model the start and the end of a large tool result, and stores the whole text.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ToolOutput } from "../AgentEvent.ts"
import { type Artifact, ArtifactStore } from "./ArtifactStore.ts"
import * as Excerpt from "./internal/Excerpt.ts"
import { parse } from "../internal/json.ts"
import * as Message from "../Message.ts"
import { type Cut, type LimitedCall, ResultLimit } from "../ToolRegistry.ts"

/**
 * Options of `layer`.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /**
   * The largest number of characters (UTF-16 code units) of text in a result, with the words about the rest. Default 60,000, some
   * 15,000 tokens, which is more than the tools of `effect-agent/tools` return. At least 1,000.
   */
  readonly maxCharacters?: number
  /** The names of tools whose results stay as they are. Default `["read_artifact"]`. */
  readonly except?: ReadonlyArray<string>
  /** The time that the store may take for one text. Default 10 seconds. */
  readonly timeout?: Duration.Input
}

/**
 * Cuts the text of large tool results.
 *
 * **Details**
 *
 * A result with more text than `maxCharacters` is cut: the model gets its start and its end, with words between them that count the
 * rest and name the artifact and the call of `read_artifact` that reads it. Offer that tool by `ReadArtifact.make`. Where a result has
 * several blocks of text, they are joined by line ends. Images and `details` stay as they are, and a cut never splits a character.
 *
 * The store has the whole text before the run emits `ArtifactStored` and the cut result. If the store fails, or takes longer than
 * `timeout`, the result is cut all the same, and the run logs a warning.
 *
 * **Example** (Cutting a result)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent, Message, Tool } from "effect-agent"
 * import { ArtifactStore, LargeResults, ReadArtifact } from "effect-agent/artifacts"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const log = Tool.make({ name: "log", description: "Reads the log.", execute: () => Effect.succeed("a".repeat(9_000)) })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [log, ReadArtifact.make()] })
 *   const { newMessages } = yield* agent.prompt("Read the log.")
 *   return (newMessages.map(Message.textOf)[2] ?? "").length
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("log", {}), ScriptedProvider.text("Done.")]
 * const large = LargeResults.layer({ maxCharacters: 2_000 }).pipe(Layer.provideMerge(ArtifactStore.layerMemory()))
 * const length = await Effect.runPromise(program.pipe(Effect.provide([large, ScriptedProvider.layer(script)])))
 * console.log(length <= 2_000) // => true
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (options?: Options): Layer.Layer<never, never, ArtifactStore> =>
  Layer.effect(
    ResultLimit,
    Effect.map(ArtifactStore, (store) => {
      const max = Math.max(1_000, options?.maxCharacters ?? 60_000)
      const except = new Set(options?.except ?? ["read_artifact"])
      return (call: LimitedCall, output: ToolOutput): Cut | undefined => {
        const texts = output.content.flatMap((block) => (block.type === "text" ? [block.text] : []))
        const text = texts.join("\n")
        if (text.length <= max || except.has(call.toolName.trim())) return undefined
        const artifact = artifactOf(call, output, text)
        return {
          unstored: withText(output, Excerpt.make(text, max)),
          store: store.put(artifact).pipe(
            Effect.timeout(options?.timeout ?? "10 seconds"),
            Effect.map(() => ({
              output: withText(output, Excerpt.make(text, max, artifact.id)),
              stored: {
                artifactId: artifact.id,
                bytes: new TextEncoder().encode(text).length,
                mediaType: artifact.mediaType
              }
            }))
          )
        }
      }
    })
  )

const artifactOf = (call: LimitedCall, { content, trust }: ToolOutput, text: string): Artifact => ({
  ...call,
  id: `artifact_${crypto.randomUUID()}`,
  mediaType: content.length === 1 && isJson(text) ? "application/json" : "text/plain",
  text,
  ...(trust === undefined ? {} : { trust })
})

const isJson = (text: string): boolean => /^\s*[[{]/.test(text) && parse(text) !== undefined

/** Puts a text in the place of the first block of text. */
const withText = (output: ToolOutput, text: string): ToolOutput => {
  const first = output.content.findIndex((block) => block.type === "text")
  const content = output.content
    .map((block, index) => (index === first ? Message.text(text) : block))
    .filter((block, index) => block.type !== "text" || index === first)
  return { ...output, content }
}
