/**
 * Results of calls that did not run, or not to their end, in words for the model.
 */
import type { StopReason, ToolCall, ToolOutcome } from "../Message.ts"
import type { ToolOutput } from "../AgentEvent.ts"
import * as Tool from "../Tool.ts"

/** What came of a call. */
export interface Outcome {
  readonly output: ToolOutput
  readonly outcome: ToolOutcome
}

/** A result that is an error, in words. */
export const immediate = (outcome: ToolOutcome, message: string): Outcome => ({
  outcome,
  output: Tool.failure(message)
})

export const aborted = (call: ToolCall): Outcome => immediate("aborted", `Tool ${call.name} was aborted.`)

/** Of all calls of an answer that did not come to its own end; undefined where it did. */
export const cut = (stopReason: StopReason): Outcome | undefined => cuts[stopReason]

const truncated = immediate(
  "truncated",
  "Not run: the answer was cut at its token limit, so the arguments may be incomplete. Call again, with less."
)
const stopped = immediate(
  "truncated",
  "Not run: the provider stopped the answer for its content, so the arguments may be incomplete."
)
const cuts: Partial<Record<StopReason, Outcome>> = {
  length: truncated,
  contentFilter: stopped,
  refusal: stopped
}

export const skippedBySteering = immediate("skipped", "Skipped due to queued user message.")
export const runEnds = immediate("aborted", "Not run: the run ended first.")
export const runStopped = immediate("aborted", "Not run: the run was stopped.")
export const skippedByFailure = immediate("aborted", "Not run: another tool of this batch failed.")

/** What counts as the tool's own failure; what a guard or a stop decided does not. */
export const failures: ReadonlySet<ToolOutcome> = new Set<ToolOutcome>([
  "error",
  "timeout",
  "unknownTool",
  "invalidArguments"
])
