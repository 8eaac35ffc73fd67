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
import * as AccessLog from "./AccessLog.ts"
import * as EventStream from "../EventStream.ts"
import { Repeats } from "./Repeats.ts"
import type { Body, Route } from "../Routes.ts"
import { Runs, type Service } from "../../runs/Runs.ts"

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
          yield* AccessLog.note(started.runId)
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
