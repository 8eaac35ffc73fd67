/**
 * Text that was written for JSON, a URL, HTML or JavaScript, or for one inside the other, reduced to what all spellings of
 * it share: letters and digits as they are, without capitals, and one mark for each other character. It comes from
 * servers, so the time is linear, whatever the text.
 */

/** The reduced text, and where in the text each character of it began. */
export interface Plain {
  readonly text: string
  readonly startOf: (index: number) => number
}

/** How escapes are resolved. */
export interface Reading {
  /** `\n` is a line end. Otherwise the backslash says nothing, as in a path. */
  readonly breaksLines?: boolean
  /** The text was cut, and the escape that it may end with is left out. */
  readonly isCut?: boolean
}

/** Reduces a text. */
export const plain = (raw: string, reading: Reading = {}): Plain => {
  let told: Plain = { text: raw, startOf: (index) => index }
  for (let depth = 0; depth < maxDepth; depth++) {
    if (reading.isCut === true) told = { ...told, text: withoutCutEscape(told.text) }
    if (told.text.search(escape) === -1) break
    told = resolve(told, reading)
  }
  return fold(told)
}

/** Levels of one language in another, such as JSON in HTML. In itself a language is resolved at once. */
const maxDepth = 4

const escape =
  /\\+(?:u\{0*([0-9a-f]{1,6})\}|u([0-9a-f]{4})|x([0-9a-f]{2})|([bfnrt])|)|((?:%(?:25)*[89a-f][0-9a-f])+)|%(?:25)*([0-7][0-9a-f])|&(?:amp;)*(?:#x0*([0-9a-f]{1,6});?|#0*([0-9]{1,7});?|([a-z][a-z0-9]{1,31});)/gi

/** The end is cut off an escape at most: more of the text need not be looked at. */
const withoutCutEscape = (text: string): string => {
  const tail = text.slice(-maxEscape)
  return text.slice(0, text.length - tail.length) + tail.replace(cutEscape, "")
}

const maxEscape = 64
const cutEscape = /(?:\\+(?:[ux]\{?[0-9a-f]{0,5})?|%(?:25)*2?[0-9a-f]?|&(?:amp;)*(?:#x?[0-9a-f]*|\w*))$/i

const meaning = (match: RegExpMatchArray, { breaksLines }: Reading): string => {
  const [, braced, four, two, control, bytes, byte, hex, decimal, name] = match
  if (name !== undefined) return begins.get(name.toLowerCase()) ?? mark
  if (bytes !== undefined) return decoded(bytes.replace(/%(?:25)+/g, "%"))
  if (control !== undefined) return breaksLines === true ? " " : control
  if (decimal !== undefined) return charOf(Number(decimal))
  const code = braced ?? four ?? two ?? byte ?? hex
  return code === undefined ? "" : charOf(Number.parseInt(code, 16))
}

/** Stands for every character that is no letter and no digit. */
const mark = "_"

/** Names in HTML of what an escape may begin with. All other names of characters in keys are names of marks. */
const begins: ReadonlyMap<string, string> = new Map([
  ["amp", "&"],
  ["bsol", "\\"],
  ["num", "#"],
  ["percnt", "%"]
])

const charOf = (code: number): string => (code > 0x10ffff ? mark : String.fromCodePoint(code))

const decoded = (bytes: string): string => {
  try {
    return decodeURIComponent(bytes)
  } catch {
    return mark
  }
}

const resolve = (told: Plain, reading: Reading): Plain => {
  const writer = new Writer(told)
  for (const match of told.text.matchAll(escape)) {
    writer.replace(match.index, match.index + match[0].length, meaning(match, reading))
  }
  return writer.end()
}

/** A run of white space is one character: those who quote a text fold it. */
const fold = (told: Plain): Plain => {
  const writer = new Writer(told)
  for (const { 0: run, index } of told.text.matchAll(/\s{2,}/g))
    writer.replace(index, index + run.length, mark)
  const { startOf, text } = writer.end()
  const small = text.replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase())
  return { text: small.replace(/[^0-9a-z\x80-\uffff]|\s/g, mark), startOf }
}

/** Replaces pieces of a text, from its start to its end, and keeps where each piece of the outcome began. */
class Writer {
  private readonly told: Plain
  private outcome = ""
  /** Where each piece begins in the outcome, and in the text. */
  private readonly at: Array<number> = []
  private readonly from: Array<number> = []
  private done = 0
  /** Where an escape that stands for nothing began: it belongs to what follows. */
  private pending: number | undefined = undefined

  constructor(told: Plain) {
    this.told = told
  }

  replace(from: number, to: number, said: string): void {
    this.copy(from)
    if (said === "") this.pending ??= from
    else this.add(said, from)
    this.done = to
  }

  end(): Plain {
    const { at, from, told } = this
    this.copy(told.text.length)
    const text = this.outcome
    const startOf = (index: number): number => {
      const piece = lastBefore(at, index)
      const start = from[piece]
      if (start === undefined || index >= text.length) return told.startOf(told.text.length)
      const next = from[piece + 1] ?? told.text.length
      return told.startOf(Math.min(start + index - (at[piece] ?? 0), next - 1))
    }
    return { text, startOf }
  }

  private copy(to: number): void {
    const { done, told } = this
    if (done === to) return
    // What follows an escape that stands for nothing begins there.
    const behind = this.pending === undefined ? done : done + 1
    if (behind > done) this.add(told.text.slice(done, behind), done)
    if (behind < to) this.add(told.text.slice(behind, to), behind)
  }

  private add(said: string, from: number): void {
    this.at.push(this.outcome.length)
    this.from.push(this.pending ?? from)
    this.outcome += said
    this.pending = undefined
  }
}

/** The place in a list of numbers, which grow, of the last that is no greater. */
const lastBefore = (numbers: ReadonlyArray<number>, limit: number): number => {
  let [low, high] = [0, numbers.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if ((numbers[middle] ?? 0) <= limit) low = middle
    else high = middle - 1
  }
  return low
}
