/**
 * Decides whether a run has its output: after a turn in which the model called the tool for it, and where the run would end.
 */
import * as Effect from "effect/Effect"
import * as Ending from "./ending.ts"
import { type OutputInvalid, OutputMissing } from "./failureReason.ts"
import * as Message from "../Message.ts"
import { Output, type OutputOf, type OutputOptions } from "./output.ts"
import type { Run } from "./run.ts"
import type { RunFailed, RunResult } from "../Run.ts"
import * as ToolOutcome from "./toolOutcome.ts"
import type { Turn } from "./turn.ts"

/** Counts a call that gave no valid output. The model reads its faults as the result of the call. */
export const checkCalls = (run: Run, { message, toolResults }: Turn): Effect.Effect<void, OutputInvalid> => {
  const { output } = run
  const calls = Message.toolCalls(message)
  if (output === undefined || output.isGivenBy(calls)) return Effect.void
  const call = calls.findLast((call) => output.isCall(call))
  const result = toolResults.find(({ toolCallId }) => toolCallId === call?.id)
  if (call === undefined || result?.outcome === undefined || !isFault(result.outcome)) return Effect.void
  const fault = { detail: Message.textOf(result), text: call.rawArguments }
  return Effect.asVoid(output.refuse(fault, true))
}

const isFault = (outcome: Message.ToolOutcome): boolean =>
  outcome === "truncated" || ToolOutcome.failures.has(outcome)

/** Reads the output where the run would end. Returns false after it has asked the model to repair the output. */
export const isAccepted = Effect.fnUntraced(function* (run: Run, output: Output<unknown>, { message }: Turn) {
  const read = yield* run.attempt(Effect.result(output.read(message)))
  if (read._tag === "Success") {
    output.accepted = read.success
    return true
  }
  const instruction = yield* output.refuse(read.failure, false)
  run.addPending(undefined, [Message.user(instruction, run.clock.currentTimeMillisUnsafe())])
  return false
})

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
