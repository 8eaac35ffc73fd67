/**
 * What a tool is told of the call it runs for.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ToolOutput } from "./ToolOutput.ts"

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

/** What a plain function is told of its call. */
export interface PromiseContext {
  readonly toolCallId: string
  readonly runId: string
  readonly turn: number
  /** Aborts when the call is cancelled or times out. */
  readonly signal: AbortSignal
  readonly progress: (partial: string | ToolOutput) => void
}

/** A call of a plain function. */
export class Called {
  readonly context: PromiseContext
  /** Made when somebody looks at the signal, as few functions do. */
  private controller: AbortController | undefined
  private aborted = false

  constructor(context: ToolContext["Service"], progress: PromiseContext["progress"]) {
    const signal = () => this.signal
    this.context = {
      ...context,
      progress,
      get signal() {
        return signal()
      }
    }
  }

  abort(): void {
    this.aborted = true
    this.controller?.abort()
  }

  private get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController()
      if (this.aborted) this.controller.abort()
    }
    return this.controller.signal
  }
}
