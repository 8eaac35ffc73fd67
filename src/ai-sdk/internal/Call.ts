/**
 * One call of a model: the request, and its answer as events.
 */
import type { LanguageModelV3, LanguageModelV4, LanguageModelV4Prompt } from "@ai-sdk/provider"
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import type * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Adjusted from "./Adjusted.ts"
import { Answer, type Part } from "./Answer.ts"
import * as CallOptions from "./CallOptions.ts"
import * as Failure from "./Failure.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import * as PromptMessages from "./PromptMessages.ts"
import type { ModelRequest } from "../../Provider.ts"
import { ProviderError, type Reason, StreamTruncated } from "../../ProviderError.ts"
import * as VendorKeys from "../../http/VendorKeys.ts"

/** A model of either version. */
export type Model = LanguageModelV4 | LanguageModelV3

/** The provider of a call. */
export interface Speaker {
  readonly id: string
  readonly model: Model | ((model: string) => Model)
  readonly providerTools: CallOptions.ProviderTools
}

/** Calls the model. Leaving the stream aborts the request. */
export const stream = (speaker: Speaker, request: ModelRequest): Stream.Stream<ModelEvent, ProviderError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const model = yield* modelOf(speaker, request.model)
      const reader = { provider: speaker.id, vendor: model.provider.split(".")[0] ?? "" }
      const prompt = PromptMessages.make(request, reader)
      if (Result.isFailure(prompt)) return yield* prompt.failure
      const { headers, parts } = yield* open(speaker, model, request, prompt.success)
      const { options } = request
      const answer = new Answer(
        { provider: speaker.id, model: model.modelId, options, headers: VendorKeys.shown(headers) },
        [...Adjusted.lost(options, model.specificationVersion), ...Adjusted.lostOfParts(request)]
      )
      return Stream.fromPull(Effect.succeed(pullOf(answer, parts)))
    })
  ).pipe(
    Stream.catch((failure) =>
      Stream.fromEffect(
        Effect.flatMap(reasonOf(failure, request.model), (reason) =>
          Effect.fail(new ProviderError({ provider: speaker.id, reason }))
        )
      )
    )
  )

/** A value of any type, which a model threw or reported in its stream. */
class Thrown {
  readonly error: unknown
  constructor(error: unknown) {
    this.error = error
  }
}

const thrown = (error: unknown): Thrown => new Thrown(error)

/** A failure, before its time is known. */
type Failed = Reason | Thrown

const reasonOf = (failure: Failed, model: string): Effect.Effect<Reason> =>
  failure instanceof Thrown
    ? Effect.map(Clock.currentTimeMillis, (now) => Failure.reasonOf(failure.error, model, now))
    : Effect.succeed(failure)

const modelOf = ({ model }: Speaker, id: string): Effect.Effect<Model, Thrown> =>
  typeof model === "function" ? Effect.try({ try: () => model(id), catch: thrown }) : Effect.succeed(model)

/** The stream of a model, which its reader leaves for good. */
type Parts = ReadableStreamDefaultReader<Part>

interface Opened {
  readonly parts: Parts
  readonly headers: Readonly<Record<string, string>> | undefined
}

/** Sends the request. The end of the scope aborts it, before and after its response. */
const open = (
  { providerTools }: Speaker,
  model: Model,
  request: ModelRequest,
  prompt: LanguageModelV4Prompt
): Effect.Effect<Opened, Thrown, Scope.Scope> =>
  Effect.gen(function* () {
    const signal = yield* Effect.abortSignal
    const start = async (): Promise<Opened> => {
      const { response, stream } =
        model.specificationVersion === "v3"
          ? await model.doStream(CallOptions.version3(request, prompt, providerTools, signal))
          : await model.doStream(CallOptions.version4(request, prompt, providerTools, signal))
      return { parts: stream.getReader(), headers: response?.headers }
    }
    return yield* Effect.acquireRelease(
      Effect.tryPromise({ try: start, catch: thrown }),
      // Nothing waits for it: a stream that another reader shares ends with the abort, which follows.
      ({ parts }) => Effect.sync(() => void parts.cancel().catch(constVoid)),
      { interruptible: true }
    )
  })

/** Converts parts to events, and ends with `Finish` even if the stream of the model does not end. */
const pullOf = (answer: Answer, parts: Parts): Pull.Pull<Arr.NonEmptyReadonlyArray<ModelEvent>, Failed> => {
  const read = Effect.tryPromise({ try: () => parts.read(), catch: thrown })
  const next: Pull.Pull<Arr.NonEmptyReadonlyArray<ModelEvent>, Failed> = Effect.suspend(() => {
    const { outcome } = answer
    if (outcome === "complete") return Cause.done()
    if (outcome !== undefined)
      return Effect.fail("reason" in outcome ? outcome.reason : thrown(outcome.error))
    return Effect.flatMap(read, ({ done, value }) => {
      if (done) return Effect.fail(truncated)
      const events = answer.add(value)
      return Arr.isReadonlyArrayNonEmpty(events) ? Effect.succeed(events) : next
    })
  })
  return next
}

const truncated = new StreamTruncated({ detail: "the answer ended before it was finished" })
