/** The types of views. */
import type { AgentEvent, ApprovalRequested, QuestionAsked, RunStatus } from "../../AgentEvent.ts"
import type { Usage } from "../../Usage.ts"

/**
 * The kind of a row.
 *
 * **Details**
 *
 * - `"user"`: a prompt, or a message that steers or follows up.
 * - `"turn"`, `"call"`: a turn, and a call of the model in it.
 * - `"thinking"`, `"answer"`: a block of what the model wrote.
 * - `"tool"`, `"agent"`: a call of a tool, and a call of a tool that runs a sub-agent, whose rows stand inside.
 * - `"approval"`, `"question"`: a request to a person.
 * - `"output"`: the typed output of the run.
 * - `"retry"`, `"compaction"`, `"limit"`, `"handoff"`, `"hook"`, `"note"`, `"error"`: other things that happened. A hook has a row if it failed.
 *
 * @category models
 * @since 0.2.0
 */
export type Kind =
  | "user"
  | "turn"
  | "call"
  | "thinking"
  | "answer"
  | "tool"
  | "approval"
  | "question"
  | "agent"
  | "output"
  | "retry"
  | "compaction"
  | "limit"
  | "handoff"
  | "hook"
  | "note"
  | "error"

/**
 * How far a row has come.
 *
 * @category models
 * @since 0.2.0
 */
export type State = "running" | "waiting" | "done" | "failed" | "rejected" | "retracted" | "cancelled"

/**
 * One row, without its texts.
 *
 * @category models
 * @since 0.2.0
 */
export interface Row {
  /** The id of the row, which it keeps. */
  readonly id: string
  /** The kind of the row. */
  readonly kind: Kind
  /** The id of the run to which the row belongs, which for a row of a sub-agent is its own. */
  readonly runId: string
  /** The id of the row that this row stands in: a turn, or the call of a sub-agent; absent for a row that stands in none. */
  readonly parent?: string
  /** How many rows this row stands in. */
  readonly depth: number
  /** The number of the turn in its run, absent outside of turns. */
  readonly turn?: number
  /** The position in the log of the event with which the row began. */
  readonly position: number
  /** The subject of the row, on one line of at most 200 characters: a text, a model, or a tool with its first argument. */
  readonly title: string
  /** How far the row has come. */
  readonly state: State
  /** The time at which the row began, in milliseconds since the epoch. */
  readonly from: number
  /** The time at which it ended, absent until then. */
  readonly to?: number
  /** The bytes of its texts as UTF-8, also of what the view leaves out. */
  readonly bytes: number
  /** The tokens of all that is inside, absent until they are known. */
  readonly usage?: Usage
  /** The cost of all that is inside, absent while no price is known. */
  readonly cost?: number
  /** The start of the result or else of the text, on one line of at most 300 characters. */
  readonly preview: string
  /** A digest of what the row says, which is equal for rows that say the same; `""` until the row has said it all. */
  readonly digest: string
  /** The id of the session's entry, absent if the events do not name it. */
  readonly entryId?: string
  /** The id of the message of which the row is a part, absent if there is none. */
  readonly messageId?: string
  /** The id of the tool call, absent if the row concerns none. */
  readonly toolCallId?: string
  /** The id of the row of the model call that wrote the row, absent for other rows. */
  readonly callId?: string
}

/**
 * A row with its texts, as far as the bounds of the view keep them.
 *
 * @category models
 * @since 0.2.0
 */
export interface Block extends Row {
  /** The text of the row: what a person or the model wrote, the arguments of a call, an error in words. */
  readonly text: string
  /** The end of what a tool gave, `""` for other rows. */
  readonly result: string
}

/**
 * A turn of the outermost run in numbers, for charts.
 *
 * @category models
 * @since 0.2.0
 */
export interface Turn {
  /** The id of the run. */
  readonly runId: string
  /** The number of the turn, from 1. */
  readonly turn: number
  /** The time of its start in milliseconds since the epoch. */
  readonly from: number
  /** Its duration in milliseconds, 0 until it ends. */
  readonly ms: number
  /** The time of its model calls in milliseconds. */
  readonly modelMs: number
  /** The time of its tool calls in milliseconds; calls that run at the same time add up. */
  readonly toolMs: number
  /** The number of its tool calls that have ended. */
  readonly toolCalls: number
  /** Its tokens, those of sub-agents included; absent until it ends. */
  readonly usage?: Usage
  /** Its cost, absent while no price is known. */
  readonly cost?: number
  /** The tokens of its last request and answer, which the next request repeats; absent until the provider reports them. */
  readonly context?: number
}

/**
 * The run that the view shows: of a session the last one.
 *
 * @category models
 * @since 0.2.0
 */
export interface Shown {
  /** The id of the run. */
  readonly runId: string
  /** How the run ended, or whether it works. */
  readonly status: "running" | "paused" | RunStatus
  /** The first line of its prompt, at most 80 characters. */
  readonly title: string
  /** The model that the run began with. */
  readonly model: string
  /** The time of its start in milliseconds since the epoch. */
  readonly from: number
  /** The time of its end, absent until then. */
  readonly to?: number
  /** The number of tool calls that have ended, those of sub-agents included. */
  readonly toolCalls: number
  /** The number of tool calls, hooks and runs that failed. */
  readonly problems: number
  /** Its tokens so far, those of sub-agents included. */
  readonly usage: Usage
}

/**
 * How much a view holds.
 *
 * **Details**
 *
 * Of rows and turns a view may hold a fifth more before it leaves the oldest out, rows that have ended first.
 *
 * @category options
 * @since 0.2.0
 */
export interface Bounds {
  /** The most rows (default 500). */
  readonly rows: number
  /** The most turns in numbers (default 1000). */
  readonly turns: number
  /** The most characters of a result, of which the view keeps the end (default 4000). */
  readonly output: number
  /** The most characters of another text, of which the view keeps the start (default 100,000). */
  readonly text: number
  /** The most runs of sub-agents in one call (default 16). */
  readonly inside: number
}

/**
 * The state of a view.
 *
 * @category models
 * @since 0.2.0
 */
export interface View {
  /** The run, `undefined` before its first event. */
  readonly run: Shown | undefined
  /** The rows in the order of a tree: what is inside of a row follows it. A row that did not change is the same object. */
  readonly rows: ReadonlyArray<Block>
  /** The number of rows that the view no longer holds. */
  readonly dropped: number
  /** The requests that wait for a person, the oldest first, those of sub-agents included. */
  readonly asked: ReadonlyArray<ApprovalRequested | QuestionAsked>
  /** The number of messages that wait for the run. */
  readonly queued: { readonly steering: number; readonly followUp: number }
  /** The turns of the outermost runs, the oldest first. */
  readonly turns: ReadonlyArray<Turn>
  /** The tokens of all runs. */
  readonly usage: Usage
  /** The tokens of the runs before this one. */
  readonly usageBefore: Usage
  /** Why the run failed, `undefined` if it did not. */
  readonly error: string | undefined
  /** The position of the last event. */
  readonly position: number
  /** How much the view holds. */
  readonly bounds: Bounds
}

/**
 * An event and its position in a log, as watchers of `Runs` get it.
 *
 * @category models
 * @since 0.2.0
 */
export interface Positioned {
  /** The position of the event. */
  readonly position: number
  /** The event. */
  readonly event: AgentEvent
}
