/**
 * Ends a run by itself, by the limits of `limitTable`, and counts for them: identical calls, time, tokens and cost.
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

/** The part of a run that its limits look at. */
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

/** How many turns a run may have, those that failed and were retried included. */
export const maxTurns = ({ options, retry }: Limited): number =>
  (options.limits?.maxTurns ?? table.maxTurns.initial) + (retry?.retries ?? 0)

/** How often hooks may have one tool call run again. */
export const maxToolRetries = (run: Limited): number =>
  run.options.limits?.maxToolRetries ?? table.maxToolRetries.initial

const maxIdentical = (run: Limited): number =>
  run.options.limits?.maxIdenticalToolCalls ?? table.maxIdenticalToolCalls.initial

/** Milliseconds that a run may take. */
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

/** Stops a run when its time is over, counted from its beginning. It does not count while a person has a question to answer. */
export class Deadline {
  private readonly run: Limited
  private time: Duration.Input | undefined
  private timer: Fiber.Fiber<void> | undefined

  constructor(run: Limited) {
    this.run = run
  }

  /** Goes by the options as they are now. */
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

/** Fails if a turn must not begin. The limit on turns is not checked here: it has a policy. */
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

/** Measures the messages of the request: a window that leaves messages out leaves them out here too. */
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

/** Keeps a call and its result for `checkRepetition`, and gives the content of the result for the model. */
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

/** Cycles of up to this many calls count as identical: A-A-A, A-B-A-B, A-B-C-A-B-C. */
const longestCycle = 3

/** The lowest limit that leaves a round in which to warn the model. */
const leastToWarn = 3

/** Arguments of more characters are compared as they were written, shorter ones by their JSON value. */
const longArguments = 1000

/** Texts that identify one call and its result. The transcript holds them anyway. */
type Signature = ReadonlyArray<string>

/** The latest calls of one run. `max`: how many identical rounds are allowed; `Infinity` for no limit. */
export class Repetition {
  /** Oldest first; equal calls are the same object. */
  private recent: ReadonlyArray<Signature> = []
  /** The turn in which the model was warned, while it repeats itself. */
  private warnedIn: number | undefined

  /**
   * Keeps a call and its result, and gives the content of the result for the model: with a warning, once, when one more
   * round of the same calls would end the run.
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

  /** Whether the limit is reached, and the model had an answer in which to react to the warning. */
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

/** Measures a run or a tool call. Those around it stand still with it. */
export class Stopwatch {
  private readonly clock: Clock.Clock
  private readonly outer: Stopwatch | undefined
  private readonly startedAt: number
  /** Milliseconds that it stood still, up to the last time that it ran on. */
  private stood = 0
  /** When it stopped last. */
  private stoppedAt = 0
  /** How many questions are open. */
  private holds = 0
  /** Open while it runs; made when it first stops. */
  private running: Latch.Latch | undefined

  /** Milliseconds before this one began, and those of them that count. */
  private readonly before: number
  private readonly counted: number

  constructor(clock: Clock.Clock, outer?: Stopwatch, before = 0, counted = before) {
    this.before = before
    this.counted = counted
    this.clock = clock
    this.outer = outer
    this.startedAt = monotonicMillis(clock)
  }

  /** Milliseconds that have passed. */
  get total(): number {
    return this.before + Number(this.clock.monotonicTimeNanosUnsafe()) / 1_000_000 - this.startedAt
  }

  /** Milliseconds that count. */
  get elapsed(): number {
    const until = this.holds > 0 ? this.stoppedAt : monotonicMillis(this.clock)
    return this.counted + until - this.startedAt - this.stood
  }

  /** Ends when so many milliseconds count. */
  readonly until = (millis: number): Effect.Effect<void> =>
    Effect.andThen(
      Effect.sleep(Math.max(0, millis - this.elapsed)),
      Effect.suspend(() => {
        const again = Effect.suspend(() => this.until(millis))
        if (this.holds > 0 && this.running !== undefined) return Effect.andThen(this.running.await, again)
        return this.elapsed < millis ? again : Effect.void
      })
    )

