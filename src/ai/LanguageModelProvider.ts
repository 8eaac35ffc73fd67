/**
 * A `LanguageModel` of `effect/ai` as a provider.
 *
 * **Details**
 *
 * Each call is one round of the model. The loop runs the tool calls, not the model.
 *
 * @since 0.1.0
 */
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import type * as Prompt from "effect/ai/Prompt"
import * as AiTool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { ModelEvent } from "../ModelEvent.ts"
import type { ModelRequest, ToolDefinition } from "../Provider.ts"
import { Provider } from "../Provider.ts"
import type { ModelOptions } from "../RunOptions.ts"
import type { Reason } from "../ProviderError.ts"
import { InvalidRequest, ProviderError, StreamTruncated } from "../ProviderError.ts"
import * as AiReason from "./internal/AiReason.ts"
import * as PromptMessages from "./internal/PromptMessages.ts"
import type { Speaker } from "./internal/ResponseEvents.ts"
import { Answer, type Part } from "./internal/ResponseEvents.ts"

/**
 * The options of such a provider.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /**
   * The tools of `effect/ai` that the vendor runs, such as those of a vendor's module for a search of the web. Default: none.
   *
   * The answer has their calls and results as blocks `hostedTool`.
   */
  readonly hostedTools?: ReadonlyArray<HostedTool>
  /**
   * The id of the provider, in messages and errors. Default: the name that `Model.make` gives the provider, else `"effect-ai"`.
   *
   * Thinking goes back to the provider of this id only.
   */
  readonly id?: string
  /**
   * Makes services for one call, besides those of the model's layer, such as the configuration of a vendor's module. Default: none.
   *
   * It carries the model and the options of a request, for which `effect/ai` has no place, to the vendor. Without it they are left
   * out, with one warning in the log, and a request for structured output fails with the reason `InvalidRequest`.
   */
  readonly configure?: (request: ModelRequest) => Context.Context<never>
}

/**
 * A tool of `effect/ai` that the vendor runs, without a handler.
 *
 * @category models
 * @since 0.2.0
 */
export type HostedTool = AiTool.ProviderDefined<
  `${string}.${string}`,
  string,
  {
    readonly args: Schema.Codec<unknown, unknown>
    readonly parameters: Schema.Codec<unknown, unknown>
    readonly success: Schema.Codec<unknown, unknown>
    readonly failure: Schema.Codec<unknown, unknown>
    readonly failureMode: AiTool.FailureMode
  },
  false
>

/**
 * Makes a provider of the `LanguageModel` in context.
 *
 * **Example** (Running an agent on a model of effect/ai)
 *
 * ```ts
 * import { Effect, Layer, Stream } from "effect"
 * import { LanguageModel, type Response } from "effect/ai"
 * import { Agent } from "effect-agent"
 * import { LanguageModelProvider } from "effect-agent/ai"
 *
 * const parts: ReadonlyArray<Response.StreamPartEncoded> = [
 *   { type: "text-start", id: "1" },
 *   { type: "text-delta", id: "1", delta: "Hello" },
 *   { type: "text-end", id: "1" },
 *   { type: "finish", reason: "stop", usage: { inputTokens: {}, outputTokens: {} } }
 * ]
 * const model = Layer.effect(
 *   LanguageModel.LanguageModel,
 *   LanguageModel.make({
 *     generateText: () => Effect.succeed([]),
 *     streamText: () => Stream.fromIterable(parts)
 *   })
 * )
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   const { text } = yield* agent.prompt("Hi")
 *   return text
 * }).pipe(Effect.provide(Layer.provide(LanguageModelProvider.layer(), model)), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => Hello
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<Provider, never, LanguageModel.LanguageModel> =>
  Layer.effect(Provider, make(options))

/**
 * Makes a provider of the `LanguageModel` in context, as a value.
 *
 * **Example** (Naming the provider)
 *
 * ```ts
 * import { Effect, Layer, Stream } from "effect"
 * import { LanguageModel } from "effect/ai"
 * import { LanguageModelProvider } from "effect-agent/ai"
 *
 * const model = Layer.effect(
 *   LanguageModel.LanguageModel,
 *   LanguageModel.make({ generateText: () => Effect.succeed([]), streamText: () => Stream.empty })
 * )
 *
 * const program = Effect.map(LanguageModelProvider.make({ id: "acme" }), ({ id }) => id)
 *
 * console.log(await Effect.runPromise(Effect.provide(program, model))) // => acme
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  options?: Options
): Effect.Effect<Provider["Service"], never, LanguageModel.LanguageModel> =>
  Effect.gen(function* () {
    const model = yield* LanguageModel.LanguageModel
    const providerName = Option.getOrElse(yield* Effect.serviceOption(Model.ProviderName), () => "effect-ai")
    const modelName = Option.getOrUndefined(yield* Effect.serviceOption(Model.ModelName))
    const id = options?.id ?? providerName
    const promptOf = PromptMessages.maker(id)
    const configure = options?.configure
    const fail = (reason: Reason) => Stream.fail(new ProviderError({ provider: id, reason }))
    const warn = yield* warnOnce
    const toolkitOf = toolkits(options?.hostedTools ?? [])

    return Provider.of({
      id,
      stream: (request) => {
        const prompt = promptOf(request)
        if (Result.isFailure(prompt)) return fail(prompt.failure)
        const parts = ask(model, request, prompt.success, toolkitOf(request.tools))
        if (configure !== undefined) {
          return toEvents(Stream.provideContext(parts, configure(request)), {
            provider: id,
            model: request.model
          })
        }
        if (request.options.output !== undefined) return fail(unstructured)
        const speaker = { provider: id, model: modelName ?? request.model }
        return Stream.onStart(toEvents(parts, speaker), warn(request.options))
      }
    })
  })

const unstructured = new InvalidRequest({
  detail: "effect/ai streams no structured output: pass a `configure` that sets it up for the vendor"
})

/** Makes a function that warns once of options that have no effect, which is hard to find otherwise. */
const warnOnce = Effect.sync(() => {
  let hasWarned = false
  return (options: ModelOptions): Effect.Effect<void> =>
    Effect.suspend(() => {
      const lost = Object.keys(options).filter((name) => !understood.has(name))
      if (hasWarned || lost.length === 0) return Effect.void
      hasWarned = true
      return Effect.logWarning(
        `effect/ai has no place for ${lost.join(", ")}: pass a configure to have them set`
      )
    })
})

