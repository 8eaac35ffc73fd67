/**
 * A run that was interrupted by the end of its process, as the agent that continues it begins: the run keeps its id.
 */
import type { Message, ToolCall } from "../Message.ts"
import type { OpenTurn } from "./openTurn.ts"
import type { ToolOutput } from "./outcome.ts"
import type { RunOptions } from "../RunOptions.ts"
import type { RunReport } from "../RunReport.ts"
import type { Usage } from "../Usage.ts"

/**
 * The spending of a run or of a turn.
 *
 * @category models
 * @since 0.2.0
 */
export interface Spent {
  /** The usage of the model calls. */
  readonly usage: Usage
  /** The part of the runs inside. Default: none. */
  readonly childUsage?: Usage
}

/**
 * A turn of an interrupted run that has its answer, and not its end.
 *
 * @category models
 * @since 0.2.0
 */
export interface InterruptedTurn {
  /** The answer with its calls. It has none where the answer is the last one. */
  readonly turn: OpenTurn
  /** Whether the `afterModel` hooks have seen the answer. */
  readonly isReviewed: boolean
  /** The ids of the calls whose agents inside continue too: these calls run again, whatever the effect of their tool. */
  readonly inner: ReadonlySet<string>
  /** The spending of the turn. */
  readonly spent: Spent
}

/**
 * A run whose process ended before it did, and that the next run of the agent continues under the same id.
 *
 * **Details**
 *
 * The run publishes no second `RunStart`, and counts its turns, its spending and its time from where they stopped. It publishes the
 * events of its open turn again: a host that keeps events leaves out those that it has.
 *
 * @category models
 * @since 0.2.0
 */
export interface Interrupted {
  /** The id of the run. */
  readonly runId: string
  /** The options that the run began with. They count before those of the agent. */
  readonly options: Partial<RunOptions>
  /** The messages it began with that are not in the transcript. */
  readonly prompts: ReadonlyArray<Message>
  /** The messages that it put into the transcript. */
  readonly newMessages: ReadonlyArray<Message>
  /** The number of turns that the run does not take again. */
  readonly turns: number
  /** The turn that the run begins with. Default: the next one. */
  readonly open?: InterruptedTurn
  /** The spending of the run. */
  readonly spent: Spent
  /** The calls whose results are in the transcript, in its order. */
  readonly calls: ReadonlyArray<{
    readonly call: ToolCall
    readonly output: ToolOutput
    readonly turn: number
  }>
  /** The number of calls that ended, which count for `limits.maxToolCalls`. */
  readonly toolCalls: number
  /** Milliseconds since the run began. */
  readonly durationMs: number
  /** Milliseconds that count for `limits.executionTime`. */
  readonly countedMs: number
  /** The pause of the run. Default: it is not paused. */
  readonly paused?: { readonly reason?: string }
  /** The report of the run so far. */
  readonly report: RunReport
  /** The failure of a run inside that had ended, in words. Default: it had not ended, or well. */
  readonly failure?: string
}
