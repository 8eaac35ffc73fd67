/**
 * A client of a server of agents: it opens sessions, whose agents run at the server.
 *
 * **When to use**
 *
 * Use it in another process than that of the agents: a page, a program, another service. It needs only `fetch`.
 *
 * **Details**
 *
 * - The events of a run come over one stream, whatever happens to its connections: the client reconnects with `Last-Event-ID`, and each
 *   event comes once, in order. A reader that comes late gets whole messages in place of deltas.
 * - A request for a run has an idempotency key, so that the client sends it again when it got no response.
 * - A run belongs to the server. Interrupting `prompt` and leaving `stream` cancel it, leaving `watch` and `start` do not, and a client that
 *   dies cancels nothing.
 * - Failures are typed: the problems of the server (`Problem` of `effect-agent/api`), `ServerUnreachable`, and `UnexpectedResponse` for a
 *   server of another version. Events that this version does not know are left out.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { Api, Authorization } from "../api/Api.ts"
import type * as Payload from "../api/Payload.ts"
import type * as Problem from "../api/Problem.ts"
import type { Refused } from "./ClientError.ts"
import * as Link from "./internal/Link.ts"
import * as OpenSession from "./internal/OpenSession.ts"
import type { Positioned, RunPage } from "../runs/Runs.ts"
import type { RemoteAgent } from "./RemoteAgent.ts"
import * as RunEvents from "./internal/RunEvents.ts"

export type { Positioned, RunPage } from "../runs/Runs.ts"

/**
 * The options of a client.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The token of the server. */
  readonly token: Redacted.Redacted
  /**
   * The number of reconnects to the events of a run and the delays between them. It begins anew with each event. Default: {@link defaultReconnect}.
   */
  readonly reconnect?: Schedule.Schedule<unknown, unknown>
  /** The number of repetitions of a request that may be sent twice, and the delays between them. Default: {@link defaultRetry}. */
  readonly retry?: Schedule.Schedule<unknown, unknown>
  /** The time without a byte after which the client reconnects, a duration. A server pings every 15 seconds. Default 45 seconds. */
  readonly silence?: Duration.Input
  /**
   * Whether requests carry the trace of the client, in headers that a page of another origin may not send. Default `false`.
   */
  readonly propagateTrace?: boolean
}

/**
 * Reconnects for 5 minutes, after 0.1 seconds and up to 5, which vary by a fifth at random.
 *
 * @category constants
 * @since 0.2.0
 */
export const defaultReconnect: Schedule.Schedule<unknown, unknown> = Schedule.min([
  Schedule.exponential("100 millis"),
  Schedule.spaced("5 seconds")
]).pipe(Schedule.jittered, Schedule.upTo({ duration: "5 minutes" }))

/**
 * Three repetitions, after about 0.1, 0.2 and 0.4 seconds.
 *
 * @category constants
 * @since 0.2.0
 */
export const defaultRetry: Schedule.Schedule<unknown, unknown> = Schedule.exponential("100 millis").pipe(
  Schedule.jittered,
  Schedule.upTo({ times: 3 })
)

/**
 * A page of the list of sessions.
 *
 * @category options
 * @since 0.2.0
 */
export interface ListOptions {
  /** The most sessions of the page, from 1 to 999. Default: that of the server. */
  readonly limit?: number
  /** `nextCursor` of the page before. Default: the first page. */
  readonly cursor?: string
  /** A part of the titles. Default: all sessions. */
  readonly query?: string
}

/**
 * The functions of the service that are about sessions.
 *
 * @category models
 * @since 0.2.0
 */
