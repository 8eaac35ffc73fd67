/**
 * How work ended, as its span shows it: the type of its error and the status of the span.
 *
 * Work that was cancelled has a type, too, but its span is no error: it ends with an interruption.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Inspection from "./inspection.ts"
import type { StopReason, ToolOutcome, ToolResult } from "../Message.ts"
import { ProviderError } from "../ProviderError.ts"
import type { RunFailed } from "../RunFailed.ts"
import type { RunResult } from "../RunResult.ts"

export interface Verdict {
  /** The `error.type`; `undefined` for work that ended well. */
  readonly type: string | undefined
  readonly status: Exit.Exit<unknown, unknown>
}

export type RunExit = Exit.Exit<RunResult, RunFailed>

/** The failure of a run whose tool failed has the result of the tool in its message. Without `isCaptured`, its span has not. */
export const ofRun = (exit: RunExit, isCaptured: boolean): Verdict => {
  if (resultOf(exit)?.status === "cancelled") return cancelled
  if (Exit.isSuccess(exit)) return { type: undefined, status: exit }
  const type = typeOf(errorIn(exit.cause))
  return type === "ToolFailed" && !isCaptured ? failed(type, "A tool failed") : { type, status: exit }
}

/** The result of a run that ended, well or not; `undefined` for a defect. */
export const resultOf = (exit: RunExit): RunResult | undefined =>
  Exit.isSuccess(exit) ? exit.value : Option.getOrUndefined(Cause.findErrorOption(exit.cause))?.result

/** Providers may report a failure as the reason why the answer ended. `provider` is that of a `ProviderError`. */
export const ofModelCall = (
  exit: Exit.Exit<unknown, unknown>,
  stopReason: StopReason | undefined
): Verdict & { readonly provider?: string } => {
  if (Exit.isSuccess(exit)) {
    return stopReason === "error" || stopReason === "aborted"
      ? failed("ServerError", "The provider ended its answer with an error")
      : { type: undefined, status: exit }
  }
  const error = errorIn(exit.cause)
  const type = typeOf(error)
  if (type === cancelled.type) return cancelled
  return { type, status: exit, ...(error instanceof ProviderError ? { provider: error.provider } : {}) }
}

type Output = Pick<ToolResult, "content">
export type ToolExit = Exit.Exit<{ readonly outcome: ToolOutcome; readonly output: Output }>

/** The verdict on a call of the tool `name`, with its outcome, and its output if it has one. */
export const ofToolCall = (
  exit: ToolExit,
  name: string
): Verdict & { readonly outcome: ToolOutcome; readonly output?: Output } =>
  Exit.isFailure(exit)
    ? { outcome: "error", type: typeOf(errorIn(exit.cause)), status: exit }
    : { ...exit.value, ...ofOutcome(exit.value.outcome, name) }

/** A call that was skipped, by a hook or for a message of the user, has not failed. */
const ofOutcome = (outcome: ToolOutcome, name: string): Verdict => {
  if (outcome === "aborted") return cancelled
  if (outcome === "success" || outcome === "skipped") return { type: undefined, status: Exit.void }
  return failed(outcome, `Tool ${name} failed: ${outcome}`)
}

const cancelled = { type: "cancelled", status: Exit.interrupt() }

/** Exporters show the name of the error as its type. */
const failed = (type: string, message: string): Verdict => {
  const error = new Error(message)
  error.name = type
  Inspection.strip(error)
  return { type, status: Exit.fail(error) }
}

/** The failure of a cause, else its defect, else nothing but its interruption. */
const errorIn = (cause: Cause.Cause<unknown>): unknown =>
  Cause.hasInterruptsOnly(cause) ? { _tag: "Stopped" } : Cause.squash(cause)

/** The tag of the reason of an error, else its own tag, else its name. */
export const typeOf = (error: unknown): string => {
  if (error instanceof ProviderError) return error.reason._tag
  if (Predicate.isTagged(error, "RunFailed") && "reason" in error) return typeOf(error.reason)
  if (Predicate.isTagged(error, "Stopped")) return cancelled.type
  if (Predicate.hasProperty(error, "_tag") && typeof error._tag === "string") return error._tag
  return error instanceof Error ? error.name : "Defect"
}
