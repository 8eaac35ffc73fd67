/** The options and layers that the providers of HTTP APIs share. */
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import { given } from "./json.ts"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { hasProperty } from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import type * as HttpClient from "effect/http/HttpClient"
import { Provider } from "../../Provider.ts"
import { type Reason, ServerError, Unauthenticated } from "../../ProviderError.ts"
import { strip } from "../../internal/errors.ts"
import * as Retry from "../../resilience/Retry.ts"
import type { Preset } from "../presets.ts"
import type { Wire } from "./answer.ts"
import type { Timeouts } from "./connection.ts"
import * as Transport from "../Transport.ts"

/** The options of each provider of an HTTP API. */
export interface ServerOptions {
  /**
   * The API key, as `Redacted` or plain text (default: none).
   *
   * Errors and logs never contain it. A key from `Credentials` wins over it.
   */
  readonly apiKey?: Redacted.Redacted | string | undefined
  /**
   * HTTP headers of each request (default: none).
   *
   * Errors never contain the values of headers whose names mention a key or a token.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /**
   * Time limits of one answer (default: 60 seconds to the first byte, 120 seconds between two pieces, no
   * total).
   */
  readonly timeouts?: Timeouts | undefined
  /**
   * How strictly answers are read (default: `"strict"`; `"lenient"` for servers on this machine, and for compatible servers that the
   * package does not know).
   */
  readonly wire?: Wire | undefined
}

/** The options of each `layerConfig`. */
export interface Retried {
  /** The retry policy (default: three attempts, see `Retry.Options`). */
  readonly retry?: Retry.Options | undefined
}

// ───────────────────────── Constructors

/** Makes a provider of the options of an application. */
type Make<Options> = (options: Options) => Effect.Effect<Provider["Service"], never, HttpClient.HttpClient>

/** Makes `make` of a vendor from its server: the options that all vendors have go to `Transport`. */
export const maker =
  <Options extends ServerOptions>(
    serverOf: (options: Options) => Pick<Transport.Options, "deployment" | "framing" | "protocol">
  ): ((options: Options) => Effect.Effect<Provider["Service"], never, HttpClient.HttpClient>) =>
  (options) =>
    Effect.suspend(() => {
      const { deployment, ...server } = serverOf(options)
      const { apiKey, headers, timeouts, wire } = options
      const own = { apiKey: redacted(apiKey), headers, ...deployment }
      return Transport.make({ timeouts, wire, ...server, deployment: own })
    })

/** Makes `layer` of a vendor. */
export const layerOf =
  <Options>(
    make: Make<Options>
  ): ((options: Options) => Layer.Layer<Provider, never, HttpClient.HttpClient>) =>
  (options) =>
    Layer.effect(Provider, make(options))

/** Makes `layerConfig` of a vendor, which reads options from the environment and wraps the layer in `Retry.layer`. */
export const layerConfigOf =
  <Options, Args extends ReadonlyArray<unknown>>(
    make: Make<Options>,
    read: (...args: Args) => Config.Config<Options & Retried>
  ): ((...args: Args) => Layer.Layer<Provider, Config.ConfigError, HttpClient.HttpClient>) =>
  (...args) =>
    Layer.unwrap(Config.map(read(...args), (options) => Retry.layer(options.retry)(layerOf(make)(options))))

// ───────────────────────── The environment

// Reads the key, address and headers of a preset from environment variables. An empty variable counts as not
// set.

interface Given {
  readonly baseUrl?: string
  readonly headers?: Readonly<Record<string, string>> | undefined
}

interface Environment {
  readonly apiKey?: Redacted.Redacted
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
}

/** The options of a provider: those of the application, which win, and those of the environment. */
export const environmentOf = <Options extends Given>(
  preset: Preset,
  options: Options
): Config.Config<Environment & Options> => {
  const { apiKeyName, headerNames = {}, headers: fixed } = preset
  return Config.all({
    apiKey: apiKeyName === undefined ? Config.succeed(undefined) : keyIn(apiKeyName),
    baseUrl: options.baseUrl === undefined ? addressOf(preset) : Config.succeed(options.baseUrl),
    headers: Config.all(
      Object.fromEntries(Object.entries(headerNames).map(([header, name]) => [header, optional(name)]))
    )
  }).pipe(
    Config.map(({ apiKey, baseUrl, headers }) => ({
      ...(apiKey === undefined ? {} : { apiKey }),
      ...given(options),
      baseUrl,
      headers: {
        ...fixed,
        ...Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== "")),
        ...options.headers
      }
    }))
  )
}

