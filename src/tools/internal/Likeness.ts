/**
 * Finds a text that looks as another one: with typographic quotes, dashes and spaces, or with accents that are
 * composed in another way. Models write the plain characters.
 */
import * as Paced from "../Paced.ts"

/** The place of a likeness in the file. */
interface Like {
  readonly from: number
  readonly to: number
  /** The new text, without what it has in common with the old one. */
  readonly newText: string
  /** The characters of the file for which the old text has plain ones. */
  readonly characters: ReadonlyArray<string>
  /** Whether there is no other place. */
  readonly isOnly: boolean
}

/** Plain characters, each with those that look like it. */
const looks: ReadonlyArray<readonly [plain: string, like: RegExp]> = [
  ["'", /[\u2018-\u201b\u2032\u02bc]/],
  ['"', /[\u201c-\u201f\u2033]/],
  ["-", /[\u2010-\u2015\u2212]/],
  [" ", /[\u00a0\u2000-\u200a\u202f\u205f\u3000]/]
]

const plain = (text: string): string =>
  looks.reduce((text, [character, like]) => text.split(like).join(character), text)

/** Whether both names look the same. */
export const isLike = (self: string, that: string): boolean =>
  plain(self.normalize("NFC")) === plain(that.normalize("NFC"))

/** Characters of one piece. */
const piece = 64 * 1024
/** Characters between two pauses where each is compared. */
const stride = 5_000

/** A text with plain characters and composed accents, and the mapping of its offsets to the original. */
interface Composed {
  readonly text: string
  readonly offsetOf: (at: number) => number
}

function* composed(original: string): Paced.Work<Composed> {
  // Offsets in the composed text after which the original has more characters, and how many in all.
  const [after, shifts]: [Array<number>, Array<number>] = [[], []]
  const [pieces, parts] = [new Array<string>(), new Array<string>()]
  let [length, shift] = [0, 0]
  const add = (part: string) => {
    length += part.length
    parts.push(part)
  }
  for (let at = 0; at < original.length; ) {
    let end = Math.min(at + piece, original.length)
    // A character and its marks stay together.
    while (
      end < original.length &&
      end - at < 2 * piece &&
      /[\p{M}\udc00-\udfff]/u.test(original.charAt(end))
    )
      end++
    const part = original.slice(at, end)
    const marked = /\P{M}\p{M}+/gu
    let last = 0
    for (let found = marked.exec(part); found !== null; found = marked.exec(part)) {
      const [cluster] = found
      const short = cluster.normalize("NFC")
      if (short.length >= cluster.length) continue
      add(plain(part.slice(last, found.index)))
      add(short)
      last = found.index + cluster.length
      shift += cluster.length - short.length
      after.push(length)
      shifts.push(shift)
    }
    add(plain(part.slice(last)))
    pieces.push(parts.splice(0).join(""))
    at = end
    yield
  }
  const offsetOf = (at: number) => at + (shifts[Paced.countBelow(after, at + 1) - 1] ?? 0)
  return { text: pieces.join(""), offsetOf }
}

/** The first place of the file that looks as the old text, `undefined` if there is none. */
export function* find(file: string, oldText: string, newText: string): Paced.Work<Like | undefined> {
  const [inFile, wanted] = [yield* composed(file), (yield* composed(oldText)).text]
  if (inFile.text === file && wanted === oldText) return undefined
  const at = yield* Paced.indexOf(inFile.text, wanted)
  if (at === -1) return undefined
  const isOnly = (yield* Paced.indexOf(inFile.text, wanted, at + 1)) === -1
  const start = yield* commonLength(wanted, newText, 1)
  const most = Math.min(wanted.length, newText.length) - start
  const end = Math.min(most, yield* commonLength(wanted, newText, -1))
  const [from, to] = [inFile.offsetOf(at + start), inFile.offsetOf(at + wanted.length - end)]
  const there = file.slice(inFile.offsetOf(at), inFile.offsetOf(at + wanted.length))
  const characters = (yield* strange(there, oldText)).map(named)
  return { from, to, newText: newText.slice(start, newText.length - end), characters, isOnly }
}

/** The first characters of a text that are not ASCII and that the other text does not have. */
function* strange(text: string, other: string): Paced.Work<ReadonlyArray<string>> {
  const [seen, found] = [new Set<string>(), new Array<string>()]
  for (let at = 0; at < text.length && found.length < 5; at += piece) {
    for (const [each] of text.slice(at, at + piece).matchAll(/\P{M}\p{M}+|[^\0-\x7f]/gu)) {
      if (seen.size === seen.add(each).size) continue
      if ((yield* Paced.indexOf(other, each)) === -1) found.push(each)
    }
    yield
  }
  return found.slice(0, 5)
}

/** The number of equal characters at the start (1) or at the end (-1) of both. */
function* commonLength(self: string, that: string, direction: 1 | -1): Paced.Work<number> {
  const most = Math.min(self.length, that.length)
  let count = 0
  while (
    count < most &&
    self.at(direction === 1 ? count : -1 - count) === that.at(direction === 1 ? count : -1 - count)
  )
    if (++count % stride === 0) yield
  // A surrogate pair stays whole.
  const next = self.at(direction === 1 ? count - 1 : -count) ?? ""
  return count > 0 && /[\ud800-\udfff]/.test(next) ? count - 1 : count
}

const named = (character: string): string =>
  `${character} (${Array.from(character, (each) => `U+${(each.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`).join(" ")})`

/** Names the first characters that differ if one of them is not ASCII, so that they may look alike. */
export const difference = (inFile: string, wanted: string, line: number): ReadonlyArray<string> => {
  const [own, other] = [Array.from(inFile.slice(0, piece)), Array.from(wanted.slice(0, piece))]
  const at = own.findIndex((each, index) => each !== other[index])
  const [left, right] = [own[at], other[at]]
  if (left === undefined || right === undefined || /^[\0-\x7f]{2}$/.test(left + right)) return []
  return [`Line ${line} has ${named(left)} where the old text has ${named(right)}.`]
}

// ───────────────────────── Similarity

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
