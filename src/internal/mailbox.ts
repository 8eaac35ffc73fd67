/**
 * The mailbox of one run: it numbers the events, and delivers them in order to the journal, the state, the subscribers and the reader.
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

/** The receivers of the events of a run. */
export interface Audience {
  /** Writes events to the session before others receive them. Default: the agent has no session. */
  readonly journal?: Journal | undefined
  /** Folds events into the state of the agent, before subscribers receive them. It gets no deltas, and must be quick. */
  readonly observe?: (events: Events) => void
  readonly subscriptions?: Subscriptions
  readonly reader?: Reader | undefined
}

export class Mailbox {
  /** The number of the current turn, which events carry; `undefined` before the first turn and after the last. */
  turn: number | undefined = undefined
  /** The report of the run, a fold of the events that are delivered. */
  report = Report.empty
  /** The delivery barrier: waits until subscribers have received all events so far. */
  delivered: Effect.Effect<void>
  /** The tool calls of the parent runs that lead to this sub-agent's run, outermost first; `undefined` for a run that no tool started. */
  readonly path: Base["path"]
  private readonly base: Base
  private readonly source: Source
  private readonly audience: Audience
  /** The mailbox of the parent run, which delivers the events of this run between its own. Absent for a run that no tool started. */
  private readonly outer: Mailbox | undefined
  private seq = 0
  private isOver = false
  private tracePhase: ((events: Events) => void) | undefined
  /** The events that wait for delivery, oldest first. Some subscribers may have received the first one. */
  private readonly undelivered: Array<AgentEvent> = []
  /** The number of events in `undelivered` that are in the journal already. */
  private written = 0
  /** A latch that is open while events wait for delivery. */
  private readonly hasUndelivered = Latch.makeUnsafe(false)
  /** A latch that is open while no event waits for delivery. */
  private readonly settled = Latch.makeUnsafe(true)
  /** The delivery barrier of the parent run's mailbox. */
  private readonly outerDelivered: Effect.Effect<void>
  /** Waits for the delivery of both mailboxes. */
  private readonly allDelivered: Effect.Effect<void>
  /** The subscribers that were busy for too long after a stop. They receive only the end of the run. */
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

  /** Sets the function that records the phases of the run in its span. */
  trace(tracePhase: (events: Events) => void): void {
    this.tracePhase = tracePhase
  }

  /** Publishes events one directly after another, without waiting for subscribers: `delivered` does. */
  readonly emit = (...bodies: ReadonlyArray<Body>): void => {
    if (this.source.queues.hasChanged) this.emitSizes()
    this.send(this.stamp(bodies, this.turn))
  }

  /** Publishes `RunEnd`. Changes of the queues after it have no event. */
  emitLast(body: Body): void {
    this.emit(body)
    this.isOver = true
  }

  /** Publishes an event with the number of an earlier turn, for its call in the background. */
  emitIn(turn: number, body: Body): void {
    if (this.source.queues.hasChanged) this.emitSizes()
    this.send(this.stamp([body], turn))
  }

  /** Publishes the progress of a tool. Suspends while subscribers or the reader are too far behind (backpressure). */
  progress(body: Body): Effect.Effect<void> {
    this.send(this.stamp([body], this.turn))
    return this.room
  }

