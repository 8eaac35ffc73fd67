/**
 * The handlers of the HTTP API: each calls `Runs`.
 */
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import type * as Etag from "effect/http/Etag"
import type { HttpPlatform } from "effect/http/HttpPlatform"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import * as Layer from "effect/Layer"
import type { Path } from "effect/Path"
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as Stream from "effect/Stream"
import { Api, Authorization } from "../../api/Api.ts"
import type * as Payload from "../../api/Payload.ts"
import * as Problem from "../../api/Problem.ts"
import * as Json from "../../internal/json.ts"
import type { Admission } from "./Admission.ts"
import * as EventStream from "../EventStream.ts"
import type { Body, Route } from "../Routes.ts"
import { Runs, type Service } from "../../runs/Runs.ts"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Exit from "effect/Exit"
import * as HttpServerRespondable from "effect/http/HttpServerRespondable"
import * as IdempotencyKeys from "../../runs/IdempotencyKeys.ts"
import * as Context from "effect/Context"

const server = HttpApiBuilder.group(
  Api,
  "server",
  Effect.fnUntraced(function* (handlers) {
    const runs = yield* Runs
    return handlers.handleAll({ health: () => Effect.as(runs.health, { status: "ok" as const }) })
  })
)

const sessions = HttpApiBuilder.group(
  Api,
  "sessions",
  Effect.fnUntraced(function* (handlers) {
    const runs = yield* Runs
    return handlers.handleAll({
      create: ({ payload }) => Effect.map(created(runs, payload), (sessionId) => ({ sessionId })),
      list: ({ query: { cursor, limit, query } }) =>
        runs.sessions.list({
          ...(cursor === undefined ? {} : { cursor }),
          ...(limit === undefined ? {} : { limit: Number(limit) }),
          ...(query === undefined ? {} : { query })
        }),
      get: ({ params }) => Effect.map(runs.sessions.get(params.sessionId), streamed),
      update: ({ params, payload }) => runs.sessions.update(params.sessionId, payload),
      remove: ({ params }) => runs.sessions.remove(params.sessionId),
      fork: ({ params, payload }) =>
        Effect.map(runs.sessions.fork(params.sessionId, payload), (sessionId) => ({ sessionId }))
    })
  })
)

/** A session as a stream: its entries together may be longer than a text can be. */
const streamed = (contents: Payload.SessionContents) =>
  HttpServerResponse.stream(Stream.encodeText(Stream.fromIterable(membersOf({ ...contents }))), {
    contentType: "application/json"
  })

function* membersOf(members: Readonly<Record<string, unknown>>): Generator<string> {
  let comma = "{"
  for (const [key, value] of Object.entries(members)) {
    yield `${comma}${JSON.stringify(key)}:`
    comma = ","
    if (key === "view" && Predicate.isObject(value)) yield* membersOf({ ...value })
    else if (Array.isArray(value)) yield* itemsOf(value)
    else yield JSON.stringify(value)
  }
  yield comma === "{" ? "{}" : "}"
}

function* itemsOf(items: ReadonlyArray<unknown>): Generator<string> {
  yield "["
  for (const [index, item] of items.entries()) yield `${index === 0 ? "" : ","}${JSON.stringify(item)}`
  yield "]"
}

/** Makes a session. One without an id gets that of its key, so that a request that comes again, also to another process, finds it. */
const created = Effect.fnUntraced(function* (runs: Service, payload: Payload.CreateSession) {
  const { headers } = yield* HttpServerRequest
  const { authorization = "", "idempotency-key": key } = headers
  if (key === undefined || payload.sessionId !== undefined) return yield* runs.sessions.create(payload)
  const sessionId = (yield* Json.hash({ key, authorization, body: yield* body })).slice(0, 32)
  return yield* Effect.catchTag(runs.sessions.create({ ...payload, sessionId }), "SessionExists", () =>
    Effect.succeed(sessionId)
  )
})

