/**
 * The credentials of requests: a key, a token or a signature.
 *
 * @since 0.2.0
 */
import { AwsV4Signer } from "aws4fetch"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { type Reason, Unauthenticated } from "../ProviderError.ts"

/**
 * A request without its credentials.
 *
 * @since 0.2.0
 * @category models
 */
export interface Unsigned {
  /** The method. */
  readonly method: "POST" | "GET"
  /** The whole address. */
  readonly url: string
  /** The headers, with names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** The body, empty if there is none. */
  readonly body: string
  /** The key of the provider, from `Credentials` or from the options. `undefined` if there is none. */
  readonly key: Redacted.Redacted | undefined
  /** Whether the vendor has refused the credentials of the request before. */
  readonly isRefused: boolean
}

/**
 * The credentials of a request.
 *
 * @since 0.2.0
 * @category models
 */
export interface Signed {
  /** The headers to add. */
  readonly headers: Readonly<Record<string, string>>
  /**
   * The keys and tokens behind them, which errors, logs and spans never contain.
   *
   * If the vendor refuses a request, the provider makes credentials again, and sends the request again if they have a new secret.
   */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
}

/**
 * Makes the credentials of requests.
 *
 * **Example** (Sending a key in a header of its own, and the time)
 *
 * ```ts
 * import { Clock, Effect, Redacted } from "effect"
 * import type { Auth } from "effect-agent/providers"
 *
 * const stamped: Auth.Auth = ({ key = Redacted.make("") }) =>
 *   Effect.map(Clock.currentTimeMillis, (now) => ({
 *     headers: { "x-acme-key": Redacted.value(key), "x-acme-time": String(now) },
 *     secrets: [key]
 *   }))
 *
 * console.log(typeof stamped) // => function
 * ```
 *
 * @since 0.2.0
 * @category models
 */
export type Auth = (request: Unsigned) => Effect.Effect<Signed, Reason>

const nothing: Effect.Effect<Signed> = Effect.succeed({ headers: {}, secrets: [] })

/**
 * Sends no credentials.
 *
 * **Example** (Describing a server without a key)
 *
 * ```ts
 * import { Auth } from "effect-agent/providers"
 *
 * const deployment = { url: () => "http://127.0.0.1:8080/v1/chat/completions", auth: Auth.none }
 *
 * console.log(deployment.url()) // => http://127.0.0.1:8080/v1/chat/completions
 * ```
 *
 * @since 0.2.0
 * @category constants
 */
export const none: Auth = () => nothing

/**
 * Makes headers from the key.
 *
 * **Details**
 *
 * A request without a key has none of these headers.
 *
 * **Example** (Sending a key in two headers)
 *
 * ```ts
 * import { Effect, Redacted } from "effect"
 * import { Auth } from "effect-agent/providers"
 *
 * const auth = Auth.headers((key) => ({ "x-acme-key": key, "x-acme-team": key.slice(0, 4) }))
 * const request = { method: "POST", url: "https://api.acme.example", headers: {}, body: "{}", isRefused: false } as const
 *
 * const { headers } = await Effect.runPromise(auth({ ...request, key: Redacted.make("team-12345678") }))
 * console.log(headers["x-acme-team"]) // => team
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const headers =
  (of: (key: string) => Readonly<Record<string, string>>): Auth =>
  ({ key }) => {
    if (key === undefined) return nothing
    const value = Redacted.value(key).trim()
    return value === ""
      ? Effect.fail(
          new Unauthenticated({ detail: "the API key is empty: give one, or none to a server without keys" })
        )
      : Effect.sync(() => ({ headers: of(value), secrets: [key] }))
  }

/**
 * Sends the key in the header of this name.
 *
 * **Example** (Describing a server that reads its own header)
 *
 * ```ts
 * import { Auth } from "effect-agent/providers"
 *
 * const deployment = { url: () => "https://api.acme.example/chat", auth: Auth.header("x-acme-key") }
 *
 * console.log(deployment.url()) // => https://api.acme.example/chat
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const header = (name: string): Auth => headers((key) => ({ [name]: key }))

/**
 * Sends the key as `authorization: Bearer …`.
 *
 * @since 0.2.0
 * @category constants
 */
