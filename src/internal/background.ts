/**
 * The tool calls of a run that continue in the background while the run takes further turns. The run owns them: it ends only when all of
 * them have ended.
 */
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import type { FailureReason } from "./failureReason.ts"
import { Fibers } from "./interruption.ts"
import * as Message from "../Message.ts"
import type { Body, ToolOutput } from "../AgentEvent.ts"
import type { RunOptions } from "../RunOptions.ts"
import type { OpenCall } from "./openTurn.ts"
import * as ToolOutcome from "./toolOutcome.ts"
import * as Output from "./toolOutput.ts"

type Outcome = ToolOutcome.Outcome

/** The run that owns the calls. */
interface Owner {
  readonly clock: Clock.Clock
  readonly options: RunOptions
  readonly messages: ReadonlyArray<Message.Message>
  readonly newMessages: ReadonlyArray<Message.Message>
  readonly turn: number
  readonly elapsed: number
  readonly mailbox: { readonly delivered: Effect.Effect<void> }
  emit(body: Body): void
  append(messages: ReadonlyArray<Message.Message>): void
}

/** The reasons for which the end of a call ends the run. */
interface Faults {
  readonly failure?: FailureReason | undefined
  readonly fatal?: Cause.Cause<FailureReason> | undefined
}

/** The result of a call for the turn that waits for it: its outcome, or a note with the handle of a call in the background. */
interface Returned {
  readonly outcome: Outcome
  readonly durationMs: number
}

/** A call that may continue in the background. */
export class BackgroundCall {
  readonly call: Message.ToolCall
  readonly handle: string
  readonly startedAt: number
  /** The turn that made the call. */
  readonly turn: number
  /** The fiber of the call, which `cancel` of the tool and a stop of the run interrupt. */
  readonly fibers = new Fibers()
  /** Succeeds when the turn need not wait for the call any longer. */
  readonly returned = Deferred.makeUnsafe<Returned>()
  /** Opens when the call has ended in the background. */
  readonly ended = Latch.makeUnsafe(false)
  isInBackground = false
  /** The latest progress. */
  partial: ToolOutput | undefined
  /** The end of the call; `undefined` while it is at work. */
  outcome: Outcome | undefined
  private readonly run: Owner

  constructor(run: Owner, { call, handle, turn = run.turn }: Pick<OpenCall, "call" | "handle" | "turn">) {
    this.run = run
    this.call = call
    this.handle = handle
    this.startedAt = run.elapsed
    this.turn = turn
  }

  /** Moves the call to the background: the turn gets a note with the handle as its result, and continues. */
  readonly leave = (note?: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (this.isInBackground || Deferred.isDoneUnsafe(this.returned)) return Effect.void
      this.isInBackground = true
      const { call, handle, run } = this
      const noted = note === undefined ? {} : { note }
      run.emit({ _tag: "ToolBackgrounded", toolCallId: call.id, toolName: call.name, handle, ...noted })
      const output = Output.output([started(handle), ...(note === undefined ? [] : [note])].join("\n\n"))
      this.give({ ...ToolOutcome.make("success", output), background: handle })
      return run.mailbox.delivered
    })

  /** Gives the turn its result. */
  give(outcome: Outcome, durationMs = 0): void {
    Deferred.doneUnsafe(this.returned, Effect.succeed({ outcome, durationMs }))
  }

  get end(): Message.BackgroundEnd | undefined {
    return endOf(this)
  }
}

const started = (handle: string): string =>
  `Runs in the background as ${handle}. A message with its result comes when it ends: do other work, or end your turn.`

/** The number of calls in the background that run at a time, unless the run sets `toolConcurrency`. */
const defaultConcurrency = 16

export class Background {
  /** All calls that may be in the background, in the order of their starts. */
  calls: ReadonlyArray<BackgroundCall> = []
  /** Limits the concurrency of tools with `blocking: false`: no turn waits for these, so that nothing else limits how many run. */
  private readonly places: Semaphore.Semaphore
  /** Opens when a call ends. */
  readonly changed = Latch.makeUnsafe(false)
  /** The reason for which the run ends: the first failure of a call, where `toolFailureMode` is "fail", or that of a hook. */
  private fault: Cause.Cause<FailureReason> | undefined
  private readonly run: Owner
  private last: number

  constructor(run: Owner) {
    this.run = run
    this.places = Semaphore.makeUnsafe(Math.max(1, run.options.toolConcurrency ?? defaultConcurrency))
    this.last = Math.max(0, ...run.messages.map(numberOf))
  }

  /** Registers a call, under a handle that no earlier call of the conversation has. */
  open(call: Message.ToolCall): BackgroundCall {
    return this.keep(new BackgroundCall(this.run, { call, handle: `bg_${++this.last}` }))
  }

  /** Registers a call that was left in the background by an earlier run, or by this run before its process ended. */
  restore(left: OpenCall): BackgroundCall {
    const restored = this.keep(new BackgroundCall(this.run, left))
    restored.isInBackground = true
    if (left.end !== undefined) this.end(restored, ToolOutcome.make(left.end.outcome, left.end.output))
    return restored
  }

  private keep(opened: BackgroundCall): BackgroundCall {
    this.calls = [...this.calls, opened]
    return opened
  }

  /** Keeps the outcome of a call that is in the background, or returns it to the turn that waits for it. */
  end(ended: BackgroundCall, outcome: Outcome, { failure, fatal }: Faults = {}): void {
    if (ended.isInBackground) {
      ended.outcome = outcome
      this.fault ??= fatal ?? (failure && Cause.fail(failure))
    } else {
      this.calls = this.calls.filter((call) => call !== ended)
      ended.give(outcome)
    }
    ended.ended.openUnsafe()
    this.changed.openUnsafe()
  }

