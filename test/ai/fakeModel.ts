import { Effect, Layer, Stream } from "effect"
import type { Response } from "effect/ai"
import { AiError, LanguageModel } from "effect/ai"

export type Part = Response.StreamPartEncoded
export type Turn = ReadonlyArray<Part> | Stream.Stream<Part, AiError.AiError>

/** A model of `effect/ai` that says what a test wrote, one turn for each call, and remembers what it was asked. */
export const make = (...turns: ReadonlyArray<Turn>) => {
  const asked: Array<LanguageModel.ProviderOptions> = []
  const layer = Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: () => Effect.die(new Error("only streams are asked for")),
      streamText: (options) => {
        const turn = turns[asked.push(options) - 1]
        if (turn === undefined) return Stream.die(new Error(`No turn ${asked.length} in the script`))
        return Stream.isStream(turn) ? turn : Stream.fromIterable(turn)
      }
    })
  )
  return { asked, layer }
}

export const finish = (reason: Response.FinishReason, input = 0, output = 0): Part => ({
  type: "finish",
  reason,
  usage:
    input + output === 0
      ? { inputTokens: {}, outputTokens: {} }
      : { inputTokens: { total: input }, outputTokens: { total: output } }
})

export const text = (said: string): ReadonlyArray<Part> => [
  { type: "text-start", id: "t" },
  ...Array.from(said.match(/.{1,3}/gs) ?? [], (delta): Part => ({ type: "text-delta", id: "t", delta })),
  { type: "text-end", id: "t" }
]

/** A call as vendors stream it: its arguments in pieces, then as a whole. */
export const call = (
  id: string,
  name: string,
  params: unknown,
  raw = JSON.stringify(params)
): ReadonlyArray<Part> => [
  { type: "tool-params-start", id, name },
  ...Array.from(raw.match(/.{1,4}/gs) ?? [], (delta): Part => ({ type: "tool-params-delta", id, delta })),
  { type: "tool-params-end", id },
  { type: "tool-call", id, name, params }
]

export const failed = (reason: AiError.AiErrorReason) =>
  Stream.fail(AiError.make({ module: "Fake", method: "streamText", reason }))
