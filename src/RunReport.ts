/**
 * A run in numbers: a pure fold of its events.
 *
 * **When to use**
 *
 * Use {@link fromEvents} to make a report of a recorded stream. The result of a run has its report already.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { type AgentEvent, isInside, type OfTag } from "./AgentEvent.ts"
import * as FailureText from "./internal/failureText.ts"
import * as Message from "./Message.ts"
import { Adjustment } from "./ModelEvent.ts"
import { History } from "./RunOptions.ts"
import * as Usage from "./Usage.ts"

/**
 * One turn of a run.
 *
 * @category models
 * @since 0.1.0
 */
export const Turn = Schema.Struct({
  /** The number of the turn, from 1. */
  turn: Schema.Int,
  /** The time of its start in milliseconds since the epoch. */
  timestamp: Schema.Finite,
  /** Its duration in milliseconds, 0 until it ends. */
  durationMs: Schema.Finite,
  /** Its tokens, 0 until it ends. */
  tokens: Schema.Finite,
  /** The number of its tool results, 0 until it ends. */
  toolCalls: Schema.Int,
  /** The messages that it put into the transcript, absent unless the option `history` has the mode `"full"`. */
  messages: Schema.optionalKey(Schema.Array(Message.Message))
})
export interface Turn extends Schema.Schema.Type<typeof Turn> {}

/**
 * How far a tool call has come.
 *
 * **Details**
 *
 * - `"pending"`: it has begun, and waits for guards, an approval or its turn.
 * - `"executing"`: its tool runs.
 * - `"completed"`: it ended without an error.
 * - `"failed"`: it ended with an error other than a timeout, such as a rejection.
 * - `"timedOut"`: it reached its time limit.
 *
 * @category models
 * @since 0.2.0
 */
export const CallState = Schema.Literals(["pending", "executing", "completed", "failed", "timedOut"])
export type CallState = typeof CallState.Type

/**
 * The record of a tool call.
 *
 * @category models
 * @since 0.2.0
 */
export const CallRecord = Schema.Struct({
  /** The id of the call. */
  toolCallId: Schema.String,
  /** The name of the tool. */
  toolName: Schema.String,
  /** The turn that made the call. */
  turn: Schema.Int,
  /** How far it has come. */
  state: CallState,
  /** The time of its start in milliseconds since the epoch. */
  startTime: Schema.Finite,
  /** The time of its end in milliseconds since the epoch, absent until it ends. */
  endTime: Schema.optionalKey(Schema.Finite),
  /** Its duration in milliseconds, 0 until it ends. */
  durationMs: Schema.Finite,
  /** The first 500 characters of the error that the model reads, absent unless it failed or timed out. */
  error: Schema.optionalKey(Schema.String)
})
export interface CallRecord extends Schema.Schema.Type<typeof CallRecord> {}

/**
 * The kind of an {@link AuditEntry}.
 *
 * **Details**
 *
 * `hook_executed`, for a call of a hook that ended well, needs the option `history` with the mode `"full"`.
 *
 * @category models
 * @since 0.1.0
 */
export const AuditType = Schema.Literals([
  "execution_paused",
  "execution_resumed",
  "execution_cancelled",
  "tool_modified",
  "tool_approved",
  "tool_rejected",
  "tool_blocked",
  "tool_skipped",
  "tool_failed",
  "tool_timeout",
  "hook_executed",
  "hook_failed",
  "limit_reached"
])
export type AuditType = typeof AuditType.Type

/**
 * A decision of a person, a hook or a limit, or a failure.
 *
 * @category models
 * @since 0.1.0
 */
export const AuditEntry = Schema.Struct({
  /** The kind of the decision. */
  type: AuditType,
  /** Its time in milliseconds since the epoch. */
  timestamp: Schema.Finite,
  /** The id of the tool call, absent if the decision concerns none. */
  toolCallId: Schema.optionalKey(Schema.String),
  /** The name of the tool, absent if the decision concerns no call. */
  toolName: Schema.optionalKey(Schema.String),
  /**
   * The reason of the decision, absent if there is none. For a refused or failed call: the start of what the model reads, 500 characters.
   */
  detail: Schema.optionalKey(Schema.String)
})
export interface AuditEntry extends Schema.Schema.Type<typeof AuditEntry> {}

