/**
 * Delivers the events of one run to its subscribers, one after another, and then to the reader of its stream.
 *
 * A subscriber that is late is interrupted, and delivery continues with the next one: late is a subscriber that takes longer
 * for one event than its limit, or, once the run is stopped, than `grace`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import type { AgentEvent, OfTag } from "../AgentEvent.ts"
import { attempt, type Control, grace } from "./interruption.ts"
import type { Journal } from "./journal.ts"
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
  /** Waits until the subscribers behind the reader have received all events. Default: there are none. */
  readonly received?: Effect.Effect<void>
  /** Ends the stream after all events. */
  readonly end: (exit: Exit.Exit<void, RunFailed>) => void
}

/** The reader of a run that has none. */
export const noReader: Reader = { add: () => {}, room: Effect.void, end: () => {} }

/** All that receive the events of a run. */
export interface Audience {
  /** Writes events before others receive them. Default: they are not kept. */
  readonly journal?: Journal | undefined
  /** Receives events first, and must be quick. */
  readonly observe: (events: ReadonlyArray<AgentEvent>) => void
  readonly subscriptions: Subscriptions
  readonly reader: Reader
}

export class Delivery {
  /** The run whose end is the last event: events of the runs inside of it stand between its own. */
  private readonly runId: string
  private readonly audience: Audience
  private readonly control: Control
  /** Oldest first. The first one may have reached some subscribers. */
  private readonly undelivered: Array<AgentEvent> = []
  /** How many of them, from the first one on, are in the journal. */
  private written = 0
  /** Open while there is something to deliver. */
  private readonly hasUndelivered = Latch.makeUnsafe(false)
  /** Open while all is delivered. */
  private readonly allDelivered = Latch.makeUnsafe(true)
  /** Subscribers that a stop found busy: they receive only the end of the run. */
  private readonly interrupted = new Set<Subscriber>()

  constructor(runId: string, audience: Audience, control: Control) {
    this.runId = runId
    this.audience = audience
    this.control = control
  }

  get isDone(): boolean {
    return this.undelivered.length === 0
  }

  /** Adds events. All that need not wait for a subscriber is delivered when this returns. */
  add(events: ReadonlyArray<AgentEvent>): void {
    for (const event of events) this.undelivered.push(event)
    this.allDelivered.closeUnsafe()
    this.hasUndelivered.openUnsafe()
  }

  /** Waits until all events so far are delivered. */
  get done(): Effect.Effect<void> {
    return this.isDone ? Effect.void : this.allDelivered.await
  }

  /** Delivers events for as long as the run lasts. */
  readonly serve: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    const { journal, observe, reader, subscriptions } = this.audience
    while (true) {
      yield* this.hasUndelivered.await
      while (this.undelivered.length > 0) {
        if (journal !== undefined && this.written === 0) yield* this.write(journal)
        const [event] = this.undelivered
        if (event === undefined) break
        observe([event])
        for (const subscriber of subscriptions.subscribers) yield* this.deliver(subscriber, event)
        reader.add([event])
        this.undelivered.shift()
        if (this.written > 0) this.written--
      }
      this.hasUndelivered.closeUnsafe()
      this.allDelivered.openUnsafe()
    }
  })

  /** Writes all events that wait, together. Stops the run if that fails; a run that had ended then has failed. */
  private write(journal: Journal): Effect.Effect<void> {
    this.written = this.undelivered.length
    return Effect.flatMap(journal.writeEvents(this.runId, this.undelivered), () => {
      const { failure } = journal
      if (failure === undefined) return Effect.void
      const last = this.undelivered[this.written - 1]
      if (last !== undefined && this.isLast(last) && last.error === undefined)
        this.undelivered[this.written - 1] = { ...last, status: "failed", error: failure }
      return this.control.stopWith({ cause: "session", error: failure })
    })
  }

  /** Whether an event is the end of this run. */
  private isLast(event: AgentEvent): event is OfTag<"RunEnd"> {
    return event._tag === "RunEnd" && event.runId === this.runId
  }

  private deliver(subscriber: Subscriber, event: AgentEvent): Effect.Effect<void> {
    if (this.interrupted.has(subscriber) && !this.isLast(event)) return Effect.void
    const receiving = subscriber.receive(event)
    // Most subscribers have no more to do when they return.
    if (Exit.isExit(receiving)) return receiving
    const stopped = Effect.andThen(this.control.stopped.await, Effect.sleep(grace))
    const { timeout } = subscriber
    const until = Number.isFinite(timeout) ? Effect.raceFirst(stopped, Effect.sleep(timeout)) : stopped
    return Effect.flatMap(attempt(receiving, { until }), (attempted) =>
      attempted._tag === "Done" ? Effect.void : this.dismiss(subscriber, event, attempted.isAbandoned)
    )
  }

  /** Leaves a late subscriber alone from now on, and logs it. */
  private dismiss(subscriber: Subscriber, event: AgentEvent, isAbandoned: boolean): Effect.Effect<void> {
    const isStopped = this.control.stop !== undefined
    const isRemoved = !isStopped || isAbandoned
    if (isRemoved) subscriber.unsubscribe()
    else this.interrupted.add(subscriber)
    const took = isStopped
      ? `was still busy with ${event._tag} ${text(Math.min(grace, subscriber.timeout))} after the run was stopped`
      : `took longer than ${text(subscriber.timeout)} for ${event._tag}`
    const deaf = isAbandoned ? ", and ignored its interruption" : ""
    const then = isRemoved ? `It was unsubscribed. ${advice}` : "Of this run it hears only RunEnd."
    return Effect.logWarning(`Subscriber "${subscriber.name}" ${took}${deaf}. ${then}`)
  }
}

const text = (ms: number): string => Duration.format(Duration.millis(ms))

const advice = "Let it do long work in a fiber of its own, or give subscribe a longer timeout."
