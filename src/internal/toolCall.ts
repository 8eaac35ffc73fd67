/**
 * One tool call from its guards to its outcome: executed in time, halted when the run is stopped, reviewed by its hooks.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { quoted } from "./failureText.ts"
import * as Gate from "./gate.ts"
import * as Guards from "./guards.ts"
import { attempt } from "./interruption.ts"
import * as Limits from "./limits.ts"
import * as Spans from "./spans.ts"
import type { ToolCall } from "../Message.ts"
import type { ToolOutput } from "../AgentEvent.ts"
import * as Tool from "../Tool.ts"
import type { Batch } from "./batch.ts"
import type { Outcome } from "./toolOutcome.ts"
import * as ToolOutcome from "./toolOutcome.ts"
import * as Output from "./toolOutput.ts"
import type * as Registry from "../ToolRegistry.ts"

const defaultTimeout = Duration.seconds(30)

/** Looks at one call, in the order of the calls. Returns it if it may run, and settles it otherwise. */
export const preflight = Effect.fnUntraced(function* (
  batch: Batch,
  call: ToolCall
): Effect.fn.Return<Guards.Allowed | undefined> {
  const { run } = batch
  const label = run.toolOf(call)?.label
  if (run.output?.isCall(call) !== true) run.countToolCall()
  run.emit({
    _tag: "ToolExecutionStart",
    toolCallId: call.id,
    toolName: call.name,
    params: call.params ?? {},
    ...(label === undefined ? {} : { label })
  })
  yield* run.delivered
  const decision = notToBeLookedAt(batch) ?? (yield* Spans.withCallLogs(call, guarded(batch, call)))
  if ("prepared" in decision) return decision
  yield* refuse(batch, call, decision)
  return undefined
})

/** Settles a call that does not run. */
const refuse = (batch: Batch, call: ToolCall, outcome: Outcome): Effect.Effect<void> =>
  Effect.andThen(Spans.refusedCall(batch.run, call, outcome), batch.settle(call, outcome))

/** Reasons that hold before any guard runs. */
const notToBeLookedAt = (batch: Batch): Outcome | undefined => {
  const { message, run } = batch
  const cut = ToolOutcome.cut(message.stopReason)
  if (cut !== undefined) return cut
  if (batch.fatal !== undefined) return ToolOutcome.runEnds
  if (batch.failure !== undefined) return ToolOutcome.skippedByFailure
  if (Limits.tooManyToolCalls(run) !== undefined) return ToolOutcome.tooManyCalls
  return batch.isMoot ? ToolOutcome.skippedBySteering : undefined
}

/** Waits at the gate, then asks the guards. */
const guarded = Effect.fnUntraced(function* (
  batch: Batch,
  call: ToolCall
): Effect.fn.Return<Guards.Allowed | Outcome> {
  const opened = yield* Effect.exit(Gate.open(batch.run))
  if (Exit.isFailure(opened)) return ToolOutcome.runStopped
  const checked = yield* Effect.exit(Guards.check(batch.run, batch.message, call))
  if (Exit.isSuccess(checked)) return checked.value
  // A hook that ends the run, or a stop while a guard was busy.
  yield* batch.keepFatal(Exit.asVoid(checked))
  return ToolOutcome.aborted(call)
})

/** Executes one call, as often as its hooks have it run again, and settles it. */
export const perform = Effect.fnUntraced(function* (
  batch: Batch,
  { approved, modified, prepared }: Guards.Allowed
): Effect.fn.Return<void> {
  const { run } = batch
  const { call, input } = prepared
  const moot = notToBegin(batch, call)
  if (moot !== undefined) return yield* refuse(batch, call, moot)
  run.emit({
    _tag: "ToolInvoked",
    toolCallId: call.id,
    toolName: call.name,
    params: input,
    modified,
    approved
  })
  yield* run.delivered
  const startedAt = run.elapsed
  let reviewed = yield* executeOnce(batch, prepared)
  for (let retries = 0; reviewed.retry && retries < Limits.maxToolRetries(run); retries++) {
    reviewed = yield* executeOnce(batch, prepared)
  }
  yield* batch.settle(call, reviewed, run.elapsed - startedAt)
  yield* batch.pollSteering
})

