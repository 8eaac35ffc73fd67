/**
 * Asks the next provider when one fails before it said anything.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { ModelEvent } from "../ModelEvent.ts"
import type { ModelRequest } from "../Provider.ts"
import { Provider } from "../Provider.ts"
import type { ProviderError } from "../ProviderError.ts"
import * as Silence from "../internal/silence.ts"

type ProviderLayer = Layer.Layer<Provider, any, any>

/** A provider to fall back to, and the model it is asked for. Default: the model of the request. */
export interface Entry<L extends ProviderLayer = ProviderLayer> {
  readonly layer: L
  readonly model?: string
}

type Candidate = ProviderLayer | Entry
type LayerOf<C> = C extends Entry<infer L> ? L : C

/** When the next provider is asked. */
export interface Options {
  /** Whether another provider is asked after this error. Default: after all but a refusal on grounds of content. */
  readonly when?: (error: ProviderError) => boolean
}

const byDefault = (error: ProviderError): boolean => error.reason._tag !== "ContentPolicy"

/**
 * One provider out of several, asked in order. Each hop is an `Attempt` event with its cause, and the `Start` of the
 * answer says who gave it. A provider that broke off in mid-answer is not replaced; one whose stream ended without `Finish`
 * before it said anything is. Compose with `Retry` on either side:
 * inside, each provider is retried before the next is asked; outside, the whole list is.
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
        stream: (request) => ask(resolved, request, options?.when ?? byDefault, 1)
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
  attempt: number
): Silence.Answer => {
  if (current === undefined) return Stream.empty
  const answer = current.provider.stream({ ...request, model: current.model ?? request.model })
  return Silence.orElse(current.provider.id, answer, (error, spoke) => {
    if (spoke || others.length === 0 || !when(error)) return Stream.fail(error)
    const hop: ModelEvent = { _tag: "Attempt", attempt, delay: Duration.zero, error }
    return Stream.concat(Stream.succeed(hop), ask(others, request, when, attempt + 1))
  })
}
