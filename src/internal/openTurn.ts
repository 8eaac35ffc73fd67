/**
 * A turn whose tool calls have not all ended, since its run ended suspended or its process ended first, and a run that was interrupted by
 * the end of its process, as the agent that continues it begins: the run keeps its id.
 */
import * as Schema from "effect/Schema"
import * as Parts from "./eventParts.ts"
import { ToolOutput } from "./eventParts.ts"
import * as Message from "../Message.ts"
import type { RunOptions } from "../RunOptions.ts"
import type { RunReport } from "../RunReport.ts"
import type { Usage } from "../Usage.ts"

/** The run that a request belongs to. */
const run = {
  /** The id of the run that waits for the answer. */
  runId: Schema.String,
  /** The tool calls that this run is inside of, outermost first; absent for a run that no tool started. */
  path: Schema.optionalKey(Schema.NonEmptyArray(Parts.Caller))
}

/**
 * A tool call that waits for an approval.
 *
 * @category models
 * @since 0.2.0
 */
export const Request = Schema.Struct({ ...run, ...Parts.approval })
export interface Request extends Schema.Schema.Type<typeof Request> {}

/**
 * The decision about a tool call.
 *
 * @category models
 * @since 0.2.0
 */
export const Answer = Schema.Struct(Parts.decision)
export interface Answer extends Schema.Schema.Type<typeof Answer> {}

/**
 * The answer to an approval, and the hash of the params that it is about.
 *
 * @category models
 * @since 0.2.0
 */
export const Reply = Schema.Struct({
  ...Answer.fields,
  /** The `argumentsHash` of the request. */
  argumentsHash: Schema.String
})
export interface Reply extends Schema.Schema.Type<typeof Reply> {}

/**
 * A question of the model that waits for its answer.
 *
 * @category models
 * @since 0.2.0
 */
export const Question = Schema.Struct({ ...run, ...Parts.question })
export interface Question extends Schema.Schema.Type<typeof Question> {}

/**
 * The approvals and questions that wait for a person.
 *
 * @category models
 * @since 0.2.0
 */
export interface OpenRequests {
  /** The approvals of tool calls, oldest first. */
  readonly approvals: ReadonlyArray<Request>
  /** The questions of the model, and of runs about calls whose end is not known, oldest first. */
  readonly questions: ReadonlyArray<Question>
}

/**
 * The answer to a question of the model.
 *
 * @category models
 * @since 0.2.0
 */
export const QuestionAnswer = Schema.Struct(Parts.answer)
export interface QuestionAnswer extends Schema.Schema.Type<typeof QuestionAnswer> {}

/**
 * The refusal of a person to answer a question.
 *
 * **Details**
 *
 * The call of the question is rejected, and the model reads the reason.
 *
 * @category models
 * @since 0.2.0
 */
export const Declined = Schema.Struct(Parts.declined)
export interface Declined extends Schema.Schema.Type<typeof Declined> {}

/**
 * The reply of a person to a question: the answer, or the refusal to give one.
 *
 * @category models
 * @since 0.2.0
 */
export const QuestionReply = Schema.Union([Declined, QuestionAnswer])
export type QuestionReply = typeof QuestionReply.Type

/**
 * A turn whose tool calls have not all ended, as plain JSON.
 *
 * **Details**
 *
 * A run that continues from it asks no model for its first turn. It runs the calls that a person approved, keeps the results of those
 * that had ended, and requests the approvals again that have no answer. Then it appends all results in the order of the calls.
 *
 * @category models
 * @since 0.2.0
 */
export const OpenTurn = Schema.Struct({
  /** The id of the run that the turn belongs to. */
  runId: Schema.String,
  /** The answer of the model with the calls. It is in the transcript. */
  message: Message.Assistant,
  /**
   * Whether the run ended with status `"suspended"`. Else its process ended before the run did: calls that had begun then get the
   * outcome `"unknown"`, and those that had not begun and have no approval the outcome `"aborted"`.
   */
  isSuspended: Schema.Boolean,
  /** The calls that had ended, also those whose results are in the transcript. */
  ended: Schema.Array(
    Schema.Struct({ toolCallId: Schema.String, outcome: Message.ToolOutcome, output: ToolOutput })
  ),
  /** The ids of the calls whose tool had begun. */
  begun: Schema.Array(Schema.String),
  /** The requests for approval, with the answers that have come. */
  approvals: Schema.Array(Schema.Struct({ request: Request, answer: Schema.optionalKey(Answer) })),
  /** The questions, with the answers that have come. */
  questions: Schema.Array(Schema.Struct({ request: Question, answer: Schema.optionalKey(QuestionAnswer) }))
})
export interface OpenTurn extends Schema.Schema.Type<typeof OpenTurn> {}

/**
 * A call in the background whose end the transcript does not have.
 *
 * @category models
 * @since 0.2.0
 */
export interface OpenCall {
  /** The handle by which the model knows the call. */
  readonly handle: string
  /** The answer that made the call. */
  readonly message: Message.Assistant
  /** The call. */
  readonly call: Message.ToolCall
  /** The turn of the answer. Default: it is not known. */
  readonly turn?: number
  /** The params that the tool began with. Default: it had not begun. */
  readonly params?: Schema.Json
  /** The end of the call. Default: it had not ended. */
  readonly end?: { readonly outcome: Message.ToolOutcome; readonly output: ToolOutput }
}

/** An agent inside of a tool call whose run ended suspended. */
export interface Suspended {
  readonly messages: ReadonlyArray<Message.Message>
  readonly open: OpenTurn
  /** The agents inside of its calls. */
  readonly inner: ReadonlyMap<string, Suspended>
}

// ───────────────────────── Interrupted runs

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
  readonly prompts: ReadonlyArray<Message.Message>
  /** The messages that it put into the transcript. */
  readonly newMessages: ReadonlyArray<Message.Message>
  /** The number of turns that the run does not take again. */
  readonly turns: number
  /** The turn that the run begins with. Default: the next one. */
  readonly open?: InterruptedTurn
  /** The spending of the run. */
  readonly spent: Spent
  /** The calls whose results are in the transcript, in its order. */
  readonly calls: ReadonlyArray<{
    readonly call: Message.ToolCall
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
