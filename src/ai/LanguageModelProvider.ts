/**
 * Any `LanguageModel` of `effect/ai` as a provider: one round of the model for each call, its tool calls handed to the
 * loop, which runs them.
 *
 * **Example**
 *
 * ```ts
 * const provider = LanguageModelProvider.layer().pipe(Layer.provide(OpenAiLanguageModel.model("gpt-5-mini")))
 * ```
 */
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import type * as Prompt from "effect/ai/Prompt"
import * as AiTool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { ModelEvent } from "../ModelEvent.ts"
import type { ModelRequest, ToolDefinition } from "../Provider.ts"
import { Provider } from "../Provider.ts"
import type { ModelOptions } from "../RunOptions.ts"
import type { Reason } from "../ProviderError.ts"
import { InvalidRequest, ProviderError, StreamTruncated } from "../ProviderError.ts"
import * as AiReason from "./AiReason.ts"
import * as PromptMessages from "./PromptMessages.ts"
import type { Speaker } from "./ResponseEvents.ts"
import { Answer, type Part } from "./ResponseEvents.ts"

export interface Options {
  /**
   * Who answers, in messages and errors, and whose thinking is given back to it. Default: the name that `Model.make`
   * gives the provider, else `"effect-ai"`.
   */
  readonly id?: string
  /**
   * What this call provides to the model besides what its layer was built with: how the model and the options of a
   * request, for which `effect/ai` has no place, reach the vendor's own configuration. Without it they are left out, and
   * a request for structured output fails.
   */
  readonly configure?: (request: ModelRequest) => Context.Context<never>
}

/** A provider that asks the `LanguageModel` in context. */
export const layer = (options?: Options): Layer.Layer<Provider, never, LanguageModel.LanguageModel> =>
  Layer.effect(Provider, make(options))

/** The same as a value. */
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

    return Provider.of({
      id,
      stream: (request) => {
        const prompt = promptOf(request)
        if (Result.isFailure(prompt)) return fail(prompt.failure)
        const asked = ask(model, request, prompt.success)
        if (configure !== undefined) {
          return heard(Stream.provideContext(asked, configure(request)), {
            provider: id,
            model: request.model
          })
        }
        if (request.options.output !== undefined) return fail(unstructured)
        const speaker = { provider: id, model: modelName ?? request.model }
        return Stream.onStart(heard(asked, speaker), warn(request.options))
      }
    })
  })

const unstructured = new InvalidRequest({
  detail: "effect/ai streams no structured output: pass a `configure` that sets it up for the vendor"
})

/** Tells once of the options that are lost: a temperature that has no effect is hard to find. */
const warnOnce = Effect.sync(() => {
  let told = false
  return (options: ModelOptions): Effect.Effect<void> =>
    Effect.suspend(() => {
      const lost = Object.keys(options).filter((name) => !understood.has(name))
      if (told || lost.length === 0) return Effect.void
      told = true
      return Effect.logWarning(
        `effect/ai has no place for ${lost.join(", ")}: pass a configure to have them set`
      )
    })
})

/** Options that need no warning: `toolChoice` has its place, the rest are hints, which a vendor may ignore as well. */
const understood: ReadonlySet<string> = new Set(["toolChoice", "sessionId", "cacheRetention"])

const ask = (
  model: LanguageModel.LanguageModel,
  { options, tools }: ModelRequest,
  prompt: Prompt.Prompt
): Stream.Stream<Part, AiError.AiError> =>
  model.streamText({
    prompt,
    toolkit: toolkitOf(tools),
    toolChoice: toolChoiceOf(options),
    // What the model calls, and with what, is the loop's business: it tells the model of its mistakes.
    disableToolCallResolution: true,
    toolCallValidation: "deferred"
  })

const toolChoiceOf = ({ toolChoice = "auto" }: ModelOptions): LanguageModel.ToolChoice<string> =>
  typeof toolChoice === "string" ? toolChoice : { tool: toolChoice.name }

/** A tool that is told to the model, and nothing more. */
type Declared = ReturnType<typeof toolOf>
type Declarations = Toolkit.WithHandler<Record<string, Declared>>

// By the array, which is the same from turn to turn: a model keeps the decoders of the toolkit it saw last.
const toolkits = new WeakMap<ReadonlyArray<ToolDefinition>, Declarations>()

const toolkitOf = (definitions: ReadonlyArray<ToolDefinition>): Declarations => {
  const known = toolkits.get(definitions)
  if (known !== undefined) return known
  const made: Declarations = {
    tools: Object.fromEntries(definitions.map((definition) => [definition.name, toolOf(definition)])),
    handle: (name) => Effect.die(new Error(`Tool ${name} is run by the loop`))
  }
  toolkits.set(definitions, made)
  return made
}

const toolOf = ({ description, name, parameters }: ToolDefinition) =>
  AiTool.dynamic(name, {
    description,
    parameters: Predicate.isObject(parameters) ? parameters : { type: "object" }
  })

/** Ends with the `Finish`, whatever the model does with its stream then. */
const heard = (
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
          Effect.catch((end) => failed(Cause.isDone(end) ? truncated : AiReason.fromAiError(end))),
          Effect.flatMap((said) => {
            const events = answer.hear(said)
            return Arr.isReadonlyArrayNonEmpty(events) ? Effect.succeed(events) : next
          })
        )
      })
      return next
    })
  )
}

const truncated = new StreamTruncated({ detail: "The answer stopped before its end" })
