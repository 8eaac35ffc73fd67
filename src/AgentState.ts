/**
 * What can be seen of an agent between the events: kept by folding them.
 */
import type { AgentEvent, View } from "./AgentEvent.ts"
import { progressed } from "./AgentEvent.ts"
import type * as Message from "./Message.ts"
import type { RunOptions } from "./RunOptions.ts"

/** Changes at the boundaries of messages, tools and runs, never per delta. */
export interface AgentState {
  readonly messages: ReadonlyArray<Message.Message>
  readonly phase: View["phase"]
  readonly pendingToolCalls: ReadonlySet<string>
  readonly options: RunOptions
  readonly lastError?: string
}

/** The state after one more event: itself, if that changes nothing. */
export const after = (state: AgentState, event: AgentEvent): AgentState => {
  if (event._tag === "RunStart") {
    const { messages, options } = state
    return { messages, phase: "model", pendingToolCalls: new Set(), options }
  }
  const next = progressed(state, event)
  // Until its subscribers have heard of the end, a run is not over.
  return event._tag === "RunEnd" ? { ...next, phase: state.phase } : next
}
