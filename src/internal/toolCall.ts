/**
 * One tool call from its guards to its outcome: it runs within its time limit, a stop of the run interrupts it, and `afterTool` hooks
 * review its result.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Schema from "effect/Schema"
import type * as Semaphore from "effect/Semaphore"
import type { ToolOutput } from "../AgentEvent.ts"
import type { BackgroundCall } from "./background.ts"
import { Batch } from "./batch.ts"
import * as Consent from "./consent.ts"
import { quoted } from "./failureText.ts"
import * as Gate from "./gate.ts"
import * as Guards from "./guards.ts"
import { attempt, inOwnFiber } from "./interruption.ts"
import * as Limits from "./limits.ts"
import type { ToolCall } from "../Message.ts"
import type { OpenCall } from "./openTurn.ts"
import type { Run } from "./run.ts"
import * as Spans from "./spans.ts"
import * as Tool from "../Tool.ts"
import * as ToolOutcome from "./toolOutcome.ts"
import { idempotencyKey } from "./toolRun.ts"
import * as Output from "./toolOutput.ts"
import type * as Registry from "../ToolRegistry.ts"

type Outcome = ToolOutcome.Outcome

/** A call that its guards allowed, or a lost call about which the run asks a person. */
export type Ready = Guards.Allowed | Consent.Lost

const callOf = (ready: Ready): ToolCall => (ready._tag === "Lost" ? ready.call : ready.prepared.call)

/** Publishes the start of a call and asks its guards. Returns the call if it may run. Otherwise settles it and returns `undefined`. */
export const preflight = Effect.fnUntraced(function* (
  batch: Batch,
  call: ToolCall
): Effect.fn.Return<Ready | undefined> {
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
  yield* run.mailbox.delivered
  const known = refusedUnchecked(batch) ?? (batch.isLost(call) ? Consent.lookAtLost(batch, call) : undefined)
  const decision = known ?? (yield* Spans.withCallLogs(call, guarded(batch, call)))
  if (decision._tag !== "Outcome") return decision
  yield* skip(batch, call, decision)
  return undefined
})

/** Settles a call that does not begin. A lost call gets the outcome `"unknown"`. */
const skip = (batch: Batch, call: ToolCall, outcome: Outcome): Effect.Effect<void> =>
  refuse(batch, call, batch.isLost(call) ? ToolOutcome.unknown(call) : outcome)

/** Settles a call that passed its guards, and that something which happened since keeps from beginning. */
const skipNow = (batch: Batch, call: ToolCall, otherwise = ToolOutcome.aborted(call)): Effect.Effect<void> =>
  skip(batch, call, batch.notToBegin(call) ?? otherwise)

/** Settles a call that does not run, with a span of no duration. */
const refuse = (batch: Batch, call: ToolCall, outcome: Outcome): Effect.Effect<void> =>
  Effect.andThen(Spans.refusedCall(batch.run, call, outcome), batch.settle(call, outcome))

/** The outcome of a call that is refused before its guards run; `undefined` if the guards decide. */
const refusedUnchecked = (batch: Batch): Outcome | undefined => {
  const { message, run } = batch
  const cut = ToolOutcome.cut(message.stopReason)
  if (cut !== undefined) return cut
  if (batch.fatal !== undefined) return ToolOutcome.runEnds
  if (batch.failure !== undefined) return ToolOutcome.skippedByFailure
  if (Limits.tooManyToolCalls(run) !== undefined) return ToolOutcome.tooManyCalls
  return batch.isMoot ? ToolOutcome.skippedBySteering : undefined
}

/** Waits while the run is paused, then asks the guards. */
const guarded = Effect.fnUntraced(function* (
  batch: Batch,
  call: ToolCall
): Effect.fn.Return<Guards.Allowed | Outcome> {
  const { earlier, message, run } = batch
  yield* Gate.whilePaused(run)
  if (run.control.stop !== undefined) return ToolOutcome.stopped
  if (run.control.isTurnCut) return ToolOutcome.skippedBySteering
  const checked = yield* Effect.exit((earlier && reopened(batch, call)) ?? Guards.check(run, message, call))
  if (Exit.isSuccess(checked)) return checked.value
  // A guard failed the run, or the run was stopped while a guard was busy.
  batch.endRun(checked.cause)
  return ToolOutcome.aborted(call)
})

