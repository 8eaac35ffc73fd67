/**
 * The runs of a server as the service `Runs`, so that one program works with the agents of its own process and with those of a server.
 *
 * **Details**
 *
 * The failures are those of `Runs`: where the server is out of reach or refuses the client, a function fails with `StorageUnavailable`, whose
 * `detail` has the words of the failure. Where HTTP offers less than `Runs`:
 *
 * - A prompt is a text or its parts. `start` fails with `MalformedRequest` for a message, whose id the server would not keep.
 * - The server chooses the working directory: `sessions.create` fails with `MalformedRequest` for a `cwd`, and so does `sessions.list`.
 * - `known` succeeds with `undefined`. `start` with the key of an earlier prompt succeeds with the answer of that one.
 * - `cancelOnLeave` is about the watchers of this client, and a client that dies cancels nothing.
 * - The stream of a watcher also ends where the server stays out of reach. `get` succeeds with the status of the run.
 * - `drain` does nothing: the runs belong to the server.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Payload from "../api/Payload.ts"
import * as Problem from "../api/Problem.ts"
import { InvalidAnswer } from "../Approval.ts"
import { Holders, lastLeft } from "../runs/Watchers.ts"
import { type Entry, LogEntry } from "../runs/LogEntry.ts"
import * as Runs from "../runs/Runs.ts"
import * as Trace from "../runs/Trace.ts"
import * as AgentClient from "./AgentClient.ts"
import type { Refused } from "./ClientError.ts"
import * as Link from "./internal/Link.ts"
import * as RunEvents from "./internal/RunEvents.ts"

/** The failures of the connection, and those that no function of `Runs` has. */
type Lost = Exclude<Refused, Problem.MalformedRequest | Problem.KeyReused | Problem.StorageUnavailable>

const lost = new Set<Lost["_tag"]>([
  "ServerUnreachable",
  "UnexpectedResponse",
  "Misdirected",
  "OriginForbidden",
  "TokenRefused",
  "TooManyRequests",
  "UnsupportedMediaType",
  "BodyTooLarge",
  "BodyTimeout",
  "TooManyBodies"
])

const isOf =
  <T extends { readonly _tag: string }>(tags: ReadonlySet<T["_tag"]>) =>
  <E>(error: E): error is Extract<E, T> =>
    Predicate.hasProperty(error, "_tag") && [...tags].some((tag) => tag === error._tag)

const isLost = isOf<Lost>(lost)
const isReused = isOf<Problem.KeyReused>(new Set(["KeyReused"]))
const isInvalid = isOf<Problem.MalformedRequest>(new Set(["MalformedRequest"]))

const unavailable = (error: Lost | Problem.MalformedRequest | Problem.KeyReused) => {
  const said = "title" in error ? [error.title, error.detail ?? ""] : [error.message]
  return new Problem.StorageUnavailable({ detail: said.filter((text) => text !== "").join(": ") })
}

/** A request for a run. */
const reached = <A, E, R>(request: Effect.Effect<A, E, R>) =>
  Effect.catchIf(request, isLost, (error) => unavailable(error))

/** A request whose key is a new one. */
const once = <A, E, R>(request: Effect.Effect<A, E, R>) =>
  Effect.catchIf(reached(request), isReused, (error) => unavailable(error))

/** A request without a body that the server could refuse. */
const plain = <A, E, R>(request: Effect.Effect<A, E, R>) =>
  Effect.catchIf(once(request), isInvalid, (error) => unavailable(error))

const invalid = (detail: string) => Effect.fail(new Problem.MalformedRequest({ detail }))

/** A body as HTTP takes it. */
const bodyOf = <A>(schema: Schema.Codec<A, unknown>, body: unknown) =>
  Effect.catch(Schema.decodeUnknownEffect(Schema.toType(schema))(body), ({ message }) => invalid(message))

/** The members of an answer that HTTP takes. */
const answerOf = <A>(runId: string, id: string, schema: Schema.Codec<A, unknown>, answer: A) =>
  Effect.mapError(bodyOf(schema, answer), ({ detail = "" }) => new InvalidAnswer({ id, runId, detail }))

/** How often a watcher gets an empty page. */
const heartbeat = "15 seconds"

type Watching = Pick<Runs.Service, "events" | "watch">

