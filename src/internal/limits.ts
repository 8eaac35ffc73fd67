/**
 * Ends a run at the limits of `limitTable`, and counts for them: identical calls, time, tokens and cost.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { memoize } from "effect/Function"
import * as Latch from "effect/Latch"
import type { ToolOutput } from "../AgentEvent.ts"
import type * as ContextManager from "../ContextManager.ts"
import { LimitExceeded } from "./failureReason.ts"
import type { Control } from "./interruption.ts"
import { table } from "./limitTable.ts"
import {
  type Assistant,
  developerText,
  type Message,
  type ModelMessage,
  text,
  type ToolCall
} from "../Message.ts"
import type { Price } from "../Prices.ts"
import type { ModelRequest } from "../Provider.ts"
import type { Limits, RunOptions } from "../RunOptions.ts"
import * as StopCondition from "../StopCondition.ts"
import * as Transcript from "../Transcript.ts"
import * as Usage from "../Usage.ts"

/** The parts of a run that its limits read. */
interface Limited {
  readonly options: RunOptions
  readonly retry: { readonly retries: number } | undefined
  readonly turn: number
  readonly toolCalls: number
  readonly spent: Spending
  readonly repetition: Repetition
  readonly waiting: { readonly stopwatch: Stopwatch }
  readonly control: Control
  readonly conversation: {
    readonly messages: ReadonlyArray<Message>
    readonly compaction: Transcript.Compaction | undefined
  }
  readonly pending: { readonly messages: ReadonlyArray<Message> }
  readonly contextManager: ContextManager.Service
  readonly attempt: <A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

/** The most turns of a run, those that failed and were retried included. */
export const maxTurns = ({ options, retry }: Limited): number =>
  (options.limits?.maxTurns ?? table.maxTurns.initial) + (retry?.retries ?? 0)

/** The most times that `afterTool` hooks may run one tool call again. */
export const maxToolRetries = (run: Limited): number =>
  run.options.limits?.maxToolRetries ?? table.maxToolRetries.initial

const maxIdentical = (run: Limited): number =>
  run.options.limits?.maxIdenticalToolCalls ?? table.maxIdenticalToolCalls.initial

const executionTime = ({ options: { limits } }: Limited): number =>
  limits?.executionTime === undefined ? Infinity : Duration.toMillis(limits.executionTime)

/** Whether the option `stopWhen` ends the run after a turn with this answer. */
export const meetsStop = (
  run: Limited,
  condition: StopCondition.StopCondition,
  message: Assistant
): boolean =>
  StopCondition.isMet(condition, {
    turns: run.turn - (run.retry?.retries ?? 0),
    tokens: run.spent.total.usage.total,
    message
  })

const exceeded = (limit: LimitExceeded["limit"], value: number, max: number) =>
  new LimitExceeded({ limit, value, max })

export const outOfTurns = (run: Limited) => {
  const retries = run.retry?.retries ?? 0
  return exceeded("maxTurns", run.turn - retries, maxTurns(run) - retries)
}

export const outOfTime = (run: Limited) =>
  exceeded("executionTime", Math.floor(run.waiting.stopwatch.elapsed), executionTime(run))

/** The error of a run that made more tool calls than it may. */
export const tooManyToolCalls = ({ options, toolCalls }: Limited): LimitExceeded | undefined => {
  const { maxToolCalls = Infinity } = options.limits ?? {}
  return toolCalls > maxToolCalls ? exceeded("maxToolCalls", toolCalls, maxToolCalls) : undefined
}

/** Stops a run when its `executionTime` is over. The time stands still while a person has an approval or a question to answer. */
export class Deadline {
  private readonly run: Limited
  private time: Duration.Input | undefined
  private timer: Fiber.Fiber<void> | undefined

  constructor(run: Limited) {
    this.run = run
  }

