/**
 * A run in numbers: a pure fold of its events.
 *
 * **When to use**
 *
 * Use {@link fromEvents} to make a report of a recorded stream. The result of a run has its report already.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import type { AgentEvent, OfTag } from "./AgentEvent.ts"
import * as FailureText from "./internal/failureText.ts"
import * as Message from "./Message.ts"
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
  toolCalls: Schema.Int
})
export interface Turn extends Schema.Schema.Type<typeof Turn> {}

/**
 * The kind of an {@link AuditEntry}.
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
  "hook_failed",
  "limit_reached"
])
export type AuditType = typeof AuditType.Type

/**
 * A decision of a person, a hook or a limit.
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
  /** The reason of the decision, absent if there is none; for a rejected or blocked call the text that the model reads. */
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
  /** The number of retries of model calls. */
  retries: Schema.Int,
  /** The time of all model calls that ended well, in milliseconds. */
  modelMs: Schema.Finite,
  /** The time of all tool calls, in milliseconds. */
  toolMs: Schema.Finite,
  /** The time of all calls of hooks, in milliseconds; 0 until the run ends. */
  hookMs: Schema.Finite,
  /** The tokens of all turns. */
  usage: Usage.Usage,
  /** The messages of the errors that failed the run. */
  errors: Schema.Array(Schema.String),
  /** The last 10 turns, oldest first. */
  history: Schema.Array(Turn),
  /** The last 1000 decisions, oldest first. */
  audit: Schema.Array(AuditEntry)
})
export interface RunReport extends Schema.Schema.Type<typeof RunReport> {}

const maxHistory = 10
const maxAudit = 1000

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
 *   const agent = yield* Agent.make({ model: "gpt-5-mini" })
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
 * The function is pure. Events that the report does not count leave it as it is.
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
  switch (event._tag) {
    case "RunStart":
      return { ...report, runId: event.runId, startTime: event.timestamp }
    case "RunEnd":
      return { ...report, durationMs: event.durationMs, hookMs: event.hookMs ?? 0, paused: false }
    case "TurnStart":
      return turnStarted(report, event)
    case "TurnEnd":
      return turnEnded(report, event)
    case "ModelCallEnd":
      return { ...report, modelMs: report.modelMs + event.durationMs }
    case "ModelCallRetry":
      return { ...report, retries: report.retries + 1 }
    case "ToolInvoked":
      return event.modified || event.approved ? toolAllowed(report, event) : report
    case "ToolExecutionEnd":
      return toolEnded(report, event)
    case "RunPaused":
    case "RunResumed":
    case "RunCancelled":
      return controlled(report, event)
    case "HookError":
      return decided(report, true, {
        type: "hook_failed",
        timestamp: event.timestamp,
        detail: `${event.hook}${FailureText.quoted(event.hookName)}: ${event.error}`
      })
    case "LimitReached":
      return decided(report, true, {
        type: "limit_reached",
        timestamp: event.timestamp,
        detail: event.limit
      })
    case "RunError":
      return { ...report, errors: [...report.errors, event.error.message] }
    default:
      return report
  }
}

const controlled = (
  report: RunReport,
  event: OfTag<"RunPaused" | "RunResumed" | "RunCancelled">
): RunReport => {
  const reason = ofReason(event)
  switch (event._tag) {
    case "RunPaused":
      return decided({ ...report, paused: true }, true, { type: "execution_paused", ...reason })
    case "RunResumed":
      return decided({ ...report, paused: false }, true, { type: "execution_resumed", ...reason })
    case "RunCancelled":
      return decided({ ...report, cancelled: true }, true, { type: "execution_cancelled", ...reason })
  }
}

const turnStarted = (report: RunReport, { timestamp, turn }: OfTag<"TurnStart">): RunReport => ({
  ...report,
  turns: report.turns + 1,
  history: last(maxHistory, report.history, {
    turn: turn ?? report.turns + 1,
    timestamp,
    durationMs: 0,
    tokens: 0,
    toolCalls: 0
  })
})

const turnEnded = (report: RunReport, event: OfTag<"TurnEnd">): RunReport => {
  const ended = (turn: Turn): Turn => ({
    ...turn,
    durationMs: event.timestamp - turn.timestamp,
    tokens: event.usage.total,
    toolCalls: event.toolCallCount
  })
  return {
    ...report,
    usage: Usage.add(report.usage, event.usage),
    history: [...report.history.slice(0, -1), ...report.history.slice(-1).map(ended)]
  }
}

const toolAllowed = (report: RunReport, event: OfTag<"ToolInvoked">): RunReport =>
  decided(decided(report, event.modified, { type: "tool_modified", ...ofCall(event) }), event.approved, {
    type: "tool_approved",
    ...ofCall(event)
  })

const toolEnded = (report: RunReport, event: OfTag<"ToolExecutionEnd">): RunReport => {
  const counted: RunReport = {
    ...report,
    toolCalls: report.toolCalls + 1,
    toolMs: report.toolMs + event.durationMs,
    toolSuccess: report.toolSuccess + (event.isError ? 0 : 1),
    toolFailure: report.toolFailure + (event.isError && event.outcome !== "timeout" ? 1 : 0),
    toolTimeout: report.toolTimeout + (event.outcome === "timeout" ? 1 : 0)
  }
  switch (event.outcome) {
    case "rejected":
      return decided(counted, true, { type: "tool_rejected", ...ofCall(event), ...reasonOf(event) })
    case "blocked":
      return decided(counted, true, { type: "tool_blocked", ...ofCall(event), ...reasonOf(event) })
    case "skipped":
      return decided(counted, true, { type: "tool_skipped", ...ofCall(event) })
    default:
      return counted
  }
}

const decided = (report: RunReport, happened: boolean, entry: AuditEntry): RunReport =>
  happened ? { ...report, audit: last(maxAudit, report.audit, entry) } : report

const ofCall = ({ timestamp, toolCallId, toolName }: OfTag<"ToolInvoked" | "ToolExecutionEnd">) => ({
  timestamp,
  toolCallId,
  toolName
})

const reasonOf = ({ result }: OfTag<"ToolExecutionEnd">) => ({ detail: Message.textOf(result) })

const ofReason = (event: { readonly timestamp: number; readonly reason?: string }) => ({
  timestamp: event.timestamp,
  ...(event.reason === undefined ? {} : { detail: event.reason })
})

const last = <A>(max: number, entries: ReadonlyArray<A>, entry: A): ReadonlyArray<A> => [
  ...entries.slice(1 - max),
  entry
]
