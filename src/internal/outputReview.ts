/**
 * Decides whether a run has its output: after a turn in which the model called the tool for it, and where the run would end.
 */
import * as Effect from "effect/Effect"
import * as Ending from "./ending.ts"
import type { FailureReason } from "./failureReason.ts"
import { OutputInvalid, OutputMissing } from "./failureReason.ts"
import * as Message from "../Message.ts"
import type { Fault, Next, OutputOf, OutputOptions } from "./output.ts"
import { Output } from "./output.ts"
import type { Run, Stopped } from "./run.ts"
import type { RunFailed } from "../RunFailed.ts"
import type { RunResult } from "../RunResult.ts"
import * as ToolOutcome from "./toolOutcome.ts"
import type { Completed } from "./turn.ts"

/** Counts a call that gave no valid output. The model reads its faults as the result of the call. */
export const checkCalls = (
  run: Run,
  { message, toolResults }: Completed
): Effect.Effect<void, OutputInvalid> => {
  const { output } = run
  const calls = Message.toolCalls(message)
  if (output === undefined || output.isGivenBy(calls)) return Effect.void
  const call = calls.findLast((call) => output.isCall(call))
  const result = toolResults.find(({ toolCallId }) => toolCallId === call?.id)
  if (call === undefined || result?.outcome === undefined || !isFault(result.outcome)) return Effect.void
  const fault = { detail: Message.textOf(result), text: call.rawArguments }
  return Effect.asVoid(refused(output, fault, true))
}

const isFault = (outcome: Message.ToolOutcome): boolean =>
  outcome === "truncated" || ToolOutcome.failures.has(outcome)

/** Reads the output where the run would end. Returns false after it has asked the model to repair the output. */
export const isAccepted = Effect.fnUntraced(function* (
  run: Run,
  output: Output<unknown>,
  { message }: Completed
): Effect.fn.Return<boolean, FailureReason | Stopped> {
  const read = yield* run.attempt(Effect.result(output.read(message)))
  if (read._tag === "Success") {
    output.accepted = read.success
    return true
  }
  const { instruction } = yield* refused(output, read.failure, false)
  run.addPending(undefined, [Message.user(instruction, run.clock.currentTimeMillisUnsafe())])
  return false
})

type Repair = Extract<Next, { readonly _tag: "Repair" }>

const refused = (
  output: Output<unknown>,
  fault: Fault,
  isAnswered: boolean
): Effect.Effect<Repair, OutputInvalid> => {
  const next = output.refuse(fault, isAnswered)
  return next._tag === "Repair"
    ? Effect.succeed(next)
    : Effect.fail(new OutputInvalid({ ...fault, attempts: output.attempts }))
}

/** The output of one run, and how its result gets it. */
export interface Typed<O> {
  readonly output: Output<unknown> | undefined
  /** Adds the output to the result. Fails with `OutputMissing` if the run ended without one. */
  readonly result: (result: RunResult) => Effect.Effect<RunResult & O, RunFailed>
}

/** The output of a run by its schema. A run without one ends with any answer. */
export function typed<A>(schema: Schema, retries: number | undefined): Typed<OutputOf<A>>
export function typed(schema: Schema, retries: number | undefined): Typed<{}> {
  if (schema === undefined) return { output: undefined, result: Effect.succeed }
  const output = new Output(schema, retries)
  return {
    output,
    result: (result) =>
      result.status === "completed" && output.accepted !== undefined
        ? Effect.succeed({ ...result, output: output.accepted.value })
        : Effect.fail(Ending.failed(new OutputMissing({ status: result.status }), result))
  }
}

type Schema = OutputOptions<unknown>["output"] | undefined
