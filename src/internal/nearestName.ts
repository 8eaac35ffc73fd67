/**
 * Finds the known name that a misspelt one probably means, for error messages.
 */

/** The known name with the fewest differences, ignoring case; `undefined` if more than a third of the characters differ. */
export const of = (name: string, known: Iterable<string>): string | undefined => {
  let nearest: string | undefined
  let least = Math.max(1, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const distance = differences(name.slice(0, 64).toLowerCase(), candidate.toLowerCase())
    if (distance < least) [nearest, least] = [candidate, distance]
  }
  return nearest
}

/** The Levenshtein distance: the number of characters to insert, delete or replace. */
const differences = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}
