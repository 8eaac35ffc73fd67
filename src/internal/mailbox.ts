/**
 * The mailbox of one run: numbers its events, and delivers them in order to the journal, the state, the subscribers and the
 * reader.
 *
 * `emit` is a statement: it never suspends. While no subscriber and no journal must be awaited, all receive an event before it
 * returns. Otherwise events wait for one fiber, `serve`, which delivers them one after another; the run awaits `delivered` where
 * subscribers must have received all events before it continues. Both ways fold the same state and report.
 *
 * A subscriber that is late is interrupted, and delivery continues with the next one: late is a subscriber that takes longer
 * for one event than its limit, or, once the run is stopped, than `grace`.
 */
import type * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { memoize } from "effect/Function"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import type { AgentEvent, Body, OfTag } from "../AgentEvent.ts"
import { attempt, type Control, grace } from "./interruption.ts"
import type { Journal } from "./journal.ts"
import type { MessageId } from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import type { Part } from "./partials.ts"
import type { Queues } from "./queues.ts"
import { type Reader, Readers } from "./reader.ts"
import * as Report from "../RunReport.ts"
import type { ToolContext } from "../Tool.ts"

type Base = Pick<AgentEvent, "runId" | "parent" | "path">
type Events = ReadonlyArray<AgentEvent>

/** The run whose events are published. */
interface Source {
  readonly id: string
  readonly clock: Clock.Clock
  readonly control: Control
  readonly queues: Queues
}

/** All that receive the events of a run. */
export interface Audience {
  /** Writes events before others receive them. Default: they are not kept. */
  readonly journal?: Journal | undefined
  /** Folds the events of the run that are no deltas, before subscribers receive them. Must be quick. */
  readonly observe?: (events: Events) => void
  readonly subscriptions?: Subscriptions
  /** Reads the stream of the run. */
  readonly reader?: Reader | undefined
}

export class Mailbox {
  /** The turn of later events; `undefined` before the first and after the last. */
  turn: number | undefined = undefined
  /** The report of the run, as far as its events are delivered. */
  report = Report.empty
  /** Waits until subscribers have received all events so far. */
  delivered: Effect.Effect<void>
  /** The tool calls that the run is inside of, outermost first. */
  readonly path: Base["path"]
  private readonly base: Base
  private readonly source: Source
  private readonly audience: Audience
  /** The mailbox of the run around this one: it delivers the events between its own, in place of the reader. */
  private readonly outer: Mailbox | undefined
  private seq = 0
  private isOver = false
  private tracePhase: ((events: Events) => void) | undefined
  /** Oldest first. The first one may have reached some subscribers. */
  private readonly undelivered: Array<AgentEvent> = []
  /** How many of them, from the first one on, are in the journal. */
  private written = 0
  /** Open while there is something to deliver. */
  private readonly hasUndelivered = Latch.makeUnsafe(false)
  /** Open while all is delivered. */
  private readonly settled = Latch.makeUnsafe(true)
  /** Waits until the mailbox around this one has delivered all events so far. */
  private readonly outerDelivered: Effect.Effect<void>
  /** Waits for both. */
  private readonly allDelivered: Effect.Effect<void>
  /** Subscribers that a stop found busy: they receive only the end of the run. */
  private readonly interrupted = new Set<Subscriber>()

  constructor(source: Source, callers: Omit<Base, "runId">, audience: Audience, outer: Mailbox | undefined) {
    this.base = { runId: source.id, ...callers }
    this.path = callers.path
    this.source = source
    this.audience = audience
    this.outer = outer
    this.outerDelivered = outer === undefined ? Effect.void : Effect.suspend(() => outer.delivered)
    const { await: here } = this.settled
    this.allDelivered = outer === undefined ? here : Effect.andThen(here, this.outerDelivered)
    this.delivered = this.outerDelivered
  }

  /** Has a span learn the phases of the run. */
  trace(tracePhase: (events: Events) => void): void {
    this.tracePhase = tracePhase
  }

