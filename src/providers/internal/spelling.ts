/**
 * Text that was written for JSON, for a URL or for HTML, or for one inside the other, as what it says. In linear time,
 * whatever the text: it comes from servers.
 */

/** What a text says, and where in the text each character of that began. */
export interface Plain {
  readonly text: string
  readonly startOf: (index: number) => number
}

/** Resolves escapes, and takes capitals for small letters and the plus of a query for a space. */
export const plain = (raw: string): Plain => {
  let told: Plain = { text: raw, startOf: (index) => index }
  for (let depth = 0; depth < maxDepth && told.text.search(escape) !== -1; depth++) told = resolve(told, raw)
  return { ...told, text: told.text.replace(/[A-Z+]+/g, flat) }
}

/** The text without an escape that is cut off at its end. */
export const withoutCutEscape = (text: string): string =>
  text.replace(/(?:\\u?[0-9a-f]{0,3}|%[0-9a-f]?|&[#\w]{0,8})$/i, "")

/** JSON in JSON in a URL. */
const maxDepth = 4

// Backslashes before anything else say nothing of their own here.
const escape =
  /\\+u([0-9a-f]{4})|%([0-9a-f]{2})|&#([0-9]{1,6});|&#x([0-9a-f]{1,5});|&(amp|lt|gt|quot|apos);|\\+/gi

const flat = (text: string): string => text.replaceAll("+", " ").toLowerCase()

const resolve = ({ startOf, text }: Plain, raw: string): Plain => {
  const starts: Array<number> = []
  let resolved = ""
  let done = 0
  // Where an escape that stands for nothing began: it belongs to what follows.
  let pending: number | undefined
  const add = (char: string, start: number) => {
    resolved += char
    for (let unit = 0; unit < char.length; unit++) starts.push(pending ?? start)
    if (char !== "") pending = undefined
  }
  for (const match of text.matchAll(escape)) {
    for (; done < match.index; done++) add(text.charAt(done), startOf(done))
    const char = meaning(match)
    if (char === "") pending ??= startOf(match.index)
    else add(char, startOf(match.index))
    done = match.index + match[0].length
  }
  for (; done < text.length; done++) add(text.charAt(done), startOf(done))
  return { text: resolved, startOf: (index) => starts[index] ?? raw.length }
}

const meaning = ([, json, url, decimal, hex, name]: RegExpMatchArray): string => {
  if (name !== undefined) return entities[name.toLowerCase()] ?? ""
  const code = json ?? url ?? hex
  if (code !== undefined) return String.fromCodePoint(Number.parseInt(code, 16))
  return decimal === undefined ? "" : String.fromCodePoint(Number(decimal))
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" }