  /** Starts the timer anew for the current options, which a hook or the application may have changed. */
  readonly set: Effect.Effect<void> = Effect.suspend(() => {
    const { options, spent } = this.run
    const { limits } = options
    if (limits !== spent.limits || spent.outer !== undefined) spent.bound(limits)
    const time = limits?.executionTime
    if (time === this.time) return Effect.void
    this.time = time
    const millis = executionTime(this.run)
    if (!Number.isFinite(millis)) return this.unset
    const stop = this.run.control.stopWith({ cause: "deadline" })
    const timer = Effect.forkChild(Effect.andThen(this.run.waiting.stopwatch.until(millis), stop))
    const start = Effect.map(timer, (timer) => void (this.timer = timer))
    return Effect.andThen(this.unset, start)
  })

  readonly unset: Effect.Effect<void> = Effect.suspend(() =>
    this.timer === undefined ? Effect.void : Fiber.interrupt(this.timer)
  )
}

/** Fails if a turn must not begin. `loop` checks `maxTurns`, since `onMaxTurns` decides what then happens. */
export const check = Effect.fnUntraced(function* (run: Limited) {
  const { executionTime: time, maxContextSize: max } = run.options.limits ?? {}
  if (time !== undefined && run.waiting.stopwatch.elapsed >= Duration.toMillis(time))
    return yield* outOfTime(run)
  if (run.spent.isBounded) {
    const spent = run.spent.exceeded
    if (spent !== undefined) return yield* spent
    const unpriced = run.spent.takeUnpriced()
    if (unpriced.length > 0) yield* Effect.logWarning(costUnknown(unpriced))
  }
  if (max !== undefined) yield* checkContextSize(run, max)
})

const costUnknown = (models: ReadonlyArray<string>): string =>
  `maxCost cannot hold for ${models.join(", ")}: the provider reports no cost, and no price is known. ` +
  "Set limits.prices, or provide the service Prices"

/** Fails if the messages of the next request are too large. Messages that the context manager leaves out do not count. */
const checkContextSize = Effect.fnUntraced(function* (run: Limited, max: number) {
  const { compaction, messages: accepted } = run.conversation
  const { messages } = Transcript.compacted([...accepted, ...run.pending.messages], compaction)
  const view = yield* run.attempt(run.contextManager.view(messages, run.options))
  const size = sizeOf(view.messages)
  if (size > max) return yield* exceeded("maxContextSize", size, max)
})

/** Fails when the model made the same calls with the same results too often. */
export const checkRepetition = (run: Limited): Effect.Effect<void, LimitExceeded> => {
  const max = maxIdentical(run)
  return run.repetition.isReached(run.turn, max) ? exceeded("maxIdenticalToolCalls", max, max) : Effect.void
}

/** Records a call and its result for `checkRepetition`. Returns the content for the model, which may end with a warning. */
export const recordCall = (
  run: Limited,
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

// ───────────────────────── Identical calls

/** The longest cycle of calls that counts as a repetition: A-A-A, A-B-A-B and A-B-C-A-B-C count. */
const longestCycle = 3

/** The smallest limit with which the model gets a warning one round before the run fails. */
const leastToWarn = 3

/** Arguments up to this many characters are compared as JSON values, longer ones as text, which is faster. */
const longArguments = 1000

/** The texts that identify a call and its result. They are the strings of the transcript, so that keeping them takes no memory. */
type Signature = ReadonlyArray<string>

/** Finds repetitions among the latest calls of one run. `max` is the number of identical rounds that are allowed. */
export class Repetition {
  /** The latest calls, oldest first. Equal calls are the same object. */
  private recent: ReadonlyArray<Signature> = []
  /** The turn of the warning; `undefined` once the model has made another call. */
  private warnedIn: number | undefined

  /**
   * Records a call and its result. Returns the content of the result for the model: with a warning, once, when one more round of the same
   * calls would fail the run.
   */
  record(call: ToolCall, output: ToolOutput, turn: number, max: number): ToolOutput["content"] {
    if (!Number.isFinite(max)) return output.content
    const made = signature(call, output)
    const known = this.recent.find((one) => isSame(one, made)) ?? made
    this.recent = [...this.recent, known].slice(-max * longestCycle)
    if (max < leastToWarn) return output.content
    const isNews = this.warnedIn === undefined
    this.warnedIn = isCircling(this.recent, max - 1) ? (this.warnedIn ?? turn) : undefined
    return isNews && this.warnedIn !== undefined
      ? [...output.content, text(warning(max - 1))]
      : output.content
  }

  /** Whether the limit is reached, and the model has answered since the warning. */
  isReached(turn: number, max: number): boolean {
    const isUnread = max >= leastToWarn && this.warnedIn === turn
    return isCircling(this.recent, max) && !isUnread
  }
}

const warning = (times: number): string =>
  `[${times} times now you have made the same calls and got the same results. Once more, and the run is ended. Do something else, or answer with what you have.]`

const signature = (call: ToolCall, output: ToolOutput): Signature => [
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

/** Whether the last calls are `times` rounds of the same one, two or three calls. */
const isCircling = (calls: ReadonlyArray<Signature>, times: number): boolean => {
  for (let length = 1; length <= longestCycle && length * times <= calls.length; length++)
    if (repeats(calls, length, times)) return true
  return false
}

const repeats = (calls: ReadonlyArray<Signature>, length: number, times: number): boolean => {
  const tail = calls.slice(-length * times)
  return tail.every((call, index) => call === tail[index % length])
}

// ───────────────────────── The time that counts

/** Measures the time of a run or a tool call. It can stand still, and the stopwatches of the parent run and its call then do too. */
export class Stopwatch {
  private readonly clock: Clock.Clock
  private readonly outer: Stopwatch | undefined
  private readonly startedAt: number
  /** The milliseconds for which it stood still, without those of a hold that has not ended. */
  private stood = 0
  /** The time at which it last began to stand still. */
  private stoppedAt = 0
  /** The number of waits for a person that have not ended. It runs at 0. */
  private holds = 0
  /** A latch that is open while the stopwatch runs; `undefined` until it first stands still. */
  private running: Latch.Latch | undefined

  /** The milliseconds of the run before this process, in total and without the time for which it stood still. */
  private readonly before: number
  private readonly counted: number

  constructor(clock: Clock.Clock, outer?: Stopwatch, before = 0, counted = before) {
    this.before = before
    this.counted = counted
    this.clock = clock
    this.outer = outer
    this.startedAt = monotonicMillis(clock)
  }

  /** The milliseconds that have passed, standing still included. */
  get total(): number {
    return this.before + Number(this.clock.monotonicTimeNanosUnsafe()) / 1_000_000 - this.startedAt
  }

  /** The milliseconds that count: those for which it did not stand still. */
  get elapsed(): number {
    const until = this.holds > 0 ? this.stoppedAt : monotonicMillis(this.clock)
    return this.counted + until - this.startedAt - this.stood
  }

  /** Ends when `elapsed` reaches a number of milliseconds. */
  readonly until = (millis: number): Effect.Effect<void> =>
    Effect.andThen(
      Effect.sleep(Math.max(0, millis - this.elapsed)),
      Effect.suspend(() => {
        const again = Effect.suspend(() => this.until(millis))
        if (this.holds > 0 && this.running !== undefined) return Effect.andThen(this.running.await, again)
        return this.elapsed < millis ? again : Effect.void
      })
    )

  /** Runs work, such as a wait for a person, while this stopwatch and the outer ones stand still. */
  readonly held = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() => this.stop()),
      () => work,
      () => Effect.sync(() => this.start())
    )

  private stop(): void {
    this.outer?.stop()
    if (this.holds++ > 0) return
    this.stoppedAt = monotonicMillis(this.clock)
    this.running ??= Latch.makeUnsafe(true)
    this.running.closeUnsafe()
  }

  private start(): void {
    this.outer?.start()
    if (--this.holds > 0) return
    this.stood += monotonicMillis(this.clock) - this.stoppedAt
    this.running?.openUnsafe()
  }
}

/** The clock's monotonic time in milliseconds, which changes of the system's time do not affect. */
export const monotonicMillis = (clock: Clock.Clock): number =>
  Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

// ───────────────────────── Tokens and cost

/** The usage of one answer, which may still stream, so that it is an estimate. */
export interface Entry {
  readonly usage: Usage.Usage
  /** `provider/model`. Default: not known. */
  readonly model?: string
}

/** The sum that the limits compare, of all answers so far. */
interface Counted {
  readonly total: number
  readonly cost: number | undefined
  readonly estimated: number
}

export const nothing: Entry = { usage: Usage.zero }

/** A sum as events have it. `childUsage` is the part of sub-agents, absent if they spent nothing. */
interface Sum {
  readonly usage: Usage.Usage
  readonly childUsage?: Usage.Usage
}

const noSpending: Sum = { usage: Usage.zero }

const plus = ({ childUsage, usage }: Sum, spent: Usage.Usage, isInside: boolean): Sum => {
  const inside = isInside ? Usage.add(childUsage ?? Usage.zero, spent) : childUsage
  return { usage: Usage.add(usage, spent), ...(inside === undefined ? {} : { childUsage: inside }) }
}

/** The tokens and the cost of a run, for its events and its limits. The limits also count estimates where a provider reports no usage. */
export class Spending {
  limits: Limits | undefined
  /** Whether a limit on tokens or cost holds, of this run or a parent run: only then it estimates answers while they stream. */
  isBounded = false
  /** The spending of the run in whose tool or hook this run began: its limits hold for this run too. Absent outside of runs. */
  readonly outer: Spending | undefined
  /** The spending of the parent run of a sub-agent's run, whose events count it in `childUsage`. */
  private readonly parent: Spending | undefined
  /** The sum for the limits, with estimates. */
  private counted: Counted = { total: 0, cost: undefined, estimated: 0 }
  /** The models that spent tokens at no known price. */
  private readonly unpriced = new Set<string>()
  private isWarned = false
  /** The reported usage of the run, for its events. */
  total = noSpending
  /** The usage of this turn, retracted answers included. */
  turn = noSpending
  /** The usage that the next turn starts with: that of the turn that a crash interrupted, and that of background calls between turns. */
  private carried = noSpending
  private isBetweenTurns = false

