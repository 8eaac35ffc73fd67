/**
 * A provider that asks a server for clients of pi's `streamProxy`: `POST /api/stream`.
 *
 * **When to use**
 *
 * Use where a server for `@earendil-works/pi-agent-core` exists. For a server of this package, `ProxyProvider` loses nothing.
 *
 * **Gotchas**
 *
 * pi's protocol has no place for tools of vendors, output schemas, sources, files and other options: they are left out. Its failures
 * are texts, of which the reason is a guess.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { ModelEvent } from "../ModelEvent.ts"
import { type ModelRequest, Provider } from "../Provider.ts"
import { InvalidRequest, ProviderError } from "../ProviderError.ts"
import * as Address from "./internal/Address.ts"
import * as Connection from "./internal/Connection.ts"
import * as PiContext from "./internal/PiContext.ts"
import { PiReader } from "./internal/PiReader.ts"
import type * as ProxyProvider from "./ProxyProvider.ts"
import * as Reconnect from "./internal/Reconnect.ts"

/**
 * The options of the provider.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options
  extends Pick<ProxyProvider.Options, "url" | "token" | "headers" | "timeouts" | "reconnect"> {
  /** The id of the provider, for models without a prefix and in errors. Default `"pi"`. */
  readonly id?: string | undefined
  /**
   * Returns pi's description of a model, which servers give to their providers. Default: `provider` and `id` of an id such as
   * `"anthropic/claude-sonnet-5"`, and members that many servers take.
   */
  readonly model?: ((id: string) => Schema.JsonObject) | undefined
}

/**
 * Makes a provider that asks a server of pi's proxy.
 *
 * **Details**
 *
 * An answer that ends without `done` fails with `StreamTruncated`. Refusals, reconnects and interruption are those of `ProxyProvider`.
 *
 * **Example** (Asking through a server in the process)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent, Provider } from "effect-agent"
 * import { PiProxy, PiStream } from "effect-agent/proxy"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const { provider } = yield* ScriptedProvider.make([ScriptedProvider.text("Hello from the server")])
 *   const server = PiStream.toWebHandler(provider, { models: ["acme/small"] })
 *
 *   const proxy = yield* PiProxy.make({ url: "http://127.0.0.1:4111" }).pipe(Effect.provide(FetchHttpClient.layer))
 *   const agent = yield* Agent.make({ model: "acme/small" }).pipe(Effect.provideService(Provider.Provider, proxy))
 *   const { text } = yield* agent
 *     .prompt("Hello?")
 *     .pipe(Effect.provideService(FetchHttpClient.Fetch, (input, init) => server(new Request(input, init))))
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
  const { id = "pi" } = options
  const url = Address.of(options.url, "/api/stream")
  return Provider.of({
    id,
    ...Address.serverOf(url),
    stream: (request) => asking({ ...options, client, id, url }, request)
  })
})

/**
 * Makes the `Provider` layer that asks a server of pi's proxy.
 *
 * See {@link make} for its behaviour.
 *
 * **Example** (Giving an agent a server)
 *
 * ```ts
 * import { Effect, Layer, Redacted } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { PiProxy } from "effect-agent/proxy"
 *
 * const provider = PiProxy.layer({
 *   url: "https://genai.example.com",
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
}

const asking = (opened: Opened, request: ModelRequest): Stream.Stream<ModelEvent, ProviderError> => {
  const { client, headers = {}, id: provider, reconnect = Reconnect.schedule, timeouts, token, url } = opened
  const model = opened.model?.(request.model) ?? describe(provider, request.model)
  const body = Result.try(() => JSON.stringify(PiContext.bodyOf(request, model)))
  if (Result.isFailure(body)) {
    const reason = new InvalidRequest({ detail: "The request cannot be written as JSON" })
    return Stream.fail(new ProviderError({ provider, reason }))
  }
  const attempt = (): Reconnect.Attempt => {
    const decoder = new PiReader(provider, request.model)
    const outgoing = { client, provider, url, headers, token, body: body.success, timeouts, decoder }
    return { answer: Connection.answer(outgoing), hasBegun: () => decoder.hasBegun }
  }
  return Reconnect.reconnecting(attempt, reconnect)
}

const describe = (provider: string, model: string): Schema.JsonObject => {
  const slash = model.indexOf("/")
  return {
    id: model.slice(slash + 1),
    name: model.slice(slash + 1),
    api: "",
    provider: slash === -1 ? provider : model.slice(0, slash),
    baseUrl: "",
    reasoning: true,
    input: ["text", "image"],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: 200_000,
    maxTokens: 32_000
  }
}
