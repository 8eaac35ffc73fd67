/** Removes keys from the text of failures. Servers and proxies repeat them, in various encodings. */
import * as Base64 from "effect/encoding/Base64"
import * as Redacted from "effect/Redacted"
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
  let secrets: ReadonlyArray<Secret> | undefined
  // Computed on first use, because most calls have no text to redact.
  const all = () => {
    const named = Object.entries(headers).flatMap(([name, value]) =>
      secretName.test(name) ? ofHeader(name, value) : []
    )
    return [...long([...keys.map(Redacted.value), ...named]), ...ofUrl(url)]
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

/** The value with its scheme, and each cookie separately. */
const ofHeader = (name: string, value: string): ReadonlyArray<string> =>
  /cookie/i.test(name) ? [value, ...value.split(";").map((cookie) => cookie.replace(/^[^=]*=/, ""))] : [value]

/** User and password in a URL are secrets of any length. */
const ofUrl = (url: string): ReadonlyArray<Secret> => {
  if (!URL.canParse(url)) return []
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

const cutOut = (text: string, secrets: ReadonlyArray<Secret>): string => {
  const found = [...verbatim(text, secrets), ...spelled(text, secrets)]
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
const spelled = (raw: string, secrets: ReadonlyArray<Secret>): ReadonlyArray<Place> => {
  const behind = Math.max(0, raw.length - maxCut)
  const wholes = plainly(raw)
  const cuts = plainly(raw.slice(behind), true)
  return secrets.flatMap(({ isWord, plain }) =>
    wholes.flatMap(({ startOf, text }, index): ReadonlyArray<Place> => {
      const [secret, cut] = [plain[index], cuts[index]]
      if (secret === undefined || cut === undefined) return []
      const whole: Array<Place> = places(text, secret, isWord).map(([from, to]) => [
        startOf(from),
        startOf(to)
      ])
      const parts = isWord
        ? []
        : broken(text, secret).map(([from, to]) => [startOf(from), startOf(to)] as const)
      whole.push(...parts)
      const begun = isWord ? undefined : beginning(cut.text, secret)
      return begun === undefined ? whole : [...whole, [behind + cut.startOf(begun), raw.length]]
    })
  )
}

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

/** The fewest characters of a secret that are cut out of the middle of a text: more than all keys of a vendor share, such as `sk-ant-api03-`. */
const minBroken = 16

/** The starts of a secret in the middle of a text. */
const broken = (text: string, secret: string): ReadonlyArray<Place> => {
  const start = secret.slice(0, Math.min(minBroken, secret.length - 1))
  if (start.length < minLength) return []
  return places(text, start, false).map(([from]) => {
    let to = from + start.length
    while (to - from < secret.length && text[to] === secret[to - from]) to++
    return [from, to]
  })
}

const isLetter = (char: string): boolean => /[\p{L}\p{N}]/u.test(char)

/** The start of a secret that the end of the text cuts off. */
const beginning = (text: string, secret: string): number | undefined => {
  for (let length = Math.min(secret.length - 1, text.length); length >= minLength; length--) {
    if (text.endsWith(secret.slice(0, length))) return text.length - length
  }
  return undefined
}
