/**
 * What a run tells the world: ordered, JSON-safe, and enough to rebuild the transcript and the state.
 *
 * ```text
 * RunStart Turn* RunEnd
 * Turn     TurnStart Message* Call (ToolsDetected Tool* Message*)? TurnEnd
 * Call     ModelCallStart Try* Answer ModelCallEnd | Answer
 * Try      (MessageStart MessageDelta*)? (ModelCallError ModelCallRetry)? MessageRetracted?
 * Message  MessageStart MessageEnd
 * Answer   MessageStart MessageDelta* MessageEnd
 * Tool     ToolExecutionStart ToolInvoked? ToolExecutionProgress* ToolExecutionEnd
 * ```
 *
 * The tools of one turn may interleave, and each start has exactly one end. `RunEnd` is there on every path, once, and
 * last. `RunPaused`, `RunResumed`, `RunCancelled`, `RunError`, `HookError`, `LimitReached`, `ContextTransformed` and
 * `QueueUpdate` come where they happen. A model call that fails has `ModelCallError` in place of its end, one that is
 * stopped neither. Where a hook answers, or nobody could be asked, the answer stands alone. A try that failed says
 * `ModelCallError` with `willRetry` and `ModelCallRetry`; what it had said is taken back by `MessageRetracted`, and so is
 * an empty answer that is not accepted. A message travels whole once, in its `MessageEnd`; later events name it by id.
 */
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { CallSet, from } from "./internal/callSet.ts"
import { EventError, LimitName } from "./FailureReason.ts"
import * as Message from "./Message.ts"
import * as ModelEvent from "./ModelEvent.ts"
import { ProviderError } from "./ProviderError.ts"
import { ModelOptions } from "./RunOptions.ts"
import { Usage } from "./Usage.ts"

/** The version of this vocabulary, in every `RunStart`. */
export const version = 1

export const RunStatus = Schema.Literals([
  "completed",
  /** A `shouldStopAfterTurn` hook said so. */
  "stopped",
  /** Every tool of the last turn asked to end, and nothing was queued. */
  "terminated",
  /** A limit whose policy is "stop" or "wrapUp". */
  "incomplete",
  "cancelled",
  /** Waits for something nobody here can give. */
  "suspended",
  "failed"
])
export type RunStatus = typeof RunStatus.Type

/** What a tool gave back, or what stands for it when it did not run. */
export const ToolOutput = Schema.Struct({
  content: Schema.Array(Schema.Union([Message.Text, Message.Image])),
  /** For programs and displays; the model does not see it. */
  details: Schema.optionalKey(Schema.Json),
  isError: Schema.optionalKey(Schema.Boolean),
  /** Do not ask the model again, if every result of the turn says so. */
  terminate: Schema.optionalKey(Schema.Boolean)
})
export type ToolOutput = typeof ToolOutput.Type

const base = {
  runId: Schema.String,
  /** Strictly increasing in a run. */
  seq: Schema.Int,
  /** Milliseconds since the epoch; events that arrived together share one. */
  timestamp: Schema.Finite,
  /** From 1; absent before the first turn and after the last. */
  turn: Schema.optionalKey(Schema.Int),
  /** Set on the events of a sub-agent: the call that started it. */
  parent: Schema.optionalKey(Schema.Struct({ runId: Schema.String, toolCallId: Schema.String }))
}
const tool = { toolCallId: Schema.String, toolName: Schema.String }
const reason = { reason: Schema.optionalKey(Schema.String) }

