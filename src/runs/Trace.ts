/**
 * The place of a run in a trace: that of its request, also where the run begins later or in another process.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Headers from "effect/http/Headers"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"

const spanOf = (traceparent: string): Option.Option<Tracer.ExternalSpan> =>
  HttpTraceContext.w3c(Headers.fromInput({ traceparent }))

/** Runs the work for a request in the trace that its headers name. */
export const ofRequest = <A, E, R>(app: Effect.Effect<A, E, R>) =>
  Effect.flatMap(HttpServerRequest, ({ headers }) =>
    Option.match(HttpTraceContext.fromHeaders(headers), {
      onNone: () => app,
      onSome: (span) => Effect.withParentSpan(app, span)
    })
  )

/** The span around, as the header `traceparent` has it. Spans that no tracer exports do not count. */
export const current: Effect.Effect<string | undefined> = Effect.contextWith(
  (context: Context.Context<never>) => {
    const isExported = Context.get(context, Tracer.Tracer) !== Tracer.nativeTracer
    let span = Option.getOrUndefined(Context.getOption(context, Tracer.ParentSpan))
    while (span?._tag === "Span" && !isExported) span = Option.getOrUndefined(span.parent)
    if (span === undefined) return Effect.undefined
    return Effect.succeed(`00-${span.traceId}-${span.spanId}-${span.sampled ? "01" : "00"}`)
  }
)

/** Runs work in a trace, or in none: the spans around are those of another request. */
export const joined = <A, E>(
  traceparent: string | undefined,
  work: Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  const span = traceparent === undefined ? Option.none() : spanOf(traceparent)
  return Option.isSome(span)
    ? Effect.withParentSpan(work, span.value)
    : Effect.updateContext(work, (context: Context.Context<never>) =>
        Context.omit(Tracer.ParentSpan)(context)
      )
}
