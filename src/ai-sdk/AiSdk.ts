/**
 * A language model of the AI SDK as a provider.
 *
 * **Details**
 *
 * It takes each model that implements version 3 or 4 of the specification of `@ai-sdk/provider`, such as those of `@ai-sdk/openai`. Each
 * call is one round of the model. The loop runs the tool calls, not the AI SDK, which it does not need.
 *
 * @since 0.2.0
 */
import type { LanguageModelV3, LanguageModelV4, LanguageModelV4Prompt } from "@ai-sdk/provider"
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import * as Layer from "effect/Layer"
import type * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ModelEvent } from "../ModelEvent.ts"
import { Provider, type ModelRequest } from "../Provider.ts"
import { ProviderError, type Reason, StreamTruncated } from "../ProviderError.ts"
import * as VendorText from "../http/VendorText.ts"
import * as CallOptions from "./internal/CallOptions.ts"
import * as AiSdkAnswer from "./internal/AiSdkAnswer.ts"

/**
 * A model of version 3 or 4 of the specification.
 *
 * @category models
 * @since 0.2.0
 */
export type Model = LanguageModelV4 | LanguageModelV3

/**
 * A tool of the vendor, as the packages of the AI SDK make it: `openai.tools.webSearch()`.
 *
 * @category models
 * @since 0.2.0
 */
export interface ProviderTool extends CallOptions.ProviderTool {}

/**
 * The options of such a provider.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /**
   * The model, which answers whatever model a request names, or a function from the model of a request to a model.
   *
   * A provider of the AI SDK is such a function: with `model: openai` the option `model` of an agent selects the model.
   */
  readonly model: Model | ((model: string) => Model)
  /**
   * The id of the provider, in messages and errors. Default: the provider of the model, such as `"openai.responses"`; for a function
   * `"ai-sdk"`.
   *
   * Thinking goes back to the provider of this id only.
   */
  readonly id?: string
  /**
   * Tools of the vendor by their names, such as `{ web_search: openai.tools.webSearch() }`. Default none.
   *
   * The vendor runs the calls of most. The run runs the calls of the others, for which it needs a tool of the same name.
   */
  readonly providerTools?: Readonly<Record<string, ProviderTool>>
  /**
   * Whether the vendor makes the model answer by the JSON Schema of `options.output`. Default: where the model has no tools, since some
   * vendors do not accept a schema beside tools.
   */
  readonly structuredOutput?: boolean
}

