/**
 * The visible state of an agent, folded from its events.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { CallSet } from "./callSet.ts"
import type { AgentEvent, View } from "../AgentEvent.ts"
import { progressed } from "../AgentEvent.ts"
import type * as Message from "../Message.ts"
import type { RunOptions } from "../RunOptions.ts"

/**
 * The state of an agent.
 *
 * **Details**
 *
 * It changes at the boundaries of messages, tools and runs, never at a delta: `partial` of the agent is the answer that streams.
 *
 * @category models
 * @since 0.1.0
 */
export interface AgentState {
  /** The transcript, oldest message first. */
  readonly messages: ReadonlyArray<Message.Message>
  /** The activity of the current run. `"idle"` if there is none and subscribers have received all events of the last one. */
  readonly phase: View["phase"]
  /** The ids of the tool calls that have begun and not ended. */
  readonly pendingToolCalls: ReadonlySet<string>
  /** The options of the next turn, without those that one prompt or a hook changed. */
  readonly options: RunOptions
  /** The message of the error that failed the last run, absent if it did not fail. */
  readonly lastError?: string
}

/** The state before the first run. */
export const initial = (messages: ReadonlyArray<Message.Message>, options: RunOptions): AgentState => ({
  messages,
  phase: "idle",
  pendingToolCalls: CallSet.empty,
  options
})

/** The state after one more event: itself, if that changes nothing. */
const after = (state: AgentState, event: AgentEvent): AgentState => {
  if (event._tag === "RunStart") {
    const { messages, options } = state
    return { messages, phase: "model", pendingToolCalls: CallSet.empty, options }
  }
  const next = progressed(state, event)
  // A run is over when its subscribers have received its end.
  return event._tag === "RunEnd" ? { ...next, phase: state.phase } : next
}

/** The state after more events. Results that end together are put in together: there may be thousands. */
export const afterAll = (state: AgentState, events: ReadonlyArray<AgentEvent>): AgentState => {
  let next = state
  let results: Array<Message.Message> = []
  const putIn = () => {
    if (results.length > 0) next = { ...next, messages: [...next.messages, ...results] }
    results = []
  }
  for (const event of events) {
    if (event._tag === "MessageEnd" && event.message.role === "toolResult") results.push(event.message)
    else if (event._tag !== "MessageStart") {
      putIn()
      next = after(next, event)
    }
  }
  putIn()
  return next
}

/**
 * A value that changes, to be read and watched, not written.
 *
 * @category models
 * @since 0.2.0
 */
export interface Subscribable<out A> {
  /** The value as it is now. */
  readonly get: Effect.Effect<A>
  /** The value as it is now, outside of Effect. */
  readonly getUnsafe: () => A
  /** The value as it is now, and each that comes after it. Ends when the agent's scope closes. */
  readonly changes: Stream.Stream<A>
}

/** A value that its owner changes. `Subscribable` is what others see of it. */
export class Changing<in out A> {
  private value: A
  private isClosed = false
  private readonly watchers = new Set<Queue.Queue<A, Cause.Done>>()

  constructor(value: A) {
    this.value = value
  }

  get current(): A {
    return this.value
  }

  /** In one step: the owner waits for none of those who watch. */
  set(value: A): void {
    this.value = value
    for (const watcher of this.watchers) Queue.offerUnsafe(watcher, value)
  }

  /** Ends what is watched, after the last value. */
  close(): void {
    this.isClosed = true
    for (const watcher of this.watchers) Queue.endUnsafe(watcher)
  }

  readonly subscribable: Subscribable<A> = {
    get: Effect.sync(() => this.value),
    getUnsafe: () => this.value,
    changes: Stream.suspend(() => (this.isClosed ? Stream.make(this.value) : this.watched))
  }

  private get watched(): Stream.Stream<A> {
    const open = Effect.map(Queue.unbounded<A, Cause.Done>(), (watcher) => {
      this.watchers.add(watcher)
      Queue.offerUnsafe(watcher, this.value)
      return watcher
    })
    const leave = (watcher: Queue.Queue<A, Cause.Done>) => {
      this.watchers.delete(watcher)
      return Queue.shutdown(watcher)
    }
    return Stream.unwrap(Effect.map(Effect.acquireRelease(open, leave), Stream.fromQueue))
  }
}
