/** The events of AG-UI 1.0, as far as runs have use for them. */
import type * as Schema from "effect/Schema"

/**
 * An object of JSON.
 *
 * @since 0.2.0
 * @category models
 */
export interface JsonObject {
  readonly [key: string]: Schema.Json
}

/**
 * A message of AG-UI.
 *
 * @since 0.2.0
 * @category models
 */
export interface AgUiMessage extends JsonObject {
  /** The id of the message. */
  readonly id: string
  /** The role of the message, such as `"user"`. */
  readonly role: string
}

/**
 * The sub-agent that an event belongs to, absent for the agent of the run.
 *
 * @since 0.2.0
 * @category models
 */
export interface Tag {
  /** The id of the run of the sub-agent. */
  readonly subagentRunId?: string
}

interface Named {
  readonly messageId: string
}

interface Ids {
  readonly threadId: string
  readonly runId: string
}

type Metadata = { readonly metadata?: JsonObject }

/**
 * A request to a person, by which a run of AG-UI ends.
 *
 * @since 0.2.0
 * @category models
 */
export interface Interrupt extends Tag {
  /** The id of the approval or of the question. */
  readonly id: string
  /** `"tool_call"` for an approval, `"input_required"` for a question. */
  readonly reason: string
  /** The request in words. */
  readonly message: string
  /** The id of the call that waits. */
  readonly toolCallId: string
  /** The JSON Schema of the answer. Default: any JSON. */
  readonly responseSchema?: JsonObject
  /** The time at which the request expires, as ISO 8601. Default: it does not expire. */
  readonly expiresAt?: string
  /** The event of the request as `effectAgent`, with the params and the hash of an approval. */
  readonly metadata: JsonObject
}

/**
 * The way in which a run of AG-UI finished.
 *
 * @since 0.2.0
 * @category models
 */
export type Outcome =
  | { readonly type: "success" | "cancelled" }
  | { readonly type: "interrupt"; readonly interrupts: Array<Interrupt> }

/**
 * An event of AG-UI.
 *
 * **Details**
 *
 * The events `CUSTOM` are those of this library: `effect-agent.` and the tag of an event of the run, with the event as JSON.
 *
 * @since 0.2.0
 * @category models
 */
export type Event =
  | (Ids & Metadata & { readonly type: "RUN_STARTED"; readonly protocolVersion: string })
  | (Ids & {
      readonly type: "RUN_FINISHED"
      readonly outcome: Outcome
      readonly result?: JsonObject
      readonly usage?: Array<JsonObject>
    })
  | (Metadata & {
      readonly type: "RUN_ERROR"
      readonly message: string
      readonly code?: string
      readonly usage?: Array<JsonObject>
    })
  | (Tag & { readonly type: "STEP_STARTED" | "STEP_FINISHED"; readonly stepName: string })
  | (Tag & Named & Metadata & { readonly type: "TEXT_MESSAGE_START"; readonly role: "user" | "assistant" })
  | (Tag & Named & { readonly type: "TEXT_MESSAGE_CONTENT"; readonly delta: string })
  | (Tag & Named & Metadata & { readonly type: "TEXT_MESSAGE_END" })
  | (Tag & Named & { readonly type: "REASONING_START" | "REASONING_MESSAGE_END" | "REASONING_END" })
  | (Tag & Named & { readonly type: "REASONING_MESSAGE_START"; readonly role: "reasoning" })
  | (Tag & Named & { readonly type: "REASONING_MESSAGE_CONTENT"; readonly delta: string })
  | (Tag & {
      readonly type: "TOOL_CALL_START"
      readonly toolCallId: string
      readonly toolCallName: string
      readonly parentMessageId: string
    })
  | (Tag & { readonly type: "TOOL_CALL_ARGS"; readonly toolCallId: string; readonly delta: string })
  | (Tag & { readonly type: "TOOL_CALL_END"; readonly toolCallId: string })
  | (Tag &
      Named &
      Metadata & {
        readonly type: "TOOL_CALL_RESULT"
        readonly toolCallId: string
        readonly role: "tool"
        readonly content: string | Array<JsonObject>
      })
  | { readonly type: "MESSAGES_SNAPSHOT"; readonly messages: Array<AgUiMessage> }
  | (Tag &
      Named &
      Metadata & {
        readonly type: "ACTIVITY_SNAPSHOT"
        readonly activityType: string
        readonly content: JsonObject
        readonly replace: true
      })
  | {
      readonly type: "SUBAGENT_STARTED"
      readonly subagentRunId: string
      readonly name: string
      readonly parentSubagentRunId?: string
      readonly parentToolCallId?: string
    }
  | {
      readonly type: "SUBAGENT_FINISHED"
      readonly subagentRunId: string
      readonly result?: JsonObject
      readonly outcome:
        | { readonly type: "success" }
        | { readonly type: "suspended"; readonly interruptIds: Array<string> }
    }
  | {
      readonly type: "SUBAGENT_ERROR"
      readonly subagentRunId: string
      readonly message: string
      readonly code?: string
    }
  | (Tag & { readonly type: "CUSTOM"; readonly name: string; readonly value: Schema.Json })
