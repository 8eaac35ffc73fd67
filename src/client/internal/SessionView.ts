/**
 * The state of a session as a client has seen it: the core's fold of the events of its runs.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as PubSub from "effect/PubSub"
import * as Stream from "effect/Stream"
import type * as Take from "effect/Take"
import type { Subscribable } from "../../Agent.ts"
import * as AgentEvent from "../../AgentEvent.ts"
import type { Message } from "../../Message.ts"

type States = PubSub.PubSub<Take.Take<AgentEvent.View>>

/** The latest state: a slow reader skips those before. */
export const states = PubSub.sliding<Take.Take<AgentEvent.View>>({ capacity: 16, replay: 1 })

export class SessionView {
  private current = AgentEvent.initial()
  /** The ids of the messages, of which a run may show some again. */
  private ids: ReadonlySet<string> = new Set()
  private readonly states: States

  constructor(states: States) {
    this.states = states
  }

  get subscribable(): Subscribable<AgentEvent.View> {
    return {
      get: Effect.sync(() => this.current),
      getUnsafe: () => this.current,
      changes: Stream.fromPubSubTake(this.states)
    }
  }

  get view(): AgentEvent.View {
    return this.current
  }

  /** Puts in the messages that the server has. */
  restore(messages: ReadonlyArray<Message>): void {
    this.ids = new Set(messages.map(({ id }) => id))
    this.set({ ...this.current, messages })
  }

  /** Leaves out a message and those behind it. */
  before(messageId: string): void {
    const { messages } = this.current
    const at = messages.findLastIndex(({ id }) => id === messageId)
    if (at !== -1) this.restore(messages.slice(0, at))
  }

  readonly add = (event: AgentEvent.AgentEvent): void => {
    const { messages } = this.current
    const next = AgentEvent.fold(this.current, event)
    const isAgain = event._tag === "MessageEnd" && this.ids.has(event.message.id)
    if (isAgain) this.set({ ...next, messages })
    else if (next !== this.current) this.set(next)
    if (next.messages !== messages && event._tag === "MessageEnd")
      this.ids = new Set([...this.ids, event.message.id])
  }

  close(): void {
    PubSub.endUnsafe(this.states, Exit.void)
  }

  private set(view: AgentEvent.View): void {
    this.current = view
    PubSub.publishUnsafe(this.states, [view])
  }
}
