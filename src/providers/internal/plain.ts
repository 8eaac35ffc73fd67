/**
 * Runs a request without following redirects, which would send the key to another origin, and without a span or
 * trace headers unless a tracer is set.
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
    // The loop has its own spans, so a parent span does not prove that the application has a tracer.
    const tracer = Context.getOrUndefined(context, Tracer.Tracer)
    if (tracer === undefined) {
      return Context.add(direct, HttpClient.TracerDisabledWhen, constTrue)
    }
    const names = Context.get(context, Headers.CurrentRedactedNames)
    return direct.pipe(
      Context.add(Tracer.Tracer, Tracing.redacting(tracer, redact)),
      Context.add(Headers.CurrentRedactedNames, [...names, Secrets.secretName]),
      // The names of query parameters do not show which of them are secret.
      Context.add(UrlParams.CurrentRedactedNames, [/^/])
    )
  })
