/**
 * Where a run may be held or ended before anything is consumed: before each turn, and before each tool call.
 */
import * as Effect from "effect/Effect"
import type { FailureReason } from "../FailureReason.ts"
import * as Limits from "./limits.ts"
import type { Run, Stopped } from "./run.ts"
import * as Running from "./run.ts"

/** Whether nobody has to wait, and nothing is over. */
export const isOpen = ({ control }: Run): boolean =>
  control.paused === undefined && control.signal.current === undefined

/** Waits while the run is paused, and fails if it was told to stop. */
export const open = (run: Run): Effect.Effect<void, Stopped> =>
  isOpen(run) ? Effect.void : Effect.flatMap(whilePaused(run), () => Running.checkStopped(run))

/** Before a turn: out of bounds? asked to pause? */
export const beforeTurn = Effect.fnUntracedEager(function* (
  run: Run
): Effect.fn.Return<void, FailureReason | Stopped> {
  yield* Limits.check(run)
  yield* Running.observe(
    run,
    "pauseCheck",
    () => ({ ...Running.turnInput(run), turn: run.turn + 1 }),
    ({ reason, shouldPause }) => {
      if (shouldPause) run.control.pause(reason ?? "Hook requested pause")
      return "next"
    }
  )
  yield* open(run)
})

/** Waits while the run is paused, and says so. A pause that arrives while `RunResumed` is delivered holds the run again. */
const whilePaused = Effect.fnUntraced(function* (run: Run) {
  const { control } = run
  while (control.paused !== undefined && control.signal.current === undefined) {
    yield* Running.emit(run, { _tag: "RunPaused", ...control.paused })
    while (control.paused !== undefined && control.signal.current === undefined) yield* control.whileRunnable
    if (control.signal.current === undefined) {
      yield* Running.emit(run, { _tag: "RunResumed", ...control.resumed })
    }
  }
})
