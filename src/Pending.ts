/**
 * Messages between a queue and the transcript.
 */
import * as Effect from "effect/Effect"
import type { FailureReason } from "./FailureReason.ts"
import type { Message } from "./Message.ts"
import type { QueueName } from "./Queues.ts"
import type { Run, Stopped } from "./Run.ts"
import * as Running from "./Run.ts"

/** Messages that wait for their turn, and the queue they came from. */
export interface Pending {
  messages: ReadonlyArray<Message>
  from: QueueName | undefined
}

/** Puts the pending messages into the transcript, and at the start of a run the steering that waits. */
export const deliver = Effect.fnUntraced(function* (
  run: Run,
  pending: Pending,
  pollFirst: boolean
): Effect.fn.Return<void, FailureReason | Stopped> {
  const { messages } = pending
  pending.messages = []
  for (const message of messages) yield* Running.append(run, message)
  if (!pollFirst) return
  for (const message of yield* poll(run, "steering")) yield* Running.append(run, message)
})

/** Polled hooks first, then the queue: the queue is emptied in the same step that finds the run over. */
export const poll = Effect.fnUntraced(function* (
  run: Run,
  name: QueueName
): Effect.fn.Return<ReadonlyArray<Message>, FailureReason | Stopped> {
  const polled: Array<Message> = []
  yield* Running.shape(
    run,
    name,
    () => ({ ...Running.baseInput(run), turn: run.turn }),
    (messages) => {
      polled.push(...messages)
    }
  )
  return [...polled, ...run.queues.drain(name)]
})
