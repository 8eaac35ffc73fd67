/**
 * The events of a run: ordered, JSON-safe, and enough to rebuild the transcript and the state.
 *
 * **Details**
 *
 * ```text
 * Run      RunStart Turn* Message* Output? RunEnd
 * Turn     TurnStart Message* Call? (ToolsDetected (Tool | Message)*)? TurnEnd
 * Call     ModelCallStart Try* Answer (ModelCallEnd | ModelCallError)? | Answer
 * Try      (MessageStart MessageDelta*)? (ModelCallError ModelCallRetry)? MessageRetracted?
 * Message  MessageStart MessageEnd
 * Answer   MessageStart MessageDelta* MessageEnd
 * Tool     ToolExecutionStart Asked* ToolBackgrounded? (ToolInvoked Work* (ToolBackgrounded Work*)?)? ToolExecutionEnd
 * Work     ToolExecutionProgress | Asked
 * Asked    ApprovalRequested ApprovalAnswered? | QuestionAsked QuestionAnswered?
 * ```
 *
 * - `RunEnd` comes once, last, on every path.
 * - The events of a sub-agent's run stand between the events of its parent run, after the `ToolInvoked` and before the `ToolExecutionEnd`
 *   of the call: see `Agent.asTool`. They have a `runId`, `seq` and `path` of their own.
 * - The tools of one turn may interleave, and each start has exactly one end. Only where the run ends with status `"suspended"`, the
 *   calls that wait for a person have none: the run that resumes it starts and ends them.
 * - After `ToolBackgrounded` the turn continues without the call: its `ToolExecutionEnd` comes in a later turn, between two turns, or after
 *   the last one. A run ends only when all such calls have ended. A last message reports the ends that the model has not read.
 * - A request without its answer is void with the `ToolExecutionEnd` of its call.
 * - The first turn of a run that resumes another one has no model call, and may have no answer.
 * - `HandedOff` comes after the turn whose call hands off, before the next one.
 * - `RunRetry` comes between a turn that failed and the next one.
 * - `Output` comes before the `RunEnd` of a completed run that has an `output` schema.
 * - `Compaction` comes before `ModelCallStart`, or between it and `ModelCallError` if the conversation was too long for the model. A run
 *   of `agent.compact` has no turns, and its `Compaction` comes alone.
 * - `RunPaused`, `RunResumed`, `RunCancelled`, `RunError`, `HookExecuted`, `HookError`, `LimitReached`, `ContextTransformed` and `QueueUpdate` come
 *   where they happen.
 * - A model call that fails has `ModelCallError` in place of `ModelCallEnd`. A call that a stop of the run interrupts has neither.
 * - Where a hook answers, or the run could not ask the model, the events of the answer come without those of a model call.
 * - A failed try emits `ModelCallError` with `willRetry`, then `ModelCallRetry`. `MessageRetracted` makes its deltas void, and those
 *   of an empty answer that the run does not accept.
 * - `PartialValue` comes directly behind the `MessageDelta` that it comes from, in a run with the option `partialValues`. `MessageRetracted` makes it void too.
 * - `ArtifactStored` comes before the `ToolExecutionEnd` of a call whose large result is stored.
 * - `MessageEnd` has the whole message, and later events name it by id.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import { dual } from "effect/Function"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import { CallSet, from } from "./internal/callSet.ts"
import { EventError, LimitName } from "./internal/failureReason.ts"
import { Growing, type Partial, ValueChange, ValueDraft } from "./internal/growing.ts"
import * as Parts from "./internal/eventParts.ts"
import * as Message from "./Message.ts"
import * as ModelEvent from "./ModelEvent.ts"
import { ProviderError } from "./ProviderError.ts"
import { ModelOptions, RunOptions } from "./RunOptions.ts"
import { RunStatus, ToolOutput } from "./internal/eventParts.ts"
import { Usage } from "./Usage.ts"

export { type Partial, ValueChange } from "./internal/growing.ts"
export { RunStatus, ToolOutput } from "./internal/eventParts.ts"

/**
 * The version of the events, in every `RunStart`.
 *
 * **Details**
 *
 * A version adds events and members, and keeps those of the version before: ignore events and members that you do not know.
 * Version 2 adds `path` to the events of a run that a tool started, `options` to `RunStart`, the events `Output` and `RunRetry`, and
 * the blocks `source`, `media` and `hostedTool` to answers. It adds approvals and questions: `ApprovalRequested`, `ApprovalAnswered`,
 * `QuestionAsked`, `QuestionAnswered`, `resumes` of `RunStart` and `resume` of `RunEnd`. It adds background calls: `ToolBackgrounded`,
 * `background` and `timeoutMs` of `ToolExecutionEnd`, `background` of tool results, and `backgroundEnds` of messages of the user.
 * It adds `PartialValue`, in runs with the option `partialValues`.
 *
 * @category constants
 * @since 0.1.0
 */
export const version = 2