/**
 * A run in numbers.
 *
 * **Details**
 *
 * Durations are in milliseconds. The durations of tool calls that run at the same time add up, so `toolMs` may be longer than the
 * run.
 *
 * @category models
 * @since 0.1.0
 */
export const RunReport = Schema.Struct({
  /** The id of the run, absent before its first event. */
  runId: Schema.optionalKey(Schema.String),
  /** The time of its start in milliseconds since the epoch, absent before its first event. */
  startTime: Schema.optionalKey(Schema.Finite),
  /** Its duration in milliseconds, pauses included; 0 until it ends. */
  durationMs: Schema.Finite,
  /** Whether the run is paused. */
  paused: Schema.Boolean,
  /** Whether the application cancelled the run. */
  cancelled: Schema.Boolean,
  /** The number of turns that began. */
  turns: Schema.Int,
  /** The number of tool calls that ended, refused ones included. */
  toolCalls: Schema.Int,
  /** The number of tool calls that ended without an error. */
  toolSuccess: Schema.Int,
  /** The number of tool calls that ended with an error other than a timeout. */
  toolFailure: Schema.Int,
  /** The number of tool calls that reached their time limit. */
  toolTimeout: Schema.Int,
  /** The number of retries, of model calls and of turns that failed. */
  retries: Schema.Int,
  /** The time of all model calls that ended well, in milliseconds. */
  modelMs: Schema.Finite,
  /** The time of all tool calls, in milliseconds. */
  toolMs: Schema.Finite,
  /** The time of all calls of hooks, in milliseconds; 0 until the run ends. */
  hookMs: Schema.Finite,
  /** The tokens of all turns, those of sub-agents included, and of compactions. */
  usage: Usage.Usage,
  /** The part of `usage` that sub-agents have spent, in runs that tool calls started; absent if there is none. */
  childUsage: Schema.optionalKey(Usage.Usage),
  /**
   * The options and the content that requests left out or changed, each once for each reason, as of the last request that did; absent
   * if none did.
   */
  adjusted: Schema.optionalKey(Schema.Array(Adjustment)),
  /** The messages of the errors that failed the run. */
  errors: Schema.Array(Schema.String),
  /** The option `history` of the run, absent if it has none. */
  historyOptions: Schema.optionalKey(History),
  /** The last turns, oldest first: 10, unless the option `history` says otherwise. */
  history: Schema.Array(Turn),
  /** The records of the last 1000 tool calls, in the order of their starts. A report of an earlier version has none. */
  calls: Schema.Array(CallRecord).pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
  /** The last 1000 decisions and failures, oldest first. */
  audit: Schema.Array(AuditEntry)
})
export interface RunReport extends Schema.Schema.Type<typeof RunReport> {}

const defaultSize = 10
const maxEntries = 1000
const maxDetail = 500

/**
 * The report of a run without events.
 *
 * @category constants
 * @since 0.1.0
 */
export const empty: RunReport = {
  durationMs: 0,
  paused: false,
  cancelled: false,
  turns: 0,
  toolCalls: 0,
  toolSuccess: 0,
  toolFailure: 0,
  toolTimeout: 0,
  retries: 0,
  modelMs: 0,
  toolMs: 0,
  hookMs: 0,
  usage: Usage.zero,
  errors: [],
  history: [],
  calls: [],
  audit: []
}

/**
 * Makes the report of a run from all its events.
 *
 * **Example** (Reporting on a stream)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent, RunReport } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   const events = yield* Stream.runCollect(agent.stream("What is 2 + 2?"))
 *   return RunReport.fromEvents(events).turns
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("4")])), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => 1
 * ```
 *
 * @category folding
 * @since 0.1.0
 */
export const fromEvents = (events: Iterable<AgentEvent>): RunReport => {
  let report = empty
  for (const event of events) report = fold(report, event)
  return report
}

