/**
 * A provider that asks a server of this package, which has the keys of the vendors: `POST /model/stream`.
 *
 * **When to use**
 *
 * Use in programs that must not have keys: pages in browsers, programs of users, sandboxes.
 *
 * **Details**
 *
 * The server receives each `ModelRequest` as it is, and its provider applies the rules of the model. The events come back as the
 * provider gave them: ids, signatures, usage and errors too.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { Credentials, type Service as Keys } from "../http/Credentials.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import { type ModelRequest, Provider } from "../Provider.ts"
import { InvalidRequest, ProviderError } from "../ProviderError.ts"
import * as ProxyConnection from "./internal/ProxyConnection.ts"
import * as EventFrame from "./internal/EventFrame.ts"

export type { Timeouts } from "./internal/ProxyConnection.ts"

/**
 * The options of the provider.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The address of the server, such as `"http://127.0.0.1:4111"`. */
  readonly url: string
  /** The token of the server, if `Credentials` has none for the provider. Default none. */
  readonly token?: Redacted.Redacted | undefined
  /** The id of the provider in `Credentials`, and in errors of the connection. Default `"proxy"`. */
  readonly id?: string | undefined
  /** The headers of each request. Default none. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The time limits of an answer. */
  readonly timeouts?: ProxyConnection.Timeouts | undefined
  /**
   * The number of reconnects and the delays between them. Default: {@link defaultReconnect}.
   *
   * The schedule decides on failures of the connection before the first event of an answer, and on the statuses 502, 503 and 504. Each
   * reconnect emits an `Attempt` event.
   */
  readonly reconnect?: Schedule.Schedule<unknown, ProviderError> | undefined
  /** Whether the server's provider makes models answer by a JSON Schema. Default `false`. */
  readonly structuredOutput?: boolean | undefined
  /** Whether the server's provider lets models search for deferred tools. Default `false`. */
  readonly toolSearch?: boolean | undefined
}

/**
 * Three reconnects, after about 250, 500 and 1000 milliseconds.
 *
 * **Details**
 *
 * The delays vary by a fifth at random. A longer `Retry-After` of the server counts.
 *
 * @category constants
 * @since 0.2.0
 */
export const defaultReconnect: Schedule.Schedule<unknown, ProviderError> = ProxyConnection.schedule

/**
 * Makes a provider that asks a server.
 *
 * **Details**
 *
 * An answer that ends without `Finish` fails with `StreamTruncated`. Leaving the stream closes the connection, and the server then
 * leaves its vendor. A refusal of the server fails with `Unauthenticated` (401), `Forbidden` (403: the server does not proxy the
 * model), `RateLimited` (429, with its `Retry-After`), `ServerError` (5xx) or `InvalidRequest` (others, such as 413).
 *
 * **Example** (Asking through a server in the process)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent, Provider } from "effect-agent"
 * import { ModelStream, ProxyProvider } from "effect-agent/proxy"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const { provider } = yield* ScriptedProvider.make([ScriptedProvider.text("Hello from the server")])
 *   const server = ModelStream.toWebHandler(provider, { models: ["any"] })
 *
 *   const proxy = yield* ProxyProvider.make({ url: "http://127.0.0.1:4111" }).pipe(
 *     Effect.provide(FetchHttpClient.layer),
 *     Effect.provideService(FetchHttpClient.Fetch, (input, init) => server(new Request(input, init)))
 *   )
 *   const agent = yield* Agent.make({ model: "any" }).pipe(Effect.provideService(Provider.Provider, proxy))
 *   const { text } = yield* agent.prompt("Hello?")
 *   return text
 * }).pipe(Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => Hello from the server
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Provider["Service"], never, HttpClient.HttpClient> {
  const client = yield* HttpClient.HttpClient
  const keys = Context.getOrUndefined(yield* Effect.context<never>(), Credentials)
  const { id = "proxy", reconnect = ProxyConnection.schedule, structuredOutput, toolSearch } = options
  const url = ProxyConnection.addressOf(options.url, "/model/stream")
  const ask = (request: ModelRequest) => asking({ ...options, client, id, keys, url }, request, reconnect)
  return Provider.of({
    id,
    ...ProxyConnection.serverOf(url),
    stream: ask,
    structuredOutput: () => structuredOutput === true,
    toolSearch: () => toolSearch === true
  })
})

/**
 * Makes the `Provider` layer that asks a server.
 *
 * See {@link make} for its behaviour.
 *
 * **Example** (Giving an agent a server)
 *
 * ```ts
 * import { Effect, Layer, Redacted } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { ProxyProvider } from "effect-agent/proxy"
 *
 * const provider = ProxyProvider.layer({
 *   url: "https://agents.example.com",
 *   token: Redacted.make("the token of the server")
 * }).pipe(Layer.provide(FetchHttpClient.layer))
 *
 * const program = Effect.scoped(Agent.make({ model: "anthropic/claude-sonnet-5" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (options: Options): Layer.Layer<Provider, never, HttpClient.HttpClient> =>
  Layer.effect(Provider, make(options))

interface Opened extends Options {
  readonly client: HttpClient.HttpClient
  readonly id: string
  /** The `Credentials` at the time of `make`. Those at the time of a request win. */
  readonly keys: Keys | undefined
}

const asking = (
  opened: Opened,
  request: ModelRequest,
  reconnect: Schedule.Schedule<unknown, ProviderError>
): Stream.Stream<ModelEvent, ProviderError> => {
  const body = Result.try(() => JSON.stringify({ request }))
  if (Result.isFailure(body)) {
    const reason = new InvalidRequest({ detail: "The request cannot be written as JSON" })
    return Stream.fail(new ProviderError({ provider: opened.id, reason }))
  }
  return ProxyConnection.reconnecting(() => attempt(opened, body.success), reconnect)
}

const attempt = (opened: Opened, body: string): ProxyConnection.Attempt => {
  const decoder = new Decoder(opened.id)
  const { client, headers = {}, id: provider, timeouts, url } = opened
  const answer = Effect.map(tokenOf(opened), (token) =>
    ProxyConnection.answer({ client, provider, url, headers, token, body, timeouts, decoder })
  )
  return { answer: Stream.unwrap(answer), hasBegun: () => decoder.hasBegun }
}

/** The token that `Credentials` has for the provider now, or that of the options. */
const tokenOf = ({ id, keys, token }: Opened): Effect.Effect<Redacted.Redacted | undefined, ProviderError> =>
  Effect.contextWith((context: Context.Context<never>) => {
    const current = Context.getOrUndefined(context, Credentials) ?? keys
    return current === undefined
      ? Effect.succeed(token)
      : Effect.map(current.apiKey(id), (key) => Option.getOrElse(key, () => token))
  })

/** Passes events on, and notes whether the answer is complete. */
class Decoder implements ProxyConnection.Decoder {
  hasBegun = false
  private readonly provider: string
  private isFinished = false

  constructor(provider: string) {
    this.provider = provider
  }

  readonly isComplete = (): boolean => this.isFinished

  readonly step = (frame: EventFrame.Frame): Result.Result<ReadonlyArray<ModelEvent>, ProviderError> => {
    this.hasBegun = true
    return Result.map(EventFrame.read(frame, this.provider), (event) => {
      if (event === undefined) return []
      if (event._tag === "Finish") this.isFinished = true
      else if (event._tag === "Retracted") this.isFinished = false
      return [event]
    })
  }
}