/** The fields of every event. */
const base = {
  /** The id of the run. */
  runId: Schema.String,
  /** The number of the event, strictly increasing in a run. */
  seq: Schema.Int,
  /** The time in milliseconds since the epoch; events that arrived together share one. */
  timestamp: Schema.Finite,
  /** The turn, from 1; absent before the first turn and after the last. Events of a call in the background have the turn that made it. */
  turn: Schema.optionalKey(Schema.Int),
  /** The run and the tool call that started this run, the last of `path`; absent for a run that no tool started. */
  parent: Schema.optionalKey(Parts.Caller),
  /** The tool calls of the parent runs that lead to this run, outermost first; absent for a run that no tool started. */
  path: Schema.optionalKey(Schema.NonEmptyArray(Parts.Caller))
}
/** The part of `usage` that sub-agents have spent, in runs that tool calls of this run started; absent if there is none. */
const childUsage = { childUsage: Schema.optionalKey(Usage) }
const hook = {
  hook: Schema.String,
  hookId: Schema.String,
  hookName: Schema.optionalKey(Schema.String)
}
const tool = { toolCallId: Schema.String, toolName: Schema.String }
const ofCall = { toolCallId: Schema.optionalKey(Schema.String), toolName: Schema.optionalKey(Schema.String) }
const artifact = { artifactId: Schema.String, bytes: Schema.Int, mediaType: Schema.String }
const reason = { reason: Schema.optionalKey(Schema.String) }

/**
 * An event of a run.
 *
 * **Example** (Writing events as lines of JSON)
 *
 * ```ts
 * import { Effect, Schema, Stream } from "effect"
 * import { Agent, AgentEvent } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const encode = Schema.encodeEffect(Schema.fromJsonString(Schema.toCodecJson(AgentEvent.AgentEvent)))
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   const lines = yield* agent.stream("Hi").pipe(
 *     Stream.mapEffect((event) => encode(event)),
 *     Stream.runCollect
 *   )
 *   return lines.length
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Hello")])), Effect.scoped)
 *
 * console.log((await Effect.runPromise(program)) > 5) // => true
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export const AgentEvent = Schema.TaggedUnion({
  RunStart: {
    ...base,
    v: Schema.Int,
    prompts: Schema.Array(Message.Message),
    model: Schema.String,
    options: Schema.optionalKey(RunOptions),
    continued: Schema.Boolean,
    resumes: Schema.optionalKey(Schema.String)
  },
  RunPaused: { ...base, ...reason },
  RunResumed: { ...base, ...reason },
  RunCancelled: { ...base, ...reason },
  RunRetry: { ...base, attempt: Schema.Int, delayMs: Schema.Finite, error: ProviderError },
  RunError: { ...base, error: EventError, retryable: Schema.Boolean },
  Output: { ...base, value: Schema.Json },
  RunEnd: {
    ...base,
    status: RunStatus,
    messageId: Schema.optionalKey(Schema.String),
    newMessageIds: Schema.Array(Schema.String),
    usage: Usage,
    ...childUsage,
    turns: Schema.Int,
    durationMs: Schema.Finite,
    hookMs: Schema.optionalKey(Schema.Finite),
    error: Schema.optionalKey(EventError),
    resume: Schema.optionalKey(
      Schema.Struct({ sessionId: Schema.optionalKey(Schema.String), runId: Schema.String })
    )
  },
  TurnStart: base,
  TurnEnd: {
    ...base,
    messageId: Schema.optionalKey(Schema.String),
    stopReason: Message.StopReason,
    toolResultIds: Schema.Array(Schema.String),
    usage: Usage,
    ...childUsage,
    toolCallCount: Schema.Int,
    toolsContinue: Schema.Boolean
  },
  ModelCallStart: { ...base, model: Schema.String, messageCount: Schema.Int, options: ModelOptions },
  ModelCallEnd: {
    ...base,
    messageId: Schema.String,
    usage: Schema.optionalKey(Usage),
    durationMs: Schema.Finite,
    ...ModelEvent.responseModel,
    ...ModelEvent.adjusted,
    ...ModelEvent.headers,
    ...ModelEvent.rateLimits,
    ...ModelEvent.unrepresented,
    ...ModelEvent.logprobs,
    ...ModelEvent.serviceTier,
    ...ModelEvent.refusal
  },
  ModelCallError: { ...base, error: EventError, willRetry: Schema.Boolean },
  ModelCallRetry: { ...base, attempt: Schema.Int, delayMs: Schema.Finite, error: ProviderError },
  MessageStart: {
    ...base,
    messageId: Schema.String,
    role: Schema.Literals(["user", "assistant", "toolResult", "custom"])
  },
  MessageDelta: { ...base, messageId: Schema.String, delta: ModelEvent.ModelEvent },
  PartialValue: {
    ...base,
    messageId: Schema.String,
    index: Schema.Int,
    for: Schema.Literals(["arguments", "output"]),
    ...ofCall,
    changes: Schema.Array(ValueChange)
  },
  MessageRetracted: { ...base, messageId: Schema.String },
  MessageEnd: { ...base, message: Message.Message },
  ToolsDetected: { ...base, toolCalls: Schema.Array(Message.ToolCall) },
  ToolExecutionStart: { ...base, ...tool, label: Schema.optionalKey(Schema.String), params: Schema.Json },
  ApprovalRequested: { ...base, ...Parts.approval },
  ApprovalAnswered: {
    ...base,
    approvalId: Schema.String,
    toolCallId: Schema.String,
    ...Parts.decision
  },
  QuestionAsked: { ...base, ...Parts.question },
  QuestionAnswered: { ...base, questionId: Schema.String, toolCallId: Schema.String, ...Parts.answer },
  ToolInvoked: {
    ...base,
    ...tool,
    params: Schema.Json,
    /** Whether a guard or an approval replaced the params. */
    modified: Schema.Boolean,
    /** Whether an `approveTool` hook or a person approved the call. */
    approved: Schema.Boolean
  },
  ToolExecutionProgress: { ...base, ...tool, partial: ToolOutput },
  ToolBackgrounded: { ...base, ...tool, handle: Schema.String, note: Schema.optionalKey(Schema.String) },
  ArtifactStored: { ...base, toolCallId: Schema.String, ...artifact },
  ToolExecutionEnd: {
    ...base,
    ...tool,
    result: ToolOutput,
    isError: Schema.Boolean,
    outcome: Message.ToolOutcome,
    durationMs: Schema.Finite,
    /** The time limit that the call met. Absent for any other outcome. */
    timeoutMs: Schema.optionalKey(Schema.Finite),
    /** The handle of a call that had continued in the background. Default: it had not. */
    background: Schema.optionalKey(Schema.String)
  },
  HookExecuted: { ...base, ...hook, ...ofCall, durationMs: Schema.Finite },
  HookError: {
    ...base,
    ...hook,
    error: Schema.String,
    consecutiveErrors: Schema.Int,
    disabled: Schema.Boolean
  },
  ContextTransformed: {
    ...base,
    dropped: Schema.Int,
    kept: Schema.Int,
    reason: Schema.Literals(["window", "compaction", "repair"])
  },
  Compaction: { ...base, ...Parts.compaction },
  HandedOff: {
    ...base,
    from: Schema.String,
    to: Schema.String,
    toolCallId: Schema.String,
    messageId: Schema.String
  },
  QueueUpdate: { ...base, steering: Schema.Int, followUp: Schema.Int },
  LimitReached: {
    ...base,
    limit: LimitName,
    value: Schema.Finite,
    max: Schema.Finite,
    /** Whether the run estimated a part of `value`. Default `false`. */
    estimated: Schema.optionalKey(Schema.Boolean)
  }
})
export type AgentEvent =
  | RunStart
  | RunPaused
  | RunResumed
  | RunCancelled
  | RunRetry
  | RunError
  | Output
  | RunEnd
  | TurnStart
  | TurnEnd
  | ModelCallStart
  | ModelCallEnd
  | ModelCallError
  | ModelCallRetry
  | MessageStart
  | MessageDelta
  | PartialValue
  | MessageRetracted
  | MessageEnd
  | ToolsDetected
  | ToolExecutionStart
  | ApprovalRequested
  | ApprovalAnswered
  | QuestionAsked
  | QuestionAnswered
  | ToolInvoked
  | ToolExecutionProgress
  | ToolBackgrounded
  | ArtifactStored
  | ToolExecutionEnd
  | HookExecuted
  | HookError
  | ContextTransformed
  | Compaction
  | HandedOff
  | QueueUpdate
  | LimitReached

