/**
 * Starts a run in a fiber of its own, and gives it to callers as a result, as a stream or as a handle.
 *
 * When a caller leaves the stream, is interrupted or closes its scope, the control of the run interrupts that fiber, and the caller waits
 * for its end: by then each start event has its end, and each tool call its result.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import { detach, inOwnFiber } from "./interruption.ts"
import { Handoff, opened, type Reader, Recording } from "./reader.ts"
import { execute } from "./loop.ts"
import { Run, type Services, type Surroundings } from "./run.ts"
import type { RunFailed, RunResult } from "../Run.ts"
import * as Spans from "./spans.ts"
import type { RunSpec } from "./runSpec.ts"

/** A run in its fiber. */
export interface RunHandle {
  readonly run: Run
  readonly fiber: Fiber.Fiber<RunResult, RunFailed>
}

/**
 * Starts a run in a fiber of its own, which can be interrupted only where it waits for foreign work. The run has begun when this returns.
 * Calls `onRun` before the first event, and runs `rest` after the last one.
 */
export const start = (
  spec: RunSpec,
  audience: Surroundings,
  onRun: (run: Run) => void = () => {},
  rest: Effect.Effect<void> = Effect.void
): Effect.Effect<RunHandle, never, Services> =>
  Effect.contextWith((context: Context.Context<Services>) => {
    const run = new Run(spec, audience, context)
    onRun(run)
    return Spans.run(
      run,
      spec.prompts,
      Effect.ensuring(run.control.fibers.including(execute(run, spec)), rest)
    ).pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          audience.reader?.end(Exit.asVoid(exit))
          run.parent?.control.leave(run.control)
        })
      ),
      inOwnFiber,
      Effect.map((fiber) => ({ run, fiber }))
    )
  })

/**
 * A run that belongs to the scope of the agent, not to the fiber that started it.
 *
 * **Details**
 *
 * `O` are the members that an `output` schema adds to the result.
 *
 * @category models
 * @since 0.1.0
 */
export interface StartedRun<out O = {}> {
  /** The id of the run, as in its events. */
  readonly runId: string
  /**
   * The events of the run from its first one, for each reader all of them. Fails with `RunFailed` after the events of a run that failed.
   * The handle keeps the events. The run waits for no reader, and leaving the stream does not cancel it.
   */
  readonly events: Stream.Stream<AgentEvent, RunFailed>
  /** The run's result, or its failure. A failure is logged if no fiber awaits the result or reads the events by then. */
  readonly result: Effect.Effect<RunResult & O, RunFailed>
  /** Ends the run, balanced: its `result` then has status "cancelled". Does not wait for that. */
  readonly cancel: (reason?: string) => Effect.Effect<void>
}

/**
 * The handle of a run that an application started. `start` gets the reader of the run, and `finish` makes the result of the
 * handle.
 */
export const handle = Effect.fnUntraced(function* <O, E, R>(
  start: (reader: Reader) => Effect.Effect<RunHandle, E, R>,
  finish: (result: RunResult) => Effect.Effect<RunResult & O, RunFailed>
): Effect.fn.Return<StartedRun<O>, E, R> {
  const recording = new Recording()
  const {
    fiber,
    run: { control, id }
  } = yield* start(recording)
  let isAwaited = false
  const awaited =
    <A>(use: () => A) =>
    () => {
      isAwaited = true
      return use()
    }
  const report = Effect.gen(function* () {
    const exit = yield* Fiber.await(fiber)
    // An application may await the result only once it has seen the end of the run: this gives it one step of the scheduler for that.
    yield* Effect.yieldNow
    if (Exit.isFailure(exit) && !isAwaited)
      yield* Effect.logError(`Run ${id} failed, and no fiber awaits its result`, exit.cause)
  })
  yield* detach(report)
  return {
    runId: id,
    events: Stream.suspend(awaited(() => recording.events)),
    result: Effect.suspend(awaited(() => Effect.flatMap(Fiber.join(fiber), finish))),
    cancel: (reason) => control.cancel(reason)
  }
})

/** Stops a run and waits for its end. */
export const stopAndWait = ({ fiber, run }: RunHandle, reason: string): Effect.Effect<void> =>
  Effect.andThen(run.control.cancel(reason), Effect.asVoid(Fiber.await(fiber)))

/** Starts a run and waits for its result. Interrupting the wait cancels the run with the reason. */
export const join = <E, R>(
  start: Effect.Effect<RunHandle, E, R>,
  reason: () => string = () => "interrupted"
): Effect.Effect<RunResult, RunFailed | E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(start, (started) =>
      Effect.onInterrupt(restore(Fiber.join(started.fiber)), () => stopAndWait(started, reason()))
    )
  )

/** The number of events that a reader of a stream may be behind before the run waits with the next delta (backpressure). */
const readAhead = 64

/** Starts a run and streams its events. Leaving the stream cancels the run. `start` gets the reader of the run. */
export const stream = <E, R>(
  start: (reader: Reader) => Effect.Effect<RunHandle, E, R>
): Stream.Stream<AgentEvent, RunFailed | E, R> =>
  opened((scope) =>
    Effect.uninterruptible(
      Effect.gen(function* () {
        const handoff = new Handoff<AgentEvent, RunFailed>(readAhead)
        const started = yield* start(handoff)
        yield* Scope.addFinalizer(scope, stopAndWait(started, "the reader left"))
        return handoff.pull
      })
    )
  )
