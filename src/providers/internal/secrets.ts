/** Removes keys from the text of failures. Servers and proxies repeat them, in various encodings. */
import * as Base64 from "effect/encoding/Base64"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as KeyPieces from "./keyPieces.ts"
import * as Spelling from "./spelling.ts"

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
  readonly pieces: KeyPieces.Keys
}

const prepared = (each: ReadonlyArray<Secret>): Secrets => {
  const values = each.flatMap(({ isWord, plain, value }) => (isWord || plain.length === 0 ? [] : [value]))
  return { each, pieces: KeyPieces.of(values, readings) }
}

/** Both readings of a backslash before a letter. */
const readings: ReadonlyArray<Spelling.Reading> = [{ breaksLines: true }, { breaksLines: false }]

const secretOf = (value: string): Secret => {
  const isWord = value.length < minLength
  const plain = readings.map((reading) => Spelling.plain(value, reading).text)
  return { value, isWord, plain: isWord || letters(plain[0] ?? "") >= minLetters ? plain : [] }
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
const spelled = (
  raw: string,
  secrets: ReadonlyArray<Secret>,
  pieces: KeyPieces.Keys
): ReadonlyArray<Place> => {
  const behind = Math.max(0, raw.length - maxCut)
  const wholes = plainly(raw)
  const cuts = plainly(raw.slice(behind), true)
  const read = [...new Set(wholes)]
  const found = read.flatMap((plain, reading) => KeyPieces.find(plain, pieces, reading))
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
const plainly = (raw: string, isCut = false): ReadonlyArray<Spelling.Plain> => {
  const [first, second] = readings.map((reading) => ({ ...reading, isCut }))
  const one = Spelling.plain(raw, first)
  return [one, one.hasControls ? Spelling.plain(raw, second) : one]
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
