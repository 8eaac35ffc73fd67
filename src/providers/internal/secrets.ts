/** Removes keys from the text of failures. Servers and proxies repeat them, in various encodings. */
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Base64 from "effect/encoding/Base64"
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Tracer from "effect/Tracer"

/** Replaces secrets in a text. */
export type Redact = (text: string) => string

/**
 * Minimum characters of a secret. Shorter values are placeholders ("x", "ollama") and occur in ordinary words.
 */
const minLength = 8

/** Names of headers whose value is a secret. */
export const secretName = /auth|key|token|secret|cookie|password|session/i

/** The last keys in use, because a server may still repeat a key that has been replaced. */
export class Used {
  private keys: ReadonlyArray<Redacted.Redacted> = []

  /** All of them, including the current ones. */
  with(current: ReadonlyArray<Redacted.Redacted>): ReadonlyArray<Redacted.Redacted> {
    const known = new Set(this.keys.map(Redacted.value))
    const added = current.filter((key) => !known.has(Redacted.value(key)))
    if (added.length > 0) this.keys = [...this.keys, ...added].slice(-maxUsed)
    return this.keys
  }
}

/** More keys than are in use at any time. */
const maxUsed = 8

/** Redacts the keys, the headers with secret names, and the secrets in a URL. */
export const make = (
  keys: ReadonlyArray<Redacted.Redacted>,
  headers: Readonly<Record<string, string>>,
  url: string
): Redact => {
  let secrets: Secrets | undefined
  // Computed on first use, because most calls have no text to redact.
  const all = () => {
    const named = Object.entries(headers).flatMap(([name, value]) =>
      secretName.test(name) ? ofHeader(name, value) : []
    )
    return prepared([...long([...keys.map(Redacted.value), ...named]), ...ofUrl(url)])
  }
  return (text) => (text === "" ? text : cutOut(text, (secrets ??= all())))
}

// ───────────────────────── The secrets

interface Secret {
  readonly value: string
  /** Whether the value is short, so that it only matches as a separate word. */
  readonly isWord: boolean
  /** The value in each reading. Empty if it consists mostly of punctuation, which would match everywhere. */
  readonly plain: ReadonlyArray<string>
}

interface Secrets {
  readonly each: ReadonlyArray<Secret>
  readonly pieces: Keys
}

const prepared = (each: ReadonlyArray<Secret>): Secrets => {
  const values = each.flatMap(({ isWord, plain, value }) => (isWord || plain.length === 0 ? [] : [value]))
  return { each, pieces: of(values, readings) }
}

/** Both readings of a backslash before a letter. */
const readings: ReadonlyArray<Reading> = [{ breaksLines: true }, { breaksLines: false }]

const secretOf = (value: string): Secret => {
  const isWord = value.length < minLength
  const texts = readings.map((reading) => plain(value, reading).text)
  return { value, isWord, plain: isWord || letters(texts[0] ?? "") >= minLetters ? texts : [] }
}

const letters = (plain: string): number => plain.replaceAll("_", "").length
const minLetters = 4

/** The values without their scheme, except values that are too short. */
const long = (values: ReadonlyArray<string>): ReadonlyArray<Secret> => {
  const bare = values.map((value) => value.trim().replace(/^(?:Bearer|Basic) +/i, ""))
  return [...new Set(bare)].filter(({ length }) => length >= minLength).map(secretOf)
}

/** The value with its scheme, each cookie separately, and the password in a value in base64. */
const ofHeader = (name: string, value: string): ReadonlyArray<string> => {
  if (/cookie/i.test(name)) return [value, ...value.split(";").map((cookie) => cookie.replace(/^[^=]*=/, ""))]
  const basic = /^\s*Basic +(.*)$/i.exec(value)?.[1]
  const plain = basic === undefined ? "" : Result.getOrElse(Base64.decodeString(basic), () => "")
  return [value, plain.slice(plain.indexOf(":") + 1)]
}

