/**
 * Runs one tool call that may run: in time, stopped when the run is, reviewed by its hooks.
 */
import type * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ToolOutput } from "../AgentEvent.ts"
import * as Alarm from "./alarm.ts"
import * as Begin from "./begin.ts"
import { quoted } from "./failureText.ts"
import type { FailureReason } from "../FailureReason.ts"
import * as Guards from "./guards.ts"
import type * as Message from "../Message.ts"
import type { Run, Stopped } from "./run.ts"
import * as Running from "./run.ts"
import * as Tool from "../Tool.ts"
import * as Output from "./toolOutput.ts"
import type * as Registry from "../ToolRegistry.ts"
import type { Outcome } from "./unrun.ts"
import { aborted, immediate } from "./unrun.ts"
import type { Ended, StopSignal } from "./work.ts"
import { watch } from "./work.ts"

/** What came of it after its hooks saw it. */
export interface Reviewed extends Outcome {
  readonly retry: boolean
  /** A hook failed the run. */
  readonly hookFailure: Cause.Cause<FailureReason | Stopped> | undefined
}

/** Milliseconds. */
const defaultTimeout = 30_000

/** Where a call runs. */
export interface Place {
  readonly run: Run
  readonly message: Message.Assistant
  readonly signal: StopSignal
  readonly services: Context.Context<never>
  /** With those. */
  readonly start: Begin.Starter
}

/** One execution, and what its hooks make of it: tells that once. Progress counts only while it lasts. */
export const execute = (
  { message, run, services, signal, start }: Place,
  prepared: Registry.PreparedCall,
  tell: (exit: Exit.Exit<Reviewed>) => void
): void => {
  const { call, tool } = prepared
  let open = true
  const progress = (partial: ToolOutput) =>
    Effect.suspend(() =>
      open
        ? Running.progress(run, {
            _tag: "ToolExecutionProgress",
            toolCallId: call.id,
            toolName: call.name,
            partial: Output.plain(partial)
          })
        : Effect.void
    )
  const context = { toolCallId: call.id, runId: run.id, turn: run.turn, progress }
  const timeout = timeoutOf(run, tool)
  const work = start(() => run.registry.execute(prepared, context))
  watch(work, { signal, timeout, alarm: Alarm.of(run.clock) }, (ended) => {
    open = false
    const reviewed = () => review(run, message, prepared, concluded(call, ended, timeout))
    const isLeftBehind = ended._tag !== "Done" && ended.abandoned
    Begin.goOn(services, () => (isLeftBehind ? Effect.flatMap(leftBehind(call), reviewed) : reviewed()), tell)
  })
}

const timeoutOf = (run: Run, tool: Tool.Any): number => {
  const told = tool.timeout ?? run.options.toolTimeout
  return told === undefined ? defaultTimeout : Duration.toMillis(told)
}

const leftBehind = (call: Message.ToolCall): Effect.Effect<void> =>
  Effect.logWarning(`Tool ${call.name} ignored its interruption`)

const concluded = (
  call: Message.ToolCall,
  ended: Ended<Registry.Executed, never>,
  timeout: number
): Outcome => {
  if (ended._tag === "Done") {
    if (Exit.isFailure(ended.exit)) return aborted(call)
    const { outcome, ...output } = ended.exit.value
    return { output, outcome }
  }
  const left = ended.abandoned ? " It did not stop when told to, and was left behind." : ""
  if (ended._tag === "Stopped") return immediate("aborted", `Tool ${call.name} was aborted.${left}`)
  const limit = Duration.format(Duration.millis(timeout))
  return immediate("timeout", `Tool ${call.name} timed out after ${limit}.${left}`)
}

/** Lets `afterTool` hooks replace parts of a result. One that fails makes an error of it. */
const review = (
  run: Run,
  message: Message.Assistant,
  prepared: Registry.PreparedCall,
  done: Outcome
): Effect.Effect<Reviewed> =>
  done.outcome === "aborted" || !run.hooks.has("afterTool")
    ? Effect.succeed({ ...done, retry: false, hookFailure: undefined })
    : reviewed(run, message, prepared, done)

const reviewed = Effect.fnUntraced(function* (
  run: Run,
  message: Message.Assistant,
  prepared: Registry.PreparedCall,
  done: Outcome
): Effect.fn.Return<Reviewed> {
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
  const exit = yield* Effect.exit(Running.stoppable(run, asked))
  const stopped = run.control.signal.current !== undefined
  const outcome = output.isError === true ? (done.outcome === "success" ? "error" : done.outcome) : "success"
  const hookFailure = Exit.isFailure(exit) && !stopped ? exit.cause : undefined
  return { output, outcome, retry: retry && !stopped, hookFailure }
})