  /** Runs the work of a call when one of the `places` is free. An interrupted call does not wait: its work ends it. */
  placed(work: Effect.Effect<void>): Effect.Effect<void> {
    return Effect.flatMap(Effect.exit(Effect.interruptible(this.places.take(1))), (taken) =>
      Exit.isSuccess(taken) ? Effect.ensuring(work, this.places.release(1)) : work
    )
  }

  get atWork(): ReadonlyArray<BackgroundCall> {
    return this.calls.filter(({ outcome }) => outcome === undefined)
  }

  /** Fails if a call had an end that ends the run. */
  get check(): Effect.Effect<void, FailureReason> {
    return this.fault === undefined ? Effect.void : Effect.failCause(this.fault)
  }

  /** The calls that have ended, and whose ends no message of the run reports yet. */
  get unread(): ReadonlyArray<BackgroundCall> {
    const ended = this.calls.filter(({ outcome }) => outcome !== undefined)
    if (ended.length === 0) return ended
    const reported = new Set(this.run.newMessages.flatMap(endsIn).map(({ handle }) => handle))
    return ended.filter(({ handle }) => !reported.has(handle))
  }

  /** Adds one message to the transcript that reports all unread ends. */
  report(): void {
    const { run, unread } = this
    if (unread.length > 0) run.append([message(unread, run.clock.currentTimeMillisUnsafe())])
  }

  /** The unread ends, which the next run reports. */
  left(message: Message.Assistant): ReadonlyArray<OpenCall> {
    return this.unread.map(({ call, handle, outcome: end }) => ({
      handle,
      message,
      call,
      ...(end === undefined ? {} : { end })
    }))
  }

  /** Waits until all calls have ended. */
  get ends(): Effect.Effect<void> {
    return Effect.forEach(this.atWork, ({ ended }) => ended.await, { discard: true })
  }

  /** Removes those of the calls that have ended, and returns them. */
  release(calls: ReadonlyArray<Message.ToolCall>): ReadonlyArray<BackgroundCall> {
    const released = this.calls.filter(({ call, outcome }) => outcome !== undefined && calls.includes(call))
    this.calls = this.calls.filter((call) => !released.includes(call))
    return released
  }

  /** Interrupts the calls at work, and waits for their ends. */
  get close(): Effect.Effect<void> {
    const interrupts = Effect.forEach(this.atWork, ({ fibers }) => fibers.interrupt, { discard: true })
    return Effect.andThen(interrupts, this.ends)
  }
}

/** The parts of a call in the background that its description for the model has. */
interface Described {
  readonly call: Message.ToolCall
  readonly handle: string
  readonly outcome: Outcome | undefined
  readonly partial?: ToolOutput | undefined
  readonly startedAt?: number
}

const endOf = ({ call, handle, outcome: ended }: Described): Message.BackgroundEnd | undefined => {
  if (ended === undefined) return undefined
  const { outcome, output } = ended
  const trust = output.trust === undefined ? {} : { trust: output.trust }
  return { handle, toolCallId: call.id, toolName: call.name, outcome, ...trust }
}

const message = (calls: ReadonlyArray<Described>, timestamp: number): Message.User => ({
  ...Message.user(contentOf(calls), timestamp),
  backgroundEnds: calls.flatMap((call) => endOf(call) ?? [])
})

/** The messages that report the ends of calls that no run continues. */
export const closing = (left: ReadonlyArray<OpenCall>, timestamp: number): ReadonlyArray<Message.User> => {
  const ends = left.map(({ call, end, handle }) => ({
    call,
    handle,
    outcome: end === undefined ? ToolOutcome.unknown(call) : ToolOutcome.make(end.outcome, end.output)
  }))
  return ends.length === 0 ? [] : [message(ends, timestamp)]
}

/** Describes calls for the model: those that ended with their results, the others with their progress. */
export const contentOf = (
  calls: ReadonlyArray<Described>,
  elapsed?: number
): ReadonlyArray<Message.Text | Message.Image> =>
  calls.flatMap((call, index) => [
    Message.text(`${index === 0 ? "" : "\n\n"}${stateOf(call, elapsed)}\n`),
    ...((call.outcome?.output ?? call.partial)?.content ?? [])
  ])

/** The state of a call, `elapsed` milliseconds after the start of the run. */
export const stateOf = ({ call, handle, outcome, startedAt = 0 }: Described, elapsed = startedAt): string => {
  const name = `Background call ${handle} (${call.name})`
  return outcome === undefined
    ? `[${name} has run for ${Math.floor((elapsed - startedAt) / 1000)} s]`
    : `[${name} ended: ${outcome.outcome}]`
}

const Reported = Schema.Struct({ backgroundEnds: Schema.Array(Message.BackgroundEnd) })
const isReport = Schema.is(Reported)

/** The ends that a message reports: a message of the run, or a result of the tool `background_calls`. */
export const endsIn = (message: Message.Message): ReadonlyArray<Message.BackgroundEnd> => {
  if (message.role === "user") return message.backgroundEnds ?? []
  return message.role === "toolResult" && isReport(message.details) ? message.details.backgroundEnds : []
}

/** The number in the handle of a result: 1 for `bg_1`, 0 for a result without a handle. */
const numberOf = (message: Message.Message): number =>
  message.role === "toolResult" ? Number(/^bg_(\d+)$/.exec(message.background ?? "")?.[1] ?? 0) : 0
