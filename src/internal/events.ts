/**
 * Publishes the events of one run.
 *
 * `emit` is a statement: it numbers an event and hands it over, and never suspends. While the run has no subscribers, that
 * is one synchronous step: observers first, then the reader of the stream. Otherwise events wait for one fiber, which
 * delivers them in order to observers, subscribers and the reader; the run awaits `delivered` where subscribers must have
 * received all events before it continues.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { AgentEvent, Body } from "../AgentEvent.ts"
import type { Attempted, Control } from "./interruption.ts"
import { attempt, grace } from "./interruption.ts"
import type { MessageId } from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"

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
  /** Whether an observer wants deltas too: there are many of them. */
  readonly hasReaders: boolean
}

/** The one reader of a run's stream. */
export interface Reader {
  readonly add: (events: ReadonlyArray<AgentEvent>) => void
  /** Waits while the reader is too far behind. */
  readonly room: Effect.Effect<void>
  /** From now on there is room. */
  readonly release: () => void
}

/** The reader of a run that has none. */
export const noReader: Reader = { add: () => {}, room: Effect.void, release: () => {} }

/** All that receive the events of a run. */
export interface Audience {
  /** Receives events first, and must be quick. */
  readonly observe: (events: ReadonlyArray<AgentEvent>) => void
  readonly subscriptions: Subscriptions
  readonly reader: Reader
}

type Base = Pick<AgentEvent, "runId" | "parent">

export class Events {
  /** The turn of later events; `undefined` before the first and after the last. */
  turn: number | undefined = undefined
  private readonly base: Base
  private readonly clock: Clock.Clock
  private readonly audience: Audience
  private readonly control: Control
  private readonly undelivered: Array<AgentEvent> = []
  /** Open while there is something to deliver. */
  private readonly hasUndelivered = Latch.makeUnsafe(false)
  /** Open while all is delivered. */
  private readonly allDelivered = Latch.makeUnsafe(true)
  private isDelivering = false
  /** Subscribers that a stop found busy: they receive only the end of the run. */
  private readonly interrupted = new Set<Subscriber>()
  private seq = 0

  constructor(base: Base, clock: Clock.Clock, control: Control, audience: Audience) {
    this.base = base
    this.clock = clock
    this.control = control
    this.audience = audience
  }

  /** Publishes events, with nothing in between. */
  emit(...bodies: ReadonlyArray<Body>): void {
    this.publish(bodies.map((body) => this.stamp(body)))
  }

  /** Publishes a partial result. Suspends while subscribers and the reader are too far behind. */
  progress(body: Body): Effect.Effect<void> {
    return this.flow([this.stamp(body)])
  }

  /** Publishes deltas of an answer that arrived together. Suspends like `progress`. */
  deltas(messageId: MessageId, deltas: ReadonlyArray<ModelEvent>): Effect.Effect<void> {
    return this.flow(this.stampDeltas(messageId, deltas))
  }

  /** Waits until subscribers have received all events so far. */
  get delivered(): Effect.Effect<void> {
    return this.isDelivering ? this.allDelivered.await : Effect.void
  }

  /** Delivers events to subscribers, for as long as the run lasts. */
  readonly deliver: Effect.Effect<never> = Effect.forever(
    Effect.gen({ self: this }, function* () {
      yield* this.hasUndelivered.await
      for (let event = this.undelivered.shift(); event !== undefined; event = this.undelivered.shift()) {
        yield* this.deliverOne(event)
      }
      this.isDelivering = false
      this.hasUndelivered.closeUnsafe()
      this.allDelivered.openUnsafe()
    }),
    { disableYield: true }
  )

  private publish(events: ReadonlyArray<AgentEvent>): void {
    const { observe, reader, subscriptions } = this.audience
    if (!this.isDelivering && subscriptions.subscribers.length === 0) {
      observe(events)
      reader.add(events)
      return
    }
    this.undelivered.push(...events)
    this.isDelivering = true
    this.allDelivered.closeUnsafe()
    // Subscribers that need not wait for anything are done when this returns.
    this.hasUndelivered.openUnsafe()
  }

  private flow(events: ReadonlyArray<AgentEvent>): Effect.Effect<void> {
    this.publish(events)
    const { reader } = this.audience
    return this.isDelivering ? Effect.flatMap(this.delivered, () => reader.room) : reader.room
  }

  private deliverOne(event: AgentEvent): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      this.audience.observe([event])
      for (const subscriber of this.audience.subscriptions.subscribers) {
        if (this.interrupted.has(subscriber) && event._tag !== "RunEnd") continue
        const attempted = yield* attempt(subscriber.receive(event), {
          within: this.control.inFlight,
          timeout: subscriber.timeout,
          patience: Math.min(grace, subscriber.timeout)
        })
        if (attempted._tag !== "Done") yield* this.tooLate(subscriber, event, attempted)
      }
      this.audience.reader.add([event])
    })
  }

  private tooLate(
    subscriber: Subscriber,
    { _tag }: AgentEvent,
    attempted: Exclude<Attempted<void, never>, { readonly _tag: "Done" }>
  ): Effect.Effect<void> {
    const { isAbandoned } = attempted
    const isTimedOut = attempted._tag === "TimedOut"
    const isRemoved = isTimedOut || isAbandoned
    if (isRemoved) subscriber.unsubscribe()
    else this.interrupted.add(subscriber)
    const late = isTimedOut
      ? `took longer than ${text(subscriber.timeout)} for ${_tag}`
      : `was still busy with ${_tag} ${text(Math.min(grace, subscriber.timeout))} after the run was told to stop`
    const deaf = isAbandoned ? ", and ignored its interruption" : ""
    const then = isRemoved ? `It was unsubscribed. ${advice}` : "Of this run it hears only RunEnd."
    return Effect.logWarning(`Subscriber "${subscriber.name}" ${late}${deaf}. ${then}`)
  }

  private stamp(body: Body): AgentEvent {
    const { base, turn } = this
    const timestamp = this.clock.currentTimeMillisUnsafe()
    return { ...body, ...base, seq: ++this.seq, timestamp, ...(turn === undefined ? {} : { turn }) }
  }

  /** The same for deltas, without spreads: there are many. */
  private stampDeltas(messageId: MessageId, deltas: ReadonlyArray<ModelEvent>): ReadonlyArray<AgentEvent> {
    const { runId, parent } = this.base
    const { turn = 0 } = this
    const timestamp = this.clock.currentTimeMillisUnsafe()
    return deltas.map((delta) => {
      const seq = ++this.seq
      return parent === undefined
        ? { _tag: "MessageDelta", runId, seq, timestamp, turn, messageId, delta }
        : { _tag: "MessageDelta", runId, seq, timestamp, turn, parent, messageId, delta }
    })
  }
}

const text = (ms: number): string => Duration.format(Duration.millis(ms))

const advice = "Let it do long work in a fiber of its own, or give subscribe a longer timeout."
