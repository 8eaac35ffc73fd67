/**
 * Keeps keys out of everything that is said about a failure. Servers and proxies do echo them, each in its own spelling.
 */
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
  let secrets: ReadonlyArray<string> | undefined
  // Most calls say nothing that has to be looked at.
  const all = () => {
    const named = Object.entries(headers).flatMap(([name, value]) =>
      secretName.test(name) ? ofHeader(name, value) : []
    )
    return sought([...keys.map(Redacted.value), ...named, ...ofUrl(url)])
  }
  return (text) => (text === "" ? text : cutOut(text, (secrets ??= all())))
}

/** The value with its scheme; of cookies each one by itself too. */
const ofHeader = (name: string, value: string): ReadonlyArray<string> =>
  /cookie/i.test(name) ? [value, ...value.split(";").map((cookie) => cookie.replace(/^[^=]*=/, ""))] : [value]

const ofUrl = (url: string): ReadonlyArray<string> => {
  if (!URL.canParse(url)) return []
  const { password, searchParams, username } = new URL(url)
  // A key may stand there without a name, or be taken for one.
  const query = Array.from(searchParams, ([name, value]) => (value === "" ? name : value))
  return [...[username, password].map(decoded), ...query]
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** What is looked for: the values without their scheme, as they are when nothing of them is escaped. */
const sought = (values: ReadonlyArray<string>): ReadonlyArray<string> => {
  const bare = values.map((value) => value.trim().replace(/^(?:Bearer|Basic) +/i, ""))
  const all = bare.filter(({ length }) => length >= minLength).map((value) => Spelling.plain(value).text)
  return [...new Set(all)].filter(({ length }) => length >= minLength)
}

const cutOut = (text: string, secrets: ReadonlyArray<string>): string => {
  const { startOf, text: plain } = Spelling.plain(text)
  const found = secrets.flatMap((secret) => [...places(plain, secret), ...cutPlace(plain, secret)])
  let [clean, done] = ["", 0]
  for (const [from, to] of found.sort(([self], [that]) => self - that)) {
    const end = startOf(to)
    if (end <= done) continue
    // One that begins in another, or right behind it, is the same place.
    if (startOf(from) > done || clean === "") clean += `${text.slice(done, startOf(from))}[redacted]`
    done = end
  }
  return clean + text.slice(done)
}

type Place = readonly [from: number, to: number]

const places = (text: string, secret: string): ReadonlyArray<Place> => {
  const found: Array<Place> = []
  for (let at = text.indexOf(secret); at !== -1; at = text.indexOf(secret, at + secret.length)) {
    found.push([at, at + secret.length])
  }
  return found
}

/** A text that was cut may end in the middle of a secret: its beginning is enough there. */
const cutPlace = (text: string, secret: string): ReadonlyArray<Place> => {
  const whole = Spelling.withoutCutEscape(text)
  for (let length = Math.min(secret.length - 1, whole.length); length >= minLength; length--) {
    if (whole.endsWith(secret.slice(0, length))) return [[whole.length - length, text.length]]
  }
  return []
}