const addressOf = ({ baseUrl, baseUrlName }: Preset): Config.Config<string> => {
  const names = Array.from(baseUrl.matchAll(placeholder), ([, name = ""]) => name)
  const usual = Config.map(Config.all(names.map(part)), (values) =>
    names.reduce((url, name, index) => url.replace(`{${name}}`, values[index] ?? ""), baseUrl)
  )
  return baseUrlName === undefined ? usual : Config.orElse(Config.NonEmptyString(baseUrlName), () => usual)
}

const placeholder = /\{([A-Z_]+)\}/g

type Names = readonly [string, ...ReadonlyArray<string>]

/** The value of the first of these variables that is set. */
export const first = ([name, ...others]: Names): Config.Config<string> =>
  others.reduce(
    (config, other) => Config.orElse(config, () => Config.NonEmptyString(other)),
    Config.NonEmptyString(name)
  )

/** The key in the first of these variables that is set. Fails with a sentence if none is. */
export const keyIn = (...names: Names): Config.Config<Redacted.Redacted> =>
  explained(
    names,
    Config.map(first(names), (key) => Redacted.make(key))
  )

/** The value of a variable that is part of an address. Fails with a sentence if it is not set. */
const part = (name: string): Config.Config<string> =>
  explained([name], Config.NonEmptyString(name), { value: "that part of the address", option: "a baseUrl" })

/**
 * Replaces the error of a `Config`, which lists all parts of its schema, by a sentence that names the
 * variables.
 */
export const explained = <A>(
  names: Names,
  config: Config.Config<A>,
  wanted: Wanted = { value: "the key", option: "an apiKey" }
): Config.Config<A> =>
  Config.orElse(config, ({ cause }) => {
    if (cause._tag === "SourceError") return Config.fail(cause)
    const missing = new ConfigProvider.SourceError({ message: missingText(names, wanted) })
    strip(missing)
    return Config.fail(missing)
  })

/** The value of a variable, and the option in its place. */
interface Wanted {
  readonly value: string
  readonly option: string
}

const missingText = ([name, ...others]: Names, { option, value }: Wanted): string =>
  others.length === 0
    ? `${name} is not set. Set it to ${value}, or give the layer ${option}`
    : `${name} is not set, nor is ${others.join(" or ")}. Set one of them to ${value}, or give the layer ${option}`

const optional = (name: string) => Config.withDefault(Config.String(name), "")

/** The address in the first of these variables that is set, if one is. */
export const address = (...names: Names): Config.Config<{ readonly baseUrl?: string }> =>
  Config.map(Config.option(first(names)), ({ valueOrUndefined: baseUrl }) =>
    baseUrl === undefined ? {} : { baseUrl }
  )

// ───────────────────────── Keys

// Keys of applications: `Redacted` or plain text.

/** The key as `Redacted`. */
export const redacted = (key: Redacted.Redacted | string | undefined): Redacted.Redacted | undefined =>
  typeof key === "string" ? Redacted.make(key) : key

// ───────────────────────── Addresses

/** Normalizes configured addresses, which may end in slashes and contain a query. */

/** The address without its query and without slashes at its end, and the query including its question mark. */
export const addressParts = (baseUrl: string): readonly [base: string, query: string] => {
  const [, base = "", query = ""] = /^([^?#]*)(.*)$/s.exec(baseUrl) ?? []
  return [base.replace(/\/+$/, ""), query]
}

/** The address without a route at its end, which users copy from the documentation of a vendor. */
export const withoutPath = (route: string, base: string): string =>
  base.endsWith(route) ? base.slice(0, -route.length).replace(/\/+$/, "") : base

/** Whether an address is that of a vendor, who lets models search, and not that of a server in its place. */
export const isAt = (host: string, baseUrl: string): boolean => {
  const [base] = addressParts(baseUrl)
  const { hostname } = URL.canParse(base) ? new URL(base) : { hostname: "" }
  return hostname === host || hostname.endsWith(`.${host}`)
}

// ───────────────────────── Failures of credentials

// Converts the error of a library that gives credentials to a `Reason`.

/** A server of tokens that fails for a moment is no lack of credentials. `what` begins the sentence: `The AWS credentials cannot be read`. */
export const credentialFailure = (what: string, cause: unknown): Reason => {
  const detail = `${what}: ${cause instanceof Error ? cause.message : String(cause)}`
  return isTemporary(cause) ? new ServerError({ detail }) : new Unauthenticated({ detail })
}

const isTemporary = (cause: unknown): boolean =>
  ["status", "statusCode"].some((name) => hasProperty(cause, name) && Number(cause[name]) >= 500) ||
  (hasProperty(cause, "code") && /^(?:ECONN|EAI_|ENOTFOUND|EPIPE|ETIMEDOUT)/.test(String(cause.code)))
