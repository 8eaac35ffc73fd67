/**
 * Several providers as one, which calls the next provider when one fails.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { ModelEvent } from "../ModelEvent.ts"
import { type ModelRequest, countTokens, CountingUnsupported, Provider } from "../Provider.ts"
import { ProviderError } from "../ProviderError.ts"
import * as OrElse from "./internal/OrElse.ts"

type ProviderLayer = Layer.Layer<Provider, any, any>

/**
 * A provider with a model of its own.
 *
 * @category models
 * @since 0.1.0
 */
export interface Entry<L extends ProviderLayer = ProviderLayer> {
  /** The provider. */
  readonly layer: L
  /** The id of the model for this provider. Default: the model of the request. */
  readonly model?: string
}

type Candidate = ProviderLayer | Entry
type LayerOf<C> = C extends Entry<infer L> ? L : C

/**
 * The options of a fallback.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** Returns whether the next provider is called after this error. Default: after every error but `ContentPolicy`. */
  readonly when?: (error: ProviderError) => boolean
}

const byDefault = (error: ProviderError): boolean => error.reason._tag !== "ContentPolicy"

/**
 * Makes one provider of several, which it calls in order until one answers.
 *
 * **Details**
 *
 * A failure after the first block of an answer stands: the next provider is not called. An answer that ends without `Finish` counts
 * as failed. Each change of the provider emits an `Attempt` event with its cause, and `Start` names the provider that answers. If all
 * fail, the error is that of the last one, with the messages of the others in `earlier` and in its own.
 *
 * A `Retry` around one provider retries that provider before the next one is called. Around the fallback it retries the whole
 * list.
 *
 * **Example** (Falling back to another vendor)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Message, ProviderError } from "effect-agent"
 * import { Fallback } from "effect-agent/resilience"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const busy = ScriptedProvider.layer(
 *   [ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "at capacity" }))],
 *   { id: "busy" }
 * )
 * const spare = ScriptedProvider.layer([ScriptedProvider.text("Yes.")], { id: "spare" })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   const { message } = yield* agent.prompt("Do I need a coat in Oslo?")
 *   return message && [message.provider, message.model, Message.textOf(message)]
 * }).pipe(
 *   Effect.provide(Fallback.layer([busy, { layer: spare, model: "claude-sonnet-5" }])),
 *   Effect.scoped
 * )
 *
 * console.log(await Effect.runPromise(program)) // => [ 'spare', 'claude-sonnet-5', 'Yes.' ]
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <const Candidates extends readonly [Candidate, ...ReadonlyArray<Candidate>]>(
  candidates: Candidates,
  options?: Options
): Layer.Layer<
  Provider,
  Layer.Error<LayerOf<Candidates[number]>>,
  Layer.Services<LayerOf<Candidates[number]>>
> =>
  Layer.effect(
    Provider,
    Effect.map(Effect.forEach(candidates, resolve), (resolved) => {
      const [first] = resolved
      return Provider.of({
        id: first?.provider.id ?? "fallback",
        stream: (request) => ask(resolved, request, options?.when ?? byDefault, []),
        structuredOutput: (request) =>
          resolved.every(
            ({ model = request.model, provider }) =>
              provider.structuredOutput?.({ ...request, model }) ?? false
          ),
        toolSearch: (request) =>
          resolved.every(({ model = request.model, provider }) => provider.toolSearch?.({ model }) ?? false),
        refuses: ({ model }, media) => first?.provider.refuses?.({ model: first.model ?? model }, media),
        countTokens: (request) =>
          first === undefined
            ? Effect.fail(new CountingUnsupported({ provider: "fallback" }))
            : Effect.provideService(
                countTokens({ ...request, model: first.model ?? request.model }),
                Provider,
                first.provider
              )
      })
    })
  )

interface Resolved {
  readonly provider: Provider["Service"]
  readonly model: string | undefined
}

const resolve = (candidate: Candidate): Effect.Effect<Resolved, any, any> => {
  const entry: Entry = "layer" in candidate ? candidate : { layer: candidate }
  return Effect.map(Layer.build(entry.layer), (context) => ({
    provider: Context.get(context, Provider),
    model: entry.model
  }))
}

const ask = (
  [current, ...others]: ReadonlyArray<Resolved>,
  request: ModelRequest,
  when: (error: ProviderError) => boolean,
  earlier: ReadonlyArray<string>
): OrElse.Answer => {
  if (current === undefined) return Stream.empty
  const answer = current.provider.stream({ ...request, model: current.model ?? request.model })
  return OrElse.orElse(current.provider.id, answer, (error, spoke) => {
    if (spoke || others.length === 0 || !when(error)) {
      return Stream.fail(earlier.length === 0 ? error : new ProviderError({ ...error, earlier }))
    }
    const hop: ModelEvent = { _tag: "Attempt", attempt: earlier.length + 1, delay: Duration.zero, error }
    return Stream.concat(Stream.succeed(hop), ask(others, request, when, [...earlier, error.message]))
  })
}