/** Decodes a call of an open turn whose guards allowed it in an earlier run. `undefined`: the guards must decide. */
const reopened = (batch: Batch, call: ToolCall): Effect.Effect<Guards.Allowed | Outcome> | undefined => {
  const { approval, question } = batch.askedAbout(call)
  if (approval !== undefined || question !== undefined)
    return Guards.again(batch.run, call, approval?.request.params)
  return batch.isLate && !batch.isLost(call) ? Effect.succeed(ToolOutcome.notBegun) : undefined
}

/** Asks the policy or a person about a call, then performs it. It takes one of the concurrency `places` only after the approval. */
export const performApproved = Effect.fnUntraced(function* (
  batch: Batch,
  ready: Ready,
  places: Semaphore.Semaphore
): Effect.fn.Return<void> {
  const call = callOf(ready)
  const moot = batch.notToBegin(call)
  if (moot !== undefined) return yield* skip(batch, call, moot)
  const consent = yield* Spans.withCallLogs(call, consented(batch, ready))
  switch (consent._tag) {
    case "Allowed":
      yield* Gate.whilePaused(batch.run)
      return yield* places.withPermits(1)(perform(batch, consent))
    case "Outcome":
      return yield* refuse(batch, call, consent)
    case "Withdrawn":
      return yield* skipNow(batch, call)
  }
})

/** Asks the policy or a person whether a call may run. About a lost call it first asks whether that should run again. */
const consented = Effect.fnUntraced(function* (batch: Batch, ready: Ready) {
  if (ready._tag === "Allowed") return yield* Consent.ask(batch, ready)
  const lost = yield* Consent.askAboutLost(batch, ready.call)
  if (lost !== undefined) return lost
  const allowed = yield* guarded(batch, ready.call)
  return allowed._tag === "Allowed" ? yield* Consent.ask(batch, allowed) : allowed
})

/** Ends the deferred calls, because the run does not end suspended. */
export const closeWaiting = (batch: Batch): Effect.Effect<void> =>
  Effect.forEach(batch.waiting, (call) => skipNow(batch, call, ToolOutcome.runEnds), { discard: true })

/** Ends the calls that had not begun when the run was stopped. */
export const closeUnbegun = (batch: Batch, ready: ReadonlyArray<Ready>): Effect.Effect<void> =>
  Effect.forEach(
    ready.map(callOf).filter((call) => batch.isOpen(call)),
    (call) => skipNow(batch, call),
    { discard: true }
  )

/** Executes a call, again for as long as `afterTool` hooks request it, and settles it. */
export const perform = Effect.fnUntraced(function* (batch: Batch, ready: Ready): Effect.fn.Return<void> {
  const { run } = batch
  if (ready._tag === "Lost") return yield* skip(batch, ready.call, ToolOutcome.aborted(ready.call))
  const { answer, approved, modified, prepared } = ready
  const { call, input } = prepared
  const moot = batch.notToBegin(call)
  if (moot !== undefined) return yield* skip(batch, call, moot)
  const { blocking = true } = prepared.tool
  if (blocking !== true && batch.backgroundCall === undefined) return yield* performInBackground(batch, ready)
  batch.begun.add(call.id)
  const { id: toolCallId, name: toolName } = call
  const invoked = { _tag: "ToolInvoked" as const, toolCallId, toolName, params: input, modified, approved }
  if (batch.backgroundCall === undefined) run.emit(invoked)
  else run.mailbox.emitIn(batch.backgroundCall.turn, invoked)
  yield* run.mailbox.delivered
  const startedAt = run.elapsed
  let outcome = yield* executeOnce(batch, prepared, answer)
  for (let retries = 0; outcome.retry === true && retries < Limits.maxToolRetries(run); retries++)
    outcome = yield* executeOnce(batch, prepared, answer)
  const isWaiting = outcome.outcome === "success" && run.waiting.inner.has(call.id)
  if (isWaiting && batch.backgroundCall === undefined) return batch.defer(call)
  if (isWaiting && batch.backgroundCall?.isInBackground === true) {
    run.waiting.inner.delete(call.id)
    outcome = ToolOutcome.cannotWait
  }
  yield* batch.settle(call, outcome, run.elapsed - startedAt)
  yield* batch.pollSteering
})

