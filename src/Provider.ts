/**
 * Who answers: a company's API, a local server, a script.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { ModelMessage } from "./Message.ts"
import type { ModelEvent } from "./ModelEvent.ts"
import { ModelNotSupported, ProviderError } from "./ProviderError.ts"
import type { ModelOptions } from "./RunOptions.ts"

/** A tool as the model is told of it. `parameters` is a JSON Schema of an object. */
export interface ToolDefinition {
  readonly name: string
  readonly description: string
  readonly parameters: Schema.Json
}

/** One model call. `model` is always here: a provider serves every id of its vendor. */
export interface ModelRequest {
  readonly model: string
  readonly system?: string
  /** The same objects from turn to turn: an encoding may be cached by identity. */
  readonly messages: ReadonlyArray<ModelMessage>
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly options: ModelOptions
}

export class Provider extends Context.Service<
  Provider,
  {
    readonly id: string
    /** Asks once. Leaving the stream closes the connection. */
    readonly stream: (request: ModelRequest) => Stream.Stream<ModelEvent, ProviderError>
  }
>()("effect-agent/Provider") {}

/**
 * Sends `"openai/gpt-…"` to the provider named `openai`, as `"gpt-…"`. Fails with reason `ModelNotSupported` for any
 * other prefix.
 */
export const router = (providers: Readonly<Record<string, Provider["Service"]>>): Provider["Service"] => {
  const known = new Map(Object.entries(providers))
  return Provider.of({
    id: "router",
    stream: (request) => {
      const slash = request.model.indexOf("/")
      const provider = known.get(request.model.slice(0, Math.max(0, slash)))
      return provider === undefined
        ? Stream.fail(unsupported(request.model, [...known.keys()]))
        : provider.stream({ ...request, model: request.model.slice(slash + 1) })
    }
  })
}

const unsupported = (model: string, known: ReadonlyArray<string>) =>
  new ProviderError({
    provider: "router",
    reason: new ModelNotSupported({
      model,
      detail: `No provider for ${JSON.stringify(model)}. Models are named provider/id; providers: ${known.join(", ")}`
    })
  })

/**
 * Makes a decorator: a function from a `Provider` layer to a `Provider` layer.
 *
 * A function, not a constant layer: Effect builds a layer once per reference, so one constant around two providers of an
 * application would give both the first one.
 */
export const decorate =
  <E, R>(wrap: (inner: Provider["Service"]) => Effect.Effect<Provider["Service"], E, R>) =>
  <E1, R1>(inner: Layer.Layer<Provider, E1, R1>): Layer.Layer<Provider, E | E1, R | R1> =>
    Layer.effect(Provider, Effect.flatMap(Provider, wrap)).pipe(Layer.provide(inner))