/**
 * Returns the report after one more event.
 *
 * **Details**
 *
 * The function is pure. Events that the report does not count leave it as it is, and so do those of sub-agents.
 *
 * **Example** (Reporting while events arrive)
 *
 * ```ts
 * import { RunReport } from "effect-agent"
 *
 * const report = RunReport.fold(RunReport.empty, {
 *   _tag: "ModelCallEnd",
 *   runId: "run_1",
 *   seq: 5,
 *   timestamp: 0,
 *   turn: 1,
 *   messageId: "msg_1",
 *   durationMs: 250
 * })
 *
 * console.log(report.modelMs) // => 250
 * ```
 *
 * @category folding
 * @since 0.1.0
 */
export const fold = (report: RunReport, event: AgentEvent): RunReport => {
  if (event.path !== undefined && isInside(event, report.runId)) return report
  switch (event._tag) {
    case "RunStart":
      return runStarted(report, event)
    case "RunEnd":
      return { ...report, durationMs: event.durationMs, hookMs: event.hookMs ?? 0, paused: false }
    case "RunPaused":
      return audited({ ...report, paused: true }, event, "execution_paused", event.reason)
    case "RunResumed":
      return audited({ ...report, paused: false }, event, "execution_resumed", event.reason)
    case "RunCancelled":
      return audited({ ...report, cancelled: true }, event, "execution_cancelled", event.reason)
    case "RunRetry":
    case "ModelCallRetry":
      return { ...report, retries: report.retries + 1 }
    case "RunError":
      return { ...report, errors: [...report.errors, event.error.message] }
    case "TurnStart":
      return turnStarted(report, event)
    case "TurnEnd":
      return turnEnded(report, event)
    case "ModelCallEnd":
      return { ...report, modelMs: report.modelMs + event.durationMs, ...adjustedBy(report, event) }
    case "MessageEnd":
      return report.historyOptions?.mode === "full" ? withMessage(report, event) : report
    case "Compaction":
      return event.usage === undefined ? report : { ...report, usage: Usage.add(report.usage, event.usage) }
    case "ToolExecutionStart":
      return toolStarted(report, event)
    case "ToolInvoked":
      return toolInvoked(report, event)
    case "ToolExecutionEnd":
      return toolEnded(report, event)
    case "HookExecuted":
      return audited(report, event, "hook_executed", nameOf(event))
    case "HookError":
      return audited(report, event, "hook_failed", `${nameOf(event)}: ${event.error}`)
    case "LimitReached":
      return audited(report, event, "limit_reached", event.limit)
    default:
      return report
  }
}

const runStarted = (report: RunReport, { options, runId, timestamp }: OfTag<"RunStart">): RunReport => ({
  ...report,
  runId,
  startTime: timestamp,
  ...(options?.history === undefined ? {} : { historyOptions: options.history })
})

const adjustedBy = ({ adjusted: before = [] }: RunReport, { adjusted }: OfTag<"ModelCallEnd">) => {
  if (adjusted === undefined) return {}
  const others = before.filter(
    (known) => !adjusted.some(({ option, reason }) => option === known.option && reason === known.reason)
  )
  return { adjusted: [...others, ...adjusted] }
}

const turnStarted = (report: RunReport, { timestamp, turn }: OfTag<"TurnStart">): RunReport => {
  const turns = report.turns + 1
  const { mode = "summary", size = defaultSize } = report.historyOptions ?? {}
  if (mode === "none" || size === 0) return { ...report, turns }
  const started: Turn = {
    turn: turn ?? turns,
    timestamp,
    durationMs: 0,
    tokens: 0,
    toolCalls: 0,
    ...(mode === "full" ? { messages: [] } : {})
  }
  return { ...report, turns, history: last(size, report.history, started) }
}

const withMessage = (report: RunReport, { message }: OfTag<"MessageEnd">): RunReport =>
  withTurn(report, (turn) => ({ ...turn, messages: [...(turn.messages ?? []), message] }))

const turnEnded = (report: RunReport, event: OfTag<"TurnEnd">): RunReport => ({
  ...withTurn(report, (turn) => ({
    ...turn,
    durationMs: event.timestamp - turn.timestamp,
    tokens: event.usage.total,
    toolCalls: event.toolCallCount
  })),
  usage: Usage.add(report.usage, event.usage),
  ...(event.childUsage === undefined
    ? {}
    : { childUsage: Usage.add(report.childUsage ?? Usage.zero, event.childUsage) })
})

