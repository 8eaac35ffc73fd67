/**
 * The chunks of the UI message stream of the AI SDK, version 1, as far as runs have use for them, and the state between two events.
 */
import * as Schema from "effect/Schema"
import { AgentEvent, type RunStatus } from "../../AgentEvent.ts"
import * as Asking from "../../ui/Asking.ts"
import { CallSet } from "../../internal/callSet.ts"
import * as Streamed from "../../ui/Streamed.ts"
import type { StopReason } from "../../Message.ts"
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

/**
 * The approval of a tool part.
 *
 * @since 0.2.0
 * @category models
 */
export interface PartApproval {
  /** The id of the request. */
  readonly approvalId: string
  /** The decision, `undefined` before it. */
  readonly approved: boolean | undefined
}

export type Flags = State["flags"]

/**
 * The state between two events.
 *
 * @since 0.2.0
 * @category models
 */
export interface State {
  /** The id of the UI message, `undefined` before the start of the run. */
  readonly messageId: string | undefined
  /** The id of the run, `undefined` before its start. */
  readonly runId: string | undefined
  /** The ids of the messages that the run begins with. */
  readonly prompts: ReadonlySet<string>
  /** Whether a step has begun and not ended. */
  readonly isInStep: boolean
  /** The id of the answer that streams. */
  readonly answerId: string
  /** The part of the answer that the client has. */
  readonly streamed: Streamed.Streamed
  /** The chunks of this step that are no part of the answer: a retraction removes them with it. */
  readonly notes: ReadonlyArray<Chunk>
  /** The tool parts that the client has, by the id of the part. */
  readonly shown: ReadonlySet<string>
  /** The approvals of the tool parts, by the id of the part. */
  readonly approvals: ReadonlyMap<string, PartApproval>
  /** The open requests to a person. */
  readonly asking: Asking.Asking
  /** The reason why the last turn ended. */
  readonly stopReason: StopReason
  /** The reason of a cancellation. Default none. */
  readonly cancelReason: string | undefined
  /** Whether the run has ended. */
  readonly hasEnded: boolean
  /** The flags of the part of a tool, by the name of the tool. */
  readonly flags: (toolName: string) => { readonly dynamic?: true }
}

/** A state, and the chunks of the last event. */
export type Step = readonly [State, ReadonlyArray<Chunk>]

/**
 * The options of the stream of one UI message.
 *
 * @since 0.2.0
 * @category options
 */
export interface Options {
  /**
   * The id of the UI message. Default: the id of the run, or of the run that it resumes.
   *
   * Give the id of the last message of the request where a run continues it.
   */
  readonly messageId?: string | undefined
  /**
   * Whether the part of a tool is a `dynamic-tool` part, which a page reads without types, and not `tool-NAME`. Default: those of MCP servers
   * are, whose names begin with `mcp__`.
   */
  readonly dynamic?: boolean | ((toolName: string) => boolean)
}

const isOfMcp = (toolName: string): boolean => toolName.startsWith("mcp__")

const flagsOf = (dynamic: Options["dynamic"] = isOfMcp): Flags => {
  const isDynamic = typeof dynamic === "boolean" ? () => dynamic : dynamic
  return (toolName) => (isDynamic(toolName) ? { dynamic: true } : {})
}

export const initial = ({ dynamic, messageId }: Options = {}): State => ({
  messageId,
  runId: undefined,
  prompts: new Set(),
  isInStep: false,
  answerId: "",
  streamed: Streamed.nothing,
  notes: [],
  shown: CallSet.empty,
  approvals: new Map(),
  asking: Asking.nothing,
  stopReason: "stop",
  cancelReason: undefined,
  hasEnded: false,
  flags: flagsOf(dynamic)
})

/** The id of the part of a call. Calls of runs inside may have the id of another call. */
export const partId = (
  runId: string | undefined,
  call: { readonly runId: string; readonly toolCallId: string }
): string => (call.runId === runId ? call.toolCallId : `${call.runId}:${call.toolCallId}`)

/** An event as a data part. */
export const dataOf = (
  type: "data-event" | "data-child",
  event: AgentEvent,
  isTransient: boolean
): Chunk => ({
  type,
  id: `${event.runId}:${event.seq}`,
  data: encode(event),
  ...(isTransient ? { transient: true } : {})
})

const encode = Schema.encodeSync(Schema.toCodecJson(AgentEvent))