  constructor(limits: Limits | undefined, outer: Spending | undefined, parent: Spending | undefined) {
    this.outer = outer
    this.parent = parent
    this.bound(limits)
  }

  /** Applies these limits from now on. */
  bound(limits: Limits | undefined): void {
    this.limits = limits
    const isBounded = limits?.maxCost !== undefined || limits?.maxTotalTokens !== undefined
    this.isBounded = isBounded || this.outer?.isBounded === true
  }

  /** Returns, once, the models whose cost is not known although `maxCost` is set, for a warning in the log. */
  takeUnpriced(): ReadonlyArray<string> {
    if (this.isWarned || this.unpriced.size === 0 || this.limits?.maxCost === undefined) return []
    this.isWarned = true
    return [...this.unpriced]
  }

  /** Replaces the entry of an answer: an estimate by a newer one, or by the reported usage. */
  replace(before: Entry, now: Entry): void {
    const { cost, estimated, total } = this.counted
    const prices = this.limits?.prices
    // A sub-agent may have no prices: the prices of this run apply.
    const known = priced(now.usage, prices, undefined)
    const replaced = before === nothing ? before.usage : priced(before.usage, prices, undefined)
    if (known.cost === undefined && known.total > 0) this.unpriced.add(now.model ?? "the model")
    const isUnpriced = known.cost === undefined && replaced.cost === undefined
    this.counted = {
      total: total + known.total - replaced.total,
      cost: isUnpriced ? cost : (cost ?? 0) + (known.cost ?? 0) - (replaced.cost ?? 0),
      estimated: estimated + (now.usage.estimated ?? 0) - (before.usage.estimated ?? 0)
    }
    this.outer?.replace(before, now)
  }