/** Changes the newest turn of the history, if the report keeps one. */
const withTurn = (report: RunReport, change: (turn: Turn) => Turn): RunReport => ({
  ...report,
  history: [...report.history.slice(0, -1), ...report.history.slice(-1).map(change)]
})

/** Adds the record of a call that starts. A run that continues in another process starts unfinished calls again: it replaces theirs. */
const toolStarted = (report: RunReport, event: OfTag<"ToolExecutionStart">): RunReport => {
  const { timestamp: startTime, toolCallId, toolName, turn = 0 } = event
  const started: CallRecord = { toolCallId, toolName, turn, state: "pending", startTime, durationMs: 0 }
  const known = indexOf(report.calls, toolCallId)
  const isAgain = known !== -1 && report.calls[known]?.endTime === undefined
  return {
    ...report,
    calls: isAgain ? report.calls.with(known, started) : last(maxEntries, report.calls, started)
  }
}

const toolInvoked = (report: RunReport, event: OfTag<"ToolInvoked">): RunReport => {
  const invoked = { ...report, calls: withCall(report.calls, event.toolCallId, { state: "executing" }) }
  const modified = event.modified ? audited(invoked, event, "tool_modified") : invoked
  return event.approved ? audited(modified, event, "tool_approved") : modified
}

const toolEnded = (report: RunReport, event: OfTag<"ToolExecutionEnd">): RunReport => {
  const { durationMs, isError, outcome, result, timestamp: endTime, toolCallId } = event
  const isTimeout = outcome === "timeout"
  const state = isTimeout ? "timedOut" : isError ? "failed" : "completed"
  const error = isError ? { error: Message.textOf(result).slice(0, maxDetail) } : {}
  const ended: RunReport = {
    ...report,
    toolCalls: report.toolCalls + 1,
    toolMs: report.toolMs + durationMs,
    toolSuccess: report.toolSuccess + (isError ? 0 : 1),
    toolFailure: report.toolFailure + (isError && !isTimeout ? 1 : 0),
    toolTimeout: report.toolTimeout + (isTimeout ? 1 : 0),
    calls: withCall(report.calls, toolCallId, { state, endTime, durationMs, ...error })
  }
  if (outcome === "skipped") return audited(ended, event, "tool_skipped")
  return isError ? audited(ended, event, kindOf(outcome), error.error) : ended
}

const kindOf = (outcome: Message.ToolOutcome): AuditType => {
  switch (outcome) {
    case "rejected":
    case "expired":
      return "tool_rejected"
    case "blocked":
      return "tool_blocked"
    case "timeout":
      return "tool_timeout"
    default:
      return "tool_failed"
  }
}

/** The newest record of a call: vendors repeat ids in different turns. */
const indexOf = (calls: ReadonlyArray<CallRecord>, id: string): number =>
  calls.findLastIndex(({ toolCallId }) => toolCallId === id)

const withCall = (
  calls: ReadonlyArray<CallRecord>,
  id: string,
  changes: Partial<CallRecord>
): ReadonlyArray<CallRecord> => {
  const index = indexOf(calls, id)
  const call = calls[index]
  return call === undefined ? calls : calls.with(index, { ...call, ...changes })
}

const nameOf = ({ hook, hookName }: OfTag<"HookError" | "HookExecuted">): string =>
  `${hook}${FailureText.quoted(hookName)}`

const audited = (report: RunReport, event: AgentEvent, type: AuditType, detail?: string): RunReport => {
  const entry: AuditEntry = {
    type,
    timestamp: event.timestamp,
    ...("toolName" in event ? Struct.pick(event, ["toolCallId", "toolName"]) : {}),
    ...(detail === undefined ? {} : { detail })
  }
  return { ...report, audit: last(maxEntries, report.audit, entry) }
}

const last = <A>(max: number, entries: ReadonlyArray<A>, entry: A): ReadonlyArray<A> => [
  ...entries.slice(Math.max(0, entries.length + 1 - max)),
  entry
]