const watching = (link: Link.Link, { cancel, get }: AgentClient.Runs): Watching => {
  const holders = new Holders()
  const held = (
    runId: string,
    events: Stream.Stream<Runs.Positioned>,
    cancelOnLeave: true | (() => boolean)
  ): Stream.Stream<Runs.Positioned> => {
    let isEnded = false
    const watched = Stream.tap(events, ({ event }) =>
      Effect.sync(() => void (isEnded ||= event._tag === "RunEnd" && event.runId === runId))
    )
    const cancelled = cancel(runId, lastLeft)
    return holders.held(runId, watched, { cancelOnLeave, cancel: cancelled, isOver: () => isEnded })
  }
  /** The events behind a position; `undefined` for a run that is over and has none there. */
  const open = Effect.fnUntraced(function* (
    runId: string,
    after: number,
    { cancelOnLeave = false, partials = false }: Runs.WatchOptions = {}
  ) {
    const run = yield* plain(get(runId))
    const events = RunEvents.events(link, runId, after).pipe(
      Stream.filter(({ event }) => partials || event._tag !== "PartialValue"),
      Stream.catch(() => Stream.empty)
    )
    if (!Payload.isGoing(run)) return Option.isNone(yield* Stream.runHead(events)) ? undefined : events
    return cancelOnLeave === false ? events : held(runId, events, cancelOnLeave)
  })
  const pages = (events: Stream.Stream<Runs.Positioned>): Stream.Stream<ReadonlyArray<Entry>> =>
    Stream.merge(
      Stream.map(events, ({ event, position }) => [new LogEntry(position, event)]),
      Stream.map(Stream.tick(heartbeat), () => []),
      { haltStrategy: "left" }
    )
  return {
    watch: (runId, after, options) =>
      Effect.map(open(runId, after, options), (events) => events && pages(events)),
    events: (runId, after, options) =>
      Effect.map(open(runId, after, options), (events = Stream.empty) => events)
  }
}

const sessions = (client: AgentClient.Sessions): Runs.Sessions => ({
  create: ({ cwd, ...options }) =>
    cwd === undefined
      ? once(client.create(options))
      : invalid("cwd: a server chooses the working directory."),
  list: ({ cwd, ...page }) =>
    cwd === undefined
      ? once(client.list(page))
      : invalid("cwd: a server lists the sessions of its working directory."),
  get: (sessionId) => plain(client.get(sessionId)),
  update: (sessionId, changes) => once(client.update(sessionId, changes)),
  remove: (sessionId) => plain(client.remove(sessionId)),
  fork: (sessionId, options) => once(client.fork(sessionId, options))
})

type ToRun = Pick<
  Runs.Service,
  "answer" | "approve" | "cancel" | "followUp" | "pause" | "resume" | "start" | "steer"
>

const toRun = (link: Link.Link, client: AgentClient.Runs): ToRun => {
  const { runs } = link.api
  const because = (reason: string | undefined) => (reason === undefined ? {} : { reason })
  const start = ({ idempotency, sessionId, trace, ...how }: Runs.Start) =>
    Effect.gen(function* () {
      const payload = yield* bodyOf(Payload.StartRun, how)
      const key = idempotency?.key ?? (yield* Link.makeKey)
      const headers = { "idempotency-key": key }
      const request = Link.repeated(link, runs.start({ params: { sessionId }, payload, headers }))
      return yield* reached(trace === undefined ? request : Trace.joined(trace, request))
    })
  return {
    start,
    steer: (runId, message, options) =>
      Effect.flatMap(bodyOf(Payload.Steer, { message, ...options }), (payload) =>
        once(Link.once((key) => Link.called(runs.steer({ params: { runId }, payload, ...key }))))
      ),
    followUp: (runId, message) =>
      Effect.flatMap(bodyOf(Payload.SendMessage, { message }), (payload) =>
        once(Link.once((key) => Link.called(runs.followUp({ params: { runId }, payload, ...key }))))
      ),
    pause: (runId, reason) =>
      plain(
        Link.once((key) =>
          Link.repeated(link, runs.pause({ params: { runId }, payload: because(reason), ...key }))
        )
      ),
    resume: (runId, reason) => plain(client.resume(runId, reason)),
    cancel: (runId, reason) => plain(client.cancel(runId, reason)),
    approve: (runId, approvalId, answer) =>
      Effect.flatMap(answerOf(runId, approvalId, Payload.AnswerApproval, answer), (payload) =>
        plain(
          Link.once((key) =>
            Link.repeated(link, runs.approve({ params: { runId, approvalId }, payload, ...key }))
          )
        )
      ),
    answer: (runId, questionId, answer) =>
      Effect.flatMap(answerOf(runId, questionId, Payload.AnswerQuestion, answer), (payload) =>
        plain(
          Link.once((key) =>
            Link.repeated(link, runs.answer({ params: { runId, questionId }, payload, ...key }))
          )
        )
      )
  }
}

