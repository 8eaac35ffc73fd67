/**
 * Joins the events of a run that continues to the log that it has: it leaves out those that the log has, and numbers the others behind
 * them. Calls and runs that are left open end before the call or the run around them does.
 */
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import { Completion } from "./Completion.ts"
import type { LogProgress } from "./LogProgress.ts"
import type { RunProgress } from "./RunProgress.ts"

/** The events that the log is to have for one event of a run that continues. */
export const spliced = (log: LogProgress, event: AgentEvent): ReadonlyArray<AgentEvent> => {
  const run = log.runs.get(event.runId)
  if (event._tag === "MessageDelta" || event._tag === "PartialValue")
    return run === undefined ? [] : [delta(run, event)]
  const isPaused = run?.paused !== undefined
  if (log.has(event) || (event._tag === "RunPaused" && isPaused)) return []
  // A pause that the log does not have has no end there.
  if (event._tag === "RunResumed" && !isPaused) return []
  const completion = new Completion(log, event.timestamp)
  if (run !== undefined && event._tag === "ToolExecutionEnd") completion.endInside(run, event.toolCallId)
  if (run !== undefined && event._tag === "RunEnd" && event.status !== "suspended") {
    completion.endCalls(run)
    completion.endTurn(run)
  }
  completion.add(event)
  return completion.added
}

/** The log keeps no deltas and no partial values: only their number counts for the events behind them. */
const delta = (run: RunProgress, event: OfTag<"MessageDelta" | "PartialValue">): AgentEvent => {
  const next = run.next(event)
  run.lastSeq = next.seq
  return next
}