export interface Sessions {
  /** Makes a session, and succeeds with its id. */
  readonly create: (
    options?: Payload.CreateSession
  ) => Effect.Effect<string, Refused | Problem.SessionExists | Problem.Draining>
  /** Lists sessions, those with the newest entries first. */
  readonly list: (page?: ListOptions) => Effect.Effect<Payload.Sessions, Refused>
  /** Reads a session with its entries. */
  readonly get: (
    sessionId: string
  ) => Effect.Effect<Payload.SessionContents, Refused | Problem.SessionNotFound>
  /** Changes the name or the model of a session. The model changes while the session has no run. */
  readonly update: (
    sessionId: string,
    changes: Payload.UpdateSession
  ) => Effect.Effect<
    void,
    Refused | Problem.SessionNotFound | Problem.SessionLocked | Problem.RunGoesOn | Problem.Draining
  >
  /** Removes a session and its runs. */
  readonly remove: (
    sessionId: string
  ) => Effect.Effect<void, Refused | Problem.SessionNotFound | Problem.SessionLocked | Problem.RunGoesOn>
  /** Makes a session with the conversation of another one, up to an entry if one is given, and succeeds with its id. */
  readonly fork: (
    sessionId: string,
    options?: Payload.ForkSession
  ) => Effect.Effect<string, Refused | Problem.SessionNotFound | Problem.Draining>
}

/**
 * The functions of the service that are about runs.
 *
 * @category models
 * @since 0.2.0
 */
export interface Runs {
  /** Lists the runs of a session, oldest first. */
  readonly list: (
    sessionId: string
  ) => Effect.Effect<ReadonlyArray<Payload.Run>, Refused | Problem.SessionNotFound>
  /** Lists the runs of all sessions, the newest first. A page may have fewer runs than its limit and be followed by others. */
  readonly listAll: (page?: RunPage) => Effect.Effect<Payload.Runs, Refused>
  /** Reads the state of a run. */
  readonly get: (runId: string) => Effect.Effect<Payload.Run, Refused | Problem.RunNotFound>
  /**
   * The events of a run behind the position `after` (default 0: from its start), until the run is over. Leaving the stream does not cancel
   * the run, and the position of the last event is where another watcher begins.
   */
  readonly events: (runId: string, after?: number) => Stream.Stream<Positioned, Refused | Problem.RunNotFound>
  /** Releases a run that is paused, also one that the server has parked. */
  readonly resume: (
    runId: string,
    reason?: string
  ) => Effect.Effect<void, Refused | Problem.RunNotFound | Problem.RunOver | Problem.RunNotReady>
  /** Cancels a run, and does not wait for its end. */
  readonly cancel: (
    runId: string,
    reason?: string
  ) => Effect.Effect<void, Refused | Problem.RunNotFound | Problem.RunOver | Problem.RunNotReady>
  /** Removes a run that has ended, and its events. */
  readonly remove: (runId: string) => Effect.Effect<void, Refused | Problem.RunNotFound | Problem.RunGoesOn>
}

/**
 * The functions of the service.
 *
 * **Details**
 *
 * An operation has the name that it has in `Runs` of `effect-agent/runs` and in the API.
 *
 * @category models
 * @since 0.2.0
 */
export interface Service {
  /** Succeeds if the server can take a run. */
  readonly health: Effect.Effect<void, Refused | Problem.Draining>
  /**
   * Opens a session until the scope closes. Its runs are those of the server: closing the scope leaves them, but interrupts the prompts
   * that wait for them.
   */
  readonly open: (
    sessionId: string
  ) => Effect.Effect<RemoteAgent, Refused | Problem.SessionNotFound, Scope.Scope>
  /** The sessions of the server. */
  readonly sessions: Sessions
  /** The runs of the server. */
  readonly runs: Runs
}