/** The tags of all events. */
type Tag = AgentEvent["_tag"]
/**
 * The event with a tag, such as `OfTag<"MessageEnd">`.
 *
 * @category models
 * @since 0.1.0
 */
export type OfTag<T extends Tag> = Extract<AgentEvent, { readonly _tag: T }>

/** The shape of an event, which its interface names. */
type Shape<T extends string> = Extract<typeof AgentEvent.Type, { readonly _tag: T }>

/**
 * The run begins.
 *
 * **Details**
 *
 * `v` is the `version` of the events, and `prompts` are the messages it begins with. `continued` says that it continues the transcript: it
 * has no prompt, or only messages that were queued. `options` are those of the run before its `beforeExecution` hooks, with durations in
 * milliseconds. They leave out `system`, and `vendor` of the model options and of hosted tools, which may be secret. `options` is absent
 * in events of version 1. `resumes` is the id of the run whose open turn this run begins with.
 *
 * @category models
 * @since 0.2.0
 */
export interface RunStart extends Shape<"RunStart"> {}

/**
 * The run waits until the application resumes or cancels it.
 *
 * @category models
 * @since 0.2.0
 */
export interface RunPaused extends Shape<"RunPaused"> {}

/**
 * The run continues after a pause.
 *
 * @category models
 * @since 0.2.0
 */
export interface RunResumed extends Shape<"RunResumed"> {}

/**
 * The application cancelled the run, which now comes to its end.
 *
 * @category models
 * @since 0.2.0
 */
export interface RunCancelled extends Shape<"RunCancelled"> {}

/**
 * The model call of the last turn failed with `error`, and the run continues with another turn after `delayMs` milliseconds.
 *
 * **Details**
 *
 * `attempt` is 1 for the first retry after a turn that ended well.
 *
 * @category models
 * @since 0.2.0
 */
export interface RunRetry extends Shape<"RunRetry"> {}

/**
 * The run failed.
 *
 * **Details**
 *
 * `retryable` says whether another run may succeed.
 *
 * @category models
 * @since 0.2.0
 */