  /** The error of the first limit that is reached: of this run, else of its parent runs, from the inside out. */
  get exceeded(): LimitExceeded | undefined {
    if (!this.isBounded) return undefined
    const { maxCost = Infinity, maxTotalTokens = Infinity } = this.limits ?? {}
    const { cost = 0, total } = this.counted
    if (total >= maxTotalTokens) return this.reached("maxTotalTokens", total, maxTotalTokens)
    return cost >= maxCost ? this.reached("maxCost", cost, maxCost) : this.outer?.exceeded
  }

  private reached(limit: "maxTotalTokens" | "maxCost", value: number, max: number): LimitExceeded {
    return new LimitExceeded({
      limit,
      value,
      max,
      ...(this.counted.estimated > 0 ? { estimated: true } : {})
    })
  }

  beginTurn(): void {
    this.turn = this.carried
    this.carried = noSpending
    this.isBetweenTurns = false
  }

  endTurn(): void {
    this.isBetweenTurns = true
  }

  /** Adds the spending of a run before it was interrupted. The parent runs have counted it already. */
  restore(sum: Sum, turn: Sum = noSpending): void {
    this.total = sum
    this.carried = turn
    const { cost, estimated = 0, total } = priced(sum.usage, this.limits?.prices, undefined)
    this.counted = { total, cost, estimated }
  }