/**
 * The client of a server.
 *
 * **Example** (Asking an agent at a server)
 *
 * ```ts
 * import { Effect, Redacted } from "effect"
 * import { AgentClient } from "effect-agent/client"
 * import { FetchHttpClient } from "effect/http"
 *
 * export const program = Effect.gen(function* () {
 *   const client = yield* AgentClient.AgentClient
 *   const agent = yield* client.open(yield* client.sessions.create())
 *   const { text } = yield* agent.prompt("Do I need a coat?")
 *   return text
 * }).pipe(
 *   Effect.scoped,
 *   Effect.provide(AgentClient.layer("http://127.0.0.1:4111", { token: Redacted.make("secret") })),
 *   Effect.provide(FetchHttpClient.layer)
 * )
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export class AgentClient extends Context.Service<AgentClient, Service>()("effect-agent/client/AgentClient") {}

/**
 * Makes a client of the server at an address, such as `"http://127.0.0.1:4111"`.
 *
 * **Example** (A server in the process)
 *
 * ```ts
 * import { Effect, Layer, Redacted } from "effect"
 * import { Agent } from "effect-agent"
 * import { AgentClient } from "effect-agent/client"
 * import { Agents, LiveRuns, RunLogStore, Server } from "effect-agent/server"
 * import { MemorySessionStore } from "effect-agent/sessions"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import { FetchHttpClient } from "effect/http"
 *
 * const agents = Agents.layer(({ session }) => Agent.make({ model: "any", session })).pipe(
 *   Layer.provide(ScriptedProvider.layer([ScriptedProvider.text("Yes.")]))
 * )
 * const RunsLive = LiveRuns.layer().pipe(
 *   Layer.provide([agents, MemorySessionStore.layer(), RunLogStore.layerMemory])
 * )
 * const server = Server.toWebHandler({ tokens: [Redacted.make("secret")] }, RunsLive)
 * const fetch: typeof globalThis.fetch = (input, init) => server.handler(new Request(input, init))
 *
 * const program = Effect.gen(function* () {
 *   const client = yield* AgentClient.make("http://localhost", { token: Redacted.make("secret") })
 *   const agent = yield* client.open(yield* client.sessions.create({ name: "Trip to Oslo" }))
 *   const { status, text } = yield* agent.prompt("Do I need a coat?")
 *   return [status, text]
 * }).pipe(
 *   Effect.scoped,
 *   Effect.provide(FetchHttpClient.layer),
 *   Effect.provideService(FetchHttpClient.Fetch, fetch)
 * )
 *
 * console.log(await Effect.runPromise(program)) // => [ 'completed', 'Yes.' ]
 * await server.dispose()
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (url: string, options: Options): Effect.Effect<Service, never, HttpClient.HttpClient> =>
  Effect.map(linkTo(url, options), serviceOf)

/** @internal The connection to a server. */
export const linkTo = Effect.fnUntraced(function* (
  url: string,
  options: Options
): Effect.fn.Return<Link.Link, never, HttpClient.HttpClient> {
  const { propagateTrace = false, reconnect = defaultReconnect, retry = defaultRetry, token } = options
  const authorization = HttpApiMiddleware.layerClient(Authorization, ({ next, request }) =>
    next(HttpClientRequest.bearerToken(request, token))
  )
  const transformClient = (client: HttpClient.HttpClient) =>
    HttpClient.transform(client, (request) =>
      Effect.provideService(request, HttpClient.TracerPropagationEnabled, propagateTrace)
    )
  const api = yield* Effect.provide(HttpApiClient.make(Api, { baseUrl: url, transformClient }), authorization)
  return { api, reconnect, retry, silence: options.silence ?? "45 seconds" }
})

const because = (reason: string | undefined) => ({ payload: reason === undefined ? {} : { reason } })

/** @internal The functions of the service over a connection. */
export const serviceOf = (link: Link.Link): Service => ({
  health: Effect.asVoid(Link.called(link.api.health({}))),
  open: (sessionId) => OpenSession.open(link, sessionId),
  sessions: sessionsOf(link),
  runs: runsOf(link)
})

const sessionsOf = (link: Link.Link): Sessions => {
  const { sessions } = link.api
  const of = (sessionId: string) => ({ params: { sessionId } })
  return {
    create: (payload = {}) =>
      Effect.map(
        Link.once((once) => Link.repeated(link, sessions.create({ payload, ...once }))),
        ({ sessionId }) => sessionId
      ),
    list: (page = {}) => Link.repeated(link, sessions.list({ query: queryOf(page) })),
    get: (sessionId) => Link.repeated(link, sessions.get(of(sessionId))),
    update: (sessionId, payload) =>
      Link.once((once) => Link.repeated(link, sessions.update({ ...of(sessionId), payload, ...once }))),
    remove: (sessionId) => Link.once((once) => Link.called(sessions.remove({ ...of(sessionId), ...once }))),
    fork: (sessionId, payload = {}) =>
      Effect.map(
        Link.once((once) => Link.called(sessions.fork({ ...of(sessionId), payload, ...once }))),
        (fork) => fork.sessionId
      )
  }
}

