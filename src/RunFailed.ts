/**
 * The failure of a run, and its reasons.
 *
 * @since 0.1.0
 */
import { FailureReason } from "./internal/failureReason.ts"
import { RunResult } from "./RunResult.ts"
import { TaggedError } from "./internal/errors.ts"

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