/**
 * Makes a provider of a model.
 *
 * **Details**
 *
 * - `modelOptions.vendor` of a run becomes `providerOptions`, by the names of the packages: `{ openai: { reasoningSummary: "auto" } }`.
 * - `ModelCallEnd.adjusted` has the warnings of the model, and the options that the specification has no place for.
 * - Blocks keep their `providerMetadata`, such as a signature, which goes back to the model unchanged.
 * - Calls and results of tools that the vendor ran are `HostedTool` blocks, citations are sources, and files of the model are media.
 * - A call is one request, which an interruption aborts. `Retry.layer` repeats calls that fail.
 *
 * **Example** (Running an agent on a model of the AI SDK)
 *
 * ```ts
 * import type { LanguageModelV4, LanguageModelV4StreamPart } from "@ai-sdk/provider"
 * import { Effect, Stream } from "effect"
 * import { Agent } from "effect-agent"
 * import { AiSdk } from "effect-agent/ai-sdk"
 *
 * const inputTokens = { total: 9, noCache: 9, cacheRead: 0, cacheWrite: 0 }
 * const outputTokens = { total: 2, text: 2, reasoning: 0 }
 * const parts: ReadonlyArray<LanguageModelV4StreamPart> = [
 *   { type: "text-start", id: "1" },
 *   { type: "text-delta", id: "1", delta: "Hello" },
 *   { type: "text-end", id: "1" },
 *   { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: { inputTokens, outputTokens } }
 * ]
 *
 * // It stands for a model of a package, such as `openai("gpt-5.4-mini")` of `@ai-sdk/openai`.
 * const model: LanguageModelV4 = {
 *   specificationVersion: "v4",
 *   provider: "example.chat",
 *   modelId: "example-1",
 *   supportedUrls: {},
 *   doGenerate: () => Promise.reject(new Error("An agent streams")),
 *   doStream: async () => ({ stream: Stream.toReadableStream(Stream.fromIterable(parts)) })
 * }
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "example-1" })
 *   const { message, text } = yield* agent.prompt("Hi")
 *   return [message?.provider, text]
 * }).pipe(Effect.provide(AiSdk.layer({ model })), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => [ 'example.chat', 'Hello' ]
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (options: Options): Layer.Layer<Provider> => Layer.succeed(Provider, make(options))

/**
 * Makes a provider of a model, as a value.
 *
 * **Example** (Naming the provider)
 *
 * ```ts
 * import type { LanguageModelV4 } from "@ai-sdk/provider"
 * import { AiSdk } from "effect-agent/ai-sdk"
 *
 * const model = (modelId: string): LanguageModelV4 => ({
 *   specificationVersion: "v4",
 *   provider: "example.chat",
 *   modelId,
 *   supportedUrls: {},
 *   doGenerate: () => Promise.reject(new Error("An agent streams")),
 *   doStream: () => Promise.reject(new Error("offline"))
 * })
 *
 * console.log(AiSdk.make({ model: model("example-1") }).id) // => example.chat
 * console.log(AiSdk.make({ model, id: "example" }).id) // => example
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (options: Options): Provider["Service"] => {
  const { model, providerTools = {}, structuredOutput } = options
  const id = options.id ?? (typeof model === "function" ? "ai-sdk" : model.provider)
  const hasTools = Object.keys(providerTools).length > 0
  return Provider.of({
    id,
    stream: (request) => stream({ id, model, providerTools }, request),
    structuredOutput: ({ tools }) => structuredOutput ?? (tools.length === 0 && !hasTools)
  })
}

// ───────────────────────── Calls of a model

/** A model of either version. */
type AnyModel = LanguageModelV4 | LanguageModelV3

/** The provider of a call. */
interface Speaker {
  readonly id: string
  readonly model: AnyModel | ((model: string) => AnyModel)
  readonly providerTools: CallOptions.ProviderTools
}

/** Calls the model. Leaving the stream aborts the request. */
const stream = (speaker: Speaker, request: ModelRequest): Stream.Stream<ModelEvent, ProviderError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const model = yield* modelOf(speaker, request.model)
      const reader = { provider: speaker.id, vendor: model.provider.split(".")[0] ?? "" }
      const prompt = CallOptions.promptMaker(request, reader)
      if (Result.isFailure(prompt)) return yield* prompt.failure
      const { headers, parts } = yield* open(speaker, model, request, prompt.success)
      const { options } = request
      const answer = new AiSdkAnswer.Answer(
        { provider: speaker.id, model: model.modelId, options, headers: VendorText.shown(headers) },
        [...CallOptions.lost(options, model.specificationVersion), ...CallOptions.lostOfParts(request)]
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
    ? Effect.map(Clock.currentTimeMillis, (now) => AiSdkAnswer.reasonOf(failure.error, model, now))
    : Effect.succeed(failure)

const modelOf = ({ model }: Speaker, id: string): Effect.Effect<AnyModel, Thrown> =>
  typeof model === "function" ? Effect.try({ try: () => model(id), catch: thrown }) : Effect.succeed(model)

/** The stream of a model, which its reader leaves for good. */
type Parts = ReadableStreamDefaultReader<AiSdkAnswer.Part>

interface Opened {
  readonly parts: Parts
  readonly headers: Readonly<Record<string, string>> | undefined
}

/** Sends the request. The end of the scope aborts it, before and after its response. */
const open = (
  { providerTools }: Speaker,
  model: AnyModel,
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
const pullOf = (
  answer: AiSdkAnswer.Answer,
  parts: Parts
): Pull.Pull<Arr.NonEmptyReadonlyArray<ModelEvent>, Failed> => {
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
