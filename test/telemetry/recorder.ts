/**
 * Records the telemetry of a program: its spans as a tree, its metrics in a registry of their own, and its logs.
 */
import { Cause, Effect, Exit, Logger, Metric, Option, References, Tracer } from "effect"

/** A span that ended. */
export interface Recorded {
  readonly name: string
  readonly kind: Tracer.SpanKind
  /** The names of the spans around it, innermost first. */
  readonly within: ReadonlyArray<string>
  readonly status: string
  readonly attributes: Readonly<Record<string, unknown>>
  readonly events: ReadonlyArray<readonly [name: string, attributes: Readonly<Record<string, unknown>>]>
}

const statusOf = ({ status }: Tracer.Span): string => {
  if (status._tag === "Started") return "open"
  if (Exit.isSuccess(status.exit)) return "ok"
  if (Cause.hasInterruptsOnly(status.exit.cause)) return "interrupted"
  const error = Cause.prettyErrors(status.exit.cause)[0]
  return `${error?.name}: ${error?.message}`
}

const within = ({ parent }: Tracer.AnySpan & { readonly parent?: Tracer.Span["parent"] }): Array<string> =>
  parent !== undefined && Option.isSome(parent) && parent.value._tag === "Span"
    ? [parent.value.name, ...within(parent.value)]
    : []

/** Run ids are random: the first one is `run 1`, and so on. */
const numbered = () => {
  const ids: Array<unknown> = []
  return (id: unknown): string => {
    if (!ids.includes(id)) ids.push(id)
    return `run ${ids.indexOf(id) + 1}`
  }
}

export interface Log {
  readonly message: unknown
  readonly annotations: Readonly<Record<string, unknown>>
}

/** Runs a program and returns its exit and its telemetry. */
export const record = <A, E, R>(program: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const spans: Array<Tracer.NativeSpan> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    const logs: Array<Log> = []
    const logger = Logger.make(({ fiber, message }) => {
      logs.push({ message, annotations: fiber.getRef(References.CurrentLogAnnotations) })
    })
    const registry: Metric.MetricRegistry = new Map()
    const exit = yield* Effect.exit(program).pipe(
      Effect.provide(Logger.layer([logger])),
      Effect.provideService(Tracer.Tracer, tracer),
      Effect.provideService(Metric.MetricRegistry, registry)
    )
    const runOf = numbered()
    const recorded = spans.map((span): Recorded => {
      const { "effect_agent.run.id": runId, ...attributes } = Object.fromEntries(span.attributes)
      return {
        name: span.name,
        kind: span.kind,
        within: within(span),
        status: statusOf(span),
        attributes: runId === undefined ? attributes : { ...attributes, "effect_agent.run.id": runOf(runId) },
        events: span.events.map(([name, , attributes]) => [name, attributes])
      }
    })
    const metrics = yield* Effect.provideService(Metric.snapshot, Metric.MetricRegistry, registry)
    return { exit, spans: recorded, metrics, logs }
  })

/** The span of this name. */
export const named = (spans: ReadonlyArray<Recorded>, name: string): Recorded => {
  const found = spans.find((span) => span.name === name)
  if (found === undefined)
    throw new Error(`No span ${name}. Spans: ${spans.map(({ name }) => name).join(", ")}`)
  return found
}
