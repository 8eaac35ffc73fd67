/**
 * What is left when a run is over.
 */
import * as Schema from "effect/Schema"
import { RunStatus } from "./AgentEvent.ts"
import { Assistant, Message } from "./Message.ts"
import { RunReport } from "./RunReport.ts"
import { Usage } from "./Usage.ts"

export const RunResult = Schema.Struct({
  runId: Schema.String,
  status: RunStatus,
  /** The last answer, if there was one. */
  message: Schema.optionalKey(Assistant),
  /** Prompts, answers and tool results of this run, in order. */
  newMessages: Schema.Array(Message),
  usage: Usage,
  turns: Schema.Int,
  duration: Schema.Duration,
  report: RunReport,
  /** Queued messages the run took and could not deliver. An `Agent` puts them back into its queues. */
  undelivered: Schema.Array(Message)
})
export type RunResult = typeof RunResult.Type
