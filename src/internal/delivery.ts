/**
 * Delivers the events of one run to its subscribers and then to its reader, one batch after another, in a fiber of its own.
 *
 * An emitter hands a batch over and waits for its delivery. That wait can be interrupted, and the delivery goes on: an
 * event that has its number reaches every listener, in order. A subscriber is awaited for as long as its limit says. When
 * the run is stopped, a subscriber has 100 ms for the event it is busy with.
 */
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { AgentEvent } from "../AgentEvent.ts"
import { isKnown } from "./begin.ts"
import type { StopSignal } from "./work.ts"
import { attempt, grace } from "./work.ts"

/** Code of the application that is awaited for each event. */
export interface Subscriber {
  /** For the log. */
  readonly name: string
  /** Milliseconds it may take for one event; `Infinity` for no limit. */
  readonly timeout: number
  /** Never fails. */
  readonly hear: (event: AgentEvent) => Effect.Effect<void>
  /** Removes it: it hears nothing more, of any run. */
  readonly drop: () => void
}

/** Who listens to a run. */
export interface Audience {
  /** Sees events first, and must be quick. */
  readonly observe: (events: ReadonlyArray<AgentEvent>) => void
  readonly subscriptions: Subscriptions
  readonly reader: Reader
}

/** Who listens to an agent, as it is at the moment. */
export interface Subscriptions {
  /** Awaited, in order. */
  readonly subscribers: ReadonlyArray<Subscriber>
  /** Whether anybody who observes wants deltas too: there are many of them. */
  readonly hasReaders: boolean
}

/** Who reads the events of a run. Its functions take the events when they are called; the effect is the wait for room. */
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

/** A function of the reader that takes events. */
export type Way = "offer" | "add" | "addLater"

/** Events that are handed over together. */
class Batch {
  readonly events: ReadonlyArray<AgentEvent>
  readonly way: Way
  /** The reader's wait for room, once the batch is delivered. */
  private room: Effect.Effect<void> | undefined
  private resume: ((room: Effect.Effect<void>) => void) | undefined

  constructor(events: ReadonlyArray<AgentEvent>, way: Way) {
    this.events = events
    this.way = way
  }

  done(room: Effect.Effect<void>): void {
    this.room = room
    this.resume?.(room)
  }

  /** Until it is delivered, and the reader has room. */
  get delivered(): Effect.Effect<void> {
    return (
      this.room ??
      Effect.callback<void>((resume) => {
        if (this.room !== undefined) return resume(this.room)
        this.resume = resume
      })
    )
  }
}

/** Delivers batches in the order in which they are added. */
export class Delivery {
  private readonly audience: Audience
  /** Those of the run, for its subscribers. */
  private readonly services: Context.Context<never>
  /** Of the run. */
  private readonly signal: StopSignal
  private readonly waiting: Array<Batch> = []
  /** Interrupted after a stop: these hear only the end of the run. */
  private readonly interrupted = new Set<Subscriber>()
  private isStarted = false
  /** Set while everything is delivered. */
  private wake: ((next: Effect.Effect<Batch>) => void) | undefined

  constructor(audience: Audience, services: Context.Context<never>, signal: StopSignal) {
    this.audience = audience
    this.services = services
    this.signal = signal
  }

  /** Whether a batch is being delivered. */
  get isBusy(): boolean {
    return this.isStarted && this.wake === undefined
  }

  /**
   * Hands a batch over, when it is called. The effect waits for its delivery: it is over already where no subscriber has to
   * be waited for.
   */
  add(events: ReadonlyArray<AgentEvent>, way: Way): Effect.Effect<void> {
    const batch = new Batch(events, way)
    const { wake } = this
    this.wake = undefined
    if (wake !== undefined) wake(Effect.succeed(batch))
    else {
      this.waiting.push(batch)
      if (!this.isStarted) this.start()
    }
    return batch.delivered
  }

  private start(): void {
    this.isStarted = true
    Effect.runForkWith(this.services)(this.deliverAll)
  }

  /** Until the run has ended. */
  private readonly deliverAll = Effect.gen({ self: this }, function* () {
    for (let isOver = false; !isOver; ) {
      const batch = this.waiting.shift() ?? (yield* this.next)
      for (const event of batch.events) {
        this.audience.observe([event])
        for (const subscriber of this.audience.subscriptions.subscribers) {
          const heard = this.isDeaf(subscriber, event) ? Effect.void : subscriber.hear(event)
          if (isKnown(heard)) continue
          const fiber = Effect.runForkWith(this.services)(heard)
          // Most listeners are over at once: a limit would cost more than they do.
          if (fiber.pollUnsafe() === undefined) yield* this.bounded(subscriber, event, joined(fiber))
        }
        isOver = event._tag === "RunEnd"
      }
      batch.done(this.audience.reader[batch.way](batch.events))
    }
    this.isStarted = false
  })

  private readonly next = Effect.callback<Batch>((resume) => {
    this.wake = resume
  })

  private isDeaf(subscriber: Subscriber, { _tag }: AgentEvent): boolean {
    return this.interrupted.has(subscriber) && _tag !== "RunEnd"
  }

  /** Waits for a subscriber, but no longer than its limit, and after a stop no longer than the grace. */
  private bounded(subscriber: Subscriber, { _tag }: AgentEvent, heard: Effect.Effect<void>) {
    return Effect.gen({ self: this }, function* () {
      const patience = Math.min(grace, subscriber.timeout)
      const ended = yield* attempt(this.signal, heard, subscriber.timeout, patience)
      if (ended._tag === "Done") return
      const isDropped = ended._tag === "TimedOut" || ended.abandoned
      if (isDropped) subscriber.drop()
      else this.interrupted.add(subscriber)
      const late =
        ended._tag === "TimedOut"
          ? `took longer than ${text(subscriber.timeout)} for ${_tag}`
          : `was still busy with ${_tag} ${text(patience)} after the run was told to stop`
      const deaf = ended.abandoned ? ", and ignored its interruption" : ""
      const then = isDropped ? `It was unsubscribed. ${advice}` : "Of this run it hears only RunEnd."
      yield* Effect.logWarning(`Subscriber "${subscriber.name}" ${late}${deaf}. ${then}`)
    })
  }
}

/** Waits for a fiber, and takes it along when it is interrupted. */
const joined = (fiber: Fiber.Fiber<void>): Effect.Effect<void> =>
  Effect.onInterrupt(Fiber.join(fiber), () => Fiber.interrupt(fiber))

const text = (ms: number): string => Duration.format(Duration.millis(ms))

const advice = "Let it do long work in a fiber of its own, or give subscribe a longer timeout."
