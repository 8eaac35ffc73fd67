/**
 * The server: the HTTP API over `Runs`, behind its guards.
 *
 * @since 0.2.0
 */
import * as ByteSize from "effect/ByteSize"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerRespondable from "effect/http/HttpServerRespondable"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Problem from "../api/Problem.ts"
import type { Provider } from "../Provider.ts"
import { Admission } from "./internal/Admission.ts"
import { Guards, hostNameOf, loopback, Cors, originOf, matching, routeTable } from "./internal/Guards.ts"
import * as Handlers from "./internal/Handlers.ts"
import * as OpenApiPage from "./internal/OpenApiPage.ts"
import * as ProxyRoutes from "./ProxyRoutes.ts"
import type { Route } from "./Routes.ts"
import { Runs } from "../runs/Runs.ts"
import * as Trace from "../runs/Trace.ts"
import * as UiRoutes from "./UiRoutes.ts"

/**
 * A limit on the requests of a token.
 *
 * @category options
 * @since 0.2.0
 */
export interface RateLimit {
  /** The most requests in the window. */
  readonly requests: number
  /** The length of the window, a duration. Default 1 minute. */
  readonly window?: Duration.Input
}

/**
 * The options of a server.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /**
   * The tokens, of which each request but that of `/health` has one, or an effect that gives those of the moment for each request. An empty
   * one lets no request through.
   */
  readonly tokens: ReadonlyArray<Redacted.Redacted> | Effect.Effect<ReadonlyArray<Redacted.Redacted>>
  /** The names of hosts that the server answers to beside those of the loopback address. Default none. */
  readonly hosts?: ReadonlyArray<string>
  /** The origins whose pages may use the server beside its own, such as `"https://example.com"`. Default none. */
  readonly origins?: ReadonlyArray<string>
  /** The headers that pages of another origin may send beside those of the routes, such as `"traceparent"`. Default none. */
  readonly allowHeaders?: ReadonlyArray<string>
  /** The headers of responses that pages of another origin may read beside those of the routes. Default none. */
  readonly exposeHeaders?: ReadonlyArray<string>
  /** The largest body of a request in bytes. Default 10 MiB. */
  readonly maxBodySize?: number
  /** The most bytes of all bodies that are read at one time; a request beyond them gets 503 with `Retry-After`. Default 256 MiB. */
  readonly maxBodiesSize?: number
  /** The time in which the body of a request has to come, a duration. Default 1 minute. */
  readonly bodyTime?: Duration.Input
  /** The limit on the requests of a token. Default: none. */
  readonly rate?: RateLimit
  /**
   * The limit on the requests with a wrong token of an address. A right token passes always, since all clients behind a proxy have one address.
   * Default: 60 in 1 minute.
   */
  readonly wrongTokens?: RateLimit
  /** Whether the server logs each request, with the run that it is about, at the level of information. Default `false`. */
  readonly accessLog?: boolean
  /** The routes for user interfaces, or whether there are some: see `UiRoutes`. Default `true`. */
  readonly ui?: boolean | UiRoutes.Options
  /** The provider and the models that clients may ask with the keys of the server: see `ProxyRoutes`. Default: they may ask none. */
  readonly proxy?: ProxyRoutes.Options & { readonly provider: Provider["Service"] }
  /** Routes beside these. One of the same method and path takes the place of another one. Default none. */
  readonly routes?: ReadonlyArray<Route>
  /** The time that runs get to end by themselves when the server is released, a duration. Default 10 seconds. */
  readonly grace?: Duration.Input
}

type App = Effect.Effect<HttpServerResponse, never, HttpServerRequest | Scope.Scope>

