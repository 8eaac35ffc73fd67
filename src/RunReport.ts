/**
 * What a run did, in numbers: a pure fold of its events, so a report can be made of any recorded stream.
 */
import * as Schema from "effect/Schema"
import type { AgentEvent } from "./AgentEvent.ts"
import * as Usage from "./Usage.ts"

/** One turn, after it ended. Milliseconds. */
export const Turn = Schema.Struct({
  turn: Schema.Int,
  timestamp: Schema.Finite,
  durationMs: Schema.Finite,
  tokens: Schema.Finite,
  toolCalls: Schema.Int
})
export type Turn = typeof Turn.Type

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

/** What a person or a rule decided. */
export const AuditEntry = Schema.Struct({
  type: AuditType,
  timestamp: Schema.Finite,
  toolCallId: Schema.optionalKey(Schema.String),
  detail: Schema.optionalKey(Schema.String)
})
export type AuditEntry = typeof AuditEntry.Type

export const RunReport = Schema.Struct({
  turns: Schema.Int,
  toolCalls: Schema.Int,
  toolSuccess: Schema.Int,
  toolFailure: Schema.Int,
  toolTimeout: Schema.Int,
  retries: Schema.Int,
  modelMs: Schema.Finite,
  toolMs: Schema.Finite,
  usage: Usage.Usage,
  errors: Schema.Array(Schema.String),
  /** The last 10 turns. */
  history: Schema.Array(Turn),
  /** The last 1000 decisions. */
  audit: Schema.Array(AuditEntry)
})
export type RunReport = typeof RunReport.Type

const maxHistory = 10
const maxAudit = 1000

/** Nothing happened yet. */
export const empty: RunReport = {
  turns: 0,
  toolCalls: 0,
  toolSuccess: 0,
  toolFailure: 0,
  toolTimeout: 0,
  retries: 0,
  modelMs: 0,
  toolMs: 0,
  usage: Usage.zero,
  errors: [],
  history: [],
  audit: []
}

/** The report of a whole run. */
export const fromEvents = (events: Iterable<AgentEvent>): RunReport => {
  let report = empty
  for (const event of events) report = fold(report, event)
  return report
}

/** The report after one more event. */
export const fold = (report: RunReport, event: AgentEvent): RunReport => {
  switch (event._tag) {
    case "TurnStart":
      return {
        ...report,
        turns: report.turns + 1,
        history: last(maxHistory, report.history, {
          turn: event.turn ?? report.turns + 1,
          timestamp: event.timestamp,
          durationMs: 0,
          tokens: 0,
          toolCalls: 0
        })
      }
    case "TurnEnd":
      return {
        ...report,
        usage: Usage.add(report.usage, event.usage),
        history: report.history.map((turn, index, all) =>
          index < all.length - 1
            ? turn
            : {
                ...turn,
                durationMs: event.timestamp - turn.timestamp,
                tokens: event.usage.total,
                toolCalls: event.toolCallCount
              }
        )
      }
    case "ModelCallEnd":
      return { ...report, modelMs: report.modelMs + event.durationMs }
    case "ModelCallRetry":
      return { ...report, retries: report.retries + 1 }
    case "ToolInvoked":
      return event.modified || event.approved ? toolAllowed(report, event) : report
    case "ToolExecutionEnd":
      return toolEnded(report, event)
    case "RunPaused":
      return decided(report, true, { type: "execution_paused", ...ofReason(event) })
    case "RunResumed":
      return decided(report, true, { type: "execution_resumed", ...ofReason(event) })
    case "RunCancelled":
      return decided(report, true, { type: "execution_cancelled", ...ofReason(event) })
    case "HookError":
      return decided(report, true, {
        type: "hook_failed",
        timestamp: event.timestamp,
        detail: `${event.hook}: ${event.error}`
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

type ToolStart = Extract<AgentEvent, { readonly _tag: "ToolInvoked" }>
type ToolEnd = Extract<AgentEvent, { readonly _tag: "ToolExecutionEnd" }>

const toolAllowed = (report: RunReport, event: ToolStart): RunReport =>
  decided(decided(report, event.modified, { type: "tool_modified", ...ofCall(event) }), event.approved, {
    type: "tool_approved",
    ...ofCall(event)
  })

const toolEnded = (report: RunReport, event: ToolEnd): RunReport => {
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
      return decided(counted, true, { type: "tool_rejected", ...ofCall(event) })
    case "blocked":
      return decided(counted, true, { type: "tool_blocked", ...ofCall(event) })
    case "skipped":
      return decided(counted, true, { type: "tool_skipped", ...ofCall(event) })
    default:
      return counted
  }
}

const decided = (report: RunReport, happened: boolean, entry: AuditEntry): RunReport =>
  happened ? { ...report, audit: last(maxAudit, report.audit, entry) } : report

const ofCall = (event: { readonly timestamp: number; readonly toolCallId: string }) => ({
  timestamp: event.timestamp,
  toolCallId: event.toolCallId
})

const ofReason = (event: { readonly timestamp: number; readonly reason?: string }) => ({
  timestamp: event.timestamp,
  ...(event.reason === undefined ? {} : { detail: event.reason })
})

const last = <A>(max: number, entries: ReadonlyArray<A>, entry: A): ReadonlyArray<A> => [
  ...entries.slice(1 - max),
  entry
]
