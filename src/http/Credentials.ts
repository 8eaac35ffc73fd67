/**
 * API keys that change while the program runs: rotated keys, keys of tenants, keys from a vault.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import type { ProviderError } from "../ProviderError.ts"

/**
 * The source of API keys.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /**
   * Returns the key for one vendor, or `None` for the key that the provider was made with.
   *
   * The provider calls it for every HTTP attempt, with the vendor's id.
   */
  readonly apiKey: (provider: string) => Effect.Effect<Option.Option<Redacted.Redacted>, ProviderError>
}

/**
 * The service that providers take API keys from.
 *
 * **Details**
 *
 * By default it has no keys, so that a provider uses the key that it was made with. A key for one vendor never goes to another one.
 *
 * **Example** (Reading the current source)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Credentials } from "effect-agent/providers"
 *
 * const program = Effect.gen(function* () {
 *   const { apiKey } = yield* Credentials.Credentials
 *   return yield* apiKey("openai")
 * })
 *
 * console.log((await Effect.runPromise(program))._tag) // => None
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export const Credentials = Context.Reference<Service>("effect-agent/Credentials", {
  defaultValue: () => ({ apiKey: () => Effect.succeedNone })
})

/**
 * Sets the source of API keys.
 *
 * **Example** (Rotating a key)
 *
 * ```ts
 * import { Effect, Option, Redacted, Ref } from "effect"
 * import { Credentials } from "effect-agent/providers"
 *
 * const program = Effect.gen(function* () {
 *   const current = yield* Ref.make("sk-first")
 *   const rotating = Credentials.layer((vendor) =>
 *     vendor === "openai" ? Effect.map(Ref.get(current), (key) => Option.some(Redacted.make(key))) : Effect.succeedNone
 *   )
 *   yield* Ref.set(current, "sk-second")
 *   const { apiKey } = yield* Effect.provide(Credentials.Credentials, rotating)
 *   return yield* apiKey("openai")
 * })
 *
 * console.log(Option.getOrUndefined(Option.map(await Effect.runPromise(program), Redacted.value))) // => sk-second
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (apiKey: Service["apiKey"]): Layer.Layer<never> => Layer.succeed(Credentials, { apiKey })
