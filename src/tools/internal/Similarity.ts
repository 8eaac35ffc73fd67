/** Rates the similarity of two texts, for hints on misspelled names. */
import type * as Paced from "../Paced.ts"

/** Maximum characters to compare, because candidates may be as long as a file. */
const compared = 200

/**
 * From 0 (nothing in common) to 1 (equal except for case), by shared pairs of neighbouring characters (Dice).
 * Texts with the same characters in another order, a common typing error, rate 0.8 or more.
 */
const similarity = (self: string, that: string): number => {
  const left = self.slice(0, compared).toLowerCase()
  const right = that.slice(0, compared).toLowerCase()
  if (left === right) return 1
  if (left.length === right.length && sorted(left) === sorted(right)) return 0.8
  const pairs = pairsOf(left)
  const size = Math.max(left.length - 1, 0) + Math.max(right.length - 1, 0)
  let shared = 0
  for (let index = 0; index < right.length - 1; index++) {
    const pair = right.slice(index, index + 2)
    const unmatched = pairs.get(pair) ?? 0
    if (unmatched === 0) continue
    pairs.set(pair, unmatched - 1)
    shared++
  }
  return size === 0 ? 0 : (2 * shared) / size
}

/** The candidates with a similarity of at least 0.5, best first. */
export function* nearest<A>(
  wanted: string,
  candidates: ReadonlyArray<A>,
  textOf: (candidate: A) => string,
  count: number
): Paced.Work<ReadonlyArray<A>> {
  const scored: Array<{ readonly candidate: A; readonly score: number }> = []
  for (const [index, candidate] of candidates.entries()) {
    if (index % 20 === 0) yield
    const score = similarity(wanted, textOf(candidate))
    if (score >= 0.5) scored.push({ candidate, score })
  }
  return scored
    .toSorted((self, that) => that.score - self.score)
    .slice(0, count)
    .map(({ candidate }) => candidate)
}

const sorted = (text: string): string => Array.from(text).toSorted().join("")

const pairsOf = (text: string): Map<string, number> => {
  const pairs = new Map<string, number>()
  for (let index = 0; index < text.length - 1; index++) {
    const pair = text.slice(index, index + 2)
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1)
  }
  return pairs
}