const ofRuns = HttpApiBuilder.group(
  Api,
  "runs",
  Effect.fnUntraced(function* (handlers) {
    const runs = yield* Runs
    return handlers.handleAll({
      start: ({ headers, params, payload: { prompt, ...how } }) =>
        Effect.gen(function* () {
          const key = headers["idempotency-key"]
          const started = yield* runs.start({
            sessionId: params.sessionId,
            prompt,
            ...how,
            ...(key === undefined ? {} : { idempotency: { key, body: yield* body } })
          })
          yield* noteRun(started.runId)
          return started
        }),
      list: ({ params }) => Effect.map(runs.list(params.sessionId), (items) => ({ items })),
      listAll: ({ query: { cursor, limit, status } }) =>
        runs.listAll({
          ...(cursor === undefined ? {} : { cursor }),
          ...(limit === undefined ? {} : { limit: Number(limit) }),
          ...(status === undefined ? {} : { status })
        }),
      get: ({ params }) => runs.get(params.runId),
      remove: ({ params }) => runs.remove(params.runId),
      events: ({ headers, params, query: { after, onDisconnect, partials } }) => {
        const position = Number(headers["last-event-id"] ?? after ?? 0)
        const watched = runs.watch(params.runId, position, {
          cancelOnLeave: onDisconnect === "cancel",
          partials: partials === "true"
        })
        return Effect.map(watched, (pages) =>
          pages === undefined
            ? HttpServerResponse.empty({ status: 204 })
            : EventStream.response(EventStream.bytes(pages))
        )
      },
      steer: ({ params, payload }) => runs.steer(params.runId, payload.message, payload),
      followUp: ({ params, payload }) => runs.followUp(params.runId, payload.message),
      pause: ({ params, payload }) => runs.pause(params.runId, payload?.reason),
      resume: ({ params, payload }) => runs.resume(params.runId, payload?.reason),
      cancel: ({ params, payload }) => runs.cancel(params.runId, payload?.reason),
      approve: ({ params, payload }) => runs.approve(params.runId, params.approvalId, payload),
      answer: ({ params, payload }) => runs.answer(params.runId, params.questionId, payload)
    })
  })
)

/** The body of the request, which was decoded before. */
const body = Effect.flatMap(HttpServerRequest, ({ json }) =>
  Effect.mapError(json, ({ message }) => new Problem.MalformedRequest({ detail: message }))
)

/** The body that an endpoint reads. */
const bodyOf = ({ payload }: HttpApiEndpoint.Top): Body => {
  const all = [...payload.values()].flatMap(({ schemas }): ReadonlyArray<Schema.Top> => schemas)
  if (all.length === 0) return "none"
  return all.some(({ ast }) => SchemaAST.isNull(SchemaAST.toEncoded(ast))) ? "optional" : "json"
}

/** Lets requests with a token through, once for each idempotency key. */
const authorization = (admission: Admission) => {
  const repeats = new Repeats()
  return Layer.succeed(Authorization, {
    bearer: (handler, { credential, endpoint }) =>
      admission.admit(credential, bodyOf(endpoint), repeats.once(handler, endpoint))
  })
}

/** The routes of the API. */
export const layer = (
  admission: Admission
): Layer.Layer<
  never,
  never,
  Etag.Generator | FileSystem | HttpPlatform | HttpRouter.HttpRouter | Path | Runs
> =>
  HttpApiBuilder.layer(Api).pipe(
    Layer.provide([server, sessions, ofRuns]),
    Layer.provide([authorization(admission), HttpApiMiddleware.layerProblemDetails({ includeDetails: true })])
  )

/** The routes beside the API, for requests with a token. */
export const beside = (routes: ReadonlyArray<Route>, admission: Admission) =>
  HttpRouter.addAll(
    routes.map(({ body, handler, method, path }) =>
      HttpRouter.route(
        method,
        path,
        Effect.flatMap(HttpApiBuilder.securityDecode(HttpApiSecurity.bearer), (credential) =>
          admission.admit(credential, body, handler)
        )
      )
    )
  )

// ───────────────────────── Repeats
//
// Requests that come again with their `Idempotency-Key`: they get the first answer, for 24 hours and while the process lives.
//
// The key of a prompt is that of its run, which the store keeps: see `IdempotencyKeys`.

