/**
 * Any provider of ours as a `LanguageModel` of `effect/ai`: with its retries, its fallbacks and its recordings.
 *
 * **Example**
 *
 * ```ts
 * const model = ProviderLanguageModel.layer({ model: "claude-sonnet-5" }).pipe(Layer.provide(Anthropic.layerConfig()))
 * const { text } = yield* LanguageModel.generateText({ prompt: "Hi" }).pipe(Effect.provide(model))
 * ```
 */
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import * as ModelEvent from "../ModelEvent.ts"
import { Provider } from "../Provider.ts"
import { ProviderError, StreamTruncated } from "../ProviderError.ts"
import type { ModelOptions } from "../RunOptions.ts"
import * as AiFailure from "./AiFailure.ts"
import * as PromptReading from "./PromptReading.ts"
import * as ResponseParts from "./ResponseParts.ts"
import * as ToolNames from "./ToolNames.ts"

export interface Options {
  /** As the provider is asked for it: `"provider/id"` through a router. */
  readonly model: string
  /** Of every call. Tool choice and structured output come from the call itself. */
  readonly options?: Omit<ModelOptions, "toolChoice" | "output">
}

/** A `LanguageModel` that asks the provider in context. */
export const layer = (options: Options): Layer.Layer<LanguageModel.LanguageModel, never, Provider> =>
  Layer.effect(LanguageModel.LanguageModel, make(options))

/**
 * The same as a value.
 *
 * A retry is not seen, unless it takes back what has been said: then `streamText` fails with what broke the answer, and
 * `generateText` gives the new one. Tools that a vendor defines fail: no provider of ours knows them.
 */
export const make = (options: Options): Effect.Effect<LanguageModel.LanguageModel, never, Provider> =>
  Effect.gen(function* () {
    const provider = yield* Provider
    const read = PromptReading.reader({
      provider: provider.id,
      model: options.model,
      options: options.options ?? {}
    })
    const named = ToolNames.around((request) => provider.stream(request))
    const ask = (asked: LanguageModel.ProviderOptions) => named(read(asked))
    const truncated = new ProviderError({
      provider: provider.id,
      reason: new StreamTruncated({ detail: "The answer stopped before its end" })
    })

    return yield* LanguageModel.make({
      streamText: (asked) => {
        const failed = (error: ProviderError) => AiFailure.fromProviderError(error, "streamText")
        const told = Stream.mapError(toParts(ask(asked), truncated), failed)
        return Stream.unwrap(Effect.as(refuse(asked, "streamText"), told))
      },
      generateText: (asked) =>
        refuse(asked, "generateText").pipe(
          Effect.andThen(whole(ask(asked), truncated)),
          Effect.mapError((error) =>
            error._tag === "AiError" ? error : AiFailure.fromProviderError(error, "generateText")
          )
        )
    })
  })

const refuse = (
  asked: LanguageModel.ProviderOptions,
  method: string
): Effect.Effect<void, AiError.AiError> => {
  const reason = PromptReading.unsupported(asked)
  return reason === undefined
    ? Effect.void
    : Effect.fail(AiError.make({ module: "ProviderLanguageModel", method, reason }))
}

/** Fails as soon as what was told is void. */
const toParts = (
  answer: Stream.Stream<ModelEvent.ModelEvent, ProviderError>,
  truncated: ProviderError
): Stream.Stream<Response.StreamPartEncoded, ProviderError> =>
  Stream.transformPull(answer, (pull) =>
    Effect.sync(() => {
      const telling = new ResponseParts.Telling()
      const next: Pull.Pull<
        Arr.NonEmptyReadonlyArray<Response.StreamPartEncoded>,
        ProviderError
      > = Effect.suspend(() => {
        if (telling.isFinished) return Cause.done()
        if (telling.retracted !== undefined) return Effect.fail(telling.retracted)
        return pull.pipe(
          Effect.mapError((end) => (Cause.isDone(end) ? truncated : end)),
          Effect.flatMap((events) => {
            const parts = telling.tell(events)
            return Arr.isReadonlyArrayNonEmpty(parts) ? Effect.succeed(parts) : next
          })
        )
      })
      return next
    })
  )

const whole = (
  answer: Stream.Stream<ModelEvent.ModelEvent, ProviderError>,
  truncated: ProviderError
): Effect.Effect<Array<Response.PartEncoded>, ProviderError> =>
  Stream.runFold(answer, () => ModelEvent.emptyReply, ModelEvent.append).pipe(
    Effect.map(ResponseParts.ofReply),
    Effect.filterOrFail(Predicate.isNotUndefined, () => truncated)
  )
