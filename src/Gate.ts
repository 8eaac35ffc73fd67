/**
 * Where a run may be held or ended before anything is consumed: before each turn, and before each tool call.
 */
import * as Effect from "effect/Effect"
import type { FailureReason } from "./FailureReason.ts"
import * as Limits from "./Limits.ts"
import type { Message } from "./Message.ts"
import type { Run, Stopped } from "./Run.ts"
import * as Running from "./Run.ts"

/** Before a turn, with nothing consumed yet: paused? cancelled? out of bounds? asked to pause? */
export const beforeTurn = Effect.fnUntraced(function* (
  run: Run,
  pending: ReadonlyArray<Message>
): Effect.fn.Return<void, FailureReason | Stopped> {
  yield* whilePaused(run)
  yield* Running.checkStopped(run)
  yield* Limits.check(run, pending)
  yield* Running.observe(
    run,
    "pauseCheck",
    () => Running.turnInput(run),
    ({ reason, shouldPause }) => {
      if (shouldPause) run.control.pause(reason ?? "Hook requested pause")
      return "next"
    }
  )
  yield* whilePaused(run)
  yield* Running.checkStopped(run)
})

/** Waits while the run is paused, and says so. */
export const whilePaused = Effect.fnUntraced(function* (run: Run) {
  const { control } = run
  if (control.paused === undefined || control.signal.current !== undefined) return
  yield* Running.emit(run, { _tag: "RunPaused", ...control.paused })
  while (control.paused !== undefined && control.signal.current === undefined) yield* control.whileRunnable
  if (control.signal.current === undefined) yield* Running.emit(run, { _tag: "RunResumed" })
})