/** User and password in a URL are secrets of any length. */
const ofUrl = (url: string): ReadonlyArray<Secret> => {
  if (!/[?@]/.test(url) || !URL.canParse(url)) return []
  const { password, searchParams, username } = new URL(url)
  const [user, pass] = [decoded(username), decoded(password)]
  const named = Array.from(searchParams).filter(([name]) => secretName.test(name))
  // Clients send user and password in a header of this form.
  const basic = user === "" && pass === "" ? "" : Base64.encode(`${user}:${pass}`)
  const short = [user, pass, basic, ...named.map(([, value]) => value)].filter((value) => value !== "")
  // A key may be a parameter without a name.
  const query = Array.from(searchParams, ([name, value]) => (value === "" ? name : value))
  return [...[...new Set(short)].map(secretOf), ...long(query)]
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

// ───────────────────────── Their places in a text

const cutOut = (text: string, { each, pieces }: Secrets): string => {
  if (each.length === 0) return text
  const found = [...verbatim(text, each), ...spelled(text, each, pieces)]
  let [clean, done] = ["", 0]
  for (const [from, to] of found.sort(([self], [that]) => self - that)) {
    if (to <= done) continue
    // A match that starts inside or right after another one belongs to it.
    if (from > done || clean === "") clean += `${text.slice(done, from)}[redacted]`
    done = to
  }
  return clean + text.slice(done)
}

type Place = readonly [from: number, to: number]

const verbatim = (text: string, secrets: ReadonlyArray<Secret>): ReadonlyArray<Place> =>
  secrets.flatMap(({ isWord, value }) => places(text, value, isWord))

/** Matches in any encoding. */
const spelled = (raw: string, secrets: ReadonlyArray<Secret>, pieces: Keys): ReadonlyArray<Place> => {
  const behind = Math.max(0, raw.length - maxCut)
  const wholes = plainly(raw)
  const cuts = plainly(raw.slice(behind), true)
  const read = [...new Set(wholes)]
  const found = read.flatMap((plain, reading) => find(plain, pieces, reading))
  const parts = found.map(([from, to, isEncoded]) =>
    isEncoded ? widened(raw, from, to) : ([from, to] as const)
  )
  const others = secrets.flatMap(({ isWord, plain }) =>
    read.flatMap(({ startOf, text }, index): ReadonlyArray<Place> => {
      const [secret, cut] = [plain[index], cuts[index]]
      if (secret === undefined || cut === undefined) return []
      const whole: ReadonlyArray<Place> = places(text, secret, isWord).map(([from, to]) => [
        startOf(from),
        startOf(to)
      ])
      const begun = isWord ? undefined : beginning(cut.text, secret)
      return begun === undefined ? whole : [...whole, [behind + cut.startOf(begun), raw.length]]
    })
  )
  return [...parts, ...others]
}

/** With the characters of base64 that hold bits of the secret and of its neighbour. */
const widened = (raw: string, from: number, to: number): Place => [
  from - (/[\w+/-]{1,4}$/.exec(raw.slice(Math.max(0, from - 4), from))?.[0].length ?? 0),
  to + (/^[\w+/=-]{1,4}/.exec(raw.slice(to, to + 4))?.[0].length ?? 0)
]

/** The text by each of the readings. */
const plainly = (raw: string, isCut = false): ReadonlyArray<Plain> => {
  const [first, second] = readings.map((reading) => ({ ...reading, isCut }))
  const one = plain(raw, first)
  return [one, one.hasControls ? plain(raw, second) : one]
}

/** Maximum characters at the end of a text in which a cut secret may start: the longest key, escaped. */
const maxCut = 16 * 1024

const places = (text: string, secret: string, isWord: boolean): ReadonlyArray<Place> => {
  const found: Array<Place> = []
  for (let at = text.indexOf(secret); at !== -1; at = text.indexOf(secret, at + secret.length)) {
    const to = at + secret.length
    if (!isWord || !(isLetter(text.charAt(at - 1)) || isLetter(text.charAt(to)))) found.push([at, to])
  }
  return found
}

const isLetter = (char: string): boolean => /[\p{L}\p{N}]/u.test(char)

/** The start of a secret that the end of the text cuts off. */
const beginning = (text: string, secret: string): number | undefined => {
  for (let length = Math.min(secret.length - 1, text.length); length >= minLength; length--) {
    if (text.endsWith(secret.slice(0, length))) return text.length - length
  }
  return undefined
}

// ───────────────────────── Spellings

/**
 * Reduces a text that is encoded for JSON, a URL, HTML or JavaScript, or for several of them, to a common form:
 * lower-case letters and digits, and one mark for each other character. Takes linear time, because servers send
 * the text.
 */

/** The reduced text, and the position in the original of each of its characters. */
interface Plain {
  readonly text: string
  readonly startOf: (index: number) => number
  /** Whether the text had a backslash before a letter that `breaksLines` is about. */
  readonly hasControls: boolean
}

/** The treatment of escapes. */
interface Reading {
  /** Whether `\n` is a line end. If not, the backslash is ignored, as in a path. */
  readonly breaksLines?: boolean
  /** Whether the text was cut, so that an incomplete escape at its end is left out. */
  readonly isCut?: boolean
}

/** Reduces a text. */
const plain = (raw: string, reading: Reading = {}): Plain => {
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
  if (bytes !== undefined) return decodedText(bytes.replace(/%(?:25)+/g, "%"))
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

const decodedText = (bytes: string): string => {
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

// ───────────────────────── Pieces of keys

// Finds pieces of keys in a text: a start or an end of a key, a long piece of its middle, and the same in base64. Only letters and
// digits count, so that line ends, spaces and invisible characters between them change nothing. Takes linear time.

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
interface Keys {
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
type Piece = readonly [from: number, to: number, isEncoded: boolean]

/** The fewest characters of a start or an end. */
const minEdge = 8
/** The fewest letters in them. */
const minPieceLetters = 7
/** The fewest letters of a piece from the middle. */
const minPiece = 16
const gram = 8
const step = minPiece - gram + 1

/** Prepares the search for some keys. */
const of = (values: ReadonlyArray<string>, readings: ReadonlyArray<Reading>): Keys => {
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

const keyOf = (value: string, readings: ReadonlyArray<Reading>): Key => ({
  letters: readings.map((reading) => lettersOf(plain(value, reading).text)),
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
    if (count >= minPiece || (count >= minPieceLetters && !/^(?:[A-Z]?[a-z]+|[A-Z]+)$/.test(part)))
      return count
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
const find = (plain: Plain, { all, grams }: Keys, reading: number): ReadonlyArray<Piece> => {
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

// ───────────────────────── Spans

// Spans of requests without secrets, which may occur in the response of a server and in the errors of a client.

/** A tracer that redacts all texts. */
export const redacting = (tracer: Tracer.Tracer, redact: Redact): Tracer.Tracer =>
  Tracer.make({
    span: (options) => redactingSpan(tracer.span(options), redact),
    ...(tracer.context === undefined ? {} : { context: tracer.context })
  })

/** A proxy, because exporters store their own members in a span. */
const redactingSpan = (span: Tracer.Span, redact: Redact): Tracer.Span => {
  const clean = (value: unknown): unknown => (typeof value === "string" ? redact(value) : value)
  const overrides = {
    attribute: (key: string, value: unknown) => span.attribute(key, clean(value)),
    event: (name: string, startTime: bigint, attributes: Record<string, unknown> = {}) =>
      span.event(
        redact(name),
        startTime,
        Object.fromEntries(Object.entries(attributes).map(([key, value]) => [key, clean(value)]))
      ),
    end: (endTime: bigint, exit: Exit.Exit<unknown, unknown>) => span.end(endTime, cleanExit(exit, redact))
  }
  return new Proxy(span, {
    get: (target, name) => {
      const member: unknown = Reflect.get(Object.hasOwn(overrides, name) ? overrides : target, name)
      return typeof member === "function" ? member.bind(target) : member
    }
  })
}

/** Keeps only the message of a failure, because errors contain the request with its headers. */
const cleanExit = (exit: Exit.Exit<unknown, unknown>, redact: Redact): Exit.Exit<unknown, unknown> => {
  if (Exit.isSuccess(exit)) return Exit.void
  if (Cause.hasInterruptsOnly(exit.cause)) return exit
  const failure = Cause.squash(exit.cause)
  const error = new Error(redact(failure instanceof Error ? failure.message : String(failure)))
  if (failure instanceof Error) error.name = failure.name
  return Exit.fail(error)
}
