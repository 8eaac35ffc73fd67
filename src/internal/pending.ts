/**
 * Takes messages from hooks and queues, and adds them to the transcript. When a run ends, messages that it has taken and not added go back
 * to their queue.
 */
import * as Effect from "effect/Effect"
import * as Continuation from "./continuation.ts"
import type { FailureReason } from "./failureReason.ts"
import type * as Hook from "../Hook.ts"
import type { Message } from "../Message.ts"
import type { QueueName } from "./queues.ts"
import type { Run } from "./run.ts"

/** Adds the pending messages to the transcript. Polls for steering with `pollFirst`, and for a message that interrupts between turns. */
export const deliver = Effect.fnUntraced(function* (
  run: Run,
  pollFirst: boolean
): Effect.fn.Return<void, FailureReason> {
  // The user sent steering to the run that was stopped before this prompt, so it stands before the prompt: the model answers both.
  if (pollFirst && wasCutShort(run)) run.addBefore(run.queues.drain("steering", "all"))
  if (run.background !== undefined) run.background.report()
  run.deliverPending()
  yield* run.mailbox.delivered
  // After a turn that was interrupted itself, the loop takes the messages.
  if (!pollFirst && (run.queues.urgent === undefined || run.control.isTurnCut)) return
  yield* run.interruptible
  yield* takeSteering(run, pollFirst ? "start" : "turnEnd")
  yield* run.interruptible
  run.deliverPending()
  yield* run.mailbox.delivered
})

/** Whether steering waits and the last run was stopped before the model had answered. */
const wasCutShort = ({ messages, queues }: Run): boolean =>
  queues.sizes.steering > 0 && (Continuation.isBrokenOff(messages) || Continuation.isUnanswered(messages))

/** Takes steering from the hooks, then from the queue. */
export const takeSteering = (run: Run, phase: Hook.SteeringPhase) =>
  take(run, "steering", () => ({ ...run.baseInput, turn: run.turn, phase }))

/** Takes follow-ups from the hooks, then from the queue. An empty queue ends the run in the same step, so that no message is lost. */
export const takeFollowUps = (run: Run) => take(run, "followUp", () => ({ ...run.baseInput, turn: run.turn }))

/** If a hook fails, the messages of earlier hooks are kept. */
const take = Effect.fnUntraced(function* <Q extends QueueName>(run: Run, to: Q, input: () => Hook.Input<Q>) {
  yield* run.ask(to, input, (messages) => run.addPending(to, messages))
  run.addPending(to, run.queues.drain(to))
})

/** Puts messages that were not added back into their queue, and returns them. */
export const restore = (run: Run): ReadonlyArray<Message> => {
  const { from, messages } = run.pending
  if (from === undefined) return []
  run.queues.restore(from, messages)
  return messages
}
