/**
 * Takes messages from hooks and queues for the transcript. Messages that a run has taken and not delivered when it ends go
 * back to their queue.
 */
import * as Effect from "effect/Effect"
import * as Continuation from "./continuation.ts"
import type { FailureReason } from "./failureReason.ts"
import type * as Hook from "../Hook.ts"
import type { Message } from "../Message.ts"
import type { Run } from "./run.ts"

/** Appends the pending messages, and at the start of a run the steering that waits. */
export const deliver = Effect.fnUntraced(function* (
  run: Run,
  pollFirst: boolean
): Effect.fn.Return<void, FailureReason> {
  // Steering of a run that was stopped was sent before the prompt: an answer to it alone would answer what is over.
  if (pollFirst && wasCutShort(run)) run.addBefore(run.queues.drain("steering", "all"))
  if (run.background !== undefined) run.background.report()
  run.deliverPending()
  yield* run.mailbox.delivered
  if (!pollFirst) return
  yield* run.interruptible
  yield* takeSteering(run, "start")
  yield* run.interruptible
  run.deliverPending()
  yield* run.mailbox.delivered
})

/** Whether the conversation ends in the middle of a run that ended. */
const wasCutShort = ({ messages, queues }: Run): boolean =>
  queues.sizes.steering > 0 && (Continuation.isBrokenOff(messages) || Continuation.isUnanswered(messages))

/** Takes steering from the hooks, then from the queue. Messages of a hook are kept although the next hook fails. */
export const takeSteering = Effect.fnUntraced(function* (
  run: Run,
  phase: Hook.SteeringPhase
): Effect.fn.Return<void, FailureReason> {
  yield* run.ask(
    "steering",
    () => ({ ...run.baseInput, turn: run.turn, phase }),
    (messages) => run.addPending("steering", messages)
  )
  run.addPending("steering", run.queues.drain("steering"))
})

/** Takes follow-ups in the same way. Finds the run over and the queue empty in one synchronous step. */
export const takeFollowUps = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, FailureReason> {
  yield* run.ask(
    "followUp",
    () => ({ ...run.baseInput, turn: run.turn }),
    (messages) => run.addPending("followUp", messages)
  )
  run.addPending("followUp", run.queues.drain("followUp"))
})

/** Gives undelivered messages back to their queue, and returns them. */
export const restore = (run: Run): ReadonlyArray<Message> => {
  const { from, messages } = run.pending
  if (from === undefined) return []
  run.queues.restore(from, messages)
  return messages
}
