/**
 * Gives the events of one run their number and time, and takes them to whoever listens: observers first, then awaited
 * subscribers, one event after another, then the reader.
 *
 * With nobody to wait for, all of that is one synchronous step: an array of deltas goes as it is from the provider to the
 * reader, who goes on when the run next waits for something.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { AgentEvent, Body } from "./AgentEvent.ts"
import type { MessageId } from "./Message.ts"
import type { ModelEvent } from "./ModelEvent.ts"

/** Whoever subscribes sees to it that it cannot fail. */
export type Listener = (event: AgentEvent) => Effect.Effect<void>

export interface Audience {
  /** Sees events first, those of one go together, and must be quick. */
  readonly observe: (events: ReadonlyArray<AgentEvent>) => void
  readonly subscriptions: Subscriptions
  readonly reader: Reader
}

/** Who listens beside, as it is at the moment. */
export interface Subscriptions {
  /** Awaited, in order. */
  readonly listeners: ReadonlyArray<Listener>
  /** Whether anybody who observes wants deltas too: there are many of them. */
  readonly hasReaders: boolean
}

/** Who reads the events of a run. */
export interface Reader {
  /** Takes what there is no end of. Suspends while it is too far behind. */
  readonly offer: (events: ReadonlyArray<AgentEvent>) => Effect.Effect<void>
  /**
   * Takes what an answer has few of, and never suspends: held up by these, a hundred calls in parallel would wait for one
   * another.
   */
  readonly add: (events: ReadonlyArray<AgentEvent>) => Effect.Effect<void>
  /** The same, where more of it is about to come from others: all of it is read at once. */
  readonly addLater: (events: ReadonlyArray<AgentEvent>) => Effect.Effect<void>
  /** From now on `offer` does not suspend: the run is about to end, although nobody may be reading. */
  readonly release: () => void
}

/** A way to hand events over. */
type Way = "offer" | "add" | "addLater"

const drop = () => Effect.void

/** Nobody reads. */
export const noReader: Reader = { offer: drop, add: drop, addLater: drop, release: () => {} }

/** All take effect when called, as far as nobody has to be waited for. */
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

export const make = (base: Base, clock: Clock.Clock, audience: Audience): Emitter =>
  new Telling(base, clock, audience)

class Telling implements Emitter {
  turn: number | undefined = undefined
  private readonly base: Base
  private readonly clock: Clock.Clock
  private readonly audience: Audience
  private seq = 0
  /** Made when somebody has to be waited for. */
  private lock: Semaphore.Semaphore | undefined
  private held = 0

  constructor(base: Base, clock: Clock.Clock, audience: Audience) {
    this.base = base
    this.clock = clock
    this.audience = audience
  }

  emit(body: Body): Effect.Effect<void> {
    return this.isFree() ? this.told([this.stampNow(body)], "add") : this.emitAll([body])
  }

  emitAmongMany(body: Body): Effect.Effect<void> {
    return this.isFree() ? this.told([this.stampNow(body)], "addLater") : this.emitAll([body])
  }

  emitAll(bodies: ReadonlyArray<Body>): Effect.Effect<void> {
    return this.isFree()
      ? this.told(this.stampAll(bodies), "add")
      : this.locked(() => this.stampAll(bodies), "add")
  }

  progress(body: Body): Effect.Effect<void> {
    return this.isFree()
      ? this.told([this.stampNow(body)], "offer")
      : this.locked(() => [this.stampNow(body)], "offer")
  }

  deltas(messageId: MessageId, deltas: ReadonlyArray<ModelEvent>): Effect.Effect<void> {
    const { audience } = this
    if (!this.isFree()) return this.locked(() => this.stampDeltas(messageId, deltas), "offer")
    const events = this.stampDeltas(messageId, deltas)
    return audience.subscriptions.hasReaders ? this.told(events, "offer") : audience.reader.offer(events)
  }

  /** Nobody has to be waited for, so that everything can happen in this very step. */
  private isFree(): boolean {
    return this.held === 0 && this.audience.subscriptions.listeners.length === 0
  }

  private told(events: ReadonlyArray<AgentEvent>, way: Way): Effect.Effect<void> {
    this.audience.observe(events)
    return this.audience.reader[way](events)
  }

  private locked(make: () => ReadonlyArray<AgentEvent>, way: Way): Effect.Effect<void> {
    this.held++
    this.lock ??= Semaphore.makeUnsafe(1)
    return deliver(this.audience, make, way).pipe(
      this.lock.withPermit,
      Effect.uninterruptible,
      Effect.ensuring(Effect.sync(() => this.held--))
    )
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

const deliver = Effect.fnUntraced(function* (
  audience: Audience,
  make: () => ReadonlyArray<AgentEvent>,
  way: Way
) {
  // Stamped inside the lock: parallel tools must not overtake one another between number and delivery.
  const events = make()
  for (const event of events) {
    audience.observe([event])
    for (const listener of audience.subscriptions.listeners) yield* listener(event)
  }
  yield* audience.reader[way](events)
})
