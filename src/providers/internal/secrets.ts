/**
 * Keeps keys out of everything that is said about a failure. Servers and proxies do echo them, each in its own spelling.
 */
import * as Base64 from "effect/encoding/Base64"
import * as Redacted from "effect/Redacted"
import * as Spelling from "./spelling.ts"

/** Replaces what must not be shown. */
export type Redact = (text: string) => string

/** Shorter values are placeholders ("x", "ollama"), and would be cut out of ordinary words. */
const minLength = 8

/** Names of headers whose value is a secret. */
export const secretName = /auth|key|token|secret|cookie|password|session/i

/** The keys that were sent last: a server may still speak of one that has been replaced. */
export class Used {
  private keys: ReadonlyArray<Redacted.Redacted> = []

  /** All of them, with one that is sent now. */
  with(key: Redacted.Redacted | undefined): ReadonlyArray<Redacted.Redacted> {
    const isKnown = this.keys.some(
      (known) => key !== undefined && Redacted.value(known) === Redacted.value(key)
    )
    if (key !== undefined && !isKnown) this.keys = [...this.keys, key].slice(-maxUsed)
    return this.keys
  }
}

/** More than are in use at any one time. */
const maxUsed = 8

/** Redacts the keys, the headers whose name says that they are secret, and what a URL holds of the kind. */
export const make = (
  keys: ReadonlyArray<Redacted.Redacted>,
  headers: Readonly<Record<string, string>>,
  url: string
): Redact => {
  let secrets: ReadonlyArray<Secret> | undefined
  // Most calls say nothing that has to be looked at.
  const all = () => {
    const named = Object.entries(headers).flatMap(([name, value]) =>
      secretName.test(name) ? ofHeader(name, value) : []
    )
    return [...long([...keys.map(Redacted.value), ...named]), ...ofUrl(url)]
  }
  return (text) => (text === "" ? text : cutOut(text, (secrets ??= all())))
}

// ───────────────────────── What is looked for

interface Secret {
  readonly value: string
  /** It may be part of an ordinary word, and is looked for as a word of its own only. */
  readonly isWord: boolean
  /** As each reading has it, but for one that is nearly all marks: that would be found everywhere. */
  readonly plain: ReadonlyArray<string>
}

/** Both ways to read a backslash before a letter. */
const readings: ReadonlyArray<Spelling.Reading> = [{ breaksLines: true }, { breaksLines: false }]

const secretOf = (value: string): Secret => {
  const isWord = value.length < minLength
  const plain = readings.map((reading) => Spelling.plain(value, reading).text)
  return { value, isWord, plain: isWord || letters(plain[0] ?? "") >= minLetters ? plain : [] }
}

const letters = (plain: string): number => plain.replaceAll("_", "").length
const minLetters = 4

/** The values without their scheme, less those that are too short to be secrets. */
const long = (values: ReadonlyArray<string>): ReadonlyArray<Secret> => {
  const bare = values.map((value) => value.trim().replace(/^(?:Bearer|Basic) +/i, ""))
  return [...new Set(bare)].filter(({ length }) => length >= minLength).map(secretOf)
}

/** The value with its scheme; of cookies each one by itself too. */
const ofHeader = (name: string, value: string): ReadonlyArray<string> =>
  /cookie/i.test(name) ? [value, ...value.split(";").map((cookie) => cookie.replace(/^[^=]*=/, ""))] : [value]

/** Who has a user and a password in an address means them to be secret, however short they are. */
const ofUrl = (url: string): ReadonlyArray<Secret> => {
  if (!URL.canParse(url)) return []
  const { password, searchParams, username } = new URL(url)
  const [user, pass] = [decoded(username), decoded(password)]
  const named = Array.from(searchParams).filter(([name]) => secretName.test(name))
  // Clients send user and password in a header of this form.
  const basic = user === "" && pass === "" ? "" : Base64.encode(`${user}:${pass}`)
  const short = [user, pass, basic, ...named.map(([, value]) => value)].filter((value) => value !== "")
  // A key may stand there without a name, or be taken for one.
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

// ───────────────────────── Where it stands

const cutOut = (text: string, secrets: ReadonlyArray<Secret>): string => {
  const found = [...verbatim(text, secrets), ...readings.flatMap((_, index) => spelled(text, secrets, index))]
  let [clean, done] = ["", 0]
  for (const [from, to] of found.sort(([self], [that]) => self - that)) {
    if (to <= done) continue
    // One that begins in another, or right behind it, is the same place.
    if (from > done || clean === "") clean += `${text.slice(done, from)}[redacted]`
    done = to
  }
  return clean + text.slice(done)
}

type Place = readonly [from: number, to: number]

const verbatim = (text: string, secrets: ReadonlyArray<Secret>): ReadonlyArray<Place> =>
  secrets.flatMap(({ isWord, value }) => places(text, value, isWord))

/** In whatever spelling. */
const spelled = (raw: string, secrets: ReadonlyArray<Secret>, index: number): ReadonlyArray<Place> => {
  const reading = readings[index]
  const { startOf, text } = Spelling.plain(raw, reading)
  const behind = Math.max(0, raw.length - maxCut)
  const cut = Spelling.plain(raw.slice(behind), { ...reading, isCut: true })
  return secrets.flatMap(({ isWord, plain }): ReadonlyArray<Place> => {
    const secret = plain[index]
    if (secret === undefined) return []
    const whole = places(text, secret, isWord).map(([from, to]) => [startOf(from), startOf(to)] as const)
    const begun = isWord ? undefined : beginning(cut.text, secret)
    return begun === undefined ? whole : [...whole, [behind + cut.startOf(begun), raw.length]]
  })
}

/** Characters at the end of a text, among which a secret begins that the end cuts: the longest of keys, escaped. */
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

/** Where a secret begins that a text which was cut ends in the middle of. */
const beginning = (text: string, secret: string): number | undefined => {
  for (let length = Math.min(secret.length - 1, text.length); length >= minLength; length--) {
    if (text.endsWith(secret.slice(0, length))) return text.length - length
  }
  return undefined
}
