/**
 * Messages between a queue and the transcript. What a run has taken and not delivered when it ends goes back.
 */
import * as Effect from "effect/Effect"
import type { FailureReason } from "../FailureReason.ts"
import type * as Hook from "../Hook.ts"
import type { Message } from "../Message.ts"
import type { QueueName } from "./queues.ts"
import type { Run, Stopped } from "./run.ts"
import * as Running from "./run.ts"

/** Puts what is pending into the transcript, and at the start of a run the steering that waits. */
export const deliver = (run: Run, pollFirst: boolean): Effect.Effect<void, FailureReason | Stopped> => {
  const appended = append(run)
  return pollFirst ? Effect.flatMapEager(appended, () => poll(run)) : appended
}

const poll = Effect.fnUntracedEager(function* (run: Run): Effect.fn.Return<void, FailureReason | Stopped> {
  yield* Running.checkStopped(run)
  yield* takeSteering(run, "start")
  yield* Running.checkStopped(run)
  yield* append(run)
})

const append = (run: Run): Effect.Effect<void> => {
  const { messages } = run.pending
  if (messages.length === 0) return Effect.void
  run.pending = { messages: [], from: undefined }
  return Running.append(run, messages)
}

/**
 * Takes steering from the hooks and then from the queue, and makes it pending. `phase` tells the hooks where the run stands.
 * What a hook gave is kept although the next one fails.
 */
export const takeSteering = (
  run: Run,
  phase: Hook.SteeringPhase
): Effect.Effect<void, FailureReason | Stopped> =>
  Effect.mapEager(
    Running.shape(
      run,
      "steering",
      () => ({ ...Running.baseInput(run), turn: run.turn, phase }),
      (messages) => add(run, "steering", messages)
    ),
    () => add(run, "steering", run.queues.drain("steering"))
  )

/** Takes follow-ups in the same way. The queue is emptied in the step that finds the run over. */
export const takeFollowUps = (run: Run): Effect.Effect<void, FailureReason | Stopped> =>
  Effect.mapEager(
    Running.shape(
      run,
      "followUp",
      () => ({ ...Running.baseInput(run), turn: run.turn }),
      (messages) => add(run, "followUp", messages)
    ),
    () => add(run, "followUp", run.queues.drain("followUp"))
  )

const add = (run: Run, from: QueueName, messages: ReadonlyArray<Message>): void => {
  if (messages.length > 0) run.pending = { messages: [...run.pending.messages, ...messages], from }
}

/** Gives back what was taken from a queue. */
export const restore = (run: Run): ReadonlyArray<Message> => {
  const { from, messages } = run.pending
  if (from === undefined) return []
  run.queues.restore(from, messages)
  return messages
}
