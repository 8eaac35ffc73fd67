/**
 * Holds a paused run before each turn and before each tool call, and ends a stopped one there: at these points no message has left its
 * queue and no tool has begun.
 */
import * as Effect from "effect/Effect"
import type { FailureReason } from "./failureReason.ts"
import * as Limits from "./limits.ts"
import type { Run } from "./run.ts"

/** Waits while the run is paused. Fails if it is stopped. */
export const open = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void> {
  yield* whilePaused(run)
  yield* run.interruptible
})

/** Checks the limits and asks the `pauseCheck` hooks, before a turn. */
export const beforeTurn = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, FailureReason> {
  yield* Limits.check(run)
  yield* run.ask(
    "pauseCheck",
    () => {
      const { baseInput, mailbox, messages, requestParts, turn } = run
      return { ...baseInput, ...requestParts, turn: turn + 1, messages, report: mailbox.report }
    },
    ({ reason, shouldPause }) => {
      if (shouldPause) run.control.pause(reason ?? "Hook requested pause")
      return "next"
    }
  )
  yield* open(run)
})

/** Waits while the run is paused. Publishes the pause and its end. */
export const whilePaused = (run: Run): Effect.Effect<void> => {
  if (isHeld(run)) return held(run)
  return run.control.isShownPaused && !run.control.isHalting && run.control.paused === undefined
    ? resumed(run)
    : Effect.void
}

const isHeld = ({ control }: Run): boolean => control.paused !== undefined && !control.isHalting

/** A pause that arrives while subscribers receive `RunResumed` holds the run again. */
const held = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void> {
  while (isHeld(run)) {
    run.control.isShownPaused = true
    run.emit({ _tag: "RunPaused", ...run.control.paused })
    yield* run.mailbox.delivered
    while (isHeld(run)) yield* run.control.runnable
    if (run.control.stop !== undefined) return
    // An interrupted turn ends although the run is paused. The gate before the next turn holds the run.
    if (run.control.paused !== undefined) return
    yield* resumed(run)
  }
})

const resumed = (run: Run): Effect.Effect<void> =>
  Effect.suspend(() => {
    run.control.isShownPaused = false
    run.emit({ _tag: "RunResumed", ...run.control.resumed })
    return run.mailbox.delivered
  })
