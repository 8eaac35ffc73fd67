/**
 * The queues of an agent: a run takes steering messages after the current turn, and follow-ups when it would end.
 *
 * They are plain values that change in one synchronous step, so that a run can find its queue empty and end without losing a message
 * between.
 */
import * as Latch from "effect/Latch"
import type { Message } from "../Message.ts"

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
  /** The last message of steering that interrupts: the next turn takes it in any mode, with those before it. */
  urgent: Message | undefined
  /** A latch that is open while the sizes have changed since `takeChange`. */
  readonly changed = Latch.makeUnsafe(false)
  /** Whether `changed` is open. */
  hasChanged = false
  /** A latch that the next message opens. A new latch then takes its place. */
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

  /** Removes and returns the next message or all messages, by the mode of the queue, or those that are urgent. */
  drain(name: QueueName, mode = this.modes[name]): ReadonlyArray<Message> {
    const queue = this.queued[name]
    const urgent = queue.findIndex((message) => message === this.urgent) + 1
    const batch = mode === "all" ? queue : queue.slice(0, Math.max(1, urgent))
    if (batch.length > 0) this.set(name, queue.slice(batch.length))
    if (urgent > 0) this.urgent = undefined
    return batch
  }

  /** Puts messages back at the front of their queue. */
  restore(name: QueueName, messages: ReadonlyArray<Message>): void {
    if (messages.length > 0) this.set(name, [...messages, ...this.queued[name]])
  }

  /** Removes messages, and returns them. */
  clear(name: QueueName | "all"): Queued {
    const { followUp, steering } = this.queued
    const [noSteering, noFollowUp] = [name !== "followUp", name !== "steering"]
    if (noSteering) this.urgent = undefined
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