interface Known {
  /** The hash of the body: the most answers times the largest body would fill the memory. */
  readonly hash: string
  /** The time in milliseconds until which the answer is kept. */
  readonly until: number
  /** `undefined`: the request had no effect, and the next one with the key is the first. */
  readonly answer: Deferred.Deferred<HttpServerResponse.HttpServerResponse | undefined>
}

const lifetime = 24 * 3_600_000

/** The most answers that are kept. */
const most = 10_000

/** The key of a request, with all that the request is about; `undefined` for one whose answer is not kept. */
const keyOf = (
  { headers, method, url }: HttpServerRequest,
  { identifier }: HttpApiEndpoint.Top
): string | undefined => {
  const key = headers["idempotency-key"]
  // A prompt begins a run, whose store keeps the key.
  if (key === undefined || method === "GET" || method === "HEAD" || identifier === "start") return undefined
  return JSON.stringify([headers["authorization"], method, url.split(/[?#]/, 1)[0], key])
}

export class Repeats {
  private readonly known = new Map<string, Known>()

  /** Answers a request that changes something, once for each key. */
  readonly once = <E, R>(
    app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
    endpoint: HttpApiEndpoint.Top
  ) =>
    Effect.gen({ self: this }, function* () {
      const request = yield* HttpServerRequest
      const key = keyOf(request, endpoint)
      if (key === undefined) return yield* app
      // `Admission` has read the body of an endpoint that takes one, and nothing bounds that of another.
      const body = endpoint.payload.size === 0 ? "" : yield* Effect.orElseSucceed(request.text, () => "")
      const hash = yield* IdempotencyKeys.hashOf(body)
      while (true) {
        const now = yield* Clock.currentTimeMillis
        const known = this.known.get(key)
        if (known === undefined || known.until < now) return yield* this.first(key, hash, now, app)
        if (known.hash !== hash) return yield* HttpServerRespondable.toResponse(new Problem.KeyReused({}))
        const answer = yield* Deferred.await(known.answer)
        if (answer !== undefined) return answer
      }
    })

  private first<E, R>(
    key: string,
    hash: string,
    now: number,
    app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ) {
    return Effect.suspend(() => {
      const answer = Deferred.makeUnsafe<HttpServerResponse.HttpServerResponse | undefined>()
      const [oldest] = this.known.keys()
      if (this.known.size >= most && oldest !== undefined) this.known.delete(oldest)
      this.known.delete(key)
      this.known.set(key, { hash, until: now + lifetime, answer })
      return Effect.onExit(app, (exit) => {
        const isDone = Exit.isSuccess(exit) && exit.value.status < 300
        if (!isDone) this.known.delete(key)
        return Deferred.succeed(answer, isDone ? exit.value : undefined)
      })
    })
  }
}

// ───────────────────────── Access log
//
// A line in the log for each request, with the run that it is about.

const Notes = Context.Reference<{ runId?: string }>("effect-agent/server/AccessLog", {
  defaultValue: () => ({})
})

/** Notes the run that a request is about. */
export const noteRun = (runId: string): Effect.Effect<void> =>
  Effect.map(Notes, (notes) => {
    notes.runId = runId
  })

/** Logs a request and its response, without the query, which may be secret. */
export const logged = <E, R>(app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
  Effect.gen(function* () {
    const { method, url } = yield* HttpServerRequest
    const path = url.split(/[?#]/, 1)[0] ?? ""
    const notes: { runId?: string } = {}
    const runId = /^\/runs\/([^/]+)/.exec(path)?.[1]
    if (runId !== undefined) notes.runId = runId
    const start = yield* Clock.currentTimeMillis
    const response = yield* Effect.provideService(app, Notes, notes)
    const durationMs = (yield* Clock.currentTimeMillis) - start
    yield* Effect.annotateLogs(Effect.logInfo("request"), {
      method,
      path,
      status: response.status,
      durationMs,
      ...notes
    })
    return response
  })
