/**
 * A server for clients of pi's `streamProxy`: `POST /api/stream`, with the provider of the application.
 *
 * **When to use**
 *
 * Use where agents of `@earendil-works/pi-agent-core` ask models through a server of this package.
 *
 * **Details**
 *
 * The body is `{ model, context, options }` of pi, the answer its proxy events, which have no `partial`. Of the model only `provider` and
 * `id` count; `samplingParams`, `headers`, `metadata` and `transport` do not.
 *
 * **Gotchas**
 *
 * pi has no blocks for sources, media and tools of vendors: they are left out, and media become a text.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as HttpEffect from "effect/http/HttpEffect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import type { ModelEvent } from "../ModelEvent.ts"
import { type ModelRequest, Provider } from "../Provider.ts"
import type { ProviderError } from "../ProviderError.ts"
import * as Admission from "./internal/Admission.ts"
import * as Handling from "./internal/Handling.ts"
import type { Options } from "./ModelStream.ts"
import * as PiBody from "./internal/PiBody.ts"
import { PiWriter } from "./internal/PiWriter.ts"

export type { Options } from "./ModelStream.ts"

/**
 * Decodes the body of pi's request, and checks its model.
 *
 * **Details**
 *
 * `body` is the JSON value of the body. The model of the request is `provider/id`, or `id`, of the models of the server.
 *
 * **Example** (Reading a request of pi)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { PiStream } from "effect-agent/proxy"
 *
 * const body = { model: { provider: "openai", id: "gpt-5.4-mini" }, context: { systemPrompt: "Be brief.", messages: [] } }
 * const request = await Effect.runPromise(PiStream.decode(body, { models: ["openai/gpt-5.4-mini"] }))
 *
 * console.log(request.model, request.system) // => openai/gpt-5.4-mini Be brief.
 * ```
 *
 * @category decoding
 * @since 0.2.0
 */
export const decode = (
  body: unknown,
  { models }: Pick<Options, "models">
): Effect.Effect<ModelRequest, Admission.InvalidBody | Admission.ModelForbidden> =>
  Effect.flatMap(Handling.decoded(decodeBody(body)), (read) => {
    const { id, provider } = read.model
    const whole = Admission.admit(PiBody.toRequest(read, `${provider}/${id}`), models)
    return Effect.fromResult(Result.orElse(whole, () => Admission.admit(PiBody.toRequest(read, id), models)))
  })

const decodeBody = Schema.decodeUnknownResult(PiBody.Body)

/**
 * Encodes the events of an answer as those of pi's proxy.
 *
 * **Details**
 *
 * The stream does not fail: a failure becomes the event `error`, and so does an answer that the vendor refused or that ended without
 * `Finish`. Texts of errors lose everything that looks like a key.
 *
 * **Example** (Encoding an answer)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { type ModelEvent } from "effect-agent"
 * import { PiStream } from "effect-agent/proxy"
 *
 * const events: ReadonlyArray<ModelEvent.ModelEvent> = [{ _tag: "TextStart", contentIndex: 0 }]
 * const program = PiStream.encode(Stream.fromIterable(events)).pipe(Stream.decodeText, Stream.mkString)
 *
 * const [start] = (await Effect.runPromise(program)).split("\n")
 * console.log(start) // => data: {"type":"start"}
 * ```
 *
 * @category encoding
 * @since 0.2.0
 */
export const encode = <R>(
  events: Stream.Stream<ModelEvent, ProviderError, R>
): Stream.Stream<Uint8Array, never, R> => Handling.frames(events, () => new PiWriter())

/**
 * Handles a request of pi's `streamProxy` with the provider of the application.
 *
 * **Gotchas**
 *
 * It checks no token. Mount it behind the guards of the application, since each request costs money.
 *
 * **Example** (Mounting the route)
 *
 * ```ts
 * import { HttpRouter } from "effect/http"
 * import { PiStream } from "effect-agent/proxy"
 *
 * const route = HttpRouter.add("POST", "/api/stream", PiStream.handler({ models: ["openai/gpt-5.4-mini"] }))
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
  Provider | HttpServerRequest.HttpServerRequest
> => Handling.ask(options, decode, encode)

/**
 * Makes a handler of web requests.
 *
 * **Details**
 *
 * It does what {@link handler} does.
 *
 * **Example** (Handling a web request)
 *
 * ```ts
 * import { PiStream } from "effect-agent/proxy"
 * import { LocalRules } from "effect-agent/providers"
 *
 * const handle = PiStream.toWebHandler(LocalRules.provider, { models: ["local/rules"] })
 *
 * const request = new Request("http://127.0.0.1/api/stream", { method: "POST", body: "{}" })
 * console.log((await handle(request)).status) // => 415
 * ```
 *
 * @category converting
 * @since 0.2.0
 */
export const toWebHandler = (
  provider: Provider["Service"],
  options: Options
): ((request: Request) => Promise<Response>) =>
  HttpEffect.toWebHandler(Effect.provideService(handler(options), Provider, provider))
