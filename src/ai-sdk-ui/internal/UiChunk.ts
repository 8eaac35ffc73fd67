/** The chunks of the UI message stream of the AI SDK, version 1, as far as runs have use for them. */
import type * as Schema from "effect/Schema"
import type { RunStatus } from "../../AgentEvent.ts"
import type { Usage } from "../../Usage.ts"

/**
 * The metadata of a UI message, which grows with the chunks of its run.
 *
 * @since 0.2.0
 * @category models
 */
export interface Metadata {
  /** The id of the run. */
  readonly runId?: string
  /** The model that the run asks. */
  readonly model?: string
  /** The status of the run, absent before its end. */
  readonly status?: RunStatus
  /** The tokens of the run, absent before its end. */
  readonly usage?: Usage
  /** The part of `usage` that the runs inside have spent. Default none. */
  readonly childUsage?: Usage
  /** The number of turns, absent before the end of the run. */
  readonly turns?: number
  /** The time of the run in milliseconds, absent before its end. */
  readonly durationMs?: number
  /** The failure of the run. Default none. */
  readonly error?: { readonly _tag: string; readonly message: string }
  /** The session and the run that an answer resumes, where the run is suspended. */
  readonly resume?: { readonly sessionId?: string; readonly runId: string }
  /** The place in the run up to which the UI message is complete, for a server that continues it there. */
  readonly position?: number
}

/**
 * The content of a steering message.
 *
 * @since 0.2.0
 * @category models
 */
export type UserPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "file"; readonly mediaType: string; readonly url: string; readonly filename?: string }

interface Block {
  readonly id: string
}

interface Call {
  readonly toolCallId: string
}

interface Part {
  readonly providerMetadata?: { readonly effectAgent: { readonly [key: string]: Schema.Json } }
}

/** The flags of a tool part: the page may not know the tool, and a vendor may have run it. */
interface ToolFlags {
  readonly dynamic?: true
  readonly providerExecuted?: true
  readonly toolMetadata?: { readonly [key: string]: Schema.Json }
}

/**
 * A chunk of the UI message stream.
 *
 * **Details**
 *
 * The chunks with `data-` are those of this library:
 *
 * - `data-message`: a whole message of the run.
 * - `data-event`: an event of the run that has no other chunk, as JSON.
 * - `data-child`: an event of a run that a tool call started, as JSON.
 *
 * A client keeps them as parts of the UI message, and passes transient ones to `onData` alone.
 *
 * @since 0.2.0
 * @category models
 */
export type Chunk =
  | { readonly type: "start"; readonly messageId: string; readonly messageMetadata?: Metadata }
  | { readonly type: "start-step" | "finish-step" | "reset-step" }
  | (Block & { readonly type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end" })
  | (Block & { readonly type: "text-delta" | "reasoning-delta"; readonly delta: string })
  | (Call & ToolFlags & { readonly type: "tool-input-start"; readonly toolName: string })
  | (Call & { readonly type: "tool-input-delta"; readonly inputTextDelta: string })
  | (Call &
      ToolFlags & {
        readonly type: "tool-input-available"
        readonly toolName: string
        readonly input: Schema.Json
      })
  | (Call & {
      readonly type: "tool-approval-request"
      readonly approvalId: string
      readonly approvalDescriptor?: Schema.Json
      readonly reason?: string
      readonly isAutomatic?: true
    })
  | {
      readonly type: "tool-approval-response"
      readonly approvalId: string
      readonly approved: boolean
      readonly reason?: string
    }
  | (Call &
      ToolFlags & {
        readonly type: "tool-output-available"
        readonly output: Schema.Json
        readonly preliminary?: true
      })
  | (Call & ToolFlags & { readonly type: "tool-output-error"; readonly errorText: string })
  | (Call & { readonly type: "tool-output-denied" })
  | (Part & {
      readonly type: "source-url"
      readonly sourceId: string
      readonly url: string
      readonly title?: string
    })
  | (Part & {
      readonly type: "source-document"
      readonly sourceId: string
      readonly mediaType: string
      readonly title: string
      readonly filename?: string
    })
  | (Part & { readonly type: "file"; readonly url: string; readonly mediaType: string })
  | { readonly type: "steering-message"; readonly id: string; readonly parts: Array<UserPart> }
  | {
      readonly type: "data-message" | "data-event" | "data-child"
      readonly id?: string
      readonly data: Schema.Json
      readonly transient?: true
    }
  | { readonly type: "message-metadata"; readonly messageMetadata: Metadata }
  | { readonly type: "finish"; readonly finishReason: FinishReason; readonly messageMetadata?: Metadata }
  | { readonly type: "abort"; readonly reason?: string }
  | { readonly type: "error"; readonly errorText: string }

/**
 * The reason why a response ended, in the words of the AI SDK.
 *
 * @since 0.2.0
 * @category models
 */
export type FinishReason =
  | "stop"
  | "length"
  | "content-filter"
  | "tool-calls"
  | "error"
  | "interrupted"
  | "other"
