/**
 * Ends a run by itself, by the limits of `limitTable`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { memoize } from "effect/Function"
import type { ToolOutput } from "../AgentEvent.ts"
import { LimitExceeded } from "./failureReason.ts"
import { table } from "./limitTable.ts"
import { type Assistant, developerText, type Message, type ToolCall } from "../Message.ts"
import type { Run } from "./run.ts"
import * as StopCondition from "../StopCondition.ts"
import * as Transcript from "../Transcript.ts"

/** How many turns a run may have, those that failed and were retried included. */
export const maxTurns = (run: Run): number => turnsAllowed(run) + retriesOf(run)

const retriesOf = ({ retry }: Run): number => retry?.retries ?? 0

const turnsAllowed = (run: Run): number => run.options.limits?.maxTurns ?? table.maxTurns.initial

/** How often hooks may have one tool call run again. */
export const maxToolRetries = (run: Run): number =>
  run.options.limits?.maxToolRetries ?? table.maxToolRetries.initial

const maxToolCalls = (run: Run): number => run.options.limits?.maxToolCalls ?? Infinity

const maxIdentical = (run: Run): number =>
  run.options.limits?.maxIdenticalToolCalls ?? table.maxIdenticalToolCalls.initial

/** Milliseconds that a run may take. */
const executionTime = (run: Run): number => {
  const time = run.options.limits?.executionTime
  return time === undefined ? Infinity : Duration.toMillis(time)
}

/** Whether the option `stopWhen` ends the run after a turn with this answer. */
export const isStopped = (run: Run, condition: StopCondition.StopCondition, message: Assistant): boolean =>
  StopCondition.isMet(condition, {
    turns: run.turn - retriesOf(run),
    tokens: run.spent.total.usage.total,
    message
  })

const exceeded = (limit: LimitExceeded["limit"], value: number, max: number) =>
  new LimitExceeded({ limit, value, max })

export const outOfTurns = (run: Run) => exceeded("maxTurns", run.turn - retriesOf(run), turnsAllowed(run))

export const outOfTime = (run: Run) =>
  exceeded("executionTime", Math.floor(run.waiting.stopwatch.elapsed), executionTime(run))

/** The error of a run that made more tool calls than it may. */
export const tooManyToolCalls = (run: Run): LimitExceeded | undefined =>
  run.toolCalls > maxToolCalls(run) ? exceeded("maxToolCalls", run.toolCalls, maxToolCalls(run)) : undefined

/** Stops a run when its time is over, counted from its beginning. It does not count while a person has a question to answer. */
export class Deadline {
  private readonly run: Run
  private time = Infinity
  private timer: Fiber.Fiber<void> | undefined

  constructor(run: Run) {
    this.run = run
  }

  /** Goes by the options as they are now. */
  readonly set: Effect.Effect<void> = Effect.suspend(() => {
    const time = executionTime(this.run)
    if (time === this.time) return Effect.void
    this.time = time
    const stop = this.run.control.stopWith({ cause: "deadline" })
    const timer = Effect.forkChild(Effect.andThen(this.run.waiting.stopwatch.until(time), stop))
    const start = Effect.map(timer, (timer) => void (this.timer = timer))
    return Effect.andThen(this.unset, Number.isFinite(time) ? start : Effect.void)
  })

  readonly unset: Effect.Effect<void> = Effect.suspend(() =>
    this.timer === undefined ? Effect.void : Fiber.interrupt(this.timer)
  )
}

/** Fails if a turn must not begin. The limit on turns is not checked here: it has a policy. */
export const check = Effect.fnUntraced(function* (run: Run) {
  if (run.waiting.stopwatch.elapsed >= executionTime(run)) return yield* outOfTime(run)
  const spent = run.budget.exceeded
  if (spent !== undefined) return yield* spent
  const unpriced = run.budget.takeUnpriced()
  if (unpriced.length > 0) yield* Effect.logWarning(costUnknown(unpriced))
  const max = run.options.limits?.maxContextSize
  if (max !== undefined) yield* checkContextSize(run, max)
})

const costUnknown = (models: ReadonlyArray<string>): string =>
  `maxCost cannot hold for ${models.join(", ")}: the provider reports no cost, and no price is known. ` +
  "Set limits.prices, or provide the service Prices"

/** Measures the messages of the request: a window that leaves messages out leaves them out here too. */
const checkContextSize = Effect.fnUntraced(function* (run: Run, max: number) {
  const { compaction, messages: accepted } = run.conversation
  const { messages } = Transcript.compacted([...accepted, ...run.pending.messages], compaction)
  const view = yield* run.attempt(run.contextManager.view(messages, run.options))
  const size = sizeOf(view.messages)
  if (size > max) return yield* exceeded("maxContextSize", size, max)
})

/** Fails when the model made the same calls with the same results too often. */
export const checkRepetition = (run: Run): Effect.Effect<void, LimitExceeded> => {
  const max = maxIdentical(run)
  return run.repetition.isReached(run.turn, max) ? exceeded("maxIdenticalToolCalls", max, max) : Effect.void
}

/** Keeps a call and its result for `checkRepetition`, and gives the content of the result for the model. */
export const recordCall = (
  run: Run,
  call: ToolCall,
  output: ToolOutput,
  turn = run.turn
): ToolOutput["content"] => run.repetition.record(call, output, turn, maxIdentical(run))

/** UTF-8 bytes of the messages as JSON. */
export const sizeOf = (messages: ReadonlyArray<Message>): number =>
  messages.reduce((sum, message) => sum + (isUnsent(message) ? 0 : sizeOfOne(message)), 0)

const isUnsent = (message: Message): boolean =>
  message.role === "custom" && developerText(message) === undefined

const sizeOfOne = memoize((message: Message) => new TextEncoder().encode(JSON.stringify(message)).byteLength)
