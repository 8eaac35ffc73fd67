/**
 * Who listens to the runs of an agent: subscribers, which are awaited, and readers, which are not.
 */
import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { memoize } from "effect/Function"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import type { Subscriber } from "./mailbox.ts"

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

type Listener<E, R> = (event: AgentEvent) => Effect.Effect<void, E, R>

export class Subscriptions {
  subscribers: ReadonlyArray<Subscriber> = []
  /** Those of `events`. */
  readonly readers = new Set<Queue.Queue<AgentEvent, Cause.Done>>()
  /** Of the agent. */
  private readonly scope: Scope.Scope
  private isClosed = false
  private count = 0
  /** How many events readers have lost. */
  dropped = 0

  constructor(scope: Scope.Scope) {
    this.scope = scope
  }

  /** Takes events to the readers; one that is too far behind loses its oldest. */
  observe(events: ReadonlyArray<AgentEvent>): void {
    for (const reader of this.readers) {
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
      if (!this.isClosed) this.subscribers = [...this.subscribers, subscriber]
      return scope === this.scope
        ? Effect.void
        : Scope.addFinalizer(scope, Effect.sync(subscriber.unsubscribe))
    })
  }

  /** All events from now on, until the agent closes. */
  get events(): Stream.Stream<AgentEvent> {
    const open = Effect.map(Queue.sliding<AgentEvent, Cause.Done>(eventBuffer), (reader) => {
      this.readers.add(reader)
      return reader
    })
    const close = (reader: Queue.Queue<AgentEvent, Cause.Done>) => {
      this.readers.delete(reader)
      return Queue.shutdown(reader)
    }
    return Stream.suspend(() =>
      this.isClosed
        ? Stream.empty
        : Stream.unwrap(Effect.map(Effect.acquireRelease(open, close), Stream.fromQueue))
    )
  }

  /** Ends the streams of events, and removes the subscribers. */
  close(): void {
    this.isClosed = true
    this.subscribers = []
    for (const reader of this.readers) Queue.endUnsafe(reader)
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
