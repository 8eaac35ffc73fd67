/**
 * Takes messages from hooks and queues, and adds them to the transcript. When a run ends, messages that it has taken and not added go back
 * to their queue.
 */
import * as Effect from "effect/Effect"
import * as Continuation from "./continuation.ts"
import type { FailureReason } from "./failureReason.ts"
import type * as Hook from "../Hook.ts"
import type { Message } from "../Message.ts"
import type { Run } from "./run.ts"

/** Adds the pending messages to the transcript. With `pollFirst`, as at the start of a run, also polls for steering. */
export const deliver = Effect.fnUntraced(function* (
  run: Run,
  pollFirst: boolean
): Effect.fn.Return<void, FailureReason> {
  // The user sent steering to the run that was stopped before this prompt, so it stands before the prompt: the model answers both.
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

/** Whether steering waits and the last run was stopped before the model had answered. */
const wasCutShort = ({ messages, queues }: Run): boolean =>
  queues.sizes.steering > 0 && (Continuation.isBrokenOff(messages) || Continuation.isUnanswered(messages))

/** Takes steering from the hooks, then from the queue. If a hook fails, the messages of earlier hooks are kept. */
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

/** Takes follow-ups from the hooks, then from the queue. An empty queue ends the run in the same step, so that no message is lost. */
export const takeFollowUps = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, FailureReason> {
  yield* run.ask(
    "followUp",
    () => ({ ...run.baseInput, turn: run.turn }),
    (messages) => run.addPending("followUp", messages)
  )
  run.addPending("followUp", run.queues.drain("followUp"))
})

/** Puts messages that were not added back into their queue, and returns them. */
export const restore = (run: Run): ReadonlyArray<Message> => {
  const { from, messages } = run.pending
  if (from === undefined) return []
  run.queues.restore(from, messages)
  return messages
}
