/**
 * Messages between a queue and the transcript. What a run has taken and not delivered when it ends goes back.
 */
import * as Effect from "effect/Effect"
import type { FailureReason } from "./FailureReason.ts"
import type { Message } from "./Message.ts"
import type { QueueName } from "./Queues.ts"
import type { Run, Stopped } from "./Run.ts"
import * as Running from "./Run.ts"

/** Puts what is pending into the transcript, and at the start of a run the steering that waits. */
export const deliver = (run: Run, pollFirst: boolean): Effect.Effect<void, FailureReason | Stopped> => {
  const appended = append(run)
  return pollFirst ? Effect.flatMapEager(appended, () => poll(run)) : appended
}

const poll = Effect.fnUntracedEager(function* (run: Run): Effect.fn.Return<void, FailureReason | Stopped> {
  yield* Running.checkStopped(run)
  yield* take(run, "steering")
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
 * Makes pending what hooks and then the queue give. A queue is emptied in the same step that finds the run over, and
 * what a hook gave is kept although the next one fails.
 */
export const take = (run: Run, name: QueueName): Effect.Effect<void, FailureReason | Stopped> => {
  const add = (messages: ReadonlyArray<Message>) => {
    if (messages.length === 0) return
    run.pending = { messages: [...run.pending.messages, ...messages], from: name }
  }
  return Effect.mapEager(
    Running.shape(run, name, () => ({ ...Running.baseInput(run), turn: run.turn }), add),
    () => add(run.queues.drain(name))
  )
}

/** Gives back what was taken from a queue. */
export const restore = (run: Run): ReadonlyArray<Message> => {
  const { from, messages } = run.pending
  if (from === undefined) return []
  run.queues.restore(from, messages)
  return messages
}
