/**
 * Who listens to the runs of an agent: subscribers, which are waited for, and readers, which are not.
 */
import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "./AgentEvent.ts"
import type { Listener } from "./Emitter.ts"

/** How many events a reader of `events` may be behind before it loses the oldest. */
const eventBuffer = 1024

export class Subscriptions {
  listeners: ReadonlyArray<Listener> = []
  private readonly readers = new Set<Queue.Queue<AgentEvent, Cause.Done>>()
  /** How many events readers have lost. */
  dropped = 0

  hasReaders = false

  /** Takes events to the readers; one that is too far behind loses its oldest. */
  observe(events: ReadonlyArray<AgentEvent>): void {
    for (const reader of this.readers) {
      for (const event of events) {
        if (Queue.sizeUnsafe(reader) >= eventBuffer) this.dropped++
        Queue.offerUnsafe(reader, event)
      }
    }
  }

  /** Listens until the scope closes. */
  subscribe<E, R>(listener: (event: AgentEvent) => Effect.Effect<void, E, R>) {
    return Effect.gen({ self: this }, function* () {
      const context = yield* Effect.context<R>()
      let failed = false
      const own: Listener = (event) =>
        Effect.updateContext(
          Effect.exit(Effect.suspend(() => listener(event))),
          (caller: Context.Context<never>): Context.Context<R> => Context.merge(caller, context)
        ).pipe(
          Effect.flatMap((exit) => {
            // It may fail at every delta: once is enough to know.
            if (exit._tag === "Success" || failed) return Effect.void
            failed = true
            return unheard(exit.cause)
          })
        )
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          this.listeners = [...this.listeners, own]
        }),
        () =>
          Effect.sync(() => {
            this.listeners = this.listeners.filter((other) => other !== own)
          })
      )
    })
  }

  get events(): Stream.Stream<AgentEvent> {
    const open = Effect.map(Queue.sliding<AgentEvent, Cause.Done>(eventBuffer), (reader) => {
      this.readers.add(reader)
      this.hasReaders = true
      return reader
    })
    const close = (reader: Queue.Queue<AgentEvent, Cause.Done>) => {
      this.readers.delete(reader)
      this.hasReaders = this.readers.size > 0
      return Queue.shutdown(reader)
    }
    return Stream.unwrap(Effect.map(Effect.acquireRelease(open, close), Stream.fromQueue))
  }

  /** Ends what is read. */
  close(): Effect.Effect<void> {
    return this.readers.size === 0
      ? Effect.void
      : Effect.forEach([...this.readers], (reader) => Queue.end(reader), { discard: true })
  }
}

const unheard = (cause: Cause.Cause<unknown>) =>
  Effect.logWarning("A subscriber failed, and may fail again; the run goes on", cause)
