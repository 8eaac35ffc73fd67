/**
 * Spans of requests that hold no secret: what a server sends back, and what a client says of a request, may be one.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Tracer from "effect/Tracer"
import type { Redact } from "./secrets.ts"

/** The same tracer, told everything with its secrets cut out. */
export const redacting = (tracer: Tracer.Tracer, redact: Redact): Tracer.Tracer =>
  Tracer.make({
    span: (options) => redactingSpan(tracer.span(options), redact),
    ...(tracer.context === undefined ? {} : { context: tracer.context })
  })

/** All else of a span stays what it is: exporters keep their own in it. */
const redactingSpan = (span: Tracer.Span, redact: Redact): Tracer.Span => {
  const clean = (value: unknown): unknown => (typeof value === "string" ? redact(value) : value)
  const told = {
    attribute: (key: string, value: unknown) => span.attribute(key, clean(value)),
    event: (name: string, startTime: bigint, attributes: Record<string, unknown> = {}) =>
      span.event(
        redact(name),
        startTime,
        Object.fromEntries(Object.entries(attributes).map(([key, value]) => [key, clean(value)]))
      ),
    end: (endTime: bigint, exit: Exit.Exit<unknown, unknown>) => span.end(endTime, cleanExit(exit, redact))
  }
  return new Proxy(span, {
    get: (target, name) => {
      const member: unknown = Reflect.get(Object.hasOwn(told, name) ? told : target, name)
      return typeof member === "function" ? member.bind(target) : member
    }
  })
}

/** No more than the words of a failure: an error, and an answer, holds the request with all its headers. */
const cleanExit = (exit: Exit.Exit<unknown, unknown>, redact: Redact): Exit.Exit<unknown, unknown> => {
  if (Exit.isSuccess(exit)) return Exit.void
  if (Cause.hasInterruptsOnly(exit.cause)) return exit
  const failure = Cause.squash(exit.cause)
  const told = new Error(redact(failure instanceof Error ? failure.message : String(failure)))
  if (failure instanceof Error) told.name = failure.name
  return Exit.fail(told)
}
