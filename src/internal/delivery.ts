/**
 * Delivers the events of one run to its subscribers, one after another, and then to the reader of its stream.
 *
 * A subscriber that is late is interrupted, and delivery continues with the next one: late is a subscriber that takes longer
 * for one event than its limit, or, once the run is stopped, than `grace`.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import type { AgentEvent } from "../AgentEvent.ts"
import { type Control, grace } from "./interruption.ts"
import type { RunFailed } from "../RunFailed.ts"

/** Code of the application that receives each event, and that the run waits for. */
export interface Subscriber {
  /** For the log. */
  readonly name: string
  /** Milliseconds it may take for one event; `Infinity` for no limit. */
  readonly timeout: number
  /** Never fails. */
  readonly receive: (event: AgentEvent) => Effect.Effect<void>
  /** Removes it from this run and all later ones. */
  readonly unsubscribe: () => void
}

/** The subscribers and readers of an agent at the moment. */
export interface Subscriptions {
  /** In the order in which they subscribed. */
  readonly subscribers: ReadonlyArray<Subscriber>
}

/** The one reader of a run's stream. */
export interface Reader {
  readonly add: (events: ReadonlyArray<AgentEvent>) => void
  /** Waits while the reader is too far behind. */
  readonly room: Effect.Effect<void>
  /** From now on there is room. */
  readonly release: () => void
  /** Ends the stream after all events. */
  readonly end: (exit: Exit.Exit<void, RunFailed>) => void
}

/** The reader of a run that has none. */
export const noReader: Reader = { add: () => {}, room: Effect.void, release: () => {}, end: () => {} }

/** All that receive the events of a run. */
export interface Audience {
  /** Receives events first, and must be quick. */
  readonly observe: (events: ReadonlyArray<AgentEvent>) => void
  readonly subscriptions: Subscriptions
  readonly reader: Reader
}

/** A subscriber that has an event at the moment. */
interface Busy {
  readonly subscriber: Subscriber
  readonly event: AgentEvent
  /** In milliseconds. */
  since: number
}

export class Delivery {
  private readonly audience: Audience
  private readonly clock: Clock.Clock
  private readonly control: Control
  /** Oldest first. The first one may have reached some subscribers. */
  private readonly undelivered: Array<AgentEvent> = []
  /** Subscribers that still get the first one; `undefined` before the first. */
  private waiting: Array<Subscriber> | undefined
  private busy: Busy | undefined
  /** Open while there is something to deliver. */
  private readonly hasUndelivered = Latch.makeUnsafe(false)
  /** Open while delivery waits for a subscriber. */
  private readonly isWaiting = Latch.makeUnsafe(false)
  /** Open while all is delivered. */
  private readonly allDelivered = Latch.makeUnsafe(true)
  /** Subscribers that a stop found busy: they receive only the end of the run. */
  private readonly interrupted = new Set<Subscriber>()
  isDone = true

  constructor(audience: Audience, clock: Clock.Clock, control: Control) {
    this.audience = audience
    this.clock = clock
    this.control = control
  }

  /** Adds events. All that need not wait for a subscriber is delivered when this returns. */
  add(events: ReadonlyArray<AgentEvent>): void {
    for (const event of events) this.undelivered.push(event)
    this.isDone = false
    this.allDelivered.closeUnsafe()
    this.hasUndelivered.openUnsafe()
    if (!this.isDone) this.isWaiting.openUnsafe()
  }

  /** Waits until all events so far are delivered. */
  get done(): Effect.Effect<void> {
    return this.isDone ? Effect.void : this.allDelivered.await
  }

  /** Delivers events for as long as the run lasts. */
  readonly serve: Effect.Effect<never> = Effect.forever(
    Effect.acquireUseRelease(
      Effect.suspend(() => Effect.forkDetach(this.deliverAll, { startImmediately: true })),
      (delivering) =>
        Effect.gen({ self: this }, function* () {
          const late = yield* this.lateSubscriber
          const interrupted = yield* Effect.timeoutOption(Fiber.interrupt(delivering), grace)
          yield* this.dismiss(late, Option.isNone(interrupted))
        }),
      // It may ignore that.
      (delivering) => Effect.forkDetach(Fiber.interrupt(delivering), { startImmediately: true })
    )
  )

  private readonly deliverAll: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    const { observe, reader, subscriptions } = this.audience
    while (true) {
      yield* this.hasUndelivered.await
      for (let event = this.undelivered[0]; event !== undefined; event = this.undelivered[0]) {
        if (this.waiting === undefined) {
          observe([event])
          this.waiting = subscriptions.subscribers.slice()
        }
        for (let next = this.waiting.shift(); next !== undefined; next = this.waiting.shift()) {
          if (this.interrupted.has(next) && event._tag !== "RunEnd") continue
          this.busy = { subscriber: next, event, since: this.clock.currentTimeMillisUnsafe() }
          yield* next.receive(event)
          this.busy = undefined
        }
        this.waiting = undefined
        reader.add([event])
        this.undelivered.shift()
      }
      this.rest()
    }
  })

  private rest(): void {
    this.isDone = true
    this.hasUndelivered.closeUnsafe()
    this.isWaiting.closeUnsafe()
    this.allDelivered.openUnsafe()
  }

  /** Waits until a subscriber is late, and returns it. Looks again whenever it could be, and when the run is stopped. */
  private readonly lateSubscriber: Effect.Effect<Busy> = Effect.gen({ self: this }, function* () {
    while (true) {
      yield* this.isWaiting.await
      const { busy, control } = this
      if (busy === undefined) {
        yield* this.allDelivered.await
        continue
      }
      const isStopped = control.stop !== undefined
      const left = this.limitOf(busy) - (this.clock.currentTimeMillisUnsafe() - busy.since)
      if (left <= 0) {
        // The process may have stood still: a subscriber that is ready to continue is not late.
        yield* Effect.yieldNow
        if (this.busy === busy) return busy
        continue
      }
      const wait = Number.isFinite(left) ? Effect.sleep(left) : Effect.never
      yield* isStopped ? wait : Effect.raceFirst(wait, control.stopped)
      if (!isStopped && control.stop !== undefined) this.restartClock()
    }
  })

  /** The grace counts from the stop. */
  private restartClock(): void {
    if (this.busy !== undefined) this.busy.since = this.clock.currentTimeMillisUnsafe()
  }

  private limitOf({ subscriber }: Busy): number {
    return this.control.stop === undefined ? subscriber.timeout : Math.min(grace, subscriber.timeout)
  }

  /** Leaves a late subscriber alone from now on, and logs it. */
  private dismiss(late: Busy, isAbandoned: boolean): Effect.Effect<void> {
    const { event, subscriber } = late
    const limit = this.limitOf(late)
    const isStopped = this.control.stop !== undefined
    const isRemoved = !isStopped || isAbandoned
    this.busy = undefined
    if (isRemoved) subscriber.unsubscribe()
    else this.interrupted.add(subscriber)
    const took = isStopped
      ? `was still busy with ${event._tag} ${text(limit)} after the run was stopped`
      : `took longer than ${text(limit)} for ${event._tag}`
    const deaf = isAbandoned ? ", and ignored its interruption" : ""
    const then = isRemoved ? `It was unsubscribed. ${advice}` : "Of this run it hears only RunEnd."
    return Effect.logWarning(`Subscriber "${subscriber.name}" ${took}${deaf}. ${then}`)
  }
}

const text = (ms: number): string => Duration.format(Duration.millis(ms))

const advice = "Let it do long work in a fiber of its own, or give subscribe a longer timeout."
