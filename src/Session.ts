/**
 * The place where an agent keeps its conversation, so that another process can continue it.
 *
 * **Details**
 *
 * An agent needs only the interface of this module. `effect-agent/sessions` has stores that implement it: in memory, in JSONL
 * files, and in SQL databases.
 *
 * @since 0.2.0
 */
import type * as Arr from "effect/Array"
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { AgentEvent, OfTag } from "./AgentEvent.ts"
import type { Interrupted, OpenCall, OpenTurn } from "./internal/openTurn.ts"
import type { Message, MessageId } from "./Message.ts"
import type { RunOptions } from "./RunOptions.ts"
import type { SessionError } from "./internal/errors.ts"
import type * as Transcript from "./Transcript.ts"
export type { Interrupted, InterruptedTurn, OpenCall, Spent } from "./internal/openTurn.ts"
export {
  Exists,
  Locked,
  Missing,
  SessionError,
  SessionReason,
  StorageFailed,
  Unreadable
} from "./internal/errors.ts"

/**
 * A session that an agent has open: it read the session's state, and writes each change of it.
 *
 * **Details**
 *
 * One agent has a session open at a time; a store refuses a second writer.
 *
 * **When to use**
 *
 * Implement it for a store of one's own. Else open one of a store in `effect-agent/sessions`.
 *
 * @category models
 * @since 0.2.0
 */
export interface Session {
  /** The id of the session, as `RunEnd.resume` names it. */
  readonly id: string
  /** The state of the session when it was opened, or rewound last: an agent begins with it. */
  readonly restored: Restored
  /** Writes records, all or none of them, in order. The agent shows a change to others only when this has succeeded. */
  readonly record: (records: Arr.NonEmptyReadonlyArray<Record>) => Effect.Effect<void, SessionError>
  /**
   * Writes the records of events of a run as `record` does, together with those events, in order: all of the run, and of the runs inside
   * of it. Others see them when this has succeeded. For a host that keeps the log of the run. Default: it is `record`.
   */
  readonly keep?: (records: ReadonlyArray<Record>, events: Events) => Effect.Effect<void, SessionError>
  /**
   * Takes deltas that wait for no event before them, unless it returns `false`: then `keep` gets them. Default: it takes them, and does
   * nothing.
   */
  readonly show?: (deltas: ReadonlyArray<AgentEvent>) => boolean
  /**
   * Succeeds while no other writer has followed this one. The agent runs it right before each tool, and does not run the tool if it fails.
   * Default: it succeeds.
   */
  readonly verify?: Effect.Effect<void, SessionError>
  /** Opens the part of the session that belongs to the sub-agent of a tool call. */
  readonly child: (toolCallId: string) => Effect.Effect<Session, SessionError>
}

/**
 * The hand-off of a conversation to another agent.
 *
 * @category models
 * @since 0.2.0
 */
export interface HandedOff {
  /** The name of the agent that the conversation was with. */
  readonly from: string
  /** The name of the agent that it is with. */
  readonly to: string
  /** The last message before the hand-off. */
  readonly messageId: MessageId
}

/**
 * The state of a session when it was opened.
 *
 * @category models
 * @since 0.2.0
 */
export interface Restored {
  /** The transcript of the current branch, oldest message first. */
  readonly messages: ReadonlyArray<Message>
  /** The last compaction, from which later runs start. Default: none. */
  readonly compaction?: Transcript.Compaction
  /** The last hand-off: the conversation continues with that agent. Default: with the agent that began. */
  readonly handedOff?: HandedOff
  /** The options that `agent.update` changed. They count before those that `Agent.make` is given. */
  readonly options: Partial<RunOptions>
  /** The names of the options that `agent.update` unset, such as `"limits.maxTurns"`. Default: none. */
  readonly unset?: ReadonlyArray<string>
  /** The notes of providers on answers of the transcript, by the ids of their messages. Default: none. */
  readonly notes?: ReadonlyMap<MessageId, Schema.Json>
  /** The messages that were queued, and are in no run yet. */
  readonly queues: {
    readonly steering: ReadonlyArray<Message>
    readonly followUp: ReadonlyArray<Message>
  }
  /** The run whose end the session does not hold, because its process ended first. Default: none. */
  readonly lostRun?: string
  /** The turn whose calls have not all ended, because they wait for a person or their process ended first. Default: none. */
  readonly open?: OpenTurn
  /** The calls in the background whose ends the transcript does not have. Default: none. */
  readonly background?: ReadonlyArray<OpenCall>
  /**
   * The lost run that `agent.continue` continues under its id. No store gives it: a host of runs that survive their process computes it.
   * Default: none, and the lost run has failed.
   */
  readonly interrupted?: Interrupted
}

/**
 * The events that a session keeps.
 *
 * @category models
 * @since 0.2.0
 */
export type RecordedEvent = OfTag<
  | "RunStart"
  | "RunEnd"
  | "MessageEnd"
  | "ApprovalRequested"
  | "ApprovalAnswered"
  | "QuestionAsked"
  | "QuestionAnswered"
  | "ToolInvoked"
  | "ToolExecutionEnd"
  | "HandedOff"
>

/**
 * A change of a conversation.
 *
 * **Details**
 *
 * - `Event`: an event of a run. Its message, call or run is from now on part of the conversation.
 * - `RunLost`: the process of a run ended before the run did. Written when an agent opens the session again.
 * - `Queued`, `QueueCleared`: messages were put in a queue, or removed from it. A message leaves its queue with its `MessageEnd`.
 * - `OptionsChanged`: `agent.update` changed options, after it had removed those of `unset`.
 * - `MessagesReplaced`: `agent.setMessages` or `agent.reset` replaced the transcript.
 * - `Noted`: the provider noted something with an answer, which later requests have in `notes`. It may hold the system prompt.
 * - `Compacted`: a summary stands in place of older messages. `entryId` names the record in the event `Compaction`.
 *
 * @category models
 * @since 0.2.0
 */
export type Record =
  | { readonly _tag: "Event"; readonly event: RecordedEvent }
  | { readonly _tag: "RunLost"; readonly runId: string }
  | { readonly _tag: "Queued"; readonly queue: QueueName; readonly messages: ReadonlyArray<Message> }
  | { readonly _tag: "QueueCleared"; readonly queue: QueueName | "all" }
  | {
      readonly _tag: "OptionsChanged"
      readonly options: Partial<RunOptions>
      readonly unset?: ReadonlyArray<string>
    }
  | { readonly _tag: "MessagesReplaced"; readonly messages: ReadonlyArray<Message> }
  | { readonly _tag: "Noted"; readonly messageId: MessageId; readonly note: Schema.Json }
  | ({
      readonly _tag: "Compacted"
      readonly entryId: string
      readonly tokensBefore: number
      readonly tokensAfter: number
    } & Pick<OfTag<"Compaction">, "reason" | "usage"> &
      Transcript.Compaction)

type Events = Arr.NonEmptyReadonlyArray<AgentEvent>
type QueueName = "steering" | "followUp"