export const bearer: Auth = headers((key) => ({ authorization: `Bearer ${key}` }))

/**
 * Sends a token that expires as `authorization: Bearer …`.
 *
 * **Details**
 *
 * The source gives the current token for each request, and renews it before it expires, as the libraries of the clouds do.
 * `isRefused` is `true` if the vendor has refused the last token. A key from `Credentials` or from the options wins over the
 * source.
 *
 * **Example** (Reading a token from a file that another program renews)
 *
 * ```ts
 * import { Effect, FileSystem, Redacted } from "effect"
 * import { ProviderError } from "effect-agent"
 * import { Auth } from "effect-agent/providers"
 *
 * const tokenOf = (files: FileSystem.FileSystem) =>
 *   Auth.token(() =>
 *     Effect.mapBoth(files.readFileString("/run/secrets/token"), {
 *       onFailure: ({ message }) => new ProviderError.Unauthenticated({ detail: message }),
 *       onSuccess: (text) => Redacted.make(text.trim())
 *     })
 *   )
 *
 * console.log(typeof tokenOf) // => function
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const token =
  (source: (isRefused: boolean) => Effect.Effect<Redacted.Redacted, Reason>): Auth =>
  (request) =>
    request.key === undefined
      ? Effect.flatMap(source(request.isRefused), (key) => bearer({ ...request, key }))
      : bearer(request)

/**
 * The credentials of an AWS account.
 *
 * @since 0.2.0
 * @category models
 */
export interface AwsCredentials {
  /** The id of the access key. */
  readonly accessKeyId: string
  /** The secret of the access key. */
  readonly secretAccessKey: string
  /** The token of a session (default: none, as for a user's own key). */
  readonly sessionToken?: string | undefined
}

/**
 * The service and the region that a signature is for.
 *
 * @since 0.2.0
 * @category options
 */
export interface SigV4Options {
  /** The name of the service in signatures, such as `bedrock`. */
  readonly service: string
  /** The region, such as `us-east-1`. */
  readonly region: string
  /** Gives the current credentials for each request. */
  readonly credentials: Effect.Effect<AwsCredentials, Reason>
}

/**
 * Signs requests with AWS's Signature Version 4.
 *
 * **Details**
 *
 * A key from `Credentials` or from the options wins over the account, and goes out as a bearer token.
 *
 * **Example** (Signing with the key of a user)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Auth } from "effect-agent/providers"
 *
 * const auth = Auth.sigV4({
 *   service: "bedrock",
 *   region: "us-east-1",
 *   credentials: Effect.succeed({ accessKeyId: "AKIA...", secretAccessKey: "..." })
 * })
 *
 * console.log(typeof auth) // => function
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const sigV4 =
  ({ credentials, region, service }: SigV4Options): Auth =>
  (request) =>
    request.key === undefined
      ? Effect.flatMap(credentials, (current) => signature(request, current, { region, service }))
      : bearer(request)

const signature = (
  { body, headers, method, url }: Unsigned,
  { accessKeyId, secretAccessKey, sessionToken }: AwsCredentials,
  { region, service }: Omit<SigV4Options, "credentials">
): Effect.Effect<Signed, Reason> =>
  Clock.clockWith((clock) =>
    Effect.tryPromise({
      try: async () => {
        const now = new Date(clock.currentTimeMillisUnsafe()).toISOString()
        const signer = new AwsV4Signer({
          method,
          url,
          headers: { ...headers },
          body,
          accessKeyId,
          secretAccessKey,
          ...(sessionToken === undefined ? {} : { sessionToken }),
          service,
          region,
          datetime: now.replace(/[:-]|\.\d{3}/g, "")
        })
        const signed = await signer.sign()
        return {
          headers: Object.fromEntries([...signed.headers].filter(([name]) => isOfSignature.test(name))),
          secrets: [secretAccessKey, ...(sessionToken === undefined ? [] : [sessionToken])].map((secret) =>
            Redacted.make(secret)
          )
        }
      },
      catch: () => new Unauthenticated({ detail: "The AWS credentials cannot sign the request" })
    })
  )

const isOfSignature = /^(?:authorization$|x-amz-)/
