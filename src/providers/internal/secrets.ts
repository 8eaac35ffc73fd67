/**
 * Keeps keys out of everything that is said about a failure. Servers and proxies do echo them.
 */
import * as Redacted from "effect/Redacted"

/** Replaces what must not be shown. */
export type Redact = (text: string) => string

/** Shorter values are placeholders ("x", "ollama"), and would be cut out of ordinary words. */
const minLength = 8

/** Names of headers whose value is a secret. */
export const secretName = /auth|key|token|secret|cookie|password|session/i

/** Redacts the keys, the headers whose name says that they are secret, and what a URL holds of the kind. */
export const make = (
  keys: ReadonlyArray<Redacted.Redacted>,
  headers: Readonly<Record<string, string>>,
  url: string
): Redact => {
  let forms: ReadonlyArray<string> | undefined
  // Most calls say nothing that has to be looked at.
  const all = () => {
    const named = Object.entries(headers).flatMap(([name, value]) => (secretName.test(name) ? [value] : []))
    const values = [...keys.map(Redacted.value), ...named, ...ofUrl(url)]
    return [...new Set(values.flatMap(formsOf))].sort((a, b) => b.length - a.length)
  }
  return (text) => (forms ??= all()).reduce((rest, form) => rest.replaceAll(form, "[redacted]"), text)
}

const ofUrl = (url: string): ReadonlyArray<string> => {
  if (!URL.canParse(url)) return []
  const { password, searchParams } = new URL(url)
  return [password, ...searchParams.values()]
}

const printable = /^[ -~]+$/

/** As it is, without its scheme, and as it looks inside JSON and in a URL. */
const formsOf = (value: string): ReadonlyArray<string> => {
  const bare = value.trim().replace(/^(?:Bearer|Basic) +/i, "")
  return bare.length < minLength
    ? []
    : [
        value,
        bare,
        JSON.stringify(bare).slice(1, -1),
        ...(printable.test(bare) ? [encodeURIComponent(bare)] : [])
      ]
}
