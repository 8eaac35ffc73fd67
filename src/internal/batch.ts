/**
 * The tool calls of one answer: their outcomes, their results, and all that ends them early.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { ToolOutput } from "../AgentEvent.ts"
import { type FailureReason, ToolFailed } from "./failureReason.ts"
import { InFlight } from "./interruption.ts"
import * as LargeResult from "./largeResult.ts"
import * as Limits from "./limits.ts"
import * as Message from "../Message.ts"
import * as Pending from "./pending.ts"
import type { Run, Stopped } from "./run.ts"
import * as ToolOutcome from "./toolOutcome.ts"
import * as Output from "./toolOutput.ts"

export class Batch {
  readonly run: Run
  readonly message: Message.Assistant
  readonly calls: ReadonlyArray<Message.ToolCall>
  private readonly outcomes = new Map<Message.ToolCall, ToolOutcome.Outcome>()
  /** The tools of this batch. */
  readonly inFlight = new InFlight()
  /** Held by the call that asks the hooks for steering: those beside it do not ask. */
  private readonly polling = Semaphore.makeUnsafe(1)
  /** Results in the transcript so far. */
  results: ReadonlyArray<Message.ToolResult> = []
  /** The first failure of a tool, where `toolFailureMode` is "fail". */
  failure: ToolFailed | undefined
  /** The failure of a hook that ends the run, or a defect. */
  fatal: Cause.Cause<FailureReason | Stopped> | undefined

  constructor(run: Run, message: Message.Assistant) {
    this.run = run
    this.message = message
    this.calls = Message.toolCalls(message)
  }

  /** Whether a message of the user stands before the calls that have not begun. */
  get isMoot(): boolean {
    return this.run.pending.messages.length > 0
  }

  /** Whether every result asks to end the run, or a call gave the output of the run. */
  get isTerminated(): boolean {
    return (
      this.calls.every((call) => this.outcomeOf(call).output.terminate === true) ||
      this.run.output?.isGivenBy(this.calls) === true
    )
  }

  /** Ends one call. In fail mode its failure halts the others. */
  settle(
    call: Message.ToolCall,
    { outcome, output: given }: ToolOutcome.Outcome,
    durationMs = 0
  ): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const fitted = LargeResult.fit(this.run, call, Output.plain(given))
      const output = Effect.isEffect(fitted) ? yield* fitted : fitted
      const isError = output.isError === true
      this.outcomes.set(call, ToolOutcome.make(outcome, output))
      const isFailure = isError && ToolOutcome.failures.has(outcome)
      // An output that is not valid is repaired within its own bound.
      if (isFailure && this.run.output?.isCall(call) !== true) yield* this.failed(call, output)
      this.run.emit({
        _tag: "ToolExecutionEnd",
        toolCallId: call.id,
        toolName: call.name,
        result: output,
        isError,
        outcome,
        durationMs
      })
      yield* this.run.delivered
    })
  }

  private failed(call: Message.ToolCall, error: ToolOutput): Effect.Effect<void> {
    const { run } = this
    if (run.options.toolFailureMode === "fail" && this.failure === undefined) {
      this.failure = new ToolFailed({
        toolCallId: call.id,
        toolName: call.name,
        detail: Message.textOf(error),
        ...(error.details === undefined ? {} : { failure: error.details })
      })
    }
    const halt = this.failure === undefined ? Effect.void : this.inFlight.halt
    const asked = run.ask("onError", () => ({ ...run.baseInput, scope: "tool", error }))
    return Effect.andThen(halt, this.keepFatal(asked))
  }

  /** Appends the results of calls to the transcript. */
  answer(calls: ReadonlyArray<Message.ToolCall>): Effect.Effect<void> {
    const results = calls.map((call) => this.resultOf(call))
    this.results = [...this.results, ...results]
    this.run.append(results)
    return this.run.delivered
  }

  private resultOf(call: Message.ToolCall): Message.ToolResult {
    const { outcome, output } = this.outcomeOf(call)
    return Message.toolResult(call, Limits.recordCall(this.run, call, output), {
      isError: output.isError === true,
      outcome,
      timestamp: this.run.clock.currentTimeMillisUnsafe(),
      ...(output.details === undefined ? {} : { details: output.details }),
      ...(output.trust === undefined ? {} : { trust: output.trust })
    })
  }

  private outcomeOf(call: Message.ToolCall): ToolOutcome.Outcome {
    return this.outcomes.get(call) ?? ToolOutcome.aborted(call)
  }

  /** With `skipRemaining`, polls for a message of the user that makes the calls that have not begun moot. */
  get pollSteering(): Effect.Effect<void> {
    const { run } = this
    const isOff = run.options.steeringPolicy !== "skipRemaining" || run.control.stop !== undefined
    if (isOff || this.isMoot) return Effect.void
    const asked = this.keepFatal(Pending.takeSteering(run, "tools"))
    return Effect.asVoid(this.polling.withPermitsIfAvailable(1)(asked))
  }

  /** Keeps the failure of a hook that ends the run. */
  keepFatal(asked: Effect.Effect<void, FailureReason | Stopped>): Effect.Effect<void> {
    return Effect.catchCause(asked, (cause) => Effect.sync(() => this.endRun(cause)))
  }

  /** Has the run end by a cause once each call has its result, unless it is stopped anyway. */
  endRun(cause: Cause.Cause<FailureReason | Stopped>): void {
    if (this.run.control.stop === undefined) this.fatal ??= cause
  }

  /** Keeps a defect, and halts the calls in flight. */
  die(cause: Cause.Cause<never>): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.fatal ??= cause
      return this.inFlight.halt
    })
  }
}
