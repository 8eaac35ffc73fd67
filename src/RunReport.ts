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
import * as Struct from "effect/Struct"
import { type AgentEvent, isInside, type OfTag } from "./AgentEvent.ts"
import * as FailureText from "./internal/failureText.ts"
import * as Message from "./Message.ts"
import { Adjustment } from "./ModelEvent.ts"
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
  /** The number of retries, of model calls and of turns that failed. */
  retries: Schema.Int,
  /** The time of all model calls that ended well, in milliseconds. */
  modelMs: Schema.Finite,
  /** The time of all tool calls, in milliseconds. */
  toolMs: Schema.Finite,
  /** The time of all calls of hooks, in milliseconds; 0 until the run ends. */
  hookMs: Schema.Finite,
  /** The tokens of all turns, those of the runs inside included, and of compactions. */
  usage: Usage.Usage,
  /** The part of `usage` that the runs inside have spent, those that tool calls started; absent if there is none. */
  childUsage: Schema.optionalKey(Usage.Usage),
  /**
   * The options and the content that requests left out or changed, each once for each reason, as of the last request that did; absent
   * if none did.
   */
  adjusted: Schema.optionalKey(Schema.Array(Adjustment)),
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
 * The function is pure. Events that the report does not count leave it as it is, and so do those of runs inside.
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
export const fold = (report: RunReport, event: AgentEvent): RunReport =>
  isInside(event, report.runId)
    ? report
    : decisionsOf(event).reduce(
        (report, entry) => ({ ...report, audit: last(maxAudit, report.audit, entry) }),
        counted(report, event)
      )

const counted = (report: RunReport, event: AgentEvent): RunReport => {
  switch (event._tag) {
    case "RunStart":
      return { ...report, runId: event.runId, startTime: event.timestamp }
    case "RunEnd":
      return { ...report, durationMs: event.durationMs, hookMs: event.hookMs ?? 0, paused: false }
    case "Compaction":
      return event.usage === undefined ? report : { ...report, usage: Usage.add(report.usage, event.usage) }
    case "TurnStart":
      return turnStarted(report, event)
    case "TurnEnd":
      return turnEnded(report, event)
    case "ModelCallEnd":
      return { ...report, modelMs: report.modelMs + event.durationMs, ...adjustedBy(report, event) }
    case "ModelCallRetry":
    case "RunRetry":
      return { ...report, retries: report.retries + 1 }
    case "ToolExecutionEnd":
      return toolEnded(report, event)
    case "RunPaused":
      return { ...report, paused: true }
    case "RunResumed":
      return { ...report, paused: false }
    case "RunCancelled":
      return { ...report, cancelled: true }
    case "RunError":
      return { ...report, errors: [...report.errors, event.error.message] }
    default:
      return report
  }
}

const adjustedBy = ({ adjusted: before = [] }: RunReport, { adjusted }: OfTag<"ModelCallEnd">) => {
  if (adjusted === undefined) return {}
  const others = before.filter(
    (known) => !adjusted.some(({ option, reason }) => option === known.option && reason === known.reason)
  )
  return { adjusted: [...others, ...adjusted] }
}

const turnStarted = (report: RunReport, { timestamp, turn }: OfTag<"TurnStart">): RunReport => {
  const turns = report.turns + 1
  const started: Turn = { turn: turn ?? turns, timestamp, durationMs: 0, tokens: 0, toolCalls: 0 }
  return { ...report, turns, history: last(maxHistory, report.history, started) }
}

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
    ...(event.childUsage === undefined
      ? {}
      : { childUsage: Usage.add(report.childUsage ?? Usage.zero, event.childUsage) }),
    history: [...report.history.slice(0, -1), ...report.history.slice(-1).map(ended)]
  }
}

const toolEnded = (report: RunReport, { durationMs, isError, outcome }: OfTag<"ToolExecutionEnd">) => ({
  ...report,
  toolCalls: report.toolCalls + 1,
  toolMs: report.toolMs + durationMs,
  toolSuccess: report.toolSuccess + (isError ? 0 : 1),
  toolFailure: report.toolFailure + (isError && outcome !== "timeout" ? 1 : 0),
  toolTimeout: report.toolTimeout + (outcome === "timeout" ? 1 : 0)
})

const decisionsOf = (event: AgentEvent): ReadonlyArray<AuditEntry> => {
  switch (event._tag) {
    case "RunPaused":
      return [entry(event, "execution_paused", event.reason)]
    case "RunResumed":
      return [entry(event, "execution_resumed", event.reason)]
    case "RunCancelled":
      return [entry(event, "execution_cancelled", event.reason)]
    case "ToolInvoked":
      return [
        ...(event.modified ? [entry(event, "tool_modified")] : []),
        ...(event.approved ? [entry(event, "tool_approved")] : [])
      ]
    case "ToolExecutionEnd":
      return refusalsOf(event)
    case "HookError":
      return [
        entry(event, "hook_failed", `${event.hook}${FailureText.quoted(event.hookName)}: ${event.error}`)
      ]
    case "LimitReached":
      return [entry(event, "limit_reached", event.limit)]
    default:
      return []
  }
}

const refusalsOf = (event: OfTag<"ToolExecutionEnd">): ReadonlyArray<AuditEntry> => {
  switch (event.outcome) {
    case "rejected":
    case "expired":
      return [entry(event, "tool_rejected", Message.textOf(event.result))]
    case "blocked":
      return [entry(event, "tool_blocked", Message.textOf(event.result))]
    case "skipped":
      return [entry(event, "tool_skipped")]
    default:
      return []
  }
}

const entry = (event: AgentEvent, type: AuditType, detail?: string): AuditEntry => ({
  type,
  timestamp: event.timestamp,
  ...("toolName" in event ? Struct.pick(event, ["toolCallId", "toolName"]) : {}),
  ...(detail === undefined ? {} : { detail })
})

const last = <A>(max: number, entries: ReadonlyArray<A>, entry: A): ReadonlyArray<A> => [
  ...entries.slice(1 - max),
  entry
]