/** Options without a warning: `effect/ai` has a place for `toolChoice`, and a vendor may ignore the others. */
const understood: ReadonlySet<string> = new Set(["toolChoice", "sessionId", "cacheRetention"])

const ask = (
  model: LanguageModel.LanguageModel,
  { options }: ModelRequest,
  prompt: Prompt.Prompt,
  toolkit: Declarations
): Stream.Stream<Part, AiError.AiError> =>
  model.streamText({
    prompt,
    toolkit,
    toolChoice: toolChoiceOf(options),
    // The loop checks the calls, and reports mistakes to the model.
    disableToolCallResolution: true,
    toolCallValidation: "deferred"
  })

const toolChoiceOf = ({ toolChoice = "auto" }: ModelOptions): LanguageModel.ToolChoice<string> =>
  typeof toolChoice === "string" ? toolChoice : { tool: toolChoice.name }

/** A tool that the model may call, and that the loop or the vendor runs. */
type Declared = ReturnType<typeof toolOf> | HostedTool
type Declarations = Toolkit.WithHandler<Record<string, Declared>>

// By the array, which stays the same object from turn to turn: a model caches the decoders of its last toolkit.
const toolkits = (hostedTools: ReadonlyArray<HostedTool>) =>
  memoize((definitions: ReadonlyArray<ToolDefinition>): Declarations => {
    const tools: ReadonlyArray<Declared> = [...definitions.map(toolOf), ...hostedTools]
    return {
      tools: Object.fromEntries(tools.map((tool) => [tool.name, tool])),
      handle: (name) => Effect.die(new Error(`Tool ${name} is run by the loop`))
    }
  })

const toolOf = ({ description, name, parameters, strict }: ToolDefinition) =>
  AiTool.dynamic(name, {
    description,
    parameters: Predicate.isObject(parameters) ? parameters : { type: "object" }
  }).annotate(AiTool.Strict, strict)

/** Converts parts to events, and ends with `Finish` even if the stream of the model does not end. */
const toEvents = (
  parts: Stream.Stream<Part, AiError.AiError>,
  speaker: Speaker
): Stream.Stream<ModelEvent, ProviderError> => {
  const failed = (reason: Reason) => Effect.fail(new ProviderError({ provider: speaker.provider, reason }))
  return Stream.transformPull(parts, (pull) =>
    Effect.sync(() => {
      const answer = new Answer(speaker)
      const next: Pull.Pull<Arr.NonEmptyReadonlyArray<ModelEvent>, ProviderError> = Effect.suspend(() => {
        if (answer.outcome === "complete") return Cause.done()
        if (answer.outcome !== undefined) return failed(answer.outcome)
        return pull.pipe(
          Effect.catch((end) =>
            Effect.flatMap(Clock.currentTimeMillis, (now) =>
              failed(Cause.isDone(end) ? truncated : AiReason.fromAiError(end, now))
            )
          ),
          Effect.flatMap((parts) => {
            const events = answer.add(parts)
            return Arr.isReadonlyArrayNonEmpty(events) ? Effect.succeed(events) : next
          })
        )
      })
      return next
    })
  )
}

const truncated = new StreamTruncated({ detail: "The answer stopped before its end" })