export interface RunError extends Shape<"RunError"> {}

/**
 * The model gave the output that the `output` schema describes.
 *
 * **Details**
 *
 * `value` is the JSON that the output was decoded from.
 *
 * @category models
 * @since 0.2.0
 */
export interface Output extends Shape<"Output"> {}

/**
 * The run ended.
 *
 * **Details**
 *
 * `usage` is that of all its model calls, `messageId` names the last answer, `error` the failure. `hookMs` is the time of all its calls of
 * hooks; it is absent in events of version 1. `resume` names the run, and the session it is kept in, where its status is `"suspended"`.
 *
 * @category models
 * @since 0.2.0
 */
export interface RunEnd extends Shape<"RunEnd"> {}

/**
 * A turn begins.
 *
 * @category models
 * @since 0.2.0
 */
export interface TurnStart extends Shape<"TurnStart"> {}

/**
 * A turn ended.
 *
 * **Details**
 *
 * `messageId` names its answer, absent if it has none. `toolsContinue` says that its tool results go to the model, unless queued messages
 * change what follows.
 *
 * @category models
 * @since 0.2.0
 */
export interface TurnEnd extends Shape<"TurnEnd"> {}

/**
 * The run asks the model, with `messageCount` messages.
 *
 * @category models
 * @since 0.2.0
 */
export interface ModelCallStart extends Shape<"ModelCallStart"> {}

/**
 * The model answered.
 *
 * **Details**
 *
 * `durationMs` includes retries; `usage` is absent if the provider reports no tokens.
 *
 * @category models
 * @since 0.2.0
 */
export interface ModelCallEnd extends Shape<"ModelCallEnd"> {}

/**
 * The model call failed.
 *
 * **Details**
 *
 * With `willRetry` a `ModelCallRetry` follows.
 *
 * @category models
 * @since 0.2.0
 */
export interface ModelCallError extends Shape<"ModelCallError"> {}

/**
 * Attempt number `attempt`, from 1, failed with `error`, and the next one follows after `delayMs` milliseconds.
 *
 * @category models
 * @since 0.2.0
 */
export interface ModelCallRetry extends Shape<"ModelCallRetry"> {}

/**
 * A message begins.
 *
 * @category models
 * @since 0.2.0
 */
export interface MessageStart extends Shape<"MessageStart"> {}

/**
 * A piece of an answer, as the provider reports it.
 *
 * @category models
 * @since 0.2.0
 */
export interface MessageDelta extends Shape<"MessageDelta"> {}

/**
 * A value has grown with the delta before: the arguments of a tool call, or the typed output.
 *
 * **Details**
 *
 * Only runs with the option `partialValues` emit it, and nothing keeps it. `foldValue` makes the value so far of `changes`. `messageId`
 * and `index`, the `contentIndex` of its block, name the value. Values of a tool call have its id and the name of its tool.
 *
 * A string grows by whole characters. A number, `true`, `false` or `null` comes when it has ended, and a member with its value. The last
 * value is the parsed arguments. Text that is no JSON has no changes.
 *
 * @category models
 * @since 0.2.0
 */
export interface PartialValue extends Shape<"PartialValue"> {}

/**
 * The deltas of the message are void, and a new `MessageStart` follows.
 *
 * @category models
 * @since 0.2.0
 */
export interface MessageRetracted extends Shape<"MessageRetracted"> {}

/**
 * The message is in the transcript.
 *
 * @category models
 * @since 0.2.0
 */
export interface MessageEnd extends Shape<"MessageEnd"> {}

/**
 * The answer has tool calls.
 *
 * @category models
 * @since 0.2.0
 */
export interface ToolsDetected extends Shape<"ToolsDetected"> {}

/**
 * The run looks at a tool call.
 *
 * **Details**
 *
 * `params` are those of the model, `{}` if they are not valid JSON.
 *
 * @category models
 * @since 0.2.0
 */
export interface ToolExecutionStart extends Shape<"ToolExecutionStart"> {}

/**
 * A tool call waits for an approval, which `Agent.answer` gives.
 *
 * **Details**
 *
 * `params` are those after the guards, and `argumentsHash` is the lower-case hex SHA-256 of their RFC 8785 JSON. `expiresAt` is in
 * milliseconds since the epoch. A run that resumes another one requests the approvals without an answer again, with the same `approvalId`.
 *
 * @category models
 * @since 0.2.0
 */
export interface ApprovalRequested extends Shape<"ApprovalRequested"> {}

/**
 * An approval was given or refused.
 *
 * **Details**
 *
 * `params` replace those of the call.
 *
 * @category models
 * @since 0.2.0
 */
export interface ApprovalAnswered extends Shape<"ApprovalAnswered"> {}

/**
 * The model asks a person, or the run does: see `about`.
 *
 * **Details**
 *
 * `agent.answer` gives the answer.
 *
 * @category models
 * @since 0.2.0
 */
export interface QuestionAsked extends Shape<"QuestionAsked"> {}

/**
 * A person answered a question.
 *
 * @category models
 * @since 0.2.0
 */
export interface QuestionAnswered extends Shape<"QuestionAnswered"> {}

