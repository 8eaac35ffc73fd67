/**
 * A provider as a `LanguageModel` of `effect/ai`, with its retries, fallbacks and recordings.
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as ModelEvent from "../ModelEvent.ts"
import { Provider } from "../Provider.ts"
import { ProviderError, StreamTruncated } from "../ProviderError.ts"
import type { ModelOptions } from "../RunOptions.ts"
import * as LanguageModelCall from "./internal/LanguageModelCall.ts"
import * as AiParts from "./internal/AiParts.ts"

/**
 * The options of such a model.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** The id of the model: `"provider/id"` for a router. */
  readonly model: string
  /** The options of every call. Default: the provider's. Tool choice and structured output come from the call. */
  readonly options?: Omit<ModelOptions, "toolChoice" | "output">
}

/**
 * Makes a `LanguageModel` of the provider in context.
 *
 * **Example** (Generating a text)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { LanguageModel } from "effect/ai"
 * import { ProviderLanguageModel } from "effect-agent/ai"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const model = ProviderLanguageModel.layer({ model: "gpt-5.4-mini" }).pipe(
 *   Layer.provide(ScriptedProvider.layer([ScriptedProvider.text("Hello")]))
 * )
 *
 * const program = Effect.map(LanguageModel.generateText({ prompt: "Hi" }), ({ text }) => text)
 *
 * console.log(await Effect.runPromise(Effect.provide(program, model))) // => Hello
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<LanguageModel.LanguageModel, never, Provider> =>
  Layer.effect(LanguageModel.LanguageModel, make(options))

/**
 * Makes a `LanguageModel` of the provider in context, as a value.
 *
 * **Gotchas**
 *
 * `effect/ai` has no part that takes back text. Where a retry makes text void, `streamText` fails with the failure that broke the
 * answer, and `generateText` returns the new answer. Tools that a vendor defines fail: set `hostedTools` in the options of the calls
 * instead. `effect/ai` refuses calls of tools that its caller has not declared, so that the answer is without those of `hostedTools`.
 *
 * **Example** (Streaming a text)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { ProviderLanguageModel } from "effect-agent/ai"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const model = yield* ProviderLanguageModel.make({ model: "gpt-5.4-mini" })
 *   return yield* model.streamText({ prompt: "Hi" }).pipe(
 *     Stream.filter((part) => part.type === "text-delta"),
 *     Stream.map(({ delta }) => delta),
 *     Stream.runCollect
 *   )
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text(["Hel", "lo"])])))
 *
 * console.log(await Effect.runPromise(program)) // => [ 'Hel', 'lo' ]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<LanguageModel.LanguageModel, never, Provider> =>
  Effect.gen(function* () {
    const provider = yield* Provider
    const read = LanguageModelCall.reader({
      provider: provider.id,
      model: options.model,
      options: options.options ?? {}
    })
    const named = AiParts.around((request) => provider.stream(request))
    const ask = (call: LanguageModel.ProviderOptions) => named(read(call))
    const truncated = new ProviderError({
      provider: provider.id,
      reason: new StreamTruncated({ detail: "The answer stopped before its end" })
    })

    return yield* LanguageModel.make({
      streamText: (call) => {
        const failed = (error: ProviderError) => fromProviderError(error, "streamText")
        const parts = Stream.mapError(toParts(ask(call), truncated), failed)
        return Stream.unwrap(Effect.as(refuse(call, "streamText"), parts))
      },
      generateText: (call) =>
        refuse(call, "generateText").pipe(
          Effect.andThen(whole(ask(call), truncated)),
          Effect.mapError((error) =>
            error._tag === "AiError" ? error : fromProviderError(error, "generateText")
          )
        )
    })
  })

const refuse = (
  call: LanguageModel.ProviderOptions,
  method: string
): Effect.Effect<void, AiError.AiError> => {
  const reason = LanguageModelCall.unsupported(call)
  return reason === undefined
    ? Effect.void
    : Effect.fail(AiError.make({ module: "ProviderLanguageModel", method, reason }))
}

/** Converts events to parts, and fails where a retry makes parts void. */
const toParts = (
  answer: Stream.Stream<ModelEvent.ModelEvent, ProviderError>,
  truncated: ProviderError
): Stream.Stream<Response.StreamPartEncoded, ProviderError> =>
  Stream.transformPull(answer, (pull) =>
    Effect.sync(() => {
      const writer = new LanguageModelCall.Writer()
      const next: Pull.Pull<
        Arr.NonEmptyReadonlyArray<Response.StreamPartEncoded>,
        ProviderError
      > = Effect.suspend(() => {
        if (writer.isFinished) return Cause.done()
        if (writer.retracted !== undefined) return Effect.fail(writer.retracted)
        return pull.pipe(
          Effect.mapError((end) => (Cause.isDone(end) ? truncated : end)),
          Effect.flatMap((events) => {
            const parts = writer.add(events)
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
    Effect.map(LanguageModelCall.ofReply),
    Effect.filterOrFail(Predicate.isNotUndefined, () => truncated)
  )

// ───────────────────────── Failures

/** Converts a failure, and keeps whether a retry may succeed. */
const fromProviderError = (error: ProviderError, method: string): AiError.AiError =>
  AiError.make({ module: `effect-agent/${error.provider}`, method, reason: reasonOf(error) })

const reasonOf = (error: ProviderError): AiError.AiErrorReason => {
  const { isRetryable, reason, retryAfter } = error
  const { body, detail: description, status } = reason
  const http = {
    ...(status === undefined ? {} : { response: { status, headers: {} } }),
    ...(body === undefined ? {} : { body })
  }
  switch (reason._tag) {
    case "RateLimited":
      // The vendor advises against a retry: of all limits, a quota is the one that does not pass.
      return isRetryable
        ? new AiError.RateLimitError({ http, ...(retryAfter === undefined ? {} : { retryAfter }) })
        : new AiError.QuotaExhaustedError({ http })
    case "QuotaExceeded":
      return new AiError.QuotaExhaustedError({ http })
    case "Unauthenticated":
      return new AiError.AuthenticationError({ kind: "Unknown", description, http })
    case "Forbidden":
      return new AiError.AuthenticationError({ kind: "InsufficientPermissions", description, http })
    case "ContentPolicy":
      return new AiError.ContentPolicyError({ description, http })
    case "UnsupportedContent":
      return new AiError.InvalidUserInputError({ description })
    case "NotFound":
    case "ModelNotSupported":
    case "InvalidRequest":
    case "ContextOverflow":
      return new AiError.InvalidRequestError({ description, http })
    default:
      // A transport, a protocol, a stream or a server failed: `effect/ai` distinguishes only whether a retry may succeed.
      return isRetryable
        ? new AiError.InternalProviderError({ description: error.message, http })
        : new AiError.InvalidResponseError({ description: error.message, http })
  }
}
