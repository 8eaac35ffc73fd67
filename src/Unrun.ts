/**
 * Results of calls that did not run, or not to their end, in words for the model.
 */
import type { ToolCall, ToolOutcome } from "./Message.ts"
import * as Tool from "./Tool.ts"

/** What came of a call. */
export interface Outcome {
  readonly output: Tool.ToolOutput
  readonly outcome: ToolOutcome
}

/** A result that is an error, in words. */
export const immediate = (outcome: ToolOutcome, message: string): Outcome => ({
  outcome,
  output: Tool.failed(message)
})

export const aborted = (call: ToolCall): Outcome => immediate("aborted", `Tool ${call.name} was aborted.`)

export const truncated = immediate(
  "truncated",
  "Not run: the answer was cut at its token limit, so the arguments may be incomplete. Call again, with less."
)
export const skippedBySteering = immediate("skipped", "Skipped due to queued user message.")
export const runEnds = immediate("aborted", "Not run: the run ended first.")
export const skippedByFailure = immediate("aborted", "Not run: another tool of this batch failed.")

/** The words of a result. */
export const textOf = (output: Tool.ToolOutput): string =>
  output.content.map((block) => (block.type === "text" ? block.text : "")).join("")