  /** Publishes events, with nothing in between. Subscribers may receive them later: await `delivered` where that matters. */
  readonly emit = (...bodies: ReadonlyArray<Body>): void => {
    if (this.source.queues.hasChanged) this.emitSizes()
    this.send(this.stamp(bodies, this.turn))
  }

  /** Publishes the last event of the run. */
  emitLast(body: Body): void {
    this.emit(body)
    this.isOver = true
  }

  /** Publishes an event of a call that an earlier turn made. */
  emitIn(turn: number, body: Body): void {
    if (this.source.queues.hasChanged) this.emitSizes()
    this.send(this.stamp([body], turn))
  }

  /** Publishes a partial result. Suspends while subscribers and the reader are too far behind. */
  progress(body: Body): Effect.Effect<void> {
    this.send(this.stamp([body], this.turn))
    return this.room
  }

  /** Publishes deltas of an answer that arrived together. Suspends like `progress`. */
  deltas(messageId: MessageId, deltas: ReadonlyArray<ModelEvent | Part>): Effect.Effect<void> {
    const { parent, path, runId } = this.base
    const { turn = 0 } = this
    const timestamp = this.source.clock.currentTimeMillisUnsafe()
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
    this.send(events, true)
    return this.room
  }

  /** Publishes the sizes of the queues when they change: once for all changes that one step makes. */
  get announceQueues(): Effect.Effect<never> {
    return this.source.queues.changed.await.pipe(
      Effect.andThen(Effect.yieldNow),
      Effect.andThen(Effect.sync(() => this.emitSizes())),
      Effect.forever
    )
  }

  private emitSizes(): void {
    const sizes = this.isOver ? undefined : this.source.queues.takeChange()
    if (sizes !== undefined) this.send(this.stamp([{ _tag: "QueueUpdate", ...sizes }], this.turn))
  }

  /** Delivers events of one run, this one or one inside of it: at once, unless `serve` must wait for someone. */
  private send(events: Events, areDeltas = false): void {
    const { journal, reader, subscriptions } = this.audience
    if (
      this.undelivered.length > 0 ||
      (subscriptions !== undefined && subscriptions.subscribers.length > 0) ||
      journal?.wants(this.source.id, events) === true
    ) {
      for (const event of events) this.undelivered.push(event)
      this.settled.closeUnsafe()
      this.delivered = this.allDelivered
      this.hasUndelivered.openUnsafe()
      return
    }
    this.observe(events, areDeltas)
    if (this.outer === undefined) reader?.add(events)
    else this.outer.send(events, areDeltas)
  }

  /** Folds events of one run. Deltas and the events of the runs inside change neither report nor state. */
  private observe(events: Events, areDeltas: boolean): void {
    const { observe, subscriptions } = this.audience
    if (!areDeltas && events[0]?.runId === this.source.id) {
      for (const event of events) this.report = Report.fold(this.report, event)
      this.tracePhase?.(events)
      observe?.(events)
    }
    if (subscriptions !== undefined && subscriptions.readers.queues.size > 0) subscriptions.add(events)
  }

  /** Waits while subscribers and the reader are too far behind. */
  private get room(): Effect.Effect<void> {
    if (this.undelivered.length > 0) return Effect.flatMap(this.delivered, () => this.room)
    const room = this.outer?.room ?? this.audience.reader?.room ?? Effect.void
    // A stop ends the wait for a reader, which may have left.
    return Exit.isExit(room) ? room : Effect.raceFirst(room, this.source.control.stopped.await)
  }

  private stamp(bodies: ReadonlyArray<Body>, turn: number | undefined): Events {
    const { base } = this
    const timestamp = this.source.clock.currentTimeMillisUnsafe()
    const events: Array<AgentEvent> = []
    for (const body of bodies) {
      const seq = ++this.seq
      events.push(
        turn === undefined ? { ...body, ...base, seq, timestamp } : { ...body, ...base, seq, timestamp, turn }
      )
    }
    return events
  }

