/**
 * Spans of requests without secrets, which may occur in the response of a server and in the errors of a client.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Tracer from "effect/Tracer"
import type { Redact } from "./secrets.ts"

/** A tracer that redacts all texts. */
export const redacting = (tracer: Tracer.Tracer, redact: Redact): Tracer.Tracer =>
  Tracer.make({
    span: (options) => redactingSpan(tracer.span(options), redact),
    ...(tracer.context === undefined ? {} : { context: tracer.context })
  })

/** A proxy, because exporters store their own members in a span. */
const redactingSpan = (span: Tracer.Span, redact: Redact): Tracer.Span => {
  const clean = (value: unknown): unknown => (typeof value === "string" ? redact(value) : value)
  const overrides = {
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
      const member: unknown = Reflect.get(Object.hasOwn(overrides, name) ? overrides : target, name)
      return typeof member === "function" ? member.bind(target) : member
    }
  })
}

/** Keeps only the message of a failure, because errors contain the request with its headers. */
const cleanExit = (exit: Exit.Exit<unknown, unknown>, redact: Redact): Exit.Exit<unknown, unknown> => {
  if (Exit.isSuccess(exit)) return Exit.void
  if (Cause.hasInterruptsOnly(exit.cause)) return exit
  const failure = Cause.squash(exit.cause)
  const error = new Error(redact(failure instanceof Error ? failure.message : String(failure)))
  if (failure instanceof Error) error.name = failure.name
  return Exit.fail(error)
}