/**
 * A tool begins.
 *
 * **Details**
 *
 * `params` are those that it gets, after the guards.
 *
 * @category models
 * @since 0.2.0
 */
export interface ToolInvoked extends Shape<"ToolInvoked"> {}

/**
 * A tool reports a partial result.
 *
 * @category models
 * @since 0.2.0
 */
export interface ToolExecutionProgress extends Shape<"ToolExecutionProgress"> {}

/**
 * A tool call continues in the background: its turn does not wait for it.
 *
 * **Details**
 *
 * The model knows the call by `handle`. `note` is what the tool says about that.
 *
 * @category models
 * @since 0.2.0
 */
export interface ToolBackgrounded extends Shape<"ToolBackgrounded"> {}

/**
 * The whole text of a large result is stored as an artifact of `bytes` bytes.
 *
 * **Details**
 *
 * The `ToolExecutionEnd` of the call follows, with the start and the end of the text.
 *
 * @category models
 * @since 0.2.0
 */
export interface ArtifactStored extends Shape<"ArtifactStored"> {}

/**
 * A tool call ended.
 *
 * **Details**
 *
 * `durationMs` is 0 for a tool that did not run. `timeoutMs` is the time limit that a call with the outcome `"timeout"` met. `background` is the handle of a call that had continued in the background.
 *
 * @category models
 * @since 0.2.0
 */
export interface ToolExecutionEnd extends Shape<"ToolExecutionEnd"> {}

/**
 * A call of a hook ended well.
 *
 * **Details**
 *
 * Only runs with the option `history` of mode `"full"` emit it. `hook` is its point, `hookName` its name, if it has one, and `toolCallId` the tool call that it was called for, if any.
 *
 * @category models
 * @since 0.2.0
 */
export interface HookExecuted extends Shape<"HookExecuted"> {}

/**
 * A hook failed.
 *
 * **Details**
 *
 * `hook` is its point, `hookName` its name, if it has one, and `disabled` says that this run does not call it again.
 *
 * @category models
 * @since 0.2.0
 */
export interface HookError extends Shape<"HookError"> {}

/**
 * The request has fewer messages than the transcript: `kept` of `kept + dropped`.
 *
 * @category models
 * @since 0.2.0
 */
export interface ContextTransformed extends Shape<"ContextTransformed"> {}

/**
 * A summary takes the place of older messages.
 *
 * **Details**
 *
 * `"start"` comes first, then `"end"` or `"failed"`.
 *
 * `reason` is the cause: the conversation has nearly reached the context window, the provider refused it as too long, or the application
 * called `agent.compact`. `entryId` and `tokensAfter` come at the end, `error` with a failure. `usage` is that of the model calls that
 * made the summary.
 *
 * @category models
 * @since 0.2.0
 */
export interface Compaction extends Shape<"Compaction"> {}

/**
 * The conversation continues with the agent `to`: see `Agent.handOff`.
 *
 * **Details**
 *
 * The call `toolCallId` of the agent `from` requested it, and `messageId` names the last message before.
 *
 * @category models
 * @since 0.2.0
 */
export interface HandedOff extends Shape<"HandedOff"> {}

/**
 * The number of messages in a queue changed.
 *
 * @category models
 * @since 0.2.0
 */
export interface QueueUpdate extends Shape<"QueueUpdate"> {}

/**
 * The run reached a bound, in the unit of the bound.
 *
 * @category models
 * @since 0.2.0
 */
export interface LimitReached extends Shape<"LimitReached"> {}

type Unstamped<Event> = Event extends AgentEvent
  ? Omit<Event, "runId" | "seq" | "timestamp" | "turn" | "parent" | "path">
  : never
/**
 * An event before the run adds its id, number and time.
 *
 * @category models
 * @since 0.1.0
 */
export type Body = Unstamped<AgentEvent>

/**
 * Keeps the events with these tags.
 *
 * **Example** (Watching tool calls)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent, AgentEvent, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const clock = Tool.make({ name: "clock", description: "The time", execute: () => Effect.succeed("12:00") })
 * const script = [ScriptedProvider.toolCall("clock", {}), ScriptedProvider.text("It is noon.")]
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini", tools: [clock] })
 *   return yield* agent.stream("What time is it?").pipe(
 *     AgentEvent.ofTag("ToolExecutionStart", "ToolExecutionEnd"),
 *     Stream.map(({ _tag, toolName }) => `${_tag} ${toolName}`),
 *     Stream.runCollect
 *   )
 * }).pipe(Effect.provide(ScriptedProvider.layer(script)), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => [ 'ToolExecutionStart clock', 'ToolExecutionEnd clock' ]
 * ```
 *
 * @category filtering
 * @since 0.1.0
 */
export const ofTag =
  <const T extends Tag>(...tags: ReadonlyArray<T>) =>
  <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<OfTag<T>, E, R> => {
    const wanted: ReadonlySet<Tag> = new Set(tags)
    return Stream.filter(self, (event): event is OfTag<T> => wanted.has(event._tag))
  }

