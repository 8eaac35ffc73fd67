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
  /** Sees every event first, and must be quick. */
  readonly observe: (event: AgentEvent) => void
  /** Awaited, in order. */
  readonly listeners: () => ReadonlyArray<Listener>
  readonly reader: Reader
}

/** Who reads the events of a run. */
export interface Reader {
  /** Takes events. Suspends while it is too far behind. */
  readonly offer: (events: ReadonlyArray<AgentEvent>) => Effect.Effect<void>
  /** From now on `offer` does not suspend: the run is about to end, although nobody may be reading. */
  readonly release: () => void
}

/** Nobody reads. */
export const noReader: Reader = { offer: () => Effect.void, release: () => {} }

/** Both take effect when called, as far as nobody has to be waited for. */
export interface Emitter {
  readonly emit: (bodies: ReadonlyArray<Body>) => Effect.Effect<void>
  /** The hot path: one array of deltas of one answer. */
  readonly deltas: (messageId: MessageId, deltas: ReadonlyArray<ModelEvent>) => Effect.Effect<void>
  /** The turn later events belong to. */
  turn: number | undefined
}

type Base = Pick<AgentEvent, "runId" | "parent">

export const make = (base: Base, clock: Clock.Clock, audience: Audience): Emitter => {
  const lock = Semaphore.makeUnsafe(1)
  let seq = 0
  let held = 0

  const stamp = (body: Body): AgentEvent => {
    const timestamp = clock.currentTimeMillisUnsafe()
    const { turn } = emitter
    // One spread where there may be: it happens a dozen times a turn.
    return turn !== undefined && base.parent === undefined
      ? { ...body, runId: base.runId, seq: ++seq, timestamp, turn }
      : { ...body, ...base, seq: ++seq, timestamp, ...(turn === undefined ? {} : { turn }) }
  }
  const stampDeltas = (
    messageId: MessageId,
    deltas: ReadonlyArray<ModelEvent>
  ): ReadonlyArray<AgentEvent> => {
    const timestamp = clock.currentTimeMillisUnsafe()
    const { runId, parent } = base
    const turn = emitter.turn ?? 0
    return deltas.map((delta) =>
      parent === undefined
        ? { _tag: "MessageDelta", runId, seq: ++seq, timestamp, turn, messageId, delta }
        : { _tag: "MessageDelta", runId, seq: ++seq, timestamp, turn, parent, messageId, delta }
    )
  }

  const deliver = Effect.fnUntraced(function* (make: () => ReadonlyArray<AgentEvent>) {
    // Stamped inside the lock: parallel tools must not overtake one another between number and delivery.
    const events = make()
    for (const event of events) {
      audience.observe(event)
      for (const listener of audience.listeners()) yield* listener(event)
    }
    yield* audience.reader.offer(events)
  })
  const locked = (make: () => ReadonlyArray<AgentEvent>): Effect.Effect<void> => {
    held++
    return deliver(make).pipe(
      lock.withPermit,
      Effect.uninterruptible,
      Effect.ensuring(Effect.sync(() => held--))
    )
  }
  /** Nobody has to be waited for, so that everything can happen in this very step. */
  const isFree = () => held === 0 && audience.listeners().length === 0
  const atOnce = (events: ReadonlyArray<AgentEvent>): Effect.Effect<void> => {
    for (const event of events) audience.observe(event)
    return audience.reader.offer(events)
  }

  const emitter: Emitter = {
    turn: undefined,
    emit: (bodies) => (isFree() ? atOnce(bodies.map(stamp)) : locked(() => bodies.map(stamp))),
    deltas: (messageId, deltas) =>
      isFree() ? atOnce(stampDeltas(messageId, deltas)) : locked(() => stampDeltas(messageId, deltas))
  }
  return emitter
}
