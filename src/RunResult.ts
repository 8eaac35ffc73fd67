/**
 * The result of a run.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { RunStatus } from "./AgentEvent.ts"
import { OpenTurn } from "./internal/openTurn.ts"
import { Assistant, Message } from "./Message.ts"
import { RunReport } from "./RunReport.ts"
import * as Transcript from "./Transcript.ts"
import { Usage } from "./Usage.ts"

/**
 * The result of a run, or the part of it that a failed run reached.
 *
 * **Example** (Reading a result)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   const { status, text, turns } = yield* agent.prompt("What is 2 + 2?")
 *   return [status, turns, text]
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("4")])), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => [ 'completed', 1, '4' ]
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export const RunResult = Schema.Struct({
  /** The id of the run. */
  runId: Schema.String,
  /** The way in which the run ended. */
  status: RunStatus,
  /** The last answer, absent if the run ended before one. An `afterExecution` hook may have replaced it. */
  message: Schema.optionalKey(Assistant),
  /** The text of `message`, `""` if there is none. */
  text: Schema.String,
  /**
   * The messages that the run added to the transcript, in order: prompts, answers, tool results and queued messages.
   */
  newMessages: Schema.Array(Message),
  /** The tokens of all model calls of the run and of the runs inside, as the providers reported them. */
  usage: Usage,
  /** The summary from which the next run starts. Default: none, so that it starts from the whole transcript. */
  compaction: Schema.optionalKey(Transcript.Compaction),
  /** The number of turns that began. */
  turns: Schema.Int,
  /** The time from the start of the run to its end. */
  duration: Schema.Duration,
  /** The run in numbers. */
  report: RunReport,
  /** Messages that the run took from its queues and did not deliver. An `Agent` puts them back into its queues. */
  undelivered: Schema.Array(Message),
  /**
   * The turn that waits for a person, of a run whose status is `"suspended"`. `Loop.continue` resumes it; an `Agent` keeps it.
   */
  open: Schema.optionalKey(OpenTurn)
})
export interface RunResult extends Schema.Schema.Type<typeof RunResult> {}
