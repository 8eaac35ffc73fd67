/**
 * Gives the events of one run their number and time, and hands them to its listeners: observers first, then awaited
 * subscribers, one event after another, then the reader.
 *
 * Without a subscriber all of that is one synchronous step: an array of deltas goes as it is from the provider to the
 * reader, who goes on when the run next waits for something. With one, `Delivery` does it.
 */
import type * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { AgentEvent, Body } from "../AgentEvent.ts"
import type { Audience, Reader, Way } from "./delivery.ts"
import { Delivery } from "./delivery.ts"
import type { MessageId } from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import type { StopSignal } from "./work.ts"

const drop = () => Effect.void

/** Nobody reads. */
export const noReader: Reader = { offer: drop, add: drop, addLater: drop, release: () => {} }

/** All take effect when called. The effects wait until subscribers have heard of the events. */
export interface Emitter {
  readonly emit: (body: Body) => Effect.Effect<void>
  /** One of many that happen side by side, which the reader hears of together. */
  readonly emitAmongMany: (body: Body) => Effect.Effect<void>
  /** Several, with nothing in between. */
  readonly emitAll: (bodies: ReadonlyArray<Body>) => Effect.Effect<void>
  /** A partial result. Suspends while the reader is too far behind. */
  readonly progress: (body: Body) => Effect.Effect<void>
  /** The hot path: one array of deltas of one answer. Suspends like `progress`. */
  readonly deltas: (messageId: MessageId, deltas: ReadonlyArray<ModelEvent>) => Effect.Effect<void>
  /** The turn later events belong to. */
  turn: number | undefined
}

type Base = Pick<AgentEvent, "runId" | "parent">

/** What a run gives its emitter. */
interface Surroundings {
  readonly clock: Clock.Clock
  /** Subscribers run with these. */
  readonly services: Context.Context<never>
  readonly signal: StopSignal
}

export const make = (base: Base, surroundings: Surroundings, audience: Audience): Emitter =>
  new Stamping(base, surroundings, audience)

class Stamping implements Emitter {
  turn: number | undefined = undefined
  private readonly base: Base
  private readonly clock: Clock.Clock
  private readonly audience: Audience
  private readonly delivery: Delivery
  private seq = 0

  constructor(base: Base, { clock, services, signal }: Surroundings, audience: Audience) {
    this.base = base
    this.clock = clock
    this.audience = audience
    this.delivery = new Delivery(audience, services, signal)
  }

  emit(body: Body): Effect.Effect<void> {
    return this.send([this.stampNow(body)], "add")
  }

  emitAmongMany(body: Body): Effect.Effect<void> {
    return this.send([this.stampNow(body)], "addLater")
  }

  emitAll(bodies: ReadonlyArray<Body>): Effect.Effect<void> {
    return this.send(this.stampAll(bodies), "add")
  }

  progress(body: Body): Effect.Effect<void> {
    return this.send([this.stampNow(body)], "offer")
  }

  deltas(messageId: MessageId, deltas: ReadonlyArray<ModelEvent>): Effect.Effect<void> {
    const { reader, subscriptions } = this.audience
    const events = this.stampDeltas(messageId, deltas)
    return this.isFree() && !subscriptions.hasReaders ? reader.offer(events) : this.send(events, "offer")
  }

  /** No subscriber has to be waited for, so that everything can happen in this very step. */
  private isFree(): boolean {
    return !this.delivery.isBusy && this.audience.subscriptions.subscribers.length === 0
  }

  private send(events: ReadonlyArray<AgentEvent>, way: Way): Effect.Effect<void> {
    if (!this.isFree()) return this.delivery.add(events, way)
    this.audience.observe(events)
    return this.audience.reader[way](events)
  }

  private stampAll(bodies: ReadonlyArray<Body>): ReadonlyArray<AgentEvent> {
    const timestamp = this.clock.currentTimeMillisUnsafe()
    return bodies.map((body) => this.stamp(body, timestamp))
  }

  private stampNow(body: Body): AgentEvent {
    return this.stamp(body, this.clock.currentTimeMillisUnsafe())
  }

  private stamp(body: Body, timestamp: number): AgentEvent {
    const { base, turn } = this
    // One spread where there may be: it happens a dozen times a turn.
    return turn !== undefined && base.parent === undefined
      ? { ...body, runId: base.runId, seq: ++this.seq, timestamp, turn }
      : { ...body, ...base, seq: ++this.seq, timestamp, ...(turn === undefined ? {} : { turn }) }
  }

  private stampDeltas(messageId: MessageId, deltas: ReadonlyArray<ModelEvent>): ReadonlyArray<AgentEvent> {
    const { runId, parent } = this.base
    const { turn = 0 } = this
    const timestamp = this.clock.currentTimeMillisUnsafe()
    const events: Array<AgentEvent> = []
    for (const delta of deltas) {
      const seq = ++this.seq
      events.push(
        parent === undefined
          ? { _tag: "MessageDelta", runId, seq, timestamp, turn, messageId, delta }
          : { _tag: "MessageDelta", runId, seq, timestamp, turn, parent, messageId, delta }
      )
    }
    return events
  }
}
