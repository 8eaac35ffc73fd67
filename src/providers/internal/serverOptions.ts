/** The options and layers that the providers of HTTP APIs share. */
import * as Config from "effect/Config"
import type * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { Provider } from "../../Provider.ts"
import * as Retry from "../../resilience/Retry.ts"
import type { Wire } from "./answer.ts"
import type { Timeouts } from "./silence.ts"

/** The options of each provider of an HTTP API. */
export interface ServerOptions {
  /**
   * The API key, as `Redacted` or plain text (default: none).
   *
   * Errors and logs never contain it. A key from `Credentials` wins over it.
   */
  readonly apiKey?: Redacted.Redacted | string
  /**
   * HTTP headers of each request (default: none).
   *
   * Errors never contain the values of headers whose names mention a key or a token.
   */
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Time limits of one answer (default: 60 seconds to the first byte, 120 seconds between two pieces, no
   * total).
   */
  readonly timeouts?: Timeouts
  /**
   * How strictly answers are read (default: `"strict"`; `"lenient"` for servers on this machine, and for compatible servers that the
   * package does not know).
   */
  readonly wire?: Wire
}

/** The options of each `layerConfig`. */
export interface Retried {
  /** The retry policy (default: three attempts, see `Retry.Options`). */
  readonly retry?: Retry.Options
}

/** The layer of a provider whose options come from the environment, wrapped in `Retry.layer`. */
export const configured = <Options>(
  make: (options: Options) => Effect.Effect<Provider["Service"], never, HttpClient.HttpClient>,
  config: Config.Config<Options>,
  retry: Retry.Options | undefined
): Layer.Layer<Provider, Config.ConfigError, HttpClient.HttpClient> =>
  Layer.unwrap(Config.map(config, (options) => Retry.layer(retry)(Layer.effect(Provider, make(options)))))