/** Reasons that arose since the call was looked at. */
const notToBegin = (batch: Batch, call: ToolCall): Outcome | undefined => {
  if (batch.failure !== undefined) return ToolOutcome.skippedByFailure
  if (batch.inFlight.isHalted || batch.run.control.stop !== undefined) return ToolOutcome.aborted(call)
  return batch.isMoot ? ToolOutcome.skippedBySteering : undefined
}

/** A defect halts the batch and ends the run, once each call has its result. */
const executeOnce = (batch: Batch, prepared: Registry.PreparedCall): Effect.Effect<Reviewed> =>
  Spans.toolCall(batch.run, prepared, execute(batch, prepared)).pipe(
    Effect.flatMap((outcome) => review(batch, prepared, outcome)),
    Effect.catchCause((cause) =>
      Effect.as(batch.die(cause), { ...ToolOutcome.aborted(prepared.call), retry: false })
    )
  )

/** Runs the tool until it ends, its time is over, or the batch is halted. Progress counts only while it runs. */
const execute = Effect.fnUntraced(function* (
  batch: Batch,
  prepared: Registry.PreparedCall
): Effect.fn.Return<Outcome> {
  const { run } = batch
  const { path } = run.events
  const { call, tool } = prepared
  const timeout = Duration.toMillis(
    Duration.fromInputUnsafe(tool.timeout ?? run.options.toolTimeout ?? defaultTimeout)
  )
  let isRunning = true
  const progress = (partial: ToolOutput) =>
    Effect.suspend(() =>
      isRunning
        ? run.events.progress({
            _tag: "ToolExecutionProgress",
            toolCallId: call.id,
            toolName: call.name,
            partial: Output.plain(partial)
          })
        : Effect.void
    )
  const work = Effect.suspend(() =>
    run.registry.execute(prepared, {
      toolCallId: call.id,
      runId: run.id,
      ...(path === undefined ? {} : { path }),
      turn: run.turn,
      progress
    })
  )
  const attempted = yield* attempt(work, { within: batch.inFlight, timeout })
  isRunning = false
  if (attempted._tag === "Done") return yield* ended(call, attempted.exit)
  if (attempted.isAbandoned) yield* Effect.logWarning(`Tool ${call.name} ignored its interruption`)
  return attempted._tag === "Halted"
    ? ToolOutcome.aborted(call, attempted.isAbandoned)
    : ToolOutcome.timedOut(call, timeout, attempted.isAbandoned)
})

const ended = (call: ToolCall, exit: Exit.Exit<Registry.Executed>): Effect.Effect<Outcome> => {
  if (Exit.isFailure(exit)) {
    return Cause.hasInterruptsOnly(exit.cause)
      ? Effect.succeed(ToolOutcome.aborted(call))
      : Effect.failCause(exit.cause)
  }
  const { outcome, ...output } = exit.value
  return Effect.succeed({ output, outcome })
}

interface Reviewed extends Outcome {
  /** A hook wants the call to run again. */
  readonly retry: boolean
}

/** Lets `afterTool` hooks replace parts of a result. One that fails makes an error of it. */
const review = Effect.fnUntraced(function* (
  batch: Batch,
  prepared: Registry.PreparedCall,
  done: Outcome
): Effect.fn.Return<Reviewed> {
  const { message, run } = batch
  const isReviewed = done.outcome !== "aborted" && run.output?.isCall(prepared.call) !== true
  if (!isReviewed || !run.hooks.has("afterTool")) return { ...done, retry: false }
  let output = done.output
  let retry = false
  const asked = run.hooks.ask<"afterTool", void>("afterTool", undefined, {
    input: () =>
      Effect.map(Guards.toolInput(run, message, prepared), (input) => ({
        ...input,
        result: output,
        isError: output.isError === true,
        outcome: done.outcome
      })),
    output: (_, { retry: again, ...fields }) =>
      Effect.sync(() => {
        output = { ...output, ...fields }
        retry ||= again === true
      }),
    failure: (_, { detail, hookName }) =>
      Effect.sync(() => {
        output = Tool.failure(`An afterTool hook${quoted(hookName)} failed: ${detail}`)
      })
  })
  yield* batch.keepFatal(run.attempt(asked))
  const isError = output.isError === true
  const outcome = isError ? (done.outcome === "success" ? "error" : done.outcome) : "success"
  return { output, outcome, retry: retry && run.control.stop === undefined }
})
