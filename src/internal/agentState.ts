/**
 * The public state of an agent, as a fold of its events.
 */
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import { CallSet } from "./callSet.ts"
import { type AgentEvent, type Phase, progressed } from "../AgentEvent.ts"
import type { Compactions } from "./compactions.ts"
import type * as Message from "../Message.ts"
import type { RunOptions } from "../RunOptions.ts"
import type { Team } from "./team.ts"
import type * as Transcript from "../Transcript.ts"

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
  readonly phase: Phase
  /** The ids of the tool calls that have begun and not ended. */
  readonly pendingToolCalls: ReadonlySet<string>
  /** The summary from which requests start. Default: none, so that they start from the whole transcript. */
  readonly compaction?: Transcript.Compaction
  /** The options of the next turn, without those that one prompt or a hook changed. */
  readonly options: RunOptions
  /** The message of the error that failed the last run, absent if it did not fail. */
  readonly lastError?: string
}

/** The state before the first run. */
export const initial = (
  messages: ReadonlyArray<Message.Message>,
  options: RunOptions,
  compaction?: Transcript.Compaction
): AgentState => ({
  messages,
  ...(compaction === undefined ? {} : { compaction }),
  phase: "idle",
  pendingToolCalls: CallSet.empty,
  options
})

/** The state with the compaction that the conversation has now: itself, if it has that. */
export const compacted = (state: AgentState, compaction: Transcript.Compaction | undefined): AgentState => {
  if (state.compaction === compaction) return state
  const { compaction: _, ...others } = state
  return compaction === undefined ? others : { ...others, compaction }
}

/** The state after more events of a run: itself, if they change nothing. */
export const after = (
  state: AgentState,
  events: ReadonlyArray<AgentEvent>,
  { compactions, team }: { readonly compactions: Compactions; readonly team: Team }
): AgentState => {
  // Appends messages that ended together in one step: a copy of the transcript for each of thousands would take too long.
  if (events.length > 2) {
    const ended = events.flatMap((event) => (event._tag === "MessageEnd" ? [event.message] : []))
    if (ended.length > 1) return { ...state, messages: [...state.messages, ...ended] }
  }
  let next = state
  for (const event of events) {
    switch (event._tag) {
      case "RunStart": {
        const { lastError: _, ...kept } = next
        next = { ...kept, phase: "model", pendingToolCalls: CallSet.empty }
        break
      }
      case "RunEnd":
        // A run is over when its subscribers have received its end.
        if (event.error !== undefined || next.pendingToolCalls !== CallSet.empty)
          next = { ...progressed(next, event), phase: next.phase }
        break
      case "HandedOff":
        team.keep(event.from, next.options)
        next = { ...next, options: team.optionsAfter(next.options) }
        break
      case "Compaction":
        next = compacted(progressed(next, event), compactions.current)
        break
      default:
        next = progressed(next, event)
    }
  }
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
