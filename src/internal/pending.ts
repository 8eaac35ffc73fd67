/**
 * Messages that wait for a run: steering is put in after the current turn, a follow-up when the run would end.
 *
 * Queues are plain values, changed in one step: "nothing is queued" and "the run is over" cannot fall apart. Messages that a run has
 * taken and not delivered when it ends go back to their queue.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Continuation from "./continuation.ts"
import type { FailureReason } from "./failureReason.ts"
import type * as Hook from "../Hook.ts"
import type { Message } from "../Message.ts"
import type { Run } from "./run.ts"

/**
 * A queue of an agent: of messages for the time after the current turn, or for the time when the run would end.
 *
 * @category models
 * @since 0.2.0
 */
export type QueueName = "steering" | "followUp"

/**
 * The number of messages of a queue that a turn takes: the oldest one, or all.
 *
 * @category models
 * @since 0.2.0
 */
export type QueueMode = "one-at-a-time" | "all"

/**
 * The mode of each queue.
 *
 * @category models
 * @since 0.2.0
 */
export type QueueModes = Readonly<Record<QueueName, QueueMode>>

/**
 * The number of messages in each queue.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sizes {
  /** The messages for the time after the current turn. */
  readonly steering: number
  /** The messages for the time when the run would end. */
  readonly followUp: number
}

/**
 * The messages of each queue, oldest first.
 *
 * @category models
 * @since 0.2.0
 */
export interface Queued {
  /** The messages for the time after the current turn. */
  readonly steering: ReadonlyArray<Message>
  /** The messages for the time when the run would end. */
  readonly followUp: ReadonlyArray<Message>
}

export class Queues {
  queued: Queued = { steering: [], followUp: [] }
  modes: QueueModes
  /** Open while the sizes have changed since `takeChange`. */
  readonly changed = Latch.makeUnsafe(false)
  /** Whether `changed` is open. */
  hasChanged = false
  /** Opened by the next message, which puts another one in its place. */
  arrival = Latch.makeUnsafe(false)

  constructor(modes?: Partial<Record<QueueName, QueueMode>>) {
    this.modes = { steering: "one-at-a-time", followUp: "one-at-a-time", ...modes }
  }

  get sizes(): Sizes {
    return { steering: this.queued.steering.length, followUp: this.queued.followUp.length }
  }

  add(name: QueueName, messages: ReadonlyArray<Message>): void {
    this.set(name, [...this.queued[name], ...messages])
    this.announce()
  }

  /** Wakes those that wait for a message. */
  announce(): void {
    const { arrival } = this
    this.arrival = Latch.makeUnsafe(false)
    arrival.openUnsafe()
  }

  /** The next batch: one message or all, by the queue's mode. */
  drain(name: QueueName, mode = this.modes[name]): ReadonlyArray<Message> {
    const queue = this.queued[name]
    const batch = mode === "all" ? queue : queue.slice(0, 1)
    if (batch.length > 0) this.set(name, queue.slice(batch.length))
    return batch
  }

  /** Puts a batch back where it came from. */
  restore(name: QueueName, messages: ReadonlyArray<Message>): void {
    if (messages.length > 0) this.set(name, [...messages, ...this.queued[name]])
  }

  /** Removes messages, and returns them. */
  clear(name: QueueName | "all"): Queued {
    const { followUp, steering } = this.queued
    const [noSteering, noFollowUp] = [name !== "followUp", name !== "steering"]
    this.change({ steering: noSteering ? [] : steering, followUp: noFollowUp ? [] : followUp })
    return { steering: noSteering ? steering : [], followUp: noFollowUp ? followUp : [] }
  }

  setMode(name: QueueName, mode: QueueMode): void {
    this.modes = { ...this.modes, [name]: mode }
  }

  /** The sizes, if they have changed since the last call. */
  takeChange(): Sizes | undefined {
    this.hasChanged = false
    return this.changed.closeUnsafe() ? this.sizes : undefined
  }

  private set(name: QueueName, messages: ReadonlyArray<Message>): void {
    this.change({ ...this.queued, [name]: messages })
  }

  private change(queued: Queued): void {
    const before = this.sizes
    this.queued = queued
    const { followUp, steering } = this.sizes
    if (steering === before.steering && followUp === before.followUp) return
    this.hasChanged = true
    this.changed.openUnsafe()
  }
}

// ───────────────────────── Messages of a run

/** Appends the pending messages, and at the start of a run the steering that waits. */
export const deliver = Effect.fnUntraced(function* (
  run: Run,
  pollFirst: boolean
): Effect.fn.Return<void, FailureReason> {
  // Steering of a run that was stopped was sent before the prompt: an answer to it alone would answer what is over.
  if (pollFirst && wasStopped(run)) run.addBefore(run.queues.drain("steering", "all"))
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
const wasStopped = ({ messages, queues }: Run): boolean =>
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
