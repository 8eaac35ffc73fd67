/**
 * A request as it is sent arrives: a redirect would take the key to another origin. And no span, and no header of one, for
 * a request that nobody traces.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { constTrue } from "effect/Function"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Headers from "effect/http/Headers"
import * as HttpClient from "effect/http/HttpClient"
import * as UrlParams from "effect/http/UrlParams"
import * as Tracer from "effect/Tracer"
import * as Secrets from "./secrets.ts"
import * as Tracing from "./tracing.ts"

export const sent = <A, E, R>(
  execute: Effect.Effect<A, E, R>,
  redact: Secrets.Redact
): Effect.Effect<A, E, R> =>
  Effect.updateContext(execute, (context: Context.Context<R>) => {
    const init = {
      ...Context.getOrUndefined(context, FetchHttpClient.RequestInit),
      redirect: "manual" as const
    }
    const direct = Context.add(context, FetchHttpClient.RequestInit, init)
    // The loop has spans of its own around this: a parent does not say that there is a tracer.
    const tracer = Context.getOrUndefined(context, Tracer.Tracer)
    if (tracer === undefined) {
      return Context.add(direct, HttpClient.TracerDisabledWhen, constTrue)
    }
    const names = Context.get(context, Headers.CurrentRedactedNames)
    return direct.pipe(
      Context.add(Tracer.Tracer, Tracing.redacting(tracer, redact)),
      Context.add(Headers.CurrentRedactedNames, [...names, Secrets.secretName]),
      // What a query is for is not told by its names.
      Context.add(UrlParams.CurrentRedactedNames, [/^/])
    )
  })
