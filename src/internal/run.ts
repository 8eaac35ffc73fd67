/**
 * One run while it goes on: what it was told, what it has done, and whom it tells.
 *
 * Its fields change, but only in the run's own fiber and those of its tools, a step at a time; everything it hands out is
 * a copy or replaced, never pushed to.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Body, OpenAnswer } from "../AgentEvent.ts"
import * as Alarm from "./alarm.ts"
import { isKnown } from "./begin.ts"
import type { Budget } from "./budget.ts"
import type * as ContextManager from "../ContextManager.ts"
import type { Control } from "./control.ts"
import type { Emitter } from "./events.ts"
import type { FailureReason } from "../FailureReason.ts"
import type * as Hook from "../Hook.ts"
import type { RunHooks } from "./hookCalls.ts"
import type { Message } from "../Message.ts"
import type { Provider } from "../Provider.ts"
import type { QueueName, Queues } from "./queues.ts"
import type { RunOptions } from "../RunOptions.ts"
import type { RunReport } from "../RunReport.ts"
import type * as Tool from "../Tool.ts"
import type { ToolRegistry } from "../ToolRegistry.ts"
import type { Usage } from "../Usage.ts"
import type { Stop } from "./work.ts"
import { attempt } from "./work.ts"

export interface Run {
  readonly id: string
  readonly clock: Clock.Clock
  /** By `Alarm.now`. */
  readonly startedAt: number
  readonly provider: Provider["Service"]
  readonly registry: ToolRegistry["Service"]
  readonly contextManager: ContextManager.Service
  readonly hooks: RunHooks
  readonly metadata: Map<string, unknown>
  readonly control: Control
  readonly queues: Queues
  readonly emitter: Emitter
  /** What was spent, for the limits; `usage` is what the providers told. */
  readonly budget: Budget
  /** Changed by hooks, and by the application from the next turn on. */
  options: RunOptions
  /** What requests are made from: the transcript, unless `prepareNextTurn` replaced it. */
  messages: ReadonlyArray<Message>
  /** Grows; `newMessages` hands it out. */
  readonly added: Array<Message>
  /** Messages that wait for their turn, and the queue they were taken from. */
  pending: { readonly messages: ReadonlyArray<Message>; readonly from: QueueName | undefined }
  /** The tools the model was offered for this turn: the ones it may call. */
  offered: ReadonlyMap<string, Tool.Any>
  /** The answer being said. */
  open: OpenAnswer | undefined
  /** Turns begun. */
  turn: number
  usage: Usage
  /** That of this turn, answers that were thrown away included. */
  turnUsage: Usage
  /** All calls that were looked at, whatever came of them. */
  toolCalls: number
  /** What the last tool calls were and said, oldest first, the same ones as one: for the limit on identical calls. */
  recentCalls: ReadonlyArray<ReadonlyArray<string>>
  /** The turn in which the model was warned that it repeats those, as long as it does. */
  warnedInTurn: number | undefined
  report: RunReport
  cancelAnnounced: boolean
}

/** The run was told to stop. Inside the loop it travels like a failure; outside nobody sees it. */
export class Stopped {
  readonly _tag = "Stopped"
  readonly stop: Stop
  constructor(stop: Stop) {
    this.stop = stop
  }
}

/**
 * Emits an event, after the size of the queues if that changed. Like `append` and `ended` it takes effect when called; the
 * effect waits until subscribers have heard of the event.
 */
export const emit = (run: Run, body: Body): Effect.Effect<void> =>
  run.queues.isChanged ? emitAll(run, [body]) : run.emitter.emit(body)

/** Emits one of many events that happen side by side, which the reader hears of together. */
export const emitAmongMany = (run: Run, body: Body): Effect.Effect<void> =>
  run.queues.isChanged ? emitAll(run, [body]) : run.emitter.emitAmongMany(body)

/** Emits a partial result, held up by a reader who is too far behind. */
export const progress = (run: Run, body: Body): Effect.Effect<void> =>
  Effect.flatMapEager(run.queues.isChanged ? emitAll(run, []) : Effect.void, () => run.emitter.progress(body))

