/**
 * Runs the work of the engine in spans, measures it, and annotates its logs.
 *
 * The fibers of a run can be interrupted only where they wait for foreign work, so that each span that begins also ends.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import { memoize } from "effect/Function"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import { initial, progressed } from "../AgentEvent.ts"
import type { Message, ToolCall } from "../Message.ts"
import type { ModelRequest } from "../Provider.ts"
import type { Run } from "./run.ts"
import type { RunFailed, RunResult } from "../Run.ts"
import * as Telemetry from "./telemetry.ts"
import { CaptureContent } from "../Telemetry.ts"
import type { PreparedCall } from "../ToolRegistry.ts"
import type { Outcome } from "./toolOutcome.ts"

/** Executes a run in its span. */
export const run = <R>(
  run: Run,
  prompts: ReadonlyArray<Message>,
  execution: Effect.Effect<RunResult, RunFailed, R>
): Effect.Effect<RunResult, RunFailed, R> =>
  measured(Telemetry.ofRun(run, prompts), Effect.annotateLogs(execution, Telemetry.runLogs(run.id)), (span) =>
    phases(run, span)
  )

/** Adds an event to the span of a run for each phase that begins. */
const phases = (run: Run, span: Tracer.Span): void => {
  let state = initial()
  run.mailbox.trace((events) => {
    for (const event of events) {
      // The ends of messages are skipped: they change no phase, and there may be many.
      if (event.runId !== run.id || event._tag === "MessageEnd") continue
      const next = progressed(state, event)
      if (next.phase !== state.phase && next.phase !== "idle") {
        const { attributes, name } = Telemetry.phase(next.phase, event.turn)
        span.event(name, run.clock.currentTimeNanosUnsafe(), attributes)
      }
      state = next
    }
  })
}

/** Makes a model call in a span. */
export const modelCall = <E, R>(
  run: Run,
  request: ModelRequest,
  answer: Telemetry.Answer,
  ask: Effect.Effect<void, E, R>
) => measured(Telemetry.ofModelCall(run, request, answer), ask)

/** Adds an attempt that failed, and that another one follows, to the span of its model call. */
export const retry = (attempt: Telemetry.Attempt): Effect.Effect<void> =>
  Effect.clockWith((clock) =>
    Effect.map(Effect.currentSpan, (span) => {
      const { attributes, name } = Telemetry.retry(attempt)
      span.event(name, clock.currentTimeNanosUnsafe(), attributes)
    })
  ).pipe(Effect.ignore)

/** Executes a tool call in a span. */
export const toolCall = <R>(
  run: Run,
  { call, input, tool }: PreparedCall,
  execute: Effect.Effect<Outcome, never, R>
): Effect.Effect<Outcome, never, R> =>
  measured(Telemetry.ofToolCall(run, call, tool, input), withCallLogs(call, execute))

/** Annotates the logs of the work for a tool call. */
export const withCallLogs = <A, E, R>(call: ToolCall, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.annotateLogs(work, Telemetry.toolLogs(call))

/** Makes a span without duration for a tool call that does not run. */
export const refusedCall = (run: Run, call: ToolCall, outcome: Outcome): Effect.Effect<Outcome> =>
  inSpan(
    Telemetry.ofToolCall(run, call, run.toolOf(call), call.params ?? call.rawArguments),
    Effect.succeed(outcome)
  )

/** Runs work in its span, and updates its metrics. */
const measured = <A, E, R>(
  work: Telemetry.Work<A, E>,
  effect: Effect.Effect<A, E, R>,
  onSpan?: (span: Tracer.Span) => void
): Effect.Effect<A, E, R> =>
  Effect.contextWith((context: Context.Context<R>) => {
    const clock = Context.get(context, Clock.Clock)
    const startedAt = clock.monotonicTimeNanosUnsafe()
    const update = (exit: Exit.Exit<A, E>) => {
      const seconds = Number(clock.monotonicTimeNanosUnsafe() - startedAt) / 1e9
      const dimensions = work.dimensions(exit)
      const time: Telemetry.Measure = [
        work.time,
        seconds,
        { "error.type": Telemetry.ofExit(work, exit).type }
      ]
      for (const [metric, value, attributes] of [time, ...(work.measures?.(exit) ?? [])]) {
        if (value === undefined) continue
        series(context, metric, { ...dimensions, ...attributes }).updateUnsafe(value, context)
      }
    }
    return Effect.onExit(inSpan(work, effect, onSpan), (exit) => Effect.sync(() => update(exit)))
  })

/** The series of a metric, cached for each registry: `Metric.withAttributes` would compute its key at each update. */
const series = (
  context: Context.Context<never>,
  { name, unit, ...options }: Telemetry.Instrument,
  dimensions: Telemetry.Attributes
): Metric.Histogram<number> => {
  const known = seriesIn(Context.get(context, Metric.MetricRegistry))
  const key = JSON.stringify([name, dimensions])
  const found = known.get(key)
  if (found !== undefined) return found
  const texts = present(dimensions).map(([key, value]) => [key, String(value)] as const)
  const made = Metric.histogram(name, { ...options, attributes: { unit, ...Object.fromEntries(texts) } })
  known.set(key, made)
  return made
}

const seriesIn = memoize<Metric.MetricRegistry, Map<string, Metric.Histogram<number>>>(() => new Map())

/** Runs work in a span, which `onSpan` gets. Effect's default tracer exports nothing: with it there is only a span inside another one. */
const inSpan = <A, E, R>(
  work: Telemetry.Work<A, E>,
  effect: Effect.Effect<A, E, R>,
  onSpan?: (span: Tracer.Span) => void
): Effect.Effect<A, E, R> =>
  Effect.contextWith((context: Context.Context<R>) => {
    const isTraced = Context.get(context, Tracer.Tracer) !== Tracer.nativeTracer
    if (!isTraced && Option.isNone(Context.getOption(context, Tracer.ParentSpan))) return effect
    const isCaptured = Context.get(context, CaptureContent)
    const end = (span: Tracer.Span, exit: Exit.Exit<A, E>) => {
      const { status, type } = Telemetry.ofExit(work, exit, isCaptured)
      annotate(span, { ...work.dimensions(exit), ...work.attributes(exit, isCaptured), "error.type": type })
      const isTimed = Context.get(context, References.TracerTimingEnabled)
      span.end(isTimed ? Context.get(context, Clock.Clock).currentTimeNanosUnsafe() : 0n, status)
    }
    return Effect.flatMap(Effect.makeSpan(work.span, { kind: work.kind }), (span) => {
      annotate(span, work.dimensions())
      onSpan?.(span)
      return Effect.onExit(Effect.withParentSpan(effect, span, { captureStackTrace: false }), (exit) =>
        Effect.sync(() => end(span, exit))
      )
    })
  })

const annotate = (span: Tracer.Span, attributes: Telemetry.Attributes): void =>
  present(attributes).forEach(([key, value]) => span.attribute(key, value))

const present = (attributes: Telemetry.Attributes) =>
  Object.entries(attributes).filter(([, value]) => value !== undefined)
