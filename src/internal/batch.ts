/**
 * The state of the tool calls of one answer: their requests to a person, their outcomes and results, and the failure that ends the run.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import type { ToolOutput } from "../AgentEvent.ts"
import type { BackgroundCall } from "./background.ts"
import { type FailureReason, ToolFailed } from "./failureReason.ts"
import { attempt, Fibers } from "./interruption.ts"
import type { InterruptedTurn, OpenTurn, Question, Request } from "./openTurn.ts"
import * as Limits from "./limits.ts"
import * as Message from "../Message.ts"
import type { ToolCall } from "../Message.ts"
import * as Pending from "./pending.ts"
import { type Check, checkOf, OpenApproval, OpenQuestion, Requests } from "./requests.ts"
import type { Run } from "./run.ts"
import * as ToolOutcome from "./toolOutcome.ts"
import * as Output from "./toolOutput.ts"
import * as Waiting from "./waiting.ts"

/** The requests about a call. */
interface Asked {
  approval?: OpenApproval
  question?: OpenQuestion
  /** The question about its end, which is not known. */
  unknownEnd?: OpenQuestion
}

export class Batch {
  readonly run: Run
  readonly message: Message.Assistant
  readonly calls: ReadonlyArray<Message.ToolCall>
  /** The calls without a result in the transcript: all of them, unless the turn was left open. */
  readonly unanswered: ReadonlyArray<Message.ToolCall>
  /** The turn that an earlier run left open, or this run before its process ended. Absent for a new turn. */
  readonly earlier: OpenTurn | undefined
  /** More about `earlier`, where this run itself left it open; absent if another run did. */
  private readonly begunBefore: InterruptedTurn | undefined
  /** The open requests of the outermost agent, or of this batch if there is no agent. */
  readonly requests: Requests
  private readonly asked = new Map<Message.ToolCall, Asked>()
  /** The ids of the calls whose tool has begun. */
  readonly begun = new Set<string>()
  /** The calls whose requests the policy defers: they still wait for a person after the run has ended suspended. */
  private readonly deferred = new Set<Message.ToolCall>()
  isSuspended = false
  private readonly outcomes = new Map<Message.ToolCall, ToolOutcome.Outcome>()
  /** The fibers of the calls that run. */
  readonly fibers: Fibers
  /** The one call of a batch for a call that may move to the background; absent in a batch of all calls of an answer. */
  readonly backgroundCall: BackgroundCall | undefined
  /** A lock for the call that polls for steering, so that calls that end at the same time do not poll too. */
  private readonly polling = Semaphore.makeUnsafe(1)
  /** A lock that keeps requests in the order of the calls: the hash of the params is computed asynchronously. */
  readonly inOrder = Semaphore.makeUnsafe(1).withPermits(1)
  /** The results that are in the transcript already. */
  results: ReadonlyArray<Message.ToolResult> = []
  /** The first failure of a tool, where `toolFailureMode` is "fail". */
  failure: ToolFailed | undefined
  /** The failure of a hook or the defect for which the run ends after this batch. */
  fatal: Cause.Cause<FailureReason> | undefined

  constructor(
    run: Run,
    message: Message.Assistant,
    earlier?: OpenTurn,
    begunBefore?: InterruptedTurn,
    backgroundCall?: BackgroundCall
  ) {
    this.begunBefore = begunBefore
    this.run = run
    this.message = message
    this.backgroundCall = backgroundCall
    this.fibers = backgroundCall?.fibers ?? new Fibers()
    this.calls = backgroundCall === undefined ? Message.toolCalls(message) : [backgroundCall.call]
    this.earlier = earlier
    this.requests = run.waiting.requests ?? new Requests()
    this.unanswered = earlier === undefined ? this.calls : Waiting.unanswered(earlier, run.messages)
    if (earlier !== undefined) this.restore(earlier)
    if (begunBefore !== undefined) this.results = Waiting.answered(message, run.messages)
  }

