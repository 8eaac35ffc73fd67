/** The events of AG-UI 1.0, as far as runs have use for them, and the state of a stream between two events. */
import * as Schema from "effect/Schema"
import { AgentEvent } from "../../AgentEvent.ts"
import * as Message from "../../Message.ts"
import { CallSet } from "../../internal/callSet.ts"
import * as Asking from "../../ui/Asking.ts"
import * as Streamed from "../../ui/Streamed.ts"

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

/**
 * The ids of a run in AG-UI, and the conversation that the client has.
 *
 * @since 0.2.0
 * @category models
 */
export interface Input {
  /** The id of the conversation. */
  readonly threadId: string
  /** The id that the client gave the run. */
  readonly runId: string
  /** The conversation of the client. Default: empty. */
  readonly messages?: ReadonlyArray<AgUiMessage>
}

/**
 * A run that has begun and not ended: the agent, or a sub-agent.
 *
 * @since 0.2.0
 * @category models
 */
export interface Producer {
  /** The member that events of a sub-agent have. */
  readonly tag: Tag
  /** The name of the step that has begun, `undefined` between steps. */
  readonly step: string | undefined
  /** The id of the answer that streams. */
  readonly answerId: string
  /** The part of the answer that the client has. */
  readonly streamed: Streamed.Streamed
  /** The ids of the calls in AG-UI where they differ. */
  readonly callIds: ReadonlyMap<string, string>
  /** The events that begin it again in the next response. */
  readonly begin: ReadonlyArray<Event>
}

/**
 * The state between two events.
 *
 * @since 0.2.0
 * @category models
 */
export interface State {
  /** The ids of the run of AG-UI, and the conversation before it. */
  readonly input: Input
  /** The id of the run, `undefined` before its start. */
  readonly runId: string | undefined
  /** The conversation as the client has it, without the answers that stream. */
  readonly messages: ReadonlyArray<AgUiMessage>
  /** The runs that have not ended, the outermost first. */
  readonly producers: ReadonlyMap<string, Producer>
  /** The ids of all tool calls. */
  readonly calls: ReadonlySet<string>
  /** The names of the tools that run, by run and call. */
  readonly toolNames: ReadonlyMap<string, string>
  /** The open requests to a person. */
  readonly asking: Asking.Asking
  /** The output of the run. Default none. */
  readonly output: Schema.Json | undefined
  /** Whether the run has ended. */
  readonly hasEnded: boolean
}

/** A state, and the events of AG-UI for the last event. */
export type Step = readonly [State, ReadonlyArray<Event>]

export const initial = (input: Input): State => ({
  input,
  runId: undefined,
  messages: (input.messages ?? []).filter(({ role }) => role !== "activity"),
  producers: new Map(),
  calls: callsIn(input.messages ?? []),
  toolNames: new Map(),
  asking: Asking.nothing,
  output: undefined,
  hasEnded: false
})

/** The ids of the calls of messages. */
export const callsIn = (messages: ReadonlyArray<AgUiMessage>): ReadonlySet<string> =>
  messages.flatMap(callsOf).reduce((all, id) => all.with(id), CallSet.empty)

const callsOf = ({ toolCalls }: AgUiMessage): ReadonlyArray<string> =>
  Array.isArray(toolCalls)
    ? toolCalls.flatMap((call: Schema.Json) =>
        typeof call === "object" && call !== null && "id" in call && typeof call.id === "string"
          ? [call.id]
          : []
      )
    : []

/** A run of which the state knows nothing yet, as one that begins. */
export const producerOf = (state: State, runId: string): Producer =>
  state.producers.get(runId) ?? {
    tag: runId === state.runId ? {} : { subagentRunId: runId },
    step: undefined,
    answerId: "",
    streamed: Streamed.nothing,
    callIds: new Map(),
    begin: []
  }

export const withProducer = (state: State, runId: string, change: Partial<Producer>): State => ({
  ...state,
  producers: new Map(state.producers).set(runId, { ...producerOf(state, runId), ...change })
})

/** The id of a call in AG-UI, where calls of all agents share one space of ids. */
export const callIdOf = (
  state: State,
  { runId, toolCallId }: { readonly runId: string; readonly toolCallId: string }
): string =>
  state.producers.get(runId)?.callIds.get(toolCallId) ??
  (runId === state.runId ? toolCallId : `${runId}:${toolCallId}`)

/** An event of the run as JSON. */
export const json: (event: AgentEvent) => Schema.Json = Schema.encodeSync(Schema.toCodecJson(AgentEvent))