/** Performs a call that may move to the background, in a batch of its own. The turn waits until it ends or moves there. */
const performInBackground = Effect.fnUntraced(function* (batch: Batch, ready: Guards.Allowed) {
  const { run } = batch
  const { call, tool } = ready.prepared
  const background = run.keepBackground()
  const backgroundCall = background.open(call)
  const own = new Batch(run, batch.message, undefined, undefined, backgroundCall)
  if (tool.blocking === false) yield* backgroundCall.leave()
  yield* start(own, backgroundCall, perform(own, ready))
  const returned = Deferred.await(backgroundCall.returned)
  const { durationMs, outcome } = yield* Effect.catchCause(Effect.interruptible(returned), () =>
    backgroundCall.isInBackground ? returned : Effect.andThen(backgroundCall.fibers.interrupt, returned)
  )
  if (outcome.background !== undefined) return batch.keep(call, outcome)
  if (own.fatal !== undefined) yield* batch.adopt(own)
  if (outcome.outcome === "success" && run.waiting.inner.has(call.id)) return batch.defer(call)
  yield* batch.settle(call, outcome, durationMs)
  yield* batch.pollSteering
})

/** Starts the work of a call with a batch of its own, in a fiber for whose end the run waits. */
const start = (own: Batch, backgroundCall: BackgroundCall, work: Effect.Effect<void>) => {
  const background = own.run.keepBackground()
  const whole = work.pipe(
    Effect.catchCause((cause) => own.die(cause)),
    Effect.andThen(Effect.sync(() => background.end(backgroundCall, own.outcomeOf(backgroundCall.call), own)))
  )
  const placed = backgroundCall.isInBackground ? background.placed(whole) : whole
  return inOwnFiber(own.run.control.fibers.including(backgroundCall.fibers.including(placed)))
}

/**
 * Continues a call that was in the background when its process ended: it runs again under its handle if its tool allows that, else its end
 * is unknown. `isOwn`: this run, and not an earlier one, made the call.
 */
export const continueInBackground = Effect.fnUntraced(function* (run: Run, left: OpenCall, isOwn: boolean) {
  const { call, message, params } = left
  const end = left.end ?? (isOwn ? undefined : ToolOutcome.unknown(call))
  const restored = run.keepBackground().restore({ ...left, ...(end === undefined ? {} : { end }) })
  if (end !== undefined) return
  const own = new Batch(run, message, undefined, undefined, restored)
  const mayRun = params === undefined || run.mayRunAgain(call)
  const allowed = mayRun ? yield* Guards.again(run, call, params) : ToolOutcome.unknown(call)
  yield* start(own, restored, allowed._tag === "Allowed" ? perform(own, allowed) : own.settle(call, allowed))
})

/** Executes a call once. A defect interrupts the other calls, and fails the run once each call has its result. */
const executeOnce = (
  batch: Batch,
  prepared: Registry.PreparedCall,
  answer: Schema.Json | undefined
): Effect.Effect<Outcome> => {
  const startedAt = batch.run.elapsed
  const executed = Spans.toolCall(batch.run, prepared, execute(batch, prepared, answer)).pipe(
    Effect.flatMap((outcome) => reviewed(batch, prepared, outcome, startedAt)),
    Effect.catchCause((cause) => Effect.as(batch.die(cause), ToolOutcome.aborted(prepared.call)))
  )
  const { control, journal } = batch.run
  if (journal === undefined) return executed
  return Effect.flatMap(journal.verify, (isOwn) => {
    const { failure: error } = journal
    if (isOwn || error === undefined) return executed
    const stopped = control.stopWith({ cause: "session", error })
    return Effect.as(stopped, ToolOutcome.aborted(prepared.call))
  })
}

