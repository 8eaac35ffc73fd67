/**
 * Reduces a text that is encoded for JSON, a URL, HTML or JavaScript, or for several of them, to a common form:
 * lower-case letters and digits, and one mark for each other character. Takes linear time, because servers send
 * the text.
 */

/** The reduced text, and the position in the original of each of its characters. */
export interface Plain {
  readonly text: string
  readonly startOf: (index: number) => number
  /** Whether the text had a backslash before a letter that `breaksLines` is about. */
  readonly hasControls: boolean
}

/** The treatment of escapes. */
export interface Reading {
  /** Whether `\n` is a line end. If not, the backslash is ignored, as in a path. */
  readonly breaksLines?: boolean
  /** Whether the text was cut, so that an incomplete escape at its end is left out. */
  readonly isCut?: boolean
}

/** Reduces a text. */
export const plain = (raw: string, reading: Reading = {}): Plain => {
  let source: Plain = { text: raw, startOf: (index) => index, hasControls: false }
  for (let depth = 0; depth < maxDepth; depth++) {
    if (reading.isCut === true) source = { ...source, text: withoutCutEscape(source.text) }
    if (source.text.search(escape) === -1) break
    source = resolve(source, reading)
  }
  return fold(source)
}

/** Maximum levels of encoding, such as JSON in HTML. One level of each encoding is resolved in one pass. */
const maxDepth = 4

const escape =
  /\\+(?:u\{0*([0-9a-f]{1,6})\}|u([0-9a-f]{4})|x([0-9a-f]{2})|([bfnrt])|)|((?:%(?:25)*[89a-f][0-9a-f])+)|%(?:25)*([0-7][0-9a-f])|&(?:amp;)*(?:#x0*([0-9a-f]{1,6});?|#0*([0-9]{1,7});?|([a-z][a-z0-9]{1,31});)/gi

/** Only the end of the text can contain the incomplete escape. */
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

/** Stands for every character that is neither a letter nor a digit. */
const mark = "_"

/** HTML names of characters with which an escape can start. All other names stand for marks. */
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

const resolve = (source: Plain, reading: Reading): Plain => {
  let { hasControls } = source
  const writer = new Writer(source)
  for (const match of source.text.matchAll(escape)) {
    if (match[4] !== undefined) hasControls = true
    writer.replace(match.index, match.index + match[0].length, meaning(match, reading))
  }
  return { ...writer.end(), hasControls }
}

/** Consecutive white space becomes one character, because programs that quote a text fold it. */
const fold = (source: Plain): Plain => {
  const writer = new Writer(source)
  for (const { 0: run, index } of source.text.matchAll(/\s{2,}/g))
    writer.replace(index, index + run.length, mark)
  const { hasControls, startOf, text } = writer.end()
  const small = text.replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase())
  return { text: small.replace(/[^0-9a-z\x80-\uffff]|\s/g, mark), startOf, hasControls }
}

/** Replaces parts of a text from start to end, and records the original position of each part. */
class Writer {
  private readonly source: Plain
  private outcome = ""
  /** The starts of the parts in the outcome and in the text. */
  private readonly at: Array<number> = []
  private readonly from: Array<number> = []
  private done = 0
  /** The start of an escape without a value, which belongs to the next part. */
  private pending: number | undefined = undefined

  constructor(source: Plain) {
    this.source = source
  }

  replace(from: number, to: number, replacement: string): void {
    this.copy(from)
    if (replacement === "") this.pending ??= from
    else this.add(replacement, from)
    this.done = to
  }

  end(): Plain {
    const { at, from, source } = this
    this.copy(source.text.length)
    const text = this.outcome
    const startOf = (index: number): number => {
      const piece = lastBefore(at, index)
      const start = from[piece]
      if (start === undefined || index >= text.length) return source.startOf(source.text.length)
      const next = from[piece + 1] ?? source.text.length
      return source.startOf(Math.min(start + index - (at[piece] ?? 0), next - 1))
    }
    return { text, startOf, hasControls: source.hasControls }
  }

  private copy(to: number): void {
    const { done, source } = this
    if (done === to) return
    // The next part starts at the preceding escape without a value.
    const behind = this.pending === undefined ? done : done + 1
    if (behind > done) this.add(source.text.slice(done, behind), done)
    if (behind < to) this.add(source.text.slice(behind, to), behind)
  }

  private add(replacement: string, from: number): void {
    this.at.push(this.outcome.length)
    this.from.push(this.pending ?? from)
    this.outcome += replacement
    this.pending = undefined
  }
}

/** The index of the last number that is not greater than `limit`, in an ascending list. */
const lastBefore = (numbers: ReadonlyArray<number>, limit: number): number => {
  let [low, high] = [0, numbers.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if ((numbers[middle] ?? 0) <= limit) low = middle
    else high = middle - 1
  }
  return low
}