/**
 * Makes the server as an effect for any runtime of HTTP.
 *
 * **Example** (Answering one request)
 *
 * ```ts
 * import { Effect, Layer, Redacted } from "effect"
 * import { HttpServerRequest } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { Agents, LiveRuns, RunLogStore, Server } from "effect-agent/server"
 * import { MemorySessionStore } from "effect-agent/sessions"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const agents = Agents.layer(({ session }) => Agent.make({ model: "any", session })).pipe(
 *   Layer.provide(ScriptedProvider.layer([]))
 * )
 * const RunsLive = LiveRuns.layer().pipe(
 *   Layer.provide([agents, MemorySessionStore.layer(), RunLogStore.layerMemory])
 * )
 *
 * const request = HttpServerRequest.fromWeb(new Request("http://localhost/health"))
 * const program = Effect.gen(function* () {
 *   const app = yield* Server.make({ tokens: [Redacted.make("secret")] })
 *   const response = yield* Effect.provideService(app, HttpServerRequest.HttpServerRequest, request)
 *   return response.status
 * }).pipe(Effect.provide(RunsLive), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => 200
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (options: Options): Effect.Effect<App, never, Runs | Scope.Scope> =>
  Effect.gen(function* () {
    const { hosts = [], maxBodySize = 10_485_760, origins = [], rate, tokens } = options
    const { allowHeaders = [], exposeHeaders = [] } = options
    const beside = yield* routesOf(options)
    const routes = [...beside, OpenApiPage.document(beside)]
    const guards = new Guards({
      hosts: [...loopback, ...hosts.map(hostNameOf)],
      cors: new Cors({ origins: origins.map(originOf), allowHeaders, exposeHeaders }),
      methods: routeTable([...routes, OpenApiPage.root])
    })
    const admission = new Admission({
      tokens: Effect.isEffect(tokens) ? tokens : Effect.succeed(tokens),
      maxBodySize,
      maxBodiesSize: options.maxBodiesSize ?? 268_435_456,
      bodyTime: options.bodyTime ?? "1 minute",
      rate,
      wrongTokens: options.wrongTokens ?? { requests: 60 }
    })
    const all = Layer.mergeAll(
      Handlers.layer(admission),
      Handlers.beside(routes, admission),
      OpenApiPage.layer
    ).pipe(Layer.provide(HttpServer.layerServices))
    const router = yield* Effect.provideService(
      HttpRouter.toHttpEffect(all),
      HttpRouter.RouterConfig,
      matching
    )
    const app = Trace.ofRequest(Effect.catchCause(router, (cause) => broken(guards, cause))).pipe(
      guards.before,
      Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBodySize))
    )
    return options.accessLog === true ? Handlers.logged(app) : app
  })

/** The routes beside those of the API. */
const routesOf = ({ proxy, routes = [], ui = true }: Options) =>
  Effect.gen(function* () {
    const own = [
      ...(ui === false ? [] : yield* UiRoutes.makeWith(ui === true ? {} : ui)),
      ...(proxy === undefined ? [] : ProxyRoutes.make(proxy.provider, proxy))
    ]
    const isReplaced = ({ method, path }: Route) =>
      routes.some((route) => route.method === method && route.path === path)
    return [...own.filter((route) => !isReplaced(route)), ...routes]
  })

/** Answers a request that has no route, or whose route died. */
const broken = (guards: Guards, cause: Cause.Cause<unknown>) => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
  const error = Cause.squash(cause)
  if (HttpServerRespondable.isRespondable(error) && isMissing(error)) return guards.missed
  return Effect.andThen(
    Effect.logError("A route died", cause),
    HttpServerRespondable.toResponse(new Problem.InternalError({}))
  )
}

const isMissing = (error: object): boolean =>
  "reason" in error &&
  typeof error.reason === "object" &&
  error.reason !== null &&
  "_tag" in error.reason &&
  error.reason._tag === "RouteNotFound"

/**
 * Serves the API with an `HttpServer`.
 *
 * **Details**
 *
 * When the layer is released, it first drains the runs: new ones are refused, those that work get `grace`, and the process lets go of the
 * others. Then the `HttpServer` has no open response to wait for.
 *
 * **Example** (Serving with Node)
 *
 * ```ts
 * import { NodeHttpServer } from "@effect/platform-node"
 * import { Layer, Redacted } from "effect"
 * import { Server } from "effect-agent/server"
 * import { createServer } from "node:http"
 *
 * export const ServerLive = Server.layer({ tokens: [Redacted.make("secret")], grace: "10 seconds" }).pipe(
 *   Layer.provide(NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 4111 }))
 * )
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (options: Options): Layer.Layer<never, never, HttpServer.HttpServer | Runs> => {
  // Built behind the server, so that it is released before: the server waits for its open responses.
  const drained = Layer.effectDiscard(
    Effect.flatMap(Runs, ({ drain }) => Effect.addFinalizer(() => drain(options.grace ?? "10 seconds")))
  )
  const served = Layer.unwrap(Effect.map(make(options), (app) => HttpServer.serve(app)))
  return Layer.provideMerge(drained, served)
}

/**
 * Makes a handler of web requests, for runtimes that have `Request` and `Response`.
 *
 * **Details**
 *
 * The runtime of the requests is that of the layer. `dispose` releases it, which lets go of the runs that have not ended.
 *
 * **Example** (Answering a web request)
 *
 * ```ts
 * import { Layer, Redacted } from "effect"
 * import { Agent } from "effect-agent"
 * import { Agents, LiveRuns, RunLogStore, Server } from "effect-agent/server"
 * import { MemorySessionStore } from "effect-agent/sessions"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const agents = Agents.layer(({ session }) => Agent.make({ model: "any", session })).pipe(
 *   Layer.provide(ScriptedProvider.layer([]))
 * )
 * const RunsLive = LiveRuns.layer().pipe(
 *   Layer.provide([agents, MemorySessionStore.layer(), RunLogStore.layerMemory])
 * )
 *
 * const { dispose, handler } = Server.toWebHandler({ tokens: [Redacted.make("secret")] }, RunsLive)
 * const response = await handler(new Request("http://localhost/sessions"))
 * console.log(response.status) // => 401
 * await dispose()
 * ```
 *
 * @category converting
 * @since 0.2.0
 */
export const toWebHandler = <E>(
  options: Options,
  runs: Layer.Layer<Runs, E>
): {
  readonly handler: (request: Request) => Promise<Response>
  readonly dispose: () => Promise<void>
} => {
  const App = Context.Service<App>("effect-agent/server/Server/App")
  const made = Layer.provide(Layer.effect(App, make(options)), runs)
  return HttpEffect.toWebHandlerLayerWith(made, {
    toHandler: (context) => Effect.succeed(Context.get(context, App))
  })
}
