/**
 * The failure of whatever makes a summary, as that of a compaction.
 */
import { CompactionFailed } from "./failureReason.ts"
import * as FailureText from "./failureText.ts"
import { RunFailed } from "../RunFailed.ts"

/** Keeps the reason and the usage of a run that failed. */
export const of = (failure: unknown): CompactionFailed => {
  if (failure instanceof CompactionFailed) return failure
  if (!(failure instanceof RunFailed)) return new CompactionFailed({ detail: FailureText.of(failure) })
  const { reason, result } = failure
  const isKept = reason._tag === "ProviderError" || reason._tag === "LimitExceeded"
  return new CompactionFailed({
    detail: reason.message,
    ...(isKept ? { reason } : {}),
    ...(result.usage.total > 0 ? { usage: result.usage } : {})
  })
}
