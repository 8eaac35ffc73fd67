/** The state of a UI message stream between two events. */
import * as Schema from "effect/Schema"
import { AgentEvent } from "../../AgentEvent.ts"
import * as Asking from "../../ui/Asking.ts"
import { CallSet } from "../../internal/callSet.ts"
import * as Streamed from "../../ui/Streamed.ts"
import type { StopReason } from "../../Message.ts"
import type { Chunk } from "./UiChunk.ts"

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