  /** Adds the usage of a model call: to the run, and with `isOfTurn` to the current turn. */
  add(spent: Usage.Usage | undefined, isOfTurn = true): void {
    if (spent === undefined) return
    this.total = plus(this.total, spent, false)
    if (isOfTurn) this.turn = plus(this.turn, spent, false)
    this.parent?.addInside(spent)
  }

  /** Adds the usage of a sub-agent, or of model calls that a tool made itself. */
  addInside(spent: Usage.Usage): void {
    // The sub-agent may have no prices.
    const counted = priced(spent, this.limits?.prices, undefined)
    this.total = plus(this.total, counted, true)
    if (this.isBetweenTurns) this.carried = plus(this.carried, counted, true)
    else this.turn = plus(this.turn, counted, true)
    this.parent?.addInside(spent)
  }
}

/** Adds the cost and its source: the cost that the provider reports, else by `limits.prices`, else by the price of the model. */
export const priced = (
  usage: Usage.Usage,
  prices: Limits["prices"],
  price: Price | undefined
): Usage.Usage => {
  if (usage.cost !== undefined)
    return usage.costSource === undefined ? { ...usage, costSource: "reported" } : usage
  if (usage.total === 0) return usage
  const cost =
    prices === undefined
      ? price?.cost(usage)
      : (usage.input * prices.input + usage.output * prices.output) / 1e6
  return cost === undefined ? usage : Usage.sane({ ...usage, cost, costSource: "computed" })
}

/** The usage that the provider reports; `undefined` if it has no figures. */
export const reported = (usage: Usage.Usage | undefined): Usage.Usage | undefined =>
  usage === undefined || (usage.total === 0 && usage.cost === undefined) ? undefined : usage

/** Estimates the usage of an answer at four characters a token. */
export const estimate = (input: number, content: Assistant["content"]): Usage.Usage => {
  const output = tokens(lengthOf(content))
  return Usage.make({ input, output, estimated: input + output })
}

/** Estimates the tokens of a request. */
export const inputOf = ({ messages, system = "", tools }: ModelRequest): number =>
  tokens(
    messages.reduce((sum, message) => sum + lengthOfMessage(message), system.length) +
      tools.reduce((sum, tool) => sum + lengthOfJson(tool), 0)
  )

const tokens = (characters: number): number => Math.ceil(characters / 4)

/** The characters that an image or a file counts as: the number of its bytes has no relation to its tokens. */
const media = 4_000

const lengthOf = (content: ModelMessage["content"]): number => {
  let sum = 0
  // An answer that still streams may have gaps.
  for (const block of content) {
    if (block === undefined) continue
    sum += lengthOfBlock(block)
  }
  return sum
}

const lengthOfBlock = (block: ModelMessage["content"][number]): number => {
  switch (block.type) {
    case "text":
    case "thinking":
      return block.text.length
    case "toolCall":
      return block.name.length + block.rawArguments.length
    case "source":
    case "hostedTool":
      return lengthOfJson(block)
    case "image":
    case "file":
    case "media":
      return media
  }
}

const lengthOfMessage = memoize(({ content }: ModelMessage) => lengthOf(content))
const lengthOfJson = memoize((value: object) => JSON.stringify(value).length)
