/**
 * The tokens and the cost that a run and its sub-agents have spent: figures of the provider, or estimates where it gives none.
 * A run is bound by its own budget and by those of the runs around it.
 */
import { memoize } from "effect/Function"
import { LimitExceeded } from "./failureReason.ts"
import type { Assistant, ModelMessage } from "../Message.ts"
import type { Price } from "../Prices.ts"
import type { ModelRequest } from "../Provider.ts"
import type { Limits } from "../RunOptions.ts"
import * as Usage from "../Usage.ts"

/** The usage of one answer, also while it streams. */
export interface Entry {
  readonly usage: Usage.Usage
  /** `provider/model`. Default: not known. */
  readonly model?: string
}

/** The sum of all answers so far. */
interface Spent {
  readonly total: number
  readonly cost: number | undefined
  readonly estimated: number
}

export const nothing: Entry = { usage: Usage.zero }

export class Budget {
  private readonly limits: () => Limits | undefined
  /** That of the run this one is inside of. */
  private readonly outer: Budget | undefined
  private spent: Spent = { total: 0, cost: undefined, estimated: 0 }
  /** The models that spent tokens at no known price. */
  private readonly unpriced = new Set<string>()
  private isWarned = false

  constructor(limits: () => Limits | undefined, outer: Budget | undefined) {
    this.limits = limits
    this.outer = outer
  }

  /** Whether there is any limit on what is spent. */
  get isBounded(): boolean {
    const { maxCost, maxTotalTokens } = this.limits() ?? {}
    return maxCost !== undefined || maxTotalTokens !== undefined || this.outer?.isBounded === true
  }

  /** The models whose cost is missing in the sum, once, where there is a limit on the cost. */
  takeUnpriced(): ReadonlyArray<string> {
    if (this.isWarned || this.unpriced.size === 0 || this.limits()?.maxCost === undefined) return []
    this.isWarned = true
    return [...this.unpriced]
  }

  /** Puts what is known of an answer now in place of what was known of it before. */
  replace(before: Entry, now: Entry): void {
    const { cost, estimated, total } = this.spent
    const known = this.priced(now.usage)
    const replaced = this.priced(before.usage)
    if (known.cost === undefined && known.total > 0) this.unpriced.add(now.model ?? "the model")
    const isUnpriced = known.cost === undefined && replaced.cost === undefined
    this.spent = {
      total: total + known.total - replaced.total,
      cost: isUnpriced ? cost : (cost ?? 0) + (known.cost ?? 0) - (replaced.cost ?? 0),
      estimated: estimated + (now.usage.estimated ?? 0) - (before.usage.estimated ?? 0)
    }
    this.outer?.replace(before, now)
  }

  /** Continues from what an interrupted run has spent. The runs around it have counted that. */
  restore(usage: Usage.Usage): void {
    const { cost, estimated = 0, total } = this.priced(usage)
    this.spent = { total, cost, estimated }
  }

  /** The first limit that is reached, from the inside out. */
  get exceeded(): LimitExceeded | undefined {
    const { maxCost = Infinity, maxTotalTokens = Infinity } = this.limits() ?? {}
    const { cost = 0, total } = this.spent
    if (total >= maxTotalTokens) return this.reached("maxTotalTokens", total, maxTotalTokens)
    return cost >= maxCost ? this.reached("maxCost", cost, maxCost) : this.outer?.exceeded
  }

  private reached(limit: "maxTotalTokens" | "maxCost", value: number, max: number): LimitExceeded {
    return new LimitExceeded({ limit, value, max, ...(this.spent.estimated > 0 ? { estimated: true } : {}) })
  }

  /** A run inside of this one may have no prices. */
  private priced(usage: Usage.Usage): Usage.Usage {
    return priced(usage, this.limits()?.prices, undefined)
  }
}

/** Adds the cost and its source. That of the provider counts before `limits.prices`, and those before the price of the model. */
export const priced = (
  usage: Usage.Usage,
  prices: Limits["prices"],
  price: Price | undefined
): Usage.Usage => {
  if (usage.cost !== undefined || usage.total === 0) return sourced(usage)
  const cost =
    prices === undefined
      ? price?.cost(usage)
      : (usage.input * prices.input + usage.output * prices.output) / 1e6
  return cost === undefined ? usage : Usage.sane({ ...usage, cost, costSource: "computed" })
}

const sourced = (usage: Usage.Usage): Usage.Usage =>
  usage.cost === undefined || usage.costSource !== undefined ? usage : { ...usage, costSource: "reported" }

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

// ───────────────────────── The spending of a run

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

export class Tally {
  /** Of the run. */
  total = noSpending
  /** Of this turn, retracted answers included. */
  turn = noSpending
  /** Of the next turn, before it begins: an interrupted run has begun it, or calls that continue between turns have spent it. */
  private begun = noSpending
  private isBetweenTurns = false
  private readonly limits: () => Limits | undefined
  /** Of the run that this one belongs to. */
  private readonly outer: Tally | undefined

  constructor(limits: () => Limits | undefined, outer: Tally | undefined) {
    this.limits = limits
    this.outer = outer
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
  restore(total: Sum, turn: Sum = noSpending): void {
    this.total = total
    this.begun = turn
  }

  /** Adds what a model call of this run has spent; to its turn too, unless that did not use it. */
  add(spent: Usage.Usage | undefined, isOfTurn = true): void {
    if (spent === undefined) return
    this.total = plus(this.total, spent, false)
    if (isOfTurn) this.turn = plus(this.turn, spent, false)
    this.outer?.addInside(spent)
  }

  /** Adds what a run inside, or a tool itself, has spent. */
  addInside(spent: Usage.Usage): void {
    // The run inside may know no prices.
    const counted = priced(spent, this.limits()?.prices, undefined)
    this.total = plus(this.total, counted, true)
    if (this.isBetweenTurns) this.begun = plus(this.begun, counted, true)
    else this.turn = plus(this.turn, counted, true)
    this.outer?.addInside(spent)
  }
}