/** A message of the run beside a message of AG-UI. */
export const wholeOf = (message: object): { readonly metadata: JsonObject } => ({
  metadata: { effectAgent: { ...message } }
})

// ───────────────────────── Messages of a conversation

type Block = Message.Assistant["content"][number]

/** The answer of an agent: a message for each block of thinking, then the words and the calls. */
export const answer = (
  state: State,
  runId: string,
  { tag }: Producer,
  message: { readonly id: string; readonly content: ReadonlyArray<Block | undefined> },
  metadata: JsonObject = {}
): ReadonlyArray<AgUiMessage> => {
  const reasoning = message.content.flatMap((block, at) =>
    block?.type === "thinking"
      ? [{ id: reasoningId(message.id, at), role: "reasoning", content: block.text, ...tag }]
      : []
  )
  const toolCalls = message.content.flatMap((block) => {
    if (block?.type !== "toolCall") return []
    const id = callIdOf(state, { runId, toolCallId: block.id })
    return [{ id, type: "function", function: { name: block.name, arguments: block.rawArguments } }]
  })
  const content = message.content.reduce(
    (all, block) => (block?.type === "text" ? all + block.text : all),
    ""
  )
  return [
    ...reasoning,
    {
      id: message.id,
      role: "assistant",
      content,
      ...(toolCalls.length === 0 ? {} : { toolCalls }),
      ...tag,
      ...metadata
    }
  ]
}

export const reasoningId = (messageId: string, contentIndex: number) => `${messageId}:${contentIndex}`

export const user = (message: Message.User): AgUiMessage => ({
  id: message.id,
  role: "user",
  content: message.content.every(({ type }) => type === "text")
    ? Message.textOf(message)
    : message.content.map(partOf),
  ...wholeOf(message)
})

export const toolResult = (state: State, runId: string, { tag }: Producer, message: Message.ToolResult) => ({
  id: message.id,
  role: "tool",
  toolCallId: callIdOf(state, { runId, toolCallId: message.toolCallId }),
  content: contentOf(message.content),
  ...(message.isError ? { error: Message.textOf(message) } : {}),
  ...tag,
  ...wholeOf(message)
})

/** Text, or a list of parts where it has images. */
export const contentOf = (content: Message.ToolResult["content"]): string | Array<JsonObject> =>
  content.every(({ type }) => type === "text") ? Message.textOf({ content }) : content.map(partOf)

const partOf = (block: Message.User["content"][number]): JsonObject => {
  if (block.type === "text") return { type: "text", text: block.text }
  if (block.type === "image") return { type: "image", source: sourceOf(block.source) }
  const { name, source } = block
  const metadata = name === undefined ? {} : { metadata: { fileName: name } }
  return { type: "document", source: sourceOf(source), ...metadata }
}

const sourceOf = (source: Message.Image["source"] | Message.File["source"]): JsonObject => {
  if ("data" in source) return { type: "data", value: source.data, mimeType: source.mediaType }
  if ("fileId" in source) return { type: "file", value: source.fileId }
  const mimeType = "mediaType" in source ? source.mediaType : undefined
  return { type: "url", value: source.url, ...(mimeType === undefined ? {} : { mimeType }) }
}

/** The conversation with a message that may be in it under its id. It keeps the members that the client gave the message. */
export const added = (
  messages: ReadonlyArray<AgUiMessage>,
  more: ReadonlyArray<AgUiMessage>
): ReadonlyArray<AgUiMessage> =>
  more.reduce((all, message) => {
    const at = all.findIndex(({ id }) => id === message.id)
    return at === -1 ? [...all, message] : all.with(at, { ...all[at], ...message })
  }, messages)

/** The whole conversation, with the answers as far as they have come. */
export const snapshotOf = (state: State, retracted: ReadonlyArray<string>): Array<AgUiMessage> => {
  const open = [...state.producers].flatMap(([runId, producer]) =>
    producer.streamed.reply.content.length === 0
      ? []
      : answer(state, runId, producer, { id: producer.answerId, content: producer.streamed.reply.content })
  )
  const messages = [...state.messages, ...open]
  // A client drops retracted thinking only where the snapshot has some.
  if (retracted.length === 0 || messages.some(({ role }) => role === "reasoning")) return messages
  return [...messages, ...retracted.map((id) => ({ id, role: "reasoning", content: "" }))]
}

/** A custom message: an activity, which clients keep to themselves. */
export const activity = ({ data, kind }: Message.Custom): { readonly [key: string]: Schema.Json } => ({
  kind,
  data
})