  /** Runs work while the time stands still, for this one and those around it. */
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

/** Milliseconds of the clock's monotonic time, which nothing sets back. */
export const monotonicMillis = (clock: Clock.Clock): number =>
  Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

// ───────────────────────── Tokens and cost

/** The usage of one answer, also while it streams. */
export interface Entry {
  readonly usage: Usage.Usage
  /** `provider/model`. Default: not known. */
  readonly model?: string
}

/** The sum of all answers so far. */
interface Counted {
  readonly total: number
  readonly cost: number | undefined
  readonly estimated: number
}

export const nothing: Entry = { usage: Usage.zero }

/** Members of events: `childUsage` is absent where no run inside has spent anything. */
interface Sum {
  readonly usage: Usage.Usage
  readonly childUsage?: Usage.Usage
}

const noSpending: Sum = { usage: Usage.zero }

const plus = ({ childUsage, usage }: Sum, spent: Usage.Usage, isInside: boolean): Sum => {
  const inside = isInside ? Usage.add(childUsage ?? Usage.zero, spent) : childUsage
  return { usage: Usage.add(usage, spent), ...(inside === undefined ? {} : { childUsage: inside }) }
}

/** The spending of a run, for events, and for its limits: these count estimates too, of answers without figures. */
export class Spending {
  limits: Limits | undefined
  /** Whether there is any limit on what is spent. */
  isBounded = false
  /** That of the run this one is inside of, which bounds this one too. */
  readonly outer: Spending | undefined
  /** That of the run that this one belongs to, whose events count this one too. */
  private readonly parent: Spending | undefined
  /** For the limits. */
  private counted: Counted = { total: 0, cost: undefined, estimated: 0 }
  /** The models that spent tokens at no known price. */
  private readonly unpriced = new Set<string>()
  private isWarned = false
  /** Of the run. */
  total = noSpending
  /** Of this turn, retracted answers included. */
  turn = noSpending
  /** Of the next turn, before it begins: an interrupted run has begun it, or calls that continue between turns have spent it. */
  private begun = noSpending
  private isBetweenTurns = false

  constructor(limits: Limits | undefined, outer: Spending | undefined, parent: Spending | undefined) {
    this.outer = outer
    this.parent = parent
    this.bound(limits)
  }

  /** Goes by these limits from now on. */
  bound(limits: Limits | undefined): void {
    this.limits = limits
    const isBounded = limits?.maxCost !== undefined || limits?.maxTotalTokens !== undefined
    this.isBounded = isBounded || this.outer?.isBounded === true
  }

  /** The models whose cost is missing in the sum, once, where there is a limit on the cost. */
  takeUnpriced(): ReadonlyArray<string> {
    if (this.isWarned || this.unpriced.size === 0 || this.limits?.maxCost === undefined) return []
    this.isWarned = true
    return [...this.unpriced]
  }

  /** Puts what is known of an answer now in place of what was known of it before. */
  replace(before: Entry, now: Entry): void {
    const { cost, estimated, total } = this.counted
    const prices = this.limits?.prices
    // A run inside of this one may have no prices.
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

  /** The first limit that is reached, from the inside out. */
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
    this.turn = this.begun
    this.begun = noSpending
    this.isBetweenTurns = false
  }

  endTurn(): void {
    this.isBetweenTurns = true
  }

  /** Continues from what an interrupted run has spent. The runs around it have counted that. */
  restore(sum: Sum, turn: Sum = noSpending): void {
    this.total = sum
    this.begun = turn
    const { cost, estimated = 0, total } = priced(sum.usage, this.limits?.prices, undefined)
    this.counted = { total, cost, estimated }
  }

  /** Adds what a model call of this run has spent; to its turn too, unless that did not use it. */
  add(spent: Usage.Usage | undefined, isOfTurn = true): void {
    if (spent === undefined) return
    this.total = plus(this.total, spent, false)
    if (isOfTurn) this.turn = plus(this.turn, spent, false)
    this.parent?.addInside(spent)
  }

  /** Adds what a run inside, or a tool itself, has spent. */
  addInside(spent: Usage.Usage): void {
    // The run inside may know no prices.
    const counted = priced(spent, this.limits?.prices, undefined)
    this.total = plus(this.total, counted, true)
    if (this.isBetweenTurns) this.begun = plus(this.begun, counted, true)
    else this.turn = plus(this.turn, counted, true)
    this.parent?.addInside(spent)
  }
}

/** Adds the cost and its source. That of the provider counts before `limits.prices`, and those before the price of the model. */
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

/** Counted for an image or a file, in characters: the number of their bytes has no relation to their tokens. */
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