const emitAll = (run: Run, bodies: ReadonlyArray<Body>): Effect.Effect<void> => {
  const sizes = run.queues.takeChange()
  return run.emitter.emitAll(sizes === undefined ? bodies : [{ _tag: "QueueUpdate", ...sizes }, ...bodies])
}

/**
 * Says from now on when the sizes of the queues change: with the next event, at the latest in a microtask, so that changes
 * made in one step are one event. No fiber waits for that to be heard.
 */
export const announceQueues = (run: Run): void => {
  const { queues } = run
  queues.takeChange()
  const announce = () =>
    queueMicrotask(() => {
      if (queues.onChange === announce && queues.isChanged) void emitAll(run, [])
    })
  queues.onChange = announce
}

/** Whole milliseconds since the run began. */
export const elapsed = (run: Run): number => Math.floor(Alarm.now(run.clock) - run.startedAt)

/** Adds finished messages to the transcript, and says so. */
export const append = (run: Run, messages: ReadonlyArray<Message>): Effect.Effect<void> => {
  grow(run, messages)
  return emitAll(
    run,
    messages.flatMap(
      (message): ReadonlyArray<Body> => [
        { _tag: "MessageStart", messageId: message.id, role: message.role },
        { _tag: "MessageEnd", message }
      ]
    )
  )
}

/** What this run added so far. */
export const newMessages = (run: Run): ReadonlyArray<Message> => run.added.slice()

/** Adds the message that an answer has become, and says that it is over. */
export const ended = (run: Run, message: Message): Effect.Effect<void> => {
  grow(run, [message])
  return emit(run, { _tag: "MessageEnd", message })
}

/** The transcript grows before the event, so that whoever hears of a message can find it. */
const grow = (run: Run, messages: ReadonlyArray<Message>): void => {
  run.messages = [...run.messages, ...messages]
  for (const message of messages) run.added.push(message)
}

/** Does something the run may be stopped in. What fails after the stop was stopped. */
export const stoppable = <A, E, R>(
  run: Run,
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Stopped, R> =>
  // What is done already needs no fiber it could be stopped in.
  isKnown(work) && run.control.signal.current === undefined
    ? work
    : Effect.flatMap(
        attempt(run.control.signal, work),
        (ended): Effect.Effect<A, E | Stopped> =>
          ended._tag === "Done" && (Exit.isSuccess(ended.exit) || run.control.signal.current === undefined)
            ? ended.exit
            : Effect.fail(stoppedOf(run))
      )

/** Says that the run was cancelled, once. */
export const announceCancel = (run: Run): Effect.Effect<void> =>
  Effect.suspend(() => {
    const stop = run.control.signal.current
    if (stop?.cause !== "cancel" || run.cancelAnnounced) return Effect.void
    run.cancelAnnounced = true
    return emit(run, { _tag: "RunCancelled", ...(stop.reason === undefined ? {} : { reason: stop.reason }) })
  })

/** Fails if the run was told to stop by the time it is called. */
export const checkStopped = (run: Run): Effect.Effect<void, Stopped> =>
  run.control.signal.current === undefined ? Effect.void : Effect.fail(stoppedOf(run))

const stoppedOf = (run: Run): Stopped => new Stopped(run.control.signal.current ?? { cause: "cancel" })

export const baseInput = (run: Run): Hook.Base => ({ runId: run.id, metadata: run.metadata })

export const turnInput = (run: Run) => ({ ...baseInput(run), turn: run.turn, messages: run.messages })

/** Asks the hooks of a point. `use` takes what each returned, and may keep those after it from being asked. */
export const observe = <P extends Hook.Point>(
  run: Run,
  point: P,
  input: () => Hook.Input<P>,
  use: (output: Hook.Output<P>) => "next" | "stop" | void = () => {}
): Effect.Effect<void, FailureReason | Stopped> =>
  run.hooks.has(point)
    ? stoppable(
        run,
        run.hooks.ask<P, "next" | "stop" | void>(point, "next", {
          input: () => Effect.sync(input),
          output: (_, output) => Effect.sync(() => use(output)),
          isDone: (step) => step === "stop"
        })
      )
    : Effect.void

/** Asks shapers: a failure of one fails the run. */
export const shape = observe
