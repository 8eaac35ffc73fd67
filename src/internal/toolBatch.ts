/**
 * Runs the tool calls of one answer: each is looked up, guarded, executed and answered. Every call gets exactly one result,
 * in the order of the calls, on every path.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { Batch } from "./batch.ts"
import type { FailureReason } from "./failureReason.ts"
import type * as Message from "../Message.ts"
import type { Run, Stopped } from "./run.ts"
import * as ToolCall from "./toolCall.ts"
import * as ToolOutcome from "./toolOutcome.ts"

/**
 * Runs the calls of an answer, or only answers them when its review ends the run. All results are in the transcript when
 * this returns; `fatal` and `failure` of the batch say how the run ends.
 */
export const execute = Effect.fnUntraced(function* (
  run: Run,
  message: Message.Assistant,
  reviewed: Exit.Exit<void, FailureReason | Stopped>
): Effect.fn.Return<Batch> {
  const batch = new Batch(run, message)
  const { halt } = batch.inFlight
  run.control.inFlight.halts.add(halt)
  if (Exit.isFailure(reviewed)) batch.endRun(reviewed.cause)
  run.emit({ _tag: "ToolsDetected", toolCalls: batch.calls })
  if (isSequential(batch)) {
    for (const call of batch.calls) {
      const allowed = yield* ToolCall.preflight(batch, call)
      yield* allowed === undefined ? batch.pollSteering : ToolCall.perform(batch, allowed)
      yield* batch.answer([call])
    }
  } else {
    const looked = yield* Effect.forEach(batch.calls, (call) => ToolCall.preflight(batch, call))
    const allowed = looked.filter((call) => call !== undefined)
    const concurrency = Math.max(1, run.options.toolConcurrency ?? defaultConcurrency)
    yield* Effect.forEach(allowed, (call) => ToolCall.perform(batch, call), { concurrency, discard: true })
    yield* batch.answer(batch.calls)
  }
  run.control.inFlight.halts.delete(halt)
  return batch
})

/** One call from start to end before the next one is looked at. */
const isSequential = ({ calls, message, run }: Batch): boolean =>
  calls.length === 1 ||
  ToolOutcome.cut(message.stopReason) !== undefined ||
  run.options.toolExecution === "sequential" ||
  calls.some((call) => run.toolOf(call)?.executionMode === "sequential")

const defaultConcurrency = 16
