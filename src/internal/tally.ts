/**
 * The tokens and the cost of a run as providers report them: of the turn and in all, and how much of both the runs inside have spent.
 */
import * as Budget from "./budget.ts"
import type { Limits } from "../RunOptions.ts"
import * as Usage from "../Usage.ts"

/** Members of events: `childUsage` is absent where no run inside has spent anything. */
interface Sum {
  readonly usage: Usage.Usage
  readonly childUsage?: Usage.Usage
}

const nothing: Sum = { usage: Usage.zero }

const plus = ({ childUsage, usage }: Sum, spent: Usage.Usage, isInside: boolean): Sum => {
  const inside = isInside ? Usage.add(childUsage ?? Usage.zero, spent) : childUsage
  return { usage: Usage.add(usage, spent), ...(inside === undefined ? {} : { childUsage: inside }) }
}

export class Tally {
  /** Of the run. */
  total = nothing
  /** Of this turn, retracted answers included. */
  turn = nothing
  /** Of the next turn, before it begins: an interrupted run has begun it, or calls that continue between turns have spent it. */
  private begun = nothing
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
    this.begun = nothing
    this.isBetweenTurns = false
  }

  endTurn(): void {
    this.isBetweenTurns = true
  }

  /** Continues from what an interrupted run has spent. The runs around it have counted that. */
  restore(total: Sum, turn: Sum = nothing): void {
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
    const priced = Budget.priced(spent, this.limits()?.prices, undefined)
    this.total = plus(this.total, priced, true)
    if (this.isBetweenTurns) this.begun = plus(this.begun, priced, true)
    else this.turn = plus(this.turn, priced, true)
    this.outer?.addInside(spent)
  }
}
