/**
 * The result of a run, the failure of a run and its reasons.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import * as AgentEvent from "./AgentEvent.ts"
import { TaggedError } from "./internal/errors.ts"
import { FailureReason } from "./internal/failureReason.ts"
import { OpenTurn } from "./internal/openTurn.ts"
import * as Message from "./Message.ts"
import * as RunReport from "./RunReport.ts"
import * as Transcript from "./Transcript.ts"
import { Usage } from "./Usage.ts"

export {
  CompactionFailed,
  Defect,
  EventError,
  FailureReason,
  GuardrailTripped,
  HookFailed,
  InvalidTranscript,
  LimitExceeded,
  LimitName,
  ModelCallSkipped,
  OutputInvalid,
  OutputMissing,
  ToolFailed,
  TransformFailed
} from "./internal/failureReason.ts"

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
  status: AgentEvent.RunStatus,
  /** The last answer, absent if the run ended before one. An `afterExecution` hook may have replaced it. */
  message: Schema.optionalKey(Message.Assistant),
  /** The text of `message`, `""` if there is none. */
  text: Schema.String,
  /**
   * The messages that the run added to the transcript, in order: prompts, answers, tool results and queued messages.
   */
  newMessages: Schema.Array(Message.Message),
  /** The tokens of all model calls of the run and of its sub-agents, as the providers reported them. */
  usage: Usage,
  /** The summary from which the next run starts. Default: none, so that it starts from the whole transcript. */
  compaction: Schema.optionalKey(Transcript.Compaction),
  /** The number of turns that began. */
  turns: Schema.Int,
  /** The time from the start of the run to its end. */
  duration: Schema.Duration,
  /** The run in numbers. */
  report: RunReport.RunReport,
  /** Messages that the run took from its queues and did not deliver. An `Agent` puts them back into its queues. */
  undelivered: Schema.Array(Message.Message),
  /**
   * The turn that waits for a person, of a run whose status is `"suspended"`. `Loop.continue` resumes it; an `Agent` keeps it.
   */
  open: Schema.optionalKey(OpenTurn)
})
export interface RunResult extends Schema.Schema.Type<typeof RunResult> {}

/**
 * A run as one value, made of its events.
 *
 * @category models
 * @since 0.2.0
 */
export interface Collected
  extends Pick<AgentEvent.View, "runId" | "messages" | "status" | "lastError" | "usage"> {
  /** The text of the last answer, `""` if there is none. */
  readonly text: string
  /** The run in numbers. */
  readonly report: RunReport.RunReport
}

/**
 * Runs a stream of events to its end, and succeeds with the run as one value.
 *
 * **Details**
 *
 * Fails as the stream fails. `messages` are those that the run added. The events of sub-agents do not count.
 *
 * **Example** (Collecting a run)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Run } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   return yield* Run.collect(agent.stream("Hi"))
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text(["Hel", "lo"])])), Effect.scoped)
 *
 * const { messages, report, status, text } = await Effect.runPromise(program)
 * console.log(status, text, messages.length, report.turns) // => completed Hello 2 1
 * ```
 *
 * @category folding
 * @since 0.2.0
 */
export const collect = <E, R>(
  self: Stream.Stream<AgentEvent.AgentEvent, E, R>
): Effect.Effect<Collected, E, R> =>
  Stream.runFold(
    Stream.filter(self, ({ _tag }) => _tag !== "MessageDelta" && _tag !== "PartialValue"),
    () => ({ view: AgentEvent.initial(), report: RunReport.empty }),
    ({ report, view }, event) => ({
      view: AgentEvent.fold(view, event),
      report: RunReport.fold(report, event)
    })
  ).pipe(
    Effect.map(({ report, view }) => {
      const last = view.messages.findLast(({ role }) => role === "assistant")
      const shown = Struct.pick(view, ["runId", "messages", "status", "lastError", "usage"])
      return { ...shown, text: last === undefined ? "" : Message.textOf(last), report }
    })
  )

/**
 * A run failed.
 *
 * **Details**
 *
 * `message` is the message of the reason.
 *
 * **Example** (Recovering from one reason)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const script = [ScriptedProvider.toolCall("weather", { city: "Oslo" })]
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini", limits: { maxTurns: 1 } })
 *   const { newMessages } = yield* agent.prompt("Do I need a coat in Oslo?")
 *   return newMessages.map(Message.textOf).join("\n")
 * }).pipe(
 *   Effect.catchReason("RunFailed", "LimitExceeded", (reason) => Effect.succeed(reason.message)),
 *   Effect.provide(ScriptedProvider.layer(script)),
 *   Effect.scoped
 * )
 *
 * console.log(await Effect.runPromise(program)) // => Limit maxTurns reached: 1, allowed 1
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class RunFailed extends TaggedError<RunFailed>()("RunFailed", {
  /** The reason of the failure. */
  reason: FailureReason,
  /** The run until its failure: its messages, usage and report. */
  result: RunResult
}) {
  /** Returns the fields for `JSON.stringify`, which skips them otherwise, since inspection hides them. */
  override toJSON(): unknown {
    const { _tag, reason, result } = this
    return { _tag, reason, result }
  }

  override get message(): string {
    return this.reason.message
  }
}