  /** Restores outcomes and requests from the open turn. Calls with equal ids request again: the run cannot know whose request it was. */
  private restore({ approvals, ended, questions }: OpenTurn): void {
    const ends = [...ended]
    const depth = this.run.mailbox.path?.length ?? 0
    for (const call of this.calls) {
      const index = ends.findIndex(({ toolCallId }) => toolCallId === call.id)
      const [end] = index === -1 ? [] : ends.splice(index, 1)
      if (end !== undefined) this.outcomes.set(call, ToolOutcome.make(end.outcome, end.output))
      if (end?.outcome === "success") this.run.team.requestAgain(call, end.output)
      if (this.calls.some((other) => other !== call && other.id === call.id)) continue
      // A path of the same length means a call of this run: calls of sub-agents may have the same ids.
      const isOfCall = ({ request }: { readonly request: Request | Question }) =>
        request.toolCallId === call.id && (request.path?.length ?? 0) === depth
      const asked = this.askedAbout(call)
      const approval = approvals.find(isOfCall)
      if (approval !== undefined)
        asked.approval = this.requests.add(OpenApproval, approval, this.checkOf(call))
      for (const question of questions.filter(isOfCall).reverse())
        asked[question.request.about ?? "question"] = this.requests.add(OpenQuestion, question)
    }
  }

  /** The requests about a call. */
  askedAbout(call: Message.ToolCall): Asked {
    const asked = this.asked.get(call) ?? {}
    this.asked.set(call, asked)
    return asked
  }

  /** Checks params that are to replace those of a call. */
  checkOf({ id }: Message.ToolCall): Check {
    return checkOf(this.run.registry, this.message, id)
  }

  /** Whether the process ended while the tool of a call ran that must not run again: its end is not known. */
  isLost(call: Message.ToolCall): boolean {
    const { begunBefore, earlier, run } = this
    if (this.asked.get(call)?.unknownEnd !== undefined) return true
    // Before a run ends suspended it waits for its tools: the end of each call is known, but for those whose sub-agents wait.
    if (earlier === undefined || earlier.isSuspended || !earlier.begun.includes(call.id)) return false
    const mayRunAgain = run.mayRunAgain(call) || begunBefore?.inner.has(call.id) === true
    return begunBefore === undefined || !mayRunAgain
  }

  /** Whether calls without a start must not begin: another run left the turn open, and its process ended before it did. */
  get isLate(): boolean {
    const { begunBefore, earlier } = this
    return earlier !== undefined && !earlier.isSuspended && begunBefore === undefined
  }

  /** Whether a call has its outcome. */
  isEnded(call: Message.ToolCall): boolean {
    return this.outcomes.has(call)
  }

  /** Lets a call wait for a person after the end of the run. */
  defer(call: Message.ToolCall): void {
    this.deferred.add(call)
  }

  get isDeferring(): boolean {
    return this.deferred.size > 0
  }

  /** Whether a call has no outcome, and is not deferred. */
  isOpen(call: Message.ToolCall): boolean {
    return !this.outcomes.has(call) && !this.deferred.has(call)
  }

  /** The calls that are deferred and have no answer yet. */
  get waiting(): ReadonlyArray<Message.ToolCall> {
    return this.calls.filter((call) => this.deferred.has(call) && !this.outcomes.has(call))
  }

  /** Suspends the turn if calls are deferred, unless the run ends anyway or a message of the user comes first. Returns whether it did. */
  suspend(): boolean {
    const { control } = this.run
    const isOver = control.isHalting || this.fatal !== undefined || this.failure !== undefined
    if (isOver || this.isMoot || Limits.tooManyToolCalls(this.run) !== undefined) return false
    this.isSuspended = this.waiting.length > 0
    return this.isSuspended
  }