  /** Delivers events that wait, for as long as the run lasts. */
  readonly serve: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    const { journal, reader, subscriptions } = this.audience
    while (true) {
      yield* this.hasUndelivered.await
      while (this.undelivered.length > 0) {
        if (journal !== undefined && this.written === 0) yield* this.write(journal)
        const [event] = this.undelivered
        if (event === undefined) break
        const isDelta = event._tag === "MessageDelta" || event._tag === "PartialValue"
        this.observe([event], isDelta)
        if (subscriptions !== undefined)
          for (const subscriber of subscriptions.subscribers) yield* this.deliver(subscriber, event)
        if (this.outer === undefined) reader?.add([event])
        else this.outer.send([event], isDelta)
        this.undelivered.shift()
        if (this.written > 0) this.written--
      }
      this.hasUndelivered.closeUnsafe()
      this.delivered = this.outerDelivered
      this.settled.openUnsafe()
    }
  })

  /** Writes all events that wait, together. Stops the run if that fails; a run that had ended then has failed. */
  private write(journal: Journal): Effect.Effect<void> {
    const { control, id } = this.source
    this.written = this.undelivered.length
    return Effect.flatMap(journal.writeEvents(id, this.undelivered), () => {
      const { failure } = journal
      if (failure === undefined) return Effect.void
      const last = this.undelivered[this.written - 1]
      if (last !== undefined && this.isLast(last) && last.error === undefined)
        this.undelivered[this.written - 1] = { ...last, status: "failed", error: failure }
      return control.stopWith({ cause: "session", error: failure })
    })
  }

  /** Whether an event is the end of this run: events of the runs inside of it stand between its own. */
  private isLast(event: AgentEvent): event is OfTag<"RunEnd"> {
    return event._tag === "RunEnd" && event.runId === this.source.id
  }

  private deliver(subscriber: Subscriber, event: AgentEvent): Effect.Effect<void> {
    if (this.interrupted.has(subscriber) && !this.isLast(event)) return Effect.void
    const receiving = subscriber.receive(event)
    // Most subscribers have no more to do when they return.
    if (Exit.isExit(receiving)) return receiving
    const stopped = Effect.andThen(this.source.control.stopped.await, Effect.sleep(grace))
    const { timeout } = subscriber
    const until = Number.isFinite(timeout) ? Effect.raceFirst(stopped, Effect.sleep(timeout)) : stopped
    return Effect.flatMap(attempt(receiving, { until }), (attempted) =>
      attempted._tag === "Done" ? Effect.void : this.dismiss(subscriber, event, attempted.isAbandoned)
    )
  }

  /** Leaves a late subscriber alone from now on, and logs it. */
  private dismiss(subscriber: Subscriber, event: AgentEvent, isAbandoned: boolean): Effect.Effect<void> {
    const isEnding = this.source.control.stop !== undefined
    const isRemoved = !isEnding || isAbandoned
    if (isRemoved) subscriber.unsubscribe()
    else this.interrupted.add(subscriber)
    const took = isEnding
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

// ───────────────────────── The listeners of an agent

/** How many events a reader of `events` may be behind before it loses the oldest. */
const eventBuffer = 1024

/** Of a subscriber, for one event. */
const defaultTimeout = Duration.seconds(5)

/**
 * The options of a subscriber.
 *
 * @category options
 * @since 0.2.0
 */
export interface SubscribeOptions {
  /**
   * How long the listener may take for one event. A listener that takes longer is interrupted and unsubscribed, and a
   * warning is logged. Default: 5 seconds. `"Infinity"`: no limit.
   */
  readonly timeout?: Duration.Input
  /** Names the subscriber in the log. Default: the name of the function, else its number. */
  readonly name?: string
}

/** Code of the application that receives each event, and that the run waits for. */
interface Subscriber {
  /** For the log. */
  readonly name: string
  /** Milliseconds it may take for one event; `Infinity` for no limit. */
  readonly timeout: number
  /** Never fails. */
  readonly receive: (event: AgentEvent) => Effect.Effect<void>
  /** Removes it from this run and all later ones. */
  readonly unsubscribe: () => void
}

type Listener<E, R> = (event: AgentEvent) => Effect.Effect<void, E, R>

/** Those who listen to the runs of an agent: subscribers, which are awaited, and readers, which are not. */
export class Subscriptions {
  /** In the order in which they subscribed. */
  subscribers: ReadonlyArray<Subscriber> = []
  readonly readers = new Readers<AgentEvent>()
  /** All events from now on, until the agent closes. */
  readonly events = this.readers.stream(Queue.sliding(eventBuffer))
  /** Of the agent. */
  private readonly scope: Scope.Scope
  private count = 0
  /** How many events readers have lost. */
  dropped = 0

  constructor(scope: Scope.Scope) {
    this.scope = scope
  }

  /** Takes events to the readers; one that is too far behind loses its oldest. */
  add(events: Events): void {
    for (const reader of this.readers.queues) {
      for (const event of events) {
        if (Queue.sizeUnsafe(reader) >= eventBuffer) this.dropped++
        Queue.offerUnsafe(reader, event)
      }
    }
  }

  /** Listens until the scope closes; in the agent's own scope until its last run has ended. */
  subscribe<E, R>(
    listener: Listener<E, R>,
    options: SubscribeOptions = {}
  ): Effect.Effect<void, never, R | Scope.Scope> {
    return Effect.contextWith((context: Context.Context<R | Scope.Scope>) => {
      const timeout = Option.filter(
        Duration.fromInput(options.timeout ?? defaultTimeout),
        Duration.isGreaterThan(Duration.zero)
      )
      if (Option.isNone(timeout)) return Effect.die(new Error(noTimeout(options.timeout)))
      const name = options.name ?? (listener.name === "" ? `${++this.count}` : listener.name)
      const subscriber: Subscriber = {
        name,
        timeout: Duration.toMillis(timeout.value),
        receive: receiving(name, listener, context),
        unsubscribe: () => {
          this.subscribers = this.subscribers.filter((other) => other !== subscriber)
        }
      }
      const scope = Context.get(context, Scope.Scope)
      if (!this.readers.isEnded) this.subscribers = [...this.subscribers, subscriber]
      return scope === this.scope
        ? Effect.void
        : Scope.addFinalizer(scope, Effect.sync(subscriber.unsubscribe))
    })
  }

  /** Ends the streams of events, and removes the subscribers. */
  close(): void {
    this.subscribers = []
    this.readers.end()
  }
}

/** Calls a listener with the services it subscribed with over those of the run. Logs its first failure. */
const receiving = <E, R>(
  name: string,
  listener: Listener<E, R>,
  context: Context.Context<R>
): ((event: AgentEvent) => Effect.Effect<void>) => {
  let hasFailed = false
  // Deltas are many, and all events of a run have the same context.
  const over = memoize((run: Context.Context<never>): Context.Context<R> => Context.merge(run, context))
  const report = (cause: Cause.Cause<E>): Effect.Effect<void> => {
    // It may fail at every delta: once is enough to know.
    if (hasFailed) return Effect.void
    hasFailed = true
    return Effect.logWarning(`Subscriber ${name} failed, and may fail again; the run goes on`, cause)
  }
  return (event) => {
    const listening = called(listener, event)
    return Exit.isExit(listening) && Exit.isSuccess(listening)
      ? Effect.void
      : listening.pipe(Effect.catchCause(report), Effect.updateContext(over))
  }
}

const called = <E, R>(listener: Listener<E, R>, event: AgentEvent): Effect.Effect<void, E, R> => {
  try {
    const returned = listener(event)
    return isEffect(returned) ? returned : Effect.die(new TypeError(noEffect))
  } catch (defect) {
    return Effect.die(defect)
  }
}

/** Plain JavaScript may return anything, such as the promise of an `async` function. */
const isEffect = (value: unknown): boolean => Effect.isEffect(value)

const noEffect =
  "The listener returned no Effect. Return Effect.void, Effect.sync(() => …) or Effect.promise(() => promise)."

const noTimeout = (timeout: unknown): string =>
  `subscribe: the timeout ${String(timeout)} is no duration above zero; give milliseconds, or a text such as "5 seconds"`