  /** Publishes deltas of an answer that arrived together. Suspends as `progress` does. */
  deltas(messageId: MessageId, deltas: ReadonlyArray<ModelEvent | Part>): Effect.Effect<void> {
    const { parent, path, runId } = this.base
    const { turn = 0 } = this
    const timestamp = this.source.clock.currentTimeMillisUnsafe()
    const events: Array<AgentEvent> = []
    // It builds each event without spreads, which are slow: there are many deltas.
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

  /** Publishes `QueueUpdate` whenever the sizes of the queues have changed: once for all changes of one synchronous step. */
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

  /** Delivers events of this run or of a sub-agent's run: at once, unless `serve` must wait for a subscriber or the journal. */
  private send(events: Events, areDeltas = false): void {
    const { journal, reader, subscriptions } = this.audience
    if (
      this.undelivered.length > 0 ||
      (subscriptions !== undefined && subscriptions.subscribers.length > 0) ||
      journal?.wants(this.source.id, events, areDeltas) === true
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

  /** Folds events into report and state. Deltas and the events of sub-agents change neither. */
  private observe(events: Events, areDeltas: boolean): void {
    const { observe, subscriptions } = this.audience
    if (!areDeltas && events[0]?.runId === this.source.id) {
      for (const event of events) this.report = Report.fold(this.report, event)
      this.tracePhase?.(events)
      observe?.(events)
    }
    if (subscriptions !== undefined && subscriptions.readers.queues.size > 0) subscriptions.add(events)
  }

  /** Waits while subscribers or the reader are too far behind. */
  private get room(): Effect.Effect<void> {
    if (this.undelivered.length > 0) return Effect.flatMap(this.delivered, () => this.room)
    const room = this.outer?.room ?? this.audience.reader?.room ?? Effect.void
    // A stop of the run ends the wait, since the reader may have left.
    return Exit.isExit(room) ? room : Effect.raceFirst(room, this.source.control.stopped.await)
  }

  private stamp(bodies: ReadonlyArray<Body>, turn: number | undefined): Events {
    const timestamp = this.source.clock.currentTimeMillisUnsafe()
    const place = turn === undefined ? {} : { turn }
    const events: Array<AgentEvent> = []
    for (const body of bodies) events.push({ ...body, ...this.base, seq: ++this.seq, timestamp, ...place })
    return events
  }

  /** The loop of the fiber that delivers waiting events, for as long as the run lasts. */
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
          // One of them may unsubscribe another.
          for (const subscriber of subscriptions.subscribers)
            if (subscriptions.subscribers.includes(subscriber)) yield* this.deliver(subscriber, event)
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

  /** Writes all waiting events to the journal at once. A failure stops the run; after `RunEnd` it is the result of the run. */
  private write(journal: Journal): Effect.Effect<void> {
    const { control, id } = this.source
    this.written = this.undelivered.length
    return Effect.flatMap(journal.writeEvents(id, [...this.undelivered]), () => {
      const { failure } = journal
      if (failure === undefined) return Effect.void
      const last = this.undelivered[this.written - 1]
      if (last !== undefined && this.isLast(last) && last.error === undefined)
        this.undelivered[this.written - 1] = { ...last, status: "failed", error: failure }
      return control.stopWith({ cause: "session", error: failure })
    })
  }

  /** Whether an event is the end of this run, and not of a sub-agent's run, whose events come between its own. */
  private isLast(event: AgentEvent): event is OfTag<"RunEnd"> {
    return event._tag === "RunEnd" && event.runId === this.source.id
  }

  private deliver(subscriber: Subscriber, event: AgentEvent): Effect.Effect<void> {
    if (this.interrupted.has(subscriber) && !this.isLast(event)) return Effect.void
    const receiving = subscriber.receive(event)
    // Most subscribers are synchronous, so that there is no fiber to wait for.
    if (Exit.isExit(receiving)) return receiving
    const stopped = Effect.andThen(this.source.control.stopped.await, Effect.sleep(grace))
    const { timeout } = subscriber
    const until = Number.isFinite(timeout) ? Effect.raceFirst(stopped, Effect.sleep(timeout)) : stopped
    return Effect.flatMap(attempt(receiving, { until }), (attempted) =>
      attempted._tag === "Done" ? Effect.void : this.dismiss(subscriber, event, attempted.isAbandoned)
    )
  }

  /** Unsubscribes a listener that took too long, or after a stop skips it until the end of the run, and logs that. */
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

/** The `parent` and the `path` of the events of a run that starts in a tool call; nothing for a run that no tool started. */
export const callersOf = (caller: Option.Option<ToolContext["Service"]>): Omit<Base, "runId"> => {
  if (Option.isNone(caller)) return {}
  const { path = [], runId, toolCallId } = caller.value
  const parent = { runId, toolCallId }
  return { parent, path: [...path, parent] }
}

// ───────────────────────── The listeners of an agent

/** How many events a reader of `events` may be behind before it loses the oldest. */
const eventBuffer = 1024

/** The default time limit of a subscriber for one event. */
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
  readonly name: string
  /** Milliseconds it may take for one event; `Infinity` for no limit. */
  readonly timeout: number
  /** Calls the listener. It never fails: a failure of the listener is logged. */
  readonly receive: (event: AgentEvent) => Effect.Effect<void>
  /** Removes the subscriber from this run and all later ones. */
  readonly unsubscribe: () => void
}

type Listener<E, R> = (event: AgentEvent) => Effect.Effect<void, E, R>

/** The listeners of the runs of an agent: subscribers, for which runs wait, and readers of `agent.events`, for which they do not. */
export class Subscriptions {
  subscribers: ReadonlyArray<Subscriber> = []
  readonly readers = new Readers<AgentEvent>()
  /** All events from now on, until the agent closes. */
  readonly events = this.readers.stream(Queue.sliding(eventBuffer))
  /** The scope of the agent. */
  private readonly scope: Scope.Scope
  private count = 0
  /** The number of events that readers of `agent.events` have lost. */
  dropped = 0

  constructor(scope: Scope.Scope) {
    this.scope = scope
  }

  /** Offers events to the readers. A reader that is too far behind loses its oldest events. */
  add(events: Events): void {
    for (const reader of this.readers.queues) {
      for (const event of events) {
        if (Queue.sizeUnsafe(reader) >= eventBuffer) this.dropped++
        Queue.offerUnsafe(reader, event)
      }
    }
  }

  /** Subscribes a listener until the current scope closes, or, in the agent's own scope, until its last run has ended. */
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

/** Calls a listener with the services of its subscription, which win over those of the run. Logs its first failure. */
const receiving = <E, R>(
  name: string,
  listener: Listener<E, R>,
  context: Context.Context<R>
): ((event: AgentEvent) => Effect.Effect<void>) => {
  let hasFailed = false
  // The merged context is kept, since all events of a run have the same context and there are many deltas.
  const over = memoize((run: Context.Context<never>): Context.Context<R> => Context.merge(run, context))
  const report = (cause: Cause.Cause<E>): Effect.Effect<void> => {
    // Only the first failure is logged, since a listener may fail at every delta.
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

/** Whether a listener returned an Effect: in plain JavaScript it may return anything, such as a promise. */
const isEffect = (value: unknown): boolean => Effect.isEffect(value)

const noEffect =
  "The listener returned no Effect. Return Effect.void, Effect.sync(() => …) or Effect.promise(() => promise)."

const noTimeout = (timeout: unknown): string =>
  `subscribe: the timeout ${String(timeout)} is no duration above zero; give milliseconds, or a text such as "5 seconds"`
