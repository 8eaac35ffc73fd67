/**
 * The one failure of a run.
 */
import * as Schema from "effect/Schema"
import { FailureReason } from "./FailureReason.ts"
import { RunResult } from "./RunResult.ts"

/**
 * A run that could not go on. `reason` says why (`Effect.catchReason("RunFailed", "LimitExceeded", …)`), `result` is
 * what was done until then: nothing is lost to the caller.
 */
export class RunFailed extends Schema.TaggedError<RunFailed>()("RunFailed", {
  reason: FailureReason,
  result: RunResult
}) {
  /** For `JSON.stringify`: the fields that are hidden from inspection too. */
  override toJSON(): unknown {
    const { _tag, reason, result } = this
    return { _tag, reason, result }
  }

  override get message(): string {
    return this.reason.message
  }
}
