/**
 * Where a run stops by itself.
 */
import { range } from "effect/Array"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Alarm from "./alarm.ts"
import type { TransformFailed } from "../FailureReason.ts"
import { LimitExceeded } from "../FailureReason.ts"
import type { ToolOutput } from "../AgentEvent.ts"
import { type Message, text, type ToolCall } from "../Message.ts"
import type { Run, Stopped } from "./run.ts"
import * as Running from "./run.ts"

const defaultMaxTurns = 50
const defaultMaxIdentical = 5
/** Cycles of up to this many calls count as identical: A-A-A, A-B-A-B, A-B-C-A-B-C. */
const longestCycle = 3

/** How many turns a run may have. */
export const maxTurns = (run: Run): number => run.options.limits?.maxTurns ?? defaultMaxTurns

/** How many milliseconds a run may take. */
export const executionTime = (run: Run): number => {
  const time = run.options.limits?.executionTime
  return time === undefined ? Infinity : Duration.toMillis(time)
}

/** Stops a run when its time is over, counted from its beginning. */
export class Deadline {
  private readonly run: Run
  private time = Infinity
  private takeBack = () => {}

  constructor(run: Run) {
    this.run = run
  }

  /** Goes by the options as they are now. */
  set(): void {
    const time = executionTime(this.run)
    if (time === this.time) return
    this.unset()
    this.time = time
    if (!Number.isFinite(time)) return
    const left = Math.max(0, time - Running.elapsed(this.run))
    const stop = () => this.run.control.signal.stop({ cause: "deadline" })
    this.takeBack = Alarm.of(this.run.clock).set(left, stop)
  }

  unset(): void {
    this.takeBack()
  }
}

/** The limits a turn must not begin beyond, but for that on turns, which has a policy. Looks when called. */
export const check = (run: Run): Effect.Effect<void, LimitExceeded | TransformFailed | Stopped> => {
  const maxContextSize = run.options.limits?.maxContextSize
  const elapsed = Running.elapsed(run)
  const time = executionTime(run)
  if (elapsed >= time) return exceeded("executionTime", elapsed, time)
  const spent = run.budget.exceeded
  if (spent !== undefined) return Effect.fail(spent)
  const size = maxContextSize === undefined ? Effect.void : checkSize(run, maxContextSize)
  return run.turn === 1 && run.budget.isCostUnknown
    ? Effect.andThen(Effect.logWarning(costUnknown), size)
    : size
}

const costUnknown = "maxCost cannot hold: the provider tells no cost, and limits.prices is not set"

/** Counts what would be sent: a window that leaves messages out leaves them out here too. */
const checkSize = Effect.fnUntraced(function* (
  run: Run,
  max: number
): Effect.fn.Return<void, LimitExceeded | TransformFailed | Stopped> {
  const messages = [...run.messages, ...run.pending.messages]
  const view = yield* Running.stoppable(run, run.contextManager.view(messages, run.options))
  const size = sizeOf(view.messages)
  if (size > max) return yield* exceeded("contextSize", size, max)
})

/**
 * Fails when the model makes the same calls with the same results too often, in a row or in a short cycle. Polling that sees
 * news goes on, and so does a run whose model cannot have read the warning yet, because it made all the calls in one answer.
 */
export const checkRepetition = (run: Run): Effect.Effect<void, LimitExceeded> => {
  const max = maxIdentical(run)
  const isUnread = max >= leastToWarn && run.warnedInTurn === run.turn
  return isCircling(run.recentCalls, max) && !isUnread
    ? exceeded("identicalToolCalls", max, max)
    : Effect.void
}

/**
 * Keeps the outcome of a call, and returns the content of its result for the model: with a warning appended, once, when one
 * more round of the same calls would end the run. Below a limit of three there is no round in which to warn.
 */
export const record = (run: Run, settled: CallAndOutput): ToolOutput["content"] => {
  const max = maxIdentical(run)
  if (!Number.isFinite(max)) return settled.output.content
  const before = run.recentCalls
  const made = signature(settled)
  const known = before.find((one) => isSame(one, made)) ?? made
  run.recentCalls = [...before, known].slice(-max * longestCycle)
  if (max < leastToWarn) return settled.output.content
  const isNews = run.warnedInTurn === undefined
  run.warnedInTurn = isCircling(run.recentCalls, max - 1) ? (run.warnedInTurn ?? run.turn) : undefined
  return isNews && run.warnedInTurn !== undefined
    ? [...settled.output.content, text(warning(max - 1))]
    : settled.output.content
}

/** The lowest limit at which the model is warned. */
const leastToWarn = 3

const maxIdentical = (run: Run): number => run.options.limits?.maxIdenticalToolCalls ?? defaultMaxIdentical

const warning = (times: number): string =>
  `[${times} times now you have made the same calls and got the same results. Once more, and the run is ended. Do something else, or answer with what you have.]`

interface CallAndOutput {
  readonly call: ToolCall
  readonly output: ToolOutput
}

/** What tells one call and its result from another: texts that the transcript holds anyway, so a long one costs nothing. */
type Signature = ReadonlyArray<string>

/** Arguments of so many characters are compared as they were written, shorter ones by what they say. */
const longArguments = 1000

const signature = ({ call, output }: CallAndOutput): Signature => [
  call.name,
  call.rawArguments.length > longArguments
    ? call.rawArguments
    : JSON.stringify(call.params ?? call.rawArguments),
  ...output.content.flatMap((block) =>
    block.type === "text" ? ["text", block.text] : ["image", ...Object.values(block.source)]
  )
]

const isSame = (one: Signature, other: Signature): boolean =>
  one.length === other.length && one.every((part, index) => part === other[index])

/** The last calls are the same ones over and over: one, two or three of them, so many times. */
const isCircling = (calls: ReadonlyArray<Signature>, times: number): boolean =>
  range(1, longestCycle).some((length) => repeats(calls, length, times))

const repeats = (calls: ReadonlyArray<Signature>, length: number, times: number): boolean => {
  const tail = calls.slice(-length * times)
  return tail.length === length * times && tail.every((call, index) => call === tail[index % length])
}

const exceeded = (limit: LimitExceeded["limit"], value: number, max: number) =>
  Effect.fail(new LimitExceeded({ limit, value, max }))

const sizes = new WeakMap<Message, number>()

/** UTF-8 bytes of the messages as JSON. Each is measured once. */
export const sizeOf = (messages: ReadonlyArray<Message>): number =>
  messages.reduce((sum, message) => sum + (message.role === "custom" ? 0 : sizeOfOne(message)), 0)

const sizeOfOne = (message: Message): number => {
  const known = sizes.get(message)
  if (known !== undefined) return known
  const size = new TextEncoder().encode(JSON.stringify(message)).byteLength
  sizes.set(message, size)
  return size
}
