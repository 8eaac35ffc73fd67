/**
 * The ends of runs, and the outputs of tools.
 */
import * as Schema from "effect/Schema"
import * as Message from "../Message.ts"
import { Usage } from "../Usage.ts"

/**
 * The way in which a run ended.
 *
 * **Details**
 *
 * - `"completed"`: the model answered without tool calls, and nothing was queued.
 * - `"stopped"`: a `shouldStopAfterTurn` hook or `stopWhen` ended the run.
 * - `"terminated"`: every tool of the last turn requested the end of the run, and nothing was queued.
 * - `"incomplete"`: the run reached `maxTurns`, and `onMaxTurns` is `"stop"` or `"wrapUp"`.
 * - `"cancelled"`: the application cancelled the run.
 * - `"suspended"`: the run waits for an approval or an answer. `Agent.continue` resumes it.
 * - `"failed"`: the run failed.
 *
 * @category models
 * @since 0.1.0
 */
export const RunStatus = Schema.Literals([
  "completed",
  "stopped",
  "terminated",
  "incomplete",
  "cancelled",
  "suspended",
  "failed"
])
export type RunStatus = typeof RunStatus.Type

/**
 * The output of a tool, or the output that replaces it where the tool did not run.
 *
 * @category models
 * @since 0.1.0
 */
export const ToolOutput = Schema.Struct({
  /** The blocks that the model reads. */
  content: Schema.Array(Schema.Union([Message.Text, Message.Image])),
  /** Data for programs and displays, which the model does not read. Default none. */
  details: Schema.optionalKey(Schema.Json),
  /** Whether the text is the JSON of the value that the tool returned, and not a text of its own. Default `false`. */
  isJson: Schema.optionalKey(Schema.Boolean),
  /** Whether the call failed. Default `false`. */
  isError: Schema.optionalKey(Schema.Boolean),
  /**
   * Whether the tool requests the end of the run. Default `false`.
   *
   * The run ends if every tool of the turn requests it.
   */
  terminate: Schema.optionalKey(Schema.Boolean),
  /** The usage of the model calls that the tool made itself, which counts for the run as that of runs inside. Default none. */
  usage: Schema.optionalKey(Usage),
  /** The names of registered tools that `activeTools` has from the next turn on, beside its own. Default none. */
  addedTools: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Whether the application may trust the content. Default `"trusted"`. */
  trust: Schema.optionalKey(Message.Trust)
})
export interface ToolOutput extends Schema.Schema.Type<typeof ToolOutput> {}
