/**
 * What a tool knows of the call it runs for.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ToolOutput } from "../AgentEvent.ts"

/** What one call knows of itself. Supplied for each call, never a requirement of the application. */
export class ToolContext extends Context.Service<
  ToolContext,
  {
    readonly toolCallId: string
    readonly runId: string
    readonly turn: number
    /** Shows a partial result to observers; the model sees only the final one. Ignored once the call is over. */
    readonly progress: (partial: ToolOutput) => Effect.Effect<void>
  }
>()("effect-agent/ToolContext") {}