/** Runs the tool until it ends, times out, or is interrupted. Its progress is ignored after that. */
const execute = Effect.fnUntraced(function* (
  batch: Batch,
  prepared: Registry.PreparedCall,
  answer: Schema.Json | undefined
): Effect.fn.Return<Outcome> {
  const { run } = batch
  const { call, tool } = prepared
  const timeout = Duration.toMillis(tool.timeout ?? run.options.toolTimeout ?? ToolOutcome.defaultTimeout)
  let isRunning = true
  const progress = (given: string | ToolOutput) =>
    Effect.suspend(() => {
      if (!isRunning) return Effect.void
      const partial = Output.plain(Output.isOutput(given) ? given : Output.render(given), tool)
      if (batch.backgroundCall !== undefined) batch.backgroundCall.partial = partial
      const { id: toolCallId, name: toolName } = call
      return run.mailbox.progress({ _tag: "ToolExecutionProgress", toolCallId, toolName, partial })
    })
  const context = contextOf(batch, call, progress, answer)
  const work = Effect.suspend(() => run.registry.execute(prepared, context))
  const inner = () => run.control.innerEnded(call.id)
  const stopwatch = run.waiting.startCall(call.id)
  const until = Number.isFinite(timeout) ? stopwatch.until(timeout) : undefined
  const attempted = yield* attempt(work, { control: run.control, until, inner })
  run.waiting.endCall(call.id)
  isRunning = false
  const { backgroundCall } = batch
  if (backgroundCall?.isInBackground === true)
    yield* Effect.annotateCurrentSpan("effect_agent.tool.background", backgroundCall.handle)
  if (attempted._tag === "Done") {
    const outcome = yield* ended(prepared, attempted.exit)
    if (outcome.output.usage !== undefined) run.spendInside(outcome.output.usage)
    return outcome
  }
  const { _tag, isAbandoned } = attempted
  if (isAbandoned) yield* Effect.logWarning(`Tool ${call.name} ignored its interruption`)
  return _tag === "Halted"
    ? ToolOutcome.aborted(call, isAbandoned)
    : ToolOutcome.timedOut(call, timeout, isAbandoned)
})

const contextOf = (
  batch: Batch,
  call: ToolCall,
  progress: Tool.ToolContext["Service"]["progress"],
  answer: Schema.Json | undefined
): Tool.ToolContext["Service"] => {
  const { asked, id, mailbox, provider, turn } = batch.run
  return {
    toolCallId: call.id,
    idempotencyKey: idempotencyKey(batch.message, call),
    runId: id,
    ...(mailbox.path === undefined ? {} : { path: mailbox.path }),
    turn: batch.backgroundCall?.turn ?? turn,
    ...(answer === undefined ? {} : { answer }),
    ask: (question) => Consent.askMidCall(batch, call, question),
    refuses: (media) => provider.refuses?.(asked, media),
    ...(batch.backgroundCall === undefined ? {} : { background: batch.backgroundCall.leave }),
    progress
  }
}

const ended = (
  { call, tool }: Registry.PreparedCall,
  exit: Exit.Exit<Registry.Executed>
): Effect.Effect<Outcome> => {
  if (Exit.isSuccess(exit))
    return Effect.succeed(ToolOutcome.make(exit.value.outcome, Output.plain(exit.value, tool)))
  return Cause.hasInterruptsOnly(exit.cause)
    ? Effect.succeed(ToolOutcome.aborted(call))
    : Effect.failCause(exit.cause)
}

/** Lets `afterTool` hooks replace parts of a result. If a hook fails, the result becomes an error. If one is interrupted, there is none. */
const reviewed = (batch: Batch, prepared: Registry.PreparedCall, done: Outcome, startedAt: number) => {
  const { message, run } = batch
  const isReviewed =
    done.outcome !== "aborted" &&
    !run.waiting.inner.has(prepared.call.id) &&
    run.output?.isCall(prepared.call) !== true &&
    run.hooks.has("afterTool")
  if (!isReviewed) return Effect.succeed(done)
  let retry = false
  const asked = run.hooks.ask("afterTool", done.output, {
    input: (result) =>
      Effect.map(Guards.toolInput(run, message, prepared), (input) => ({
        ...input,
        result,
        isError: result.isError === true,
        outcome: done.outcome,
        durationMs: run.elapsed - startedAt
      })),
    output: (result, { retry: again, ...fields }) =>
      Effect.sync(() => {
        retry ||= again === true
        return { ...result, ...fields }
      }),
    failure: (_, { detail, hookName }) =>
      Effect.succeed(Tool.failure(`An afterTool hook${quoted(hookName)} failed: ${detail}`))
  })
  return Effect.map(batch.keepFatal(run.attempt(asked, batch)), (output) => {
    if (output === undefined) return ToolOutcome.unreviewed(prepared.call)
    const failed = done.outcome === "success" ? "error" : done.outcome
    const outcome = output.isError === true ? failed : "success"
    return { ...done, ...ToolOutcome.make(outcome, output, retry && !batch.isHalting) }
  })
}
