/**
 * A line in the log for each request, with the run that it is about.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"

const Notes = Context.Reference<{ runId?: string }>("effect-agent/server/AccessLog", {
  defaultValue: () => ({})
})

/** Notes the run that a request is about. */
export const note = (runId: string): Effect.Effect<void> =>
  Effect.map(Notes, (notes) => {
    notes.runId = runId
  })

/** Logs a request and its response, without the query, which may be secret. */
export const logged = <E, R>(app: Effect.Effect<HttpServerResponse, E, R>) =>
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
