/**
 * Gives the events of one run their number and time, and takes them to whoever listens: observers first, then awaited
 * subscribers, one event after another, then the reader.
 *
 * Deltas take a short cut when nobody is subscribed: an array of them goes from the provider to the reader in one
 * synchronous step.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { AgentEvent, Body } from "./AgentEvent.ts"
import type { MessageId } from "./Message.ts"
import type { ModelEvent } from "./ModelEvent.ts"

export type Listener = (event: AgentEvent) => Effect.Effect<void>

export interface Audience {
  /** Sees every event first, and must be quick. */
  readonly observe: (event: AgentEvent) => void
  /** Done after `observe` and before anyone else hears of it; never for deltas. */
  readonly settle: (event: AgentEvent) => Effect.Effect<void>
  /** Awaited, in order. A failure is logged and changes nothing. */
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

export interface Emitter {
  readonly emit: (body: Body) => Effect.Effect<void>
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

  const stamp = (body: Body): AgentEvent => ({
    ...body,
    ...base,
    seq: ++seq,
    timestamp: clock.currentTimeMillisUnsafe(),
    ...(emitter.turn === undefined ? {} : { turn: emitter.turn })
  })
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

  const tell = Effect.fnUntraced(function* (event: AgentEvent) {
    audience.observe(event)
    if (event._tag !== "MessageDelta") yield* audience.settle(event)
    for (const listener of audience.listeners()) {
      yield* Effect.catchCause(listener(event), (cause) =>
        Effect.logWarning("A subscriber failed; the run goes on", cause)
      )
    }
  })
  // Events are stamped inside the lock: parallel tools must not overtake one another between number and delivery.
  const awaited = (make: () => ReadonlyArray<AgentEvent>): Effect.Effect<void> =>
    Effect.suspend(() => {
      held++
      return Effect.suspend(() => {
        const events = make()
        return Effect.andThen(Effect.forEach(events, tell, { discard: true }), audience.reader.offer(events))
      }).pipe(lock.withPermit, Effect.uninterruptible, Effect.ensuring(Effect.sync(() => held--)))
    })
  const emitter: Emitter = {
    turn: undefined,
    emit: (body) => awaited(() => [stamp(body)]),
    deltas: (messageId, deltas) =>
      Effect.suspend(() => {
        if (held > 0 || audience.listeners().length > 0) return awaited(() => stampDeltas(messageId, deltas))
        const events = stampDeltas(messageId, deltas)
        for (const event of events) audience.observe(event)
        return audience.reader.offer(events)
      })
  }
  return emitter
}