const runsOf = (link: Link.Link): Runs => {
  const { runs } = link.api
  const of = (runId: string) => ({ params: { runId } })
  return {
    list: (sessionId) =>
      Effect.map(Link.repeated(link, runs.list({ params: { sessionId } })), ({ items }) => items),
    listAll: (page = {}) => Link.repeated(link, runs.listAll({ query: queryOf(page) })),
    get: (runId) => Link.repeated(link, runs.get(of(runId))),
    events: (runId, after) => RunEvents.events(link, runId, after),
    resume: (runId, reason) =>
      Link.once((once) => Link.called(runs.resume({ ...of(runId), ...because(reason), ...once }))),
    cancel: (runId, reason) =>
      Link.once((once) => Link.repeated(link, runs.cancel({ ...of(runId), ...because(reason), ...once }))),
    remove: (runId) => Link.once((once) => Link.called(runs.remove({ ...of(runId), ...once })))
  }
}

/** The members of a page in the query of a request. */
const queryOf = <P extends { readonly limit?: number }>({ limit, ...page }: P) => ({
  ...page,
  ...(limit === undefined ? {} : { limit: String(limit) })
})

/**
 * Makes a layer of a client of the server at an address.
 *
 * **Details**
 *
 * The layer needs an `HttpClient`. A page in a browser takes `FetchHttpClient.layer`, and the server must allow its origin.
 *
 * **Example** (Watching a run that goes on without its watcher)
 *
 * ```ts
 * import { Effect, Layer, Redacted, Stream } from "effect"
 * import { Agent } from "effect-agent"
 * import { AgentClient } from "effect-agent/client"
 * import { Agents, LiveRuns, RunLogStore, Server } from "effect-agent/server"
 * import { MemorySessionStore } from "effect-agent/sessions"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import { FetchHttpClient } from "effect/http"
 *
 * const agents = Agents.layer(({ session }) => Agent.make({ model: "any", session })).pipe(
 *   Layer.provide(ScriptedProvider.layer([ScriptedProvider.text("Yes.")]))
 * )
 * const RunsLive = LiveRuns.layer().pipe(
 *   Layer.provide([agents, MemorySessionStore.layer(), RunLogStore.layerMemory])
 * )
 * const server = Server.toWebHandler({ tokens: [Redacted.make("secret")] }, RunsLive)
 * const fetch: typeof globalThis.fetch = (input, init) => server.handler(new Request(input, init))
 *
 * const program = Effect.gen(function* () {
 *   const client = yield* AgentClient.AgentClient
 *   const agent = yield* client.open(yield* client.sessions.create())
 *   const { runId } = yield* agent.start("Do I need a coat?")
 *   const first = yield* client.runs.events(runId).pipe(Stream.take(3), Stream.runCollect)
 *   const rest = yield* Stream.runCollect(client.runs.events(runId, first.at(-1)?.position))
 *   return [first.map(({ position }) => position), rest.at(-1)?.event._tag]
 * }).pipe(
 *   Effect.scoped,
 *   Effect.provide(AgentClient.layer("http://localhost", { token: Redacted.make("secret") })),
 *   Effect.provide(FetchHttpClient.layer),
 *   Effect.provideService(FetchHttpClient.Fetch, fetch)
 * )
 *
 * console.log(await Effect.runPromise(program)) // => [ [ 1, 2, 3 ], 'RunEnd' ]
 * await server.dispose()
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (
  url: string,
  options: Options
): Layer.Layer<AgentClient, never, HttpClient.HttpClient> => Layer.effect(AgentClient, make(url, options))