/**
 * Returns whether an event belongs to a sub-agent of the run with an id: to a run that a tool call of it started, at any depth.
 *
 * **Example** (Finding the run of an event)
 *
 * ```ts
 * import { AgentEvent } from "effect-agent"
 *
 * const path = [{ runId: "run_1", toolCallId: "call_1" }] as const
 * const event: AgentEvent.AgentEvent = { _tag: "TurnStart", runId: "run_2", seq: 2, timestamp: 0, turn: 1, path }
 *
 * console.log(AgentEvent.isInside(event, "run_1"), AgentEvent.isInside(event, "run_2")) // => true false
 * ```
 *
 * @category guards
 * @since 0.2.0
 */
export const isInside = ({ path }: AgentEvent, runId: string | undefined): boolean =>
  path?.some((caller) => caller.runId === runId) === true

/** Makes a predicate for the events of one stream, in their order: whether an event belongs to no sub-agent. */
const isOutermost = () => {
  let runId: string | undefined
  return (event: AgentEvent): boolean => {
    if (isInside(event, runId)) return false
    if (event._tag === "RunStart") runId = event.runId
    return true
  }
}

/**
 * Leaves out the events of sub-agents: of runs that a tool call of the stream's own run started.
 *
 * **Example** (Leaving out the events of sub-agents)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent, AgentEvent } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const helper = Agent.asTool({ name: "helper", description: "Helps.", agent: { model: "gpt-5.4-mini" } })
 * const script = [
 *   ScriptedProvider.toolCall("helper", { prompt: "Help" }),
 *   ScriptedProvider.text("Here is help."),
 *   ScriptedProvider.text("Done.")
 * ]
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5", tools: [helper] })
 *   return yield* agent.stream("Hi").pipe(AgentEvent.outermost, AgentEvent.ofTag("RunStart"), Stream.runCollect)
 * }).pipe(Effect.provide(ScriptedProvider.layer(script)), Effect.scoped)
 *
 * console.log((await Effect.runPromise(program)).length) // => 1
 * ```
 *
 * @category filtering
 * @since 0.2.0
 */
export const outermost = <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<AgentEvent, E, R> =>
  Stream.suspend(() => Stream.filter(self, isOutermost()))

type TextDelta = OfTag<"MessageDelta"> & {
  readonly delta: Extract<ModelEvent.ModelEvent, { readonly _tag: "TextDelta" }>
}

/**
 * Returns whether an event is a piece of an answer's text, which is `event.delta.delta`.
 *
 * **Gotchas**
 *
 * The answers of sub-agents count too, unless {@link outermost} leaves them out.
 *
 * **Example** (Printing an answer as it comes)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent, AgentEvent } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   yield* Stream.runForEach(agent.stream("Hi"), (event) =>
 *     Effect.sync(() => AgentEvent.isTextDelta(event) && console.log(event.delta.delta))
 *   )
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text(["Hel", "lo"])])), Effect.scoped)
 *
 * await Effect.runPromise(program)
 * // => Hel
 * // => lo
 * ```
 *
 * @category guards
 * @since 0.1.0
 */
export const isTextDelta = (event: AgentEvent): event is TextDelta =>
  event._tag === "MessageDelta" && event.delta._tag === "TextDelta"

/**
 * Keeps the text of the answers, as it comes, without that of sub-agents.
 *
 * **Example** (Streaming text)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent, AgentEvent } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   return yield* agent.stream("Hi").pipe(AgentEvent.textOnly, Stream.runCollect)
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text(["Hel", "lo"])])), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => [ 'Hel', 'lo' ]
 * ```
 *
 * @category filtering
 * @since 0.1.0
 */
export const textOnly = <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<string, E, R> =>
  Stream.suspend(() => {
    const isOwn = isOutermost()
    return self.pipe(
      Stream.filter((event): event is TextDelta => isOwn(event) && isTextDelta(event)),
      Stream.map((event) => event.delta.delta)
    )
  })

/**
 * Returns the text of the answers so far, each time that it changes, without that of sub-agents.
 *
 * **Details**
 *
 * The texts of all answers of the stream stand behind one another. `MessageRetracted` takes the text of its answer back.
 *
 * **Example** (Showing a text that grows)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent, AgentEvent } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   return yield* agent.stream("Hi").pipe(AgentEvent.accumulateText, Stream.runCollect)
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text(["Hel", "lo"])])), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => [ 'Hel', 'Hello' ]
 * ```
 *
 * @category filtering
 * @since 0.2.0
 */
export const accumulateText = <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<string, E, R> =>
  Stream.mapAccum(
    outermost(self),
    () => ({ before: "", text: "" }),
    ({ before, text }, event) => {
      if (event._tag === "MessageStart") return [{ before: text, text }, []]
      if (event._tag === "MessageRetracted")
        return [{ before, text: before }, before === text ? [] : [before]]
      if (!isTextDelta(event) || event.delta.delta === "") return [{ before, text }, []]
      const next = text + event.delta.delta
      return [{ before, text: next }, [next]]
    }
  )

