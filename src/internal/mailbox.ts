/**
 * Publishes the events of one run: numbers them, and delivers them in order to the journal, the state, the subscribers and the reader.
 *
 * `post` is a statement and never suspends. While the run has no subscribers, and the journal does not want the events, it is one
 * synchronous step. Otherwise the events wait for one fiber that delivers them; the run awaits `delivered` where subscribers must have
 * received all events before it continues. Only deltas and progress wait for `room`, which is the backpressure of slow readers.
 *
 * A subscriber that is late is interrupted, and delivery continues with the next one: late is a subscriber that takes longer
 * for one event than its limit, or, once the run is stopped, than `grace`.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import { type AgentEvent, areDeltas, type Body, type OfTag } from "../AgentEvent.ts"
import { attempt, type Control, grace } from "./interruption.ts"
import type { Journal } from "./journal.ts"
import type { MessageId } from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import type { Part } from "./partials.ts"
import type { Reader } from "./reader.ts"
import type { ToolContext } from "./toolContext.ts"

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

/** All that receive the events of a run. */
export interface Audience {
  /** Writes events before others receive them. Default: they are not kept. */
  readonly journal?: Journal | undefined
  /** Receives events first, and must be quick. Events are deltas together, or none of them is one. */
  readonly observe: (events: ReadonlyArray<AgentEvent>, areDeltas: boolean) => void
  /** The subscribers at the moment, in the order in which they subscribed. */
  readonly subscriptions: { readonly subscribers: ReadonlyArray<Subscriber> }
  readonly reader: Reader
}

type Base = Pick<AgentEvent, "runId" | "parent" | "path">

/** The run whose events are published. */
interface Source {
  readonly id: string
  readonly clock: Clock.Clock
  readonly control: Control
}

export class Mailbox {
  /** The turn of later events; `undefined` before the first and after the last. */
  turn: number | undefined = undefined
  /** The tool calls that the run is inside of, outermost first. */
  readonly path: Base["path"]
  private readonly base: Base
  private readonly clock: Clock.Clock
  private readonly control: Control
  private readonly audience: Audience
  private seq = 0
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

  constructor({ clock, control, id }: Source, callers: Omit<Base, "runId">, audience: Audience) {
    this.base = { runId: id, ...callers }
    this.path = callers.path
    this.clock = clock
    this.control = control
    this.audience = audience
  }

  /** Publishes events, with nothing in between. `turn`: that of a call which an earlier turn made. Default: the current one. */
  post(bodies: ReadonlyArray<Body>, turn = this.turn): void {
    const { base } = this
    const events: Array<AgentEvent> = []
    for (const body of bodies) {
      const timestamp = this.clock.currentTimeMillisUnsafe()
      const seq = ++this.seq
      events.push(
        turn === undefined ? { ...body, ...base, seq, timestamp } : { ...body, ...base, seq, timestamp, turn }
      )
    }
    this.publish(events, false)
  }

  /** Publishes a partial result. Suspends while subscribers and the reader are too far behind. */
  progress(body: Body): Effect.Effect<void> {
    this.post([body])
    return this.room
  }

  /** Publishes deltas of an answer that arrived together. Suspends like `progress`. */
  deltas(messageId: MessageId, deltas: ReadonlyArray<ModelEvent | Part>): Effect.Effect<void> {
    const { parent, path, runId } = this.base
    const { turn = 0 } = this
    const timestamp = this.clock.currentTimeMillisUnsafe()
    const events: Array<AgentEvent> = []
    // Without spreads, for there are many.
    for (const delta of deltas) {
      const seq = ++this.seq
      if (delta._tag === "PartialValue")
        events.push({ ...delta, ...this.base, seq, timestamp, turn, messageId })
      else if (parent === undefined || path === undefined)
        events.push({ _tag: "MessageDelta", runId, seq, timestamp, turn, messageId, delta })
      else events.push({ _tag: "MessageDelta", runId, seq, timestamp, turn, parent, path, messageId, delta })
    }
    this.publish(events, true)
    return this.room
  }

  /** Waits until subscribers have received all events so far. */
  get delivered(): Effect.Effect<void> {
    const { received } = this.audience.reader
    const isDone = this.undelivered.length === 0
    if (received === undefined) return isDone ? Effect.void : this.allDelivered.await
    return isDone ? received : Effect.andThen(this.allDelivered.await, received)
  }

  /** Publishes the events of a run inside of this one between the events of this one, as they are. */
  get relay(): Reader {
    return {
      add: (events) => this.publish(events, areDeltas(events)),
      room: Effect.suspend(() => this.room),
      received: Effect.suspend(() => this.delivered),
      end: () => {}
    }
  }

  private publish(events: ReadonlyArray<AgentEvent>, areDeltas: boolean): void {
    const { journal, observe, reader, subscriptions } = this.audience
    const isAwaited =
      this.undelivered.length > 0 ||
      subscriptions.subscribers.length > 0 ||
      journal?.wants(this.base.runId, events) === true
    if (!isAwaited) {
      observe(events, areDeltas)
      reader.add(events)
      return
    }
    for (const event of events) this.undelivered.push(event)
    this.allDelivered.closeUnsafe()
    this.hasUndelivered.openUnsafe()
  }

  /** Waits while subscribers and the reader are too far behind. */
  private get room(): Effect.Effect<void> {
    if (this.undelivered.length > 0) return Effect.flatMap(this.delivered, () => this.room)
    const { room } = this.audience.reader
    // A stop ends the wait for a reader, which may have left.
    return Exit.isExit(room) ? room : Effect.raceFirst(room, this.control.stopped.await)
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
        observe([event], areDeltas([event]))
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
    return Effect.flatMap(journal.writeEvents(this.base.runId, this.undelivered), () => {
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
    return event._tag === "RunEnd" && event.runId === this.base.runId
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

/** The tool calls around a run that starts inside a tool, as its events have them. */
export const callersOf = (caller: Option.Option<ToolContext["Service"]>): Omit<Base, "runId"> => {
  if (Option.isNone(caller)) return {}
  const { path = [], runId, toolCallId } = caller.value
  const parent = { runId, toolCallId }
  return { parent, path: [...path, parent] }
}
