/**
 * Finds pieces of keys in a text: a start or an end of a key, a long piece of its middle, and the same in base64. Only letters and
 * digits count, so that line ends, spaces and invisible characters between them change nothing. Takes linear time.
 */
import * as Base64 from "effect/encoding/Base64"
import * as Spelling from "./spelling.ts"

/** A key, or its form in base64. */
interface Key {
  /** Its letters and digits, in small letters, by each reading of a text. */
  readonly letters: ReadonlyArray<string>
  /** The characters of its start, and of its end, that are enough; `0`: none are. */
  readonly start: number
  readonly end: number
  readonly isEncoded: boolean
}

/** The keys to find. */
export interface Keys {
  readonly all: ReadonlyArray<Key>
  /** Pieces of `gram` characters, by reading. */
  readonly grams: ReadonlyArray<ReadonlyMap<string, Gram>>
}

/** The key that a piece is of, and its place in the key. */
interface Gram {
  readonly letters: string
  readonly at: number
  readonly isEncoded: boolean
}

/** A piece, by positions in the text that was read. */
export type Piece = readonly [from: number, to: number, isEncoded: boolean]

/** The fewest characters of a start or an end. */
const minEdge = 8
/** The fewest letters in them. */
const minLetters = 7
/** The fewest letters of a piece from the middle. */
const minPiece = 16
const gram = 8
const step = minPiece - gram + 1

/** Prepares the search for some keys. */
export const of = (values: ReadonlyArray<string>, readings: ReadonlyArray<Spelling.Reading>): Keys => {
  const all = values.flatMap((value) => [
    keyOf(value, readings),
    ...encoded(value).map((text) => ({ ...keyOf(text, readings), isEncoded: true }))
  ])
  const grams = readings.map((_, reading) => {
    const found = new Map<string, Gram>()
    for (const { isEncoded, letters: each } of all) {
      const letters = each[reading] ?? ""
      if (letters.length < minPiece) continue
      for (let at = letters.length - gram; at >= 0; at--)
        found.set(letters.slice(at, at + gram), { letters, at, isEncoded })
    }
    return found
  })
  return { all, grams }
}

const keyOf = (value: string, readings: ReadonlyArray<Spelling.Reading>): Key => ({
  letters: readings.map((reading) => lettersOf(Spelling.plain(value, reading).text)),
  start: edge(value, common.exec(value)?.[0].length ?? 0, (size) => value.slice(0, size)),
  end: edge(value, 0, (size) => value.slice(-size)),
  isEncoded: false
})

/** The start that all keys of a vendor share, such as `sk-ant-api03-`. */
const common = /^(?:[a-z0-9]{2,6}[-_])+/i

/** The letters of the shortest start or end that no other text has: more than a vendor's own start, and more than one word. */
const edge = (value: string, shared: number, cut: (size: number) => string): number => {
  let size = shared === 0 ? minEdge : Math.max(minEdge, shared + 4)
  for (; size < value.length; size++) {
    const part = cut(size).replace(/^[^a-z0-9]+|[^a-z0-9]+$/gi, "")
    const count = lettersOf(part.toLowerCase()).length
    if (count >= minPiece || (count >= minLetters && !/^(?:[A-Z]?[a-z]+|[A-Z]+)$/.test(part))) return count
  }
  return 0
}

/** The parts of a text in base64 that stay, whatever is before and after the key: it may start at each of three places. */
const encoded = (value: string): ReadonlyArray<string> =>
  [0, 1, 2].map((before) => {
    const text = Base64.encode("\0".repeat(before) + value)
    const rest = text.replace(/=+$/, "")
    return rest.slice(before === 0 ? 0 : before + 1, rest.length - (rest === text ? 0 : 1))
  })

const lettersOf = (plain: string): string => plain.replace(/[^0-9a-z]+/g, "")

/** Finds the pieces in a text that `Spelling.plain` has reduced. */
export const find = (plain: Spelling.Plain, { all, grams }: Keys, reading: number): ReadonlyArray<Piece> => {
  const text = lettersOf(plain.text)
  const [pieces, edges] = [inMiddle(text, grams[reading]), all.flatMap((key) => atEdges(text, key, reading))]
  const found = [...pieces, ...edges]
  if (found.length === 0) return []
  const at = positions(plain.text, text.length)
  const place = (index: number): number => plain.startOf(at[index] ?? 0)
  const behind = (index: number): number => plain.startOf((at[index - 1] ?? 0) + 1)
  return found.map(([from, to, isEncoded]) => [place(from), behind(to), isEncoded])
}

/** The position of each letter. */
const positions = (plain: string, count: number): Uint32Array => {
  const at = new Uint32Array(count)
  let next = 0
  for (let index = 0; index < plain.length; index++) {
    const code = plain.charCodeAt(index)
    if ((code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39)) at[next++] = index
  }
  return at
}

/** Starts and ends of a key, and the whole of a short one in base64. */
const atEdges = (text: string, key: Key, reading: number): ReadonlyArray<Piece> => {
  const { end, isEncoded, start } = key
  const letters = key.letters[reading] ?? ""
  const found: Array<Piece> = []
  if (isEncoded && (letters.length >= minPiece || letters.length < minEdge)) return found
  const first = letters.slice(0, isEncoded ? letters.length : start)
  for (let from = first === "" ? -1 : text.indexOf(first); from !== -1; ) {
    const to = from + first.length
    const more = shared(text, to, letters, first.length, 1)
    found.push([from, to + more, isEncoded])
    from = text.indexOf(first, to + more)
  }
  const last = isEncoded || end === 0 ? "" : letters.slice(-end)
  for (let done = 0, from = last === "" ? -1 : text.indexOf(last); from !== -1; ) {
    const more = shared(text, from - 1, letters, letters.length - last.length - 1, -1, from - done)
    found.push([from - more, from + last.length, isEncoded])
    done = from + last.length
    from = text.indexOf(last, done)
  }
  return found
}

/** How many characters two texts share, from two places on. */
const shared = (text: string, at: number, key: string, inKey: number, step: 1 | -1, most = Infinity) => {
  let count = 0
  while (count < most) {
    const index = inKey + count * step
    if (index < 0 || index >= key.length || text[at + count * step] !== key[index]) break
    count++
  }
  return count
}

/** Pieces of at least `minPiece` letters. Looks at so many places that each piece has one of them. */
const inMiddle = (text: string, grams: Keys["grams"][number] = new Map()): ReadonlyArray<Piece> => {
  const found: Array<Piece> = []
  if (grams.size === 0) return found
  let done = 0
  for (let at = 0; at + gram <= text.length; at += step) {
    const hit = grams.get(text.slice(at, at + gram))
    if (hit === undefined) continue
    const { letters } = hit
    const from = at - shared(text, at - 1, letters, hit.at - 1, -1, at - done)
    const to = at + gram + shared(text, at + gram, letters, hit.at + gram, 1)
    if (to - from < minPiece) continue
    found.push([from, to, hit.isEncoded])
    done = to
    at = Math.max(at, to - step)
  }
  return found
}