  /** The turn as data, by which a later run resumes it. */
  get openTurn(): OpenTurn {
    const isLost = (call: ToolCall) => this.asked.get(call)?.unknownEnd !== undefined
    const lost = this.calls.filter(isLost).map(({ id }) => id)
    const asked = this.calls.filter((call) => !this.isEnded(call)).map((call) => this.askedAbout(call))
    return {
      runId: this.run.id,
      message: this.message,
      isSuspended: true,
      ended: this.calls.flatMap((call) => {
        const ended = this.outcomes.get(call)
        return ended === undefined
          ? []
          : [{ toolCallId: call.id, outcome: ended.outcome, output: ended.output }]
      }),
      begun: [...new Set([...this.begun, ...lost])],
      approvals: asked.flatMap(({ approval }) => approval?.stored ?? []),
      questions: asked.flatMap(({ question, unknownEnd }) =>
        [question, unknownEnd].flatMap((open) => open?.stored ?? [])
      )
    }
  }

  /** Whether a message of the user waits that, with `skipRemaining`, takes the place of the calls that have not begun. */
  get isMoot(): boolean {
    return this.run.pending.messages.length > 0 && this.backgroundCall?.isInBackground !== true
  }

  /** Whether the calls are to end: the run was stopped, or their turn was interrupted and they belong to it. */
  get isHalting(): boolean {
    const { control } = this.run
    return this.backgroundCall?.isInBackground === true ? control.stop !== undefined : control.isHalting
  }

  /** The outcome of a call that passed its guards, and must not begin because a tool failed, the user sent a message or the run ends. */
  notToBegin(call: Message.ToolCall): ToolOutcome.Outcome | undefined {
    if (this.failure !== undefined) return ToolOutcome.skippedByFailure
    const { control } = this.run
    if (control.isTurnCut && this.backgroundCall === undefined) return ToolOutcome.skippedBySteering
    if (this.fibers.isInterrupted || control.stop !== undefined) return ToolOutcome.aborted(call)
    return this.isMoot ? ToolOutcome.skippedBySteering : undefined
  }

  /** Whether the run ends with this turn: every result has `terminate`, or a call gave the output of the run. */
  get isTerminated(): boolean {
    return (
      this.calls.every((call) => this.outcomeOf(call).output.terminate === true) ||
      this.run.output?.isGivenBy(this.calls) === true
    )
  }

