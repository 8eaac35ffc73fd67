/**
 * Publishes the events of one run.
 *
 * `emit` is a statement: it numbers an event and hands it over, and never suspends. While the run has no subscribers, that
 * is one synchronous step: observers first, then the reader of the stream. Otherwise events wait for one fiber, which
 * delivers them in order to observers, subscribers and the reader; the run awaits `delivered` where subscribers must have
 * received all events before it continues.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { AgentEvent, Body } from "../AgentEvent.ts"
import { type Audience, Delivery, type Reader } from "./delivery.ts"
import type { Control } from "./interruption.ts"
import type { MessageId } from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import type { Part } from "./partials.ts"
import type { ToolContext } from "./toolContext.ts"

type Base = Pick<AgentEvent, "runId" | "parent" | "path">

/** The run whose events are published. */
interface Source {
  readonly id: string
  readonly clock: Clock.Clock
  readonly control: Control
}

export class Events {
  /** The turn of later events; `undefined` before the first and after the last. */
  turn: number | undefined = undefined
  private readonly base: Base
  private readonly clock: Clock.Clock
  private readonly control: Control
  private readonly audience: Audience
  private readonly delivery: Delivery
  private seq = 0

  constructor({ clock, control, id }: Source, callers: Omit<Base, "runId">, audience: Audience) {
    this.base = { runId: id, ...callers }
    this.clock = clock
    this.control = control
    this.audience = audience
    this.delivery = new Delivery(id, audience, control)
  }

  /** Publishes events, with nothing in between. */
  emit(...bodies: ReadonlyArray<Body>): void {
    this.publish(bodies.map((body) => this.stamp(body)))
  }

  /** Publishes an event of a call that an earlier turn made. */
  emitIn(turn: number, body: Body): void {
    this.publish([{ ...this.stamp(body), turn }])
  }

  /** Publishes a partial result. Suspends while subscribers and the reader are too far behind. */
  progress(body: Body): Effect.Effect<void> {
    return this.flow([this.stamp(body)])
  }

  /** Publishes deltas of an answer that arrived together. Suspends like `progress`. */
  deltas(messageId: MessageId, deltas: ReadonlyArray<ModelEvent | Part>): Effect.Effect<void> {
    return this.flow(this.stampDeltas(messageId, deltas))
  }

  /** The tool calls that the run is inside of, outermost first. */
  get path(): Base["path"] {
    return this.base.path
  }

  /** Waits until subscribers have received all events so far. */
  get delivered(): Effect.Effect<void> {
    const { received } = this.audience.reader
    if (received === undefined) return this.delivery.done
    return this.delivery.isDone ? received : Effect.andThen(this.delivery.done, received)
  }

  /** Publishes the events of a run inside of this one between the events of this one, as they are. */
  get relay(): Reader {
    return {
      add: (events) => this.publish(events),
      room: Effect.suspend(() => this.room),
      received: Effect.suspend(() => this.delivered),
      end: () => {}
    }
  }

  /** Serves subscribers, for as long as the run lasts. */
  get serve(): Effect.Effect<never> {
    return this.delivery.serve
  }

  private publish(events: ReadonlyArray<AgentEvent>): void {
    const { journal, observe, reader, subscriptions } = this.audience
    const isAwaited = subscriptions.subscribers.length > 0 || journal?.wants(this.base.runId, events) === true
    if (!this.delivery.isDone || isAwaited) return this.delivery.add(events)
    observe(events)
    reader.add(events)
  }

  private flow(events: ReadonlyArray<AgentEvent>): Effect.Effect<void> {
    this.publish(events)
    return this.room
  }

  /** Waits while subscribers and the reader are too far behind. */
  private get room(): Effect.Effect<void> {
    if (!this.delivery.isDone) return Effect.flatMap(this.delivered, () => this.room)
    const { room } = this.audience.reader
    // A stop ends the wait for a reader, which may have left.
    return Exit.isExit(room) ? room : Effect.raceFirst(room, this.control.stopped.await)
  }

  private stamp(body: Body): AgentEvent {
    const { base, turn } = this
    const timestamp = this.clock.currentTimeMillisUnsafe()
    const seq = ++this.seq
    return turn === undefined
      ? { ...body, ...base, seq, timestamp }
      : { ...body, ...base, seq, timestamp, turn }
  }

  /** Stamps deltas without spreads: there are many. */
  private stampDeltas(
    messageId: MessageId,
    deltas: ReadonlyArray<ModelEvent | Part>
  ): ReadonlyArray<AgentEvent> {
    const { parent, path, runId } = this.base
    const { turn = 0 } = this
    const timestamp = this.clock.currentTimeMillisUnsafe()
    return deltas.map((delta) => {
      const seq = ++this.seq
      if (delta._tag === "PartialValue") {
        const { changes, for: of, index, toolCallId, toolName } = delta
        return parent === undefined && toolCallId !== undefined && toolName !== undefined
          ? {
              _tag: "PartialValue",
              runId,
              seq,
              timestamp,
              turn,
              messageId,
              index,
              for: of,
              toolCallId,
              toolName,
              changes
            }
          : { ...delta, ...this.base, seq, timestamp, turn, messageId }
      }
      return parent === undefined || path === undefined
        ? { _tag: "MessageDelta", runId, seq, timestamp, turn, messageId, delta }
        : { _tag: "MessageDelta", runId, seq, timestamp, turn, parent, path, messageId, delta }
    })
  }
}

/** The tool calls around a run that starts inside a tool, as its events have them. */
export const callersOf = (caller: Option.Option<ToolContext["Service"]>): Omit<Base, "runId"> => {
  if (Option.isNone(caller)) return {}
  const { path = [], runId, toolCallId } = caller.value
  const parent = { runId, toolCallId }
  return { parent, path: [...path, parent] }
}
