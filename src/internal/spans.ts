/**
 * Runs the work of the engine in spans, measures it, and annotates its logs.
 *
 * All of it runs in the fiber of a run, which nothing interrupts: a span that begins ends.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as References from "effect/References"
import type * as Tracer from "effect/Tracer"
import type { Message, ToolCall } from "../Message.ts"
import type * as ModelEvent from "../ModelEvent.ts"
import { type ModelRequest, Provider } from "../Provider.ts"
import type { Run } from "./run.ts"
import type { RunFailed } from "../RunFailed.ts"
import type { RunResult } from "../RunResult.ts"
import * as Telemetry from "./telemetry.ts"
import { CaptureContent } from "../Telemetry.ts"
import type { PreparedCall } from "../ToolRegistry.ts"
import { find } from "./toolName.ts"
import type { Outcome } from "./toolOutcome.ts"

/** Executes a run in its span. `execute` must report the run that it makes. */
export const run = <R>(
  { id, options, prompts }: Pick<Run, "id" | "options"> & { readonly prompts: ReadonlyArray<Message> },
  execute: (onRun: (run: Run) => void) => Effect.Effect<RunResult, RunFailed, R>
): Effect.Effect<RunResult, RunFailed, R | Provider> =>
  Effect.contextWith((context: Context.Context<R | Provider>) => {
    const source = sourceOf({ id, options, provider: Context.get(context, Provider) }, context)
    let run: Run | undefined
    const execution = execute((made) => {
      run = made
    })
    return inSpan(Telemetry.run(source, prompts), {
      context,
      work: () => Effect.annotateLogs(execution, Telemetry.runLogs(id)),
      close: (exit, seconds) => Telemetry.runEnded(source, exit, seconds, run?.modelCalls ?? 0)
    })
  })

/** Receives the events of an answer as they come. */
type Hear = (events: ReadonlyArray<ModelEvent.ModelEvent>) => void

/** Asks the model by `ask`, which must report the events of the answer, in a span. `answer.reply` is the answer so far. */
export const modelCall = <E, R>(
  run: Run,
  request: ModelRequest,
  answer: { readonly reply: ModelEvent.Reply },
  ask: (hear: Hear) => Effect.Effect<void, E, R>
): Effect.Effect<void, E, R> =>
  Effect.contextWith((context: Context.Context<R>) => {
    const call = { source: sourceOf(run, context), turn: run.turn, request }
    let firstChunk: number | undefined
    run.countModelCall()
    return inSpan(Telemetry.modelCall(call), {
      context,
      work: ({ clock, elapsed, span }) =>
        ask((events) => {
          for (const event of events) {
            if (event._tag === "Attempt") {
              const { attributes, name } = Telemetry.retry(event)
              span.event(name, clock.currentTimeNanosUnsafe(), attributes)
            } else if (event._tag !== "Retracted") firstChunk ??= elapsed()
          }
        }),
      close: (exit, seconds) =>
        Telemetry.modelCallEnded(call, exit, seconds, { reply: answer.reply, firstChunk })
    })
  })

/** Executes a tool call in a span. */
export const toolCall = <R>(
  run: Run,
  { call, input, tool }: PreparedCall,
  execute: Effect.Effect<Outcome, never, R>
): Effect.Effect<Outcome, never, R> =>
  Effect.contextWith((context: Context.Context<R>) => {
    const made = { source: sourceOf(run, context), turn: run.turn, call, tool, input }
    return inSpan(Telemetry.toolCall(made), {
      context,
      work: () => withCallLogs(call, execute),
      close: (exit, seconds) => Telemetry.toolCallEnded(made, exit, seconds)
    })
  })

/** Annotates the logs of the work for a tool call. */
export const withCallLogs = <A, E, R>(call: ToolCall, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.annotateLogs(work, Telemetry.toolLogs(call))

/** Makes the span of a tool call that does not run. */
export const refusedCall = (run: Run, call: ToolCall, outcome: Outcome): Effect.Effect<void> =>
  Effect.contextWith((context: Context.Context<never>) => {
    const tool = find(run.offered, call.name)
    const input = call.params ?? call.rawArguments
    const made = { source: sourceOf(run, context), turn: run.turn, call, tool, input }
    return inSpan(Telemetry.toolCall(made), {
      context,
      work: () => Effect.void,
      close: () => Telemetry.toolCallEnded(made, Exit.succeed(outcome), undefined)
    })
  })

const sourceOf = (
  { id, options, provider }: Omit<Telemetry.Source, "isCaptured">,
  context: Context.Context<never>
): Telemetry.Source => ({ id, options, provider, isCaptured: Context.get(context, CaptureContent) })

/** A span that began. */
interface Begun {
  readonly span: Tracer.Span
  readonly clock: Clock.Clock
  /** Seconds since it began. */
  readonly elapsed: () => number
}

interface Work<A, E, R> {
  readonly context: Context.Context<never>
  readonly work: (begun: Begun) => Effect.Effect<A, E, R>
  readonly close: (exit: Exit.Exit<A, E>, seconds: number) => Telemetry.Closing
}

const inSpan = Effect.fnUntraced(function* <A, E, R>(
  { attributes, kind, name }: Telemetry.Opening,
  { close, context, work }: Work<A, E, R>
): Effect.fn.Return<A, E, R> {
  const clock = Context.get(context, Clock.Clock)
  const startedAt = clock.monotonicTimeNanosUnsafe()
  const elapsed = () => Number(clock.monotonicTimeNanosUnsafe() - startedAt) / 1e9
  const span = yield* Effect.makeSpan(name, { kind })
  annotate(span, attributes)
  const traced = Effect.withParentSpan(work({ clock, elapsed, span }), span, { captureStackTrace: false })
  const exit = yield* Effect.exit(traced)
  const ended = close(exit, elapsed())
  annotate(span, ended.attributes)
  const isTimed = Context.get(context, References.TracerTimingEnabled)
  span.end(isTimed ? clock.currentTimeNanosUnsafe() : 0n, ended.status)
  for (const [metric, value, dimensions] of ended.measures) {
    Metric.withAttributes(metric, dimensions).updateUnsafe(value, context)
  }
  return yield* exit
})

const annotate = (span: Tracer.Span, attributes: Telemetry.Attributes): void => {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) span.attribute(key, value)
  }
}