  /** Keeps the outcome of a call, and publishes its end. With `toolFailureMode: "fail"` a failure interrupts the other calls. */
  settle(call: Message.ToolCall, result: ToolOutcome.Outcome, durationMs = 0): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { backgroundCall } = this
      if (backgroundCall?.isInBackground === false) return backgroundCall.give(result, durationMs)
      const { outcome, timeoutMs } = result
      const output = yield* fitResult(this.run, call, Output.plain(result.output))
      const isError = output.isError === true
      this.outcomes.set(call, ToolOutcome.make(outcome, output))
      this.withdraw(call)
      const isFailure = isError && ToolOutcome.failures.has(outcome)
      // `outputRetries` bounds the repairs of an output that is not valid: it is no failure of a tool.
      if (isFailure && this.run.output?.isCall(call) !== true) yield* this.failed(call, output)
      const ended = {
        _tag: "ToolExecutionEnd" as const,
        toolCallId: call.id,
        toolName: call.name,
        result: output,
        isError,
        outcome,
        durationMs,
        ...(outcome === "timeout" && timeoutMs !== undefined ? { timeoutMs } : {})
      }
      if (backgroundCall === undefined) this.run.emit(ended)
      else this.run.mailbox.emitIn(backgroundCall.turn, { ...ended, background: backgroundCall.handle })
      yield* this.run.mailbox.delivered
    })
  }

  /** Keeps the outcome of a call whose end another batch publishes. */
  keep(call: Message.ToolCall, outcome: ToolOutcome.Outcome): void {
    this.outcomes.set(call, outcome)
  }

  /** Closes the open requests of a call that has ended, so that a late answer fails. */
  private withdraw(call: Message.ToolCall): void {
    const asked = this.asked.get(call)
    for (const open of [asked?.approval, asked?.question, asked?.unknownEnd])
      if (open !== undefined) this.requests.withdraw(open.request)
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
    const halt = this.failure === undefined ? Effect.void : this.fibers.interruptOthers
    const asked = run.hooks.each("onError", () => ({ ...run.baseInput, scope: "tool", error }))
    return Effect.andThen(halt, this.keepFatal(run.attempt(asked, this)))
  }

  /** Appends the results of calls to the transcript. */
  answer(calls: ReadonlyArray<Message.ToolCall>): Effect.Effect<void> {
    const results = calls.map((call) => this.resultOf(call))
    this.results = [...this.results, ...results]
    this.run.append(results)
    return this.run.mailbox.delivered
  }

  private resultOf(call: Message.ToolCall): Message.ToolResult {
    const outcome = this.outcomeOf(call)
    const content = Limits.recordCall(this.run, call, outcome.output)
    return ToolOutcome.result(call, outcome, this.run.clock.currentTimeMillisUnsafe(), content)
  }

  outcomeOf(call: Message.ToolCall): ToolOutcome.Outcome {
    return this.outcomes.get(call) ?? ToolOutcome.aborted(call)
  }

  /** With `steeringPolicy: "skipRemaining"`, polls for a message of the user: the calls that have not begun are then skipped. */
  get pollSteering(): Effect.Effect<void> {
    const { run } = this
    const isOff = run.options.steeringPolicy !== "skipRemaining" || run.control.isHalting
    if (isOff || this.isMoot || this.backgroundCall !== undefined) return Effect.void
    const asked = this.keepFatal(Pending.takeSteering(run, "tools"))
    const announced = Effect.sync(() => this.isMoot && run.queues.announce())
    return Effect.asVoid(this.polling.withPermitsIfAvailable(1)(Effect.andThen(asked, announced)))
  }

  /** Runs an effect that asks hooks, and keeps a failure for the end of the run. */
  keepFatal<A>(asked: Effect.Effect<A, FailureReason>): Effect.Effect<A | void> {
    return Effect.catchCause(asked, (cause) => Effect.sync(() => this.endRun(cause)))
  }

  /** Keeps the cause with which the run ends once each call has its result. A stop of the run has its own cause. */
  endRun(cause: Cause.Cause<FailureReason>): void {
    const { isTurnCut, stop } = this.run.control
    if (stop === undefined && !(isTurnCut && Cause.hasInterruptsOnly(cause))) this.fatal ??= cause
  }

  /** Takes the failure of the batch of one call, and interrupts the other calls if that batch was interrupted. */
  adopt({ fatal, fibers }: Batch): Effect.Effect<void> {
    this.fatal ??= fatal
    return fibers.isInterrupted ? this.fibers.interruptOthers : Effect.void
  }

  /** Keeps a defect, and interrupts the calls in flight. */
  die(cause: Cause.Cause<never>): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.fatal ??= cause
      return this.fibers.interruptOthers
    })
  }
}

// ───────────────────────── Large results

/** Makes the result for the model. Where the text is too large, it stores the whole text as an artifact first. */
const fitResult = (run: Run, call: ToolCall, output: ToolOutput): Effect.Effect<ToolOutput> => {
  const cut = run.resultLimit({ runId: run.id, toolCallId: call.id, toolName: call.name }, output)
  if (cut === undefined) return Effect.succeed(bounded(output))
  const unstored = bounded(Output.plain(cut.unstored))
  return Effect.flatMap(attempt(cut.store, { control: run.control }), (ended) => {
    if (ended._tag !== "Done") return Effect.succeed(unstored)
    if (Exit.isFailure(ended.exit)) {
      const warning = `The large result of tool ${call.name} could not be stored`
      return Effect.as(Effect.logWarning(warning, ended.exit.cause), unstored)
    }
    const { output, stored } = ended.exit.value
    run.emit({ _tag: "ArtifactStored", toolCallId: call.id, ...stored })
    return Effect.succeed(bounded(Output.plain(output)))
  })
}

const bounded = (output: ToolOutput): ToolOutput => {
  const content = output.content.map(Output.bounded)
  return content.every((block, index) => block === output.content[index]) ? output : { ...output, content }
}
