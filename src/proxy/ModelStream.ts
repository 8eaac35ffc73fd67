/**
 * The server of `ProxyProvider`: `POST /model/stream`, for servers that have the keys of vendors.
 *
 * **Details**
 *
 * The body of a request is `{ request: ModelRequest }`. The answer is server-sent events: `event:` is the tag of a `ModelEvent`, `data:`
 * the whole event as JSON. A failure is `event: error` with the encoded `ProviderError`, and the last event.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import * as HttpEffect from "effect/http/HttpEffect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import { ModelMessage, VendorMembers } from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import * as Provider from "../Provider.ts"
import type { ProviderError } from "../ProviderError.ts"
import { ModelOptions } from "../RunOptions.ts"
import * as EventFrame from "./internal/EventFrame.ts"
import * as ProxyHandling from "./internal/ProxyHandling.ts"

const ToolDefinition: Schema.Codec<Provider.ToolDefinition> = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  parameters: Schema.Json,
  strict: Schema.optionalKey(Schema.Boolean),
  deferred: Schema.optionalKey(Schema.Boolean),
  inputExamples: Schema.optionalKey(Schema.Array(Schema.Record(Schema.String, Schema.Json))),
  allowedCallers: Schema.optionalKey(Schema.Array(Schema.Literals(["direct", "programmatic"]))),
  vendor: Schema.optionalKey(VendorMembers)
})

/** Clients may leave out tools and options. */
const orElse = <S extends Schema.Top>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

const RequestBody = Schema.Struct({
  model: Schema.String,
  system: Schema.optionalKey(Schema.String),
  messages: Schema.Array(ModelMessage),
  tools: orElse(Schema.Array(ToolDefinition), []),
  options: orElse(ModelOptions, {})
})

const Body = Schema.Struct({ request: RequestBody })

export { InvalidBody, ModelForbidden } from "./internal/ProxyHandling.ts"

/**
 * The options of a handler.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The ids of the models that clients may ask. */
  readonly models: ReadonlyArray<string>
  /** The most bytes of a request's body. Default 10 MiB. */
  readonly maxBody?: number | undefined
}

/**
 * Decodes the body of a request, and checks its model.
 *
 * **Details**
 *
 * `body` is the JSON value of the body. An id without the prefix of a router stands for the only model of that name. Members of
 * `options.vendor` that name another model are refused, since a provider would send them.
 *
 * **Example** (Refusing a model)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { ModelStream } from "effect-agent/proxy"
 *
 * const body = { request: { model: "large", messages: [] } }
 * const program = ModelStream.decode(body, { models: ["small"] }).pipe(
 *   Effect.as("yes"),
 *   Effect.catchTag("ModelForbidden", ({ message }) => Effect.succeed(message))
 * )
 *
 * console.log(await Effect.runPromise(program)) // => The server does not ask the model "large"
 * ```
 *
 * @category decoding
 * @since 0.2.0
 */
export const decode = (
  body: unknown,
  options: Pick<Options, "models">
): Effect.Effect<Provider.ModelRequest, ProxyHandling.InvalidBody | ProxyHandling.ModelForbidden> =>
  Effect.flatMap(ProxyHandling.decoded(decodeBody(body)), ({ request }) =>
    Effect.fromResult(ProxyHandling.admit(request, options.models))
  )

const decodeBody = Schema.decodeUnknownResult(Body)

/**
 * Encodes the events of an answer as server-sent events.
 *
 * **Details**
 *
 * The stream does not fail: a failure becomes the last event. A defect becomes a `ServerError` without its message, and the log has it.
 * Texts of errors lose everything that looks like a key.
 *
 * **Example** (Encoding an answer)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { type ModelEvent } from "effect-agent"
 * import { ModelStream } from "effect-agent/proxy"
 *
 * const events: ReadonlyArray<ModelEvent.ModelEvent> = [{ _tag: "TextDelta", contentIndex: 0, delta: "Hello" }]
 * const program = ModelStream.encode(Stream.fromIterable(events)).pipe(Stream.decodeText, Stream.mkString)
 *
 * console.log((await Effect.runPromise(program)).trim())
 * // => event: TextDelta
 * // => data: {"_tag":"TextDelta","contentIndex":0,"delta":"Hello"}
 * ```
 *
 * @category encoding
 * @since 0.2.0
 */
export const encode = <R>(
  events: Stream.Stream<ModelEvent, ProviderError, R>
): Stream.Stream<Uint8Array, never, R> =>
  ProxyHandling.frames(events, () => ({
    write: EventFrame.write,
    fail: EventFrame.writeError,
    end: () => ""
  }))

/**
 * Handles a request with the provider of the application.
 *
 * **When to use**
 *
 * Use as the handler of a route of an `HttpRouter`.
 *
 * **Details**
 *
 * A comment every 15 seconds keeps the connection alive while the vendor is silent. When the client leaves, the provider's stream is
 * left. Requests that it refuses get a problem of RFC 9457: 400, 403 for a model, 413 or 415.
 *
 * **Gotchas**
 *
 * It checks no token. Mount it behind the guards of the application, since each request costs money.
 *
 * **Example** (Mounting the route)
 *
 * ```ts
 * import { HttpRouter } from "effect/http"
 * import { ModelStream } from "effect-agent/proxy"
 *
 * const route = HttpRouter.add("POST", "/model/stream", ModelStream.handler({ models: ["openai/gpt-5.4-mini"] }))
 *
 * console.log(typeof route) // => object
 * ```
 *
 * @category running
 * @since 0.2.0
 */
export const handler = (
  options: Options
): Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  Provider.Provider | HttpServerRequest.HttpServerRequest
> => ProxyHandling.ask(options, decode, encode)

/**
 * Makes a handler of web requests, for servers such as Bun's, Deno's and those of frameworks.
 *
 * **Details**
 *
 * It does what {@link handler} does.
 *
 * **Example** (Handling a web request)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { ModelStream } from "effect-agent/proxy"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const { provider } = await Effect.runPromise(ScriptedProvider.make([ScriptedProvider.text("Hi")]))
 * const handle = ModelStream.toWebHandler(provider, { models: ["small"] })
 *
 * const request = { model: "small", messages: [], tools: [], options: {} }
 * const response = await handle(
 *   new Request("http://127.0.0.1/model/stream", {
 *     method: "POST",
 *     headers: { "content-type": "application/json" },
 *     body: JSON.stringify({ request })
 *   })
 * )
 * console.log(response.status, response.headers.get("content-type")) // => 200 text/event-stream
 * ```
 *
 * @category converting
 * @since 0.2.0
 */
export const toWebHandler = (
  provider: Provider.Provider["Service"],
  options: Options
): ((request: Request) => Promise<Response>) =>
  HttpEffect.toWebHandler(Effect.provideService(handler(options), Provider.Provider, provider))