export const AgentEvent = Schema.TaggedUnion({
  RunStart: {
    ...base,
    v: Schema.Int,
    prompts: Schema.Array(Message.Message),
    model: Schema.String,
    continued: Schema.Boolean
  },
  RunPaused: { ...base, ...reason },
  RunResumed: { ...base, ...reason },
  RunCancelled: { ...base, ...reason },
  RunError: { ...base, error: EventError, retryable: Schema.Boolean },
  RunEnd: {
    ...base,
    status: RunStatus,
    messageId: Schema.optionalKey(Schema.String),
    newMessageIds: Schema.Array(Schema.String),
    usage: Usage,
    turns: Schema.Int,
    durationMs: Schema.Finite,
    error: Schema.optionalKey(EventError)
  },
  TurnStart: base,
  /** `toolsContinue`: there were calls, and not all of them terminate. Queued messages may still change what follows. */
  TurnEnd: {
    ...base,
    messageId: Schema.String,
    stopReason: Message.StopReason,
    toolResultIds: Schema.Array(Schema.String),
    usage: Usage,
    toolCallCount: Schema.Int,
    toolsContinue: Schema.Boolean
  },
  ModelCallStart: { ...base, model: Schema.String, messageCount: Schema.Int, options: ModelOptions },
  ModelCallEnd: {
    ...base,
    messageId: Schema.String,
    usage: Schema.optionalKey(Usage),
    durationMs: Schema.Finite,
    ...ModelEvent.adjusted,
    ...ModelEvent.unrepresented
  },
  ModelCallError: { ...base, error: EventError, willRetry: Schema.Boolean },
  ModelCallRetry: { ...base, attempt: Schema.Int, delayMs: Schema.Finite, error: ProviderError },
  MessageStart: {
    ...base,
    messageId: Schema.String,
    role: Schema.Literals(["user", "assistant", "toolResult", "custom"])
  },
  MessageDelta: { ...base, messageId: Schema.String, delta: ModelEvent.ModelEvent },
  /** What was said of it so far is void; a new `MessageStart` follows. */
  MessageRetracted: { ...base, messageId: Schema.String },
  MessageEnd: { ...base, message: Message.Message },
  ToolsDetected: { ...base, toolCalls: Schema.Array(Message.ToolCall) },
  /** `params` as the model gave them, `{}` when they do not parse. */
  ToolExecutionStart: { ...base, ...tool, label: Schema.optionalKey(Schema.String), params: Schema.Json },
  /** Real execution begins. `params` are what the tool gets, after the guards. */
  ToolInvoked: {
    ...base,
    ...tool,
    params: Schema.Json,
    /** A guard replaced the params. */
    modified: Schema.Boolean,
    /** An `approveTool` guard was asked, and agreed. */
    approved: Schema.Boolean
  },
  ToolExecutionProgress: { ...base, ...tool, partial: ToolOutput },
  ToolExecutionEnd: {
    ...base,
    ...tool,
    result: ToolOutput,
    isError: Schema.Boolean,
    outcome: Message.ToolOutcome,
    durationMs: Schema.Finite
  },
  HookError: {
    ...base,
    hook: Schema.String,
    hookId: Schema.String,
    error: Schema.String,
    consecutiveErrors: Schema.Int,
    disabled: Schema.Boolean
  },
  /** The request holds less than the transcript: `kept` of `kept + dropped` messages. */
  ContextTransformed: {
    ...base,
    dropped: Schema.Int,
    kept: Schema.Int,
    reason: Schema.Literals(["window", "compaction", "repair"])
  },
  QueueUpdate: { ...base, steering: Schema.Int, followUp: Schema.Int },
  LimitReached: {
    ...base,
    limit: LimitName,
    value: Schema.Finite,
    max: Schema.Finite,
    /** A part of `value` is an estimate. */
    estimated: Schema.optionalKey(Schema.Boolean)
  }
})
export type AgentEvent = typeof AgentEvent.Type

type Tag = AgentEvent["_tag"]
/** One kind of event. */
export type OfTag<T extends Tag> = Extract<AgentEvent, { readonly _tag: T }>

type Unstamped<Event> = Event extends AgentEvent
  ? Omit<Event, "runId" | "seq" | "timestamp" | "turn" | "parent">
  : never
/** An event before the run puts its id, number and time on it. */
export type Body = Unstamped<AgentEvent>

/** Only the events with these tags. */
export const ofTag =
  <const T extends Tag>(...tags: ReadonlyArray<T>) =>
  <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<OfTag<T>, E, R> => {
    const wanted: ReadonlySet<Tag> = new Set(tags)
    return Stream.filter(self, (event): event is OfTag<T> => wanted.has(event._tag))
  }

type TextDelta = OfTag<"MessageDelta"> & {
  readonly delta: Extract<ModelEvent.ModelEvent, { readonly _tag: "TextDelta" }>
}

