/**
 * Keys that change while the program runs: rotated, per tenant, from a vault.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import type { ProviderError } from "./ProviderError.ts"

export interface Service {
  /** The key for one vendor, asked by its transport for every HTTP attempt; `None` leaves the configured one. */
  readonly apiKey: (provider: string) => Effect.Effect<Option.Option<Redacted.Redacted>, ProviderError>
}

/** No keys by default: a provider then uses the one it was made with. */
export const Credentials = Context.Reference<Service>("effect-agent/Credentials", {
  defaultValue: () => ({ apiKey: () => Effect.succeedNone })
})

/** Sets where keys come from. */
export const layer = (apiKey: Service["apiKey"]): Layer.Layer<never> => Layer.succeed(Credentials, { apiKey })
