/**
 * The events of oneringai, for the listeners of one agent.
 */
import * as Effect from "effect/Effect"
import type * as Agent from "../../Agent.ts"
import type { AgentEvent } from "../../AgentEvent.ts"
import * as OneRingEmitter from "../../compat/OneRingEmitter.ts"

/** The name of an event of oneringai. */
export type Name = OneRingEmitter.Event["type"]

/** The events of oneringai by their names. */
export type ByName = { readonly [N in Name]: Extract<OneRingEmitter.Event, { readonly type: N }> }

/** All names. The type has each of them. */
const names: Readonly<Record<Name, null>> = {
  "execution:start": null,
  "execution:complete": null,
  "execution:error": null,
  "execution:paused": null,
  "execution:resumed": null,
  "execution:cancelled": null,
  "iteration:start": null,
  "iteration:complete": null,
  "llm:request": null,
  "llm:response": null,
  "llm:error": null,
  "tool:detected": null,
  "tool:start": null,
  "tool:complete": null,
  "tool:error": null,
  "tool:timeout": null,
  "hook:error": null
}

/** The names as a list. */
export const list: ReadonlyArray<string> = Object.keys(names)

/** Whether oneringai has an event of the name. */
export const isName = (name: string): name is Name => Object.hasOwn(names, name)

type Events = ReadonlyArray<OneRingEmitter.Event>

const nothing: Effect.Effect<Events> = Effect.succeed([])

/** The state for a run of which no listener received the start: its turn begins with the first event that one receives. */
const begunAt = ({ runId, timestamp }: AgentEvent): OneRingEmitter.State => ({
  ...OneRingEmitter.initial,
  runId,
  turnStartedAt: timestamp
})

/** Converts each event of an agent once, for however many listeners. */
export class OneRingEvents {
  private state = OneRingEmitter.initial
  private last: AgentEvent | undefined
  private events: Events = []

  /** The events of oneringai for one event, of which an agent delivers one after another. */
  of(agent: Agent.Agent, event: AgentEvent): Effect.Effect<Events> {
    // Deltas are many, and oneringai has no event for them, nor for runs inside of a run.
    if (event._tag === "MessageDelta" || event.path !== undefined) return nothing
    return Effect.map(agent.tools.definitions, (tools) => {
      if (event === this.last) return this.events
      const { messages, options } = agent.state.getUnsafe()
      // The application may change them between runs, and between turns.
      const known = this.state.runId === event.runId ? this.state : begunAt(event)
      const current = { ...known, context: { system: options.system, tools }, messages }
      const isRequest = event._tag === "RunStart" || event._tag === "ModelCallStart"
      const [state, events] = OneRingEmitter.step(isRequest ? current : known, event)
      this.state = state
      this.last = event
      this.events = events
      return events
    })
  }
}