/**
 * Makes the runs of the server at an address, such as `"http://127.0.0.1:4111"`.
 *
 * **Example** (The runs of a server)
 *
 * ```ts
 * import { Effect, Redacted, Stream } from "effect"
 * import { RemoteRuns } from "effect-agent/client"
 * import { FetchHttpClient } from "effect/http"
 *
 * export const program = Effect.gen(function* () {
 *   const runs = yield* RemoteRuns.make("http://127.0.0.1:4111", { token: Redacted.make("secret") })
 *   const sessionId = yield* runs.sessions.create({})
 *   const { runId } = yield* runs.start({ sessionId, prompt: "Do I need a coat?" })
 *   const events = yield* Stream.runCollect(yield* runs.events(runId, 0))
 *   return events.at(-1)?.event._tag
 * }).pipe(Effect.provide(FetchHttpClient.layer))
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = Effect.fnUntraced(function* (
  url: string,
  options: AgentClient.Options
): Effect.fn.Return<Runs.Service, never, HttpClient.HttpClient> {
  const link = yield* AgentClient.linkTo(url, options)
  const client = AgentClient.serviceOf(link)
  const list = (sessionId: string) => plain(client.runs.list(sessionId))
  return {
    health: plain(client.health),
    sessions: sessions(client.sessions),
    ...toRun(link, client.runs),
    ...watching(link, client.runs),
    known: () => Effect.undefined,
    remove: (runId) => plain(client.runs.remove(runId)),
    active: (sessionId) =>
      Effect.orElseSucceed(
        Effect.map(list(sessionId), (runs) => runs.find(Payload.isGoing)?.runId),
        () => undefined
      ),
    list,
    listAll: (page) => once(client.runs.listAll(page)),
    get: (runId) => plain(client.runs.get(runId)),
    drain: () => Effect.void
  }
})

/**
 * Makes a layer of the runs of the server at an address, which needs an `HttpClient`.
 *
 * **Example** (One program for both)
 *
 * ```ts
 * import { Effect, Layer, Redacted } from "effect"
 * import { Agent } from "effect-agent"
 * import { RemoteRuns } from "effect-agent/client"
 * import { Agents, LiveRuns, RunLogStore, Runs, Server } from "effect-agent/server"
 * import { MemorySessionStore } from "effect-agent/sessions"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import { FetchHttpClient } from "effect/http"
 *
 * const agents = Agents.layer(({ session }) => Agent.make({ model: "any", session })).pipe(
 *   Layer.provide(ScriptedProvider.layer([ScriptedProvider.text("Yes.")]))
 * )
 * const Embedded = LiveRuns.layer().pipe(
 *   Layer.provide([agents, MemorySessionStore.layer(), RunLogStore.layerMemory])
 * )
 * const server = Server.toWebHandler({ tokens: [Redacted.make("secret")] }, Embedded)
 * const fetch: typeof globalThis.fetch = (input, init) => server.handler(new Request(input, init))
 * const Remote = RemoteRuns.layer("http://localhost", { token: Redacted.make("secret") }).pipe(
 *   Layer.provide(FetchHttpClient.layer),
 *   Layer.provide(Layer.succeed(FetchHttpClient.Fetch, fetch))
 * )
 *
 * const program = Effect.gen(function* () {
 *   const runs = yield* Runs.Runs
 *   const sessionId = yield* runs.sessions.create({ sessionId: "trip" })
 *   const { status } = yield* runs.start({ sessionId, prompt: "Do I need a coat?" })
 *   return status
 * })
 *
 * console.log(await Effect.runPromise(Effect.provide(program, Remote))) // => started
 * await server.dispose()
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (
  url: string,
  options: AgentClient.Options
): Layer.Layer<Runs.Runs, never, HttpClient.HttpClient> => Layer.effect(Runs.Runs, make(url, options))