/**
 * Returns the values so far of `PartialValue` events, each at most once in a time, without those of sub-agents.
 *
 * **Details**
 *
 * `every` is that time, such as `"50 millis"`. The last value of each comes in any case, and a value that `MessageRetracted` makes void comes
 * once more, with `isRetracted`. The stream is empty without the option `partialValues` of the run.
 *
 * **Example** (Showing arguments that grow)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent, AgentEvent, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const clock = Tool.make({ name: "clock", description: "The time", execute: () => Effect.succeed("12:00") })
 * const script = [ScriptedProvider.toolCall("clock", { city: "Oslo" }), ScriptedProvider.text("It is noon.")]
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini", tools: [clock], partialValues: true })
 *   const events = agent.stream("What time is it in Oslo?")
 *   return yield* AgentEvent.partials(events, { every: "50 millis" }).pipe(
 *     Stream.map(({ toolName, value }) => `${toolName} ${JSON.stringify(value)}`),
 *     Stream.runCollect
 *   )
 * }).pipe(Effect.provide(ScriptedProvider.layer(script)), Effect.scoped)
 *
 * console.log((await Effect.runPromise(program)).at(-1)) // => clock {"city":"Oslo"}
 * ```
 *
 * @category filtering
 * @since 0.2.0
 */
export const partials: {
  (options: {
    readonly every: Duration.Input
  }): <E, R>(self: Stream.Stream<AgentEvent, E, R>) => Stream.Stream<Partial, E, R>
  <E, R>(
    self: Stream.Stream<AgentEvent, E, R>,
    options: { readonly every: Duration.Input }
  ): Stream.Stream<Partial, E, R>
} = dual(
  2,
  <E, R>(
    self: Stream.Stream<AgentEvent, E, R>,
    { every }: { readonly every: Duration.Input }
  ): Stream.Stream<Partial, E, R> =>
    outermost(self).pipe(
      ofTag("PartialValue", "MessageRetracted", "MessageEnd"),
      Stream.groupedWithin(Number.MAX_SAFE_INTEGER, every),
      Stream.mapAccum(
        () => new Growing(),
        (growing, events) => [growing, growing.add(events)]
      )
    )
)

/**
 * The part of a run that is under way.
 *
 * **Details**
 *
 * - `"idle"`: there is no run.
 * - `"model"`: the run starts, makes a request, or reads an answer.
 * - `"tools"`: tool calls run, or wait for a person.
 * - `"paused"`: the run waits for `agent.resume`.
 * - `"recovering"`: a model call failed, and the run waits to try again, until the next answer begins.
 * - `"compacting"`: the run makes a summary of older messages.
 * - `"finalizing"`: the last turn is over, or the run was cancelled or failed. The last hooks run, and may start another turn.
 *
 * @category models
 * @since 0.2.0
 */
export type Phase = "idle" | "model" | "tools" | "paused" | "recovering" | "compacting" | "finalizing"

/**
 * The state of a run after some of its events.
 *
 * **When to use**
 *
 * Use {@link initial} and {@link fold} to rebuild it in a user interface, in a remote client or in a test.
 *
 * @category models
 * @since 0.1.0
 */
export interface View {
  /** The id of the run, or `undefined` before its start. */
  readonly runId: string | undefined
  /** The transcript. */
  readonly messages: ReadonlyArray<Message.Message>
  /** The answer that is not complete yet; {@link partial} makes a message of it. */
  readonly open: OpenAnswer | undefined
  /** The part of the run that is under way. */
  readonly phase: Phase
  /** The ids of the tool calls that have started and not ended. */
  readonly pendingToolCalls: ReadonlySet<string>
  /** The message of the last failure, or `undefined`. */
  readonly lastError: string | undefined
  /** The way in which the run ended, or `undefined` before its end. */
  readonly status: RunStatus | undefined
  /** The tokens of the run, or `undefined` before its end. */
  readonly usage: Usage | undefined
}

/**
 * An answer that is not complete yet.
 *
 * @category models
 * @since 0.1.0
 */
export interface OpenAnswer {
  /** The id of its message. */
  readonly id: Message.MessageId
  /** The time at which it began, in milliseconds since the epoch. */
  readonly timestamp: number
  /** The answer as far as it has come. */
  readonly reply: ModelEvent.Reply
}

/**
 * Returns the view before any event.
 *
 * **Details**
 *
 * `messages` is the transcript before the run. Default: empty.
 *
 * **Example** (Folding events)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent, AgentEvent } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   return yield* Stream.runFold(agent.stream("Hi"), AgentEvent.initial, AgentEvent.fold)
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Hello")])), Effect.scoped)
 *
 * const { messages, phase, status } = await Effect.runPromise(program)
 * console.log(messages.map(({ role }) => role), phase, status) // => [ 'user', 'assistant' ] idle completed
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const initial = (messages: ReadonlyArray<Message.Message> = []): View => ({
  runId: undefined,
  messages,
  open: undefined,
  phase: "idle",
  pendingToolCalls: CallSet.empty,
  lastError: undefined,
  status: undefined,
  usage: undefined
})

/**
 * Returns the view after one more event.
 *
 * **Details**
 *
 * The function is pure. It ignores events that do not change the view, so a filtered stream folds too, and the events of sub-agents.
 *
 * **Example** (Following a pause)
 *
 * ```ts
 * import { AgentEvent } from "effect-agent"
 *
 * const view = AgentEvent.fold(AgentEvent.initial(), {
 *   _tag: "RunPaused",
 *   runId: "run_1",
 *   seq: 3,
 *   timestamp: 0
 * })
 *
 * console.log(view.phase) // => paused
 * ```
 *
 * @category folding
 * @since 0.1.0
 */