/** Whether an event is a piece of an answer's text, in `event.delta.delta`. */
export const isTextDelta = (event: AgentEvent): event is TextDelta =>
  event._tag === "MessageDelta" && event.delta._tag === "TextDelta"

/** Only the text of the answers, as it comes. */
export const textOnly = <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<string, E, R> =>
  self.pipe(
    Stream.filter(isTextDelta),
    Stream.map((event) => event.delta.delta)
  )

/** What an observer knows after some events. `fold` makes it, so a UI, a remote client and a test see the same. */
export interface View {
  readonly messages: ReadonlyArray<Message.Message>
  /** The answer being said, as far as it came; `partial` makes a message of it. */
  readonly open: OpenAnswer | undefined
  readonly phase: "idle" | "model" | "tools" | "paused"
  /** Between a tool's start and its end. */
  readonly pendingToolCalls: ReadonlySet<string>
  readonly lastError: string | undefined
  readonly status: RunStatus | undefined
  readonly usage: Usage | undefined
}

export interface OpenAnswer {
  readonly id: Message.MessageId
  readonly timestamp: number
  readonly reply: ModelEvent.Reply
}

/** The view before any event: `messages` is what the transcript already holds. */
export const initial = (messages: ReadonlyArray<Message.Message> = []): View => ({
  messages,
  open: undefined,
  phase: "idle",
  pendingToolCalls: CallSet.empty,
  lastError: undefined,
  status: undefined,
  usage: undefined
})

/** The view after one more event. Pure; ignores what it does not need, so a filtered stream folds too. */
export const fold = (view: View, event: AgentEvent): View => {
  switch (event._tag) {
    case "RunStart":
      return { ...initial(view.messages), phase: "model" }
    case "MessageStart":
      return event.role === "assistant"
        ? {
            ...view,
            open: { id: event.messageId, timestamp: event.timestamp, reply: ModelEvent.emptyReply }
          }
        : view
    case "MessageDelta":
      return view.open?.id === event.messageId
        ? { ...view, open: { ...view.open, reply: ModelEvent.append(view.open.reply, event.delta) } }
        : view
    case "MessageRetracted":
      return { ...view, open: undefined }
    case "MessageEnd": {
      const next = progressed(view, event)
      return event.message.role === "assistant" ? { ...next, open: undefined } : next
    }
    case "RunEnd":
      return { ...progressed(view, event), status: event.status, usage: event.usage }
    default:
      return progressed(view, event)
  }
}

/** @internal As much of a view as changes at the boundaries of messages, tools and turns. */
export interface Progress extends Pick<View, "messages" | "phase" | "pendingToolCalls"> {
  readonly lastError?: string | undefined
}

/** @internal The same of whatever has that in it, after one more event of a run that has begun: itself, if nothing changed. */
export const progressed = <State extends Progress>(state: State, event: AgentEvent): State => {
  switch (event._tag) {
    case "RunPaused":
      return { ...state, phase: "paused" }
    case "RunResumed":
      return { ...state, phase: state.pendingToolCalls.size > 0 ? "tools" : "model" }
    case "TurnStart":
      return { ...state, phase: "model" }
    case "MessageEnd": {
      const { message } = event
      const failed = message.role === "assistant" ? message.errorMessage : undefined
      return { ...state, messages: [...state.messages, message], ...error(failed) }
    }
    case "ToolExecutionStart":
      return {
        ...state,
        phase: "tools",
        pendingToolCalls: from(state.pendingToolCalls).with(event.toolCallId)
      }
    case "ToolExecutionEnd":
      return { ...state, pendingToolCalls: from(state.pendingToolCalls).without(event.toolCallId) }
    case "RunEnd":
      return {
        ...state,
        phase: "idle",
        pendingToolCalls: CallSet.empty,
        ...error(event.error?.message)
      }
    default:
      return state
  }
}

const error = (lastError: string | undefined) => (lastError === undefined ? undefined : { lastError })

/** The answer being said, as the message it would be if it ended now. */
export const partial = ({ open }: Pick<View, "open">): Message.Assistant | undefined =>
  open === undefined
    ? undefined
    : ModelEvent.toAssistant(open.reply, {
        id: open.id,
        timestamp: open.timestamp,
        provider: "",
        model: "",
        protocol: ""
      })