export const fold = (view: View, event: AgentEvent): View => {
  if (isInside(event, view.runId)) return view
  switch (event._tag) {
    case "RunStart":
      return { ...initial(view.messages), runId: event.runId, phase: "model" }
    case "MessageStart": {
      const { messageId: id, role, timestamp } = event
      const next = progressed(view, event)
      return role === "assistant" ? { ...next, open: { id, timestamp, reply: ModelEvent.emptyReply } } : next
    }
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

/** @internal The part of a view that changes where messages, tools and turns begin and end. */
export interface Progress extends Pick<View, "messages" | "phase" | "pendingToolCalls"> {
  readonly lastError?: string | undefined
}

/** @internal The state after one more event of a run that has begun, as the same object if the event changes nothing. */
export const progressed = <State extends Progress>(state: State, event: AgentEvent): State => {
  switch (event._tag) {
    case "RunPaused":
      return { ...state, phase: "paused" }
    case "RunResumed":
      return { ...state, phase: state.pendingToolCalls.size > 0 ? "tools" : "model" }
    case "TurnStart":
      return { ...state, phase: "model" }
    case "TurnEnd": {
      if (event.toolsContinue) return state
      const { pendingToolCalls: calls } = state
      // Background calls may still run after the turn.
      return { ...state, phase: calls === CallSet.empty || calls.size === 0 ? "finalizing" : "tools" }
    }
    case "RunRetry":
    case "ModelCallRetry":
      return { ...state, phase: "recovering" }
    case "Compaction":
      return { ...state, phase: event.status === "start" ? "compacting" : "model" }
    case "RunCancelled":
    case "RunError":
    case "LimitReached":
      return { ...state, phase: "finalizing" }
    case "MessageStart":
      return state.phase === "recovering" && event.role === "assistant" ? { ...state, phase: "model" } : state
    case "MessageEnd": {
      const { message } = event
      const failed = message.role === "assistant" ? message.errorMessage : undefined
      return { ...state, messages: [...state.messages, message], ...error(failed) }
    }
    case "ToolExecutionStart":
      return {
        ...state,
        // A call that had not started at a cancel starts and ends at once, which does not change the phase.
        phase: state.phase === "finalizing" ? state.phase : "tools",
        pendingToolCalls: from(state.pendingToolCalls).with(event.toolCallId)
      }
    case "ToolExecutionEnd":
      return { ...state, pendingToolCalls: from(state.pendingToolCalls).without(event.toolCallId) }
    case "RunEnd":
      return { ...state, phase: "idle", pendingToolCalls: CallSet.empty, ...error(event.error?.message) }
    default:
      return state
  }
}

const error = (lastError: string | undefined) => (lastError === undefined ? undefined : { lastError })

/**
 * Returns the answer that is not complete yet, as the message it would be if it ended now.
 *
 * **Details**
 *
 * Returns `undefined` where no answer is open. The message has `""` for a provider, model and protocol that are not known yet.
 *
 * **Example** (Showing an answer as it comes)
 *
 * ```ts
 * import { AgentEvent, Message } from "effect-agent"
 *
 * const base = { runId: "run_1", timestamp: 0, turn: 1, messageId: "msg_1" }
 * const events: ReadonlyArray<AgentEvent.AgentEvent> = [
 *   { ...base, _tag: "MessageStart", seq: 1, role: "assistant" },
 *   { ...base, _tag: "MessageDelta", seq: 2, delta: { _tag: "TextDelta", contentIndex: 0, delta: "Hel" } }
 * ]
 * const answer = AgentEvent.partial(events.reduce(AgentEvent.fold, AgentEvent.initial()))
 *
 * console.log(answer && Message.textOf(answer)) // => Hel
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const partial = ({ open }: Pick<View, "open">): Message.Assistant | undefined =>
  open && ModelEvent.toAssistant(open.reply, { ...unknownModel, ...Struct.pick(open, ["id", "timestamp"]) })

const unknownModel = { provider: "", model: "", protocol: "" }

/**
 * Returns the value of `PartialValue` events after changes.
 *
 * **Details**
 *
 * `value` is `undefined` before the first change. The function is pure, and ignores a change whose path does not lead into the value.
 *
 * **Gotchas**
 *
 * Each call copies the containers that it changes. Use `partials` for long values of many pieces.
 *
 * **Example** (Following the arguments of a call)
 *
 * ```ts
 * import { AgentEvent } from "effect-agent"
 *
 * const first = AgentEvent.foldValue(undefined, [{ path: [], set: { path: "src/in" } }])
 * const second = AgentEvent.foldValue(first, [{ path: ["path"], append: "dex.ts" }])
 *
 * console.log(second) // => { path: 'src/index.ts' }
 * ```
 *
 * @category folding
 * @since 0.2.0
 */
export const foldValue = (
  value: Schema.Json | undefined,
  changes: ReadonlyArray<ValueChange>
): Schema.Json | undefined => {
  const draft = new ValueDraft(value)
  draft.add(changes)
  return draft.take()
}
