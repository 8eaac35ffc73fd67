/**
 * Matches paths against patterns with `*`, `?`, `[a-z]` and `**`, one name after the other.
 *
 * The time for a name is at most proportional to its length and that of the pattern, whatever both hold. A regular
 * expression with several stars needs a power of that.
 */

/** Counts work, for callers that pause. A unit takes some nanoseconds. */
export interface Meter {
  units: number
}

/** Units between two pauses. */
export const stride = 100_000

interface Class {
  /** Pairs of code points: the first and the last of each range. */
  readonly ranges: ReadonlyArray<number>
  readonly isNegated: boolean
}

const [star, single] = [-1, -2]

/** A code point, `star`, `single`, or a class. */
type Token = number | Class

/** The pattern of one name: its start and its end without wildcards, and what is between them. */
export interface Name {
  readonly prefix: string
  readonly middle: ReadonlyArray<Token>
  readonly suffix: string
}

/** `"**"` stands for any number of names, else one of the patterns matches the name. */
export type Part = "**" | ReadonlyArray<Name>

/** Any name. */
export const anyName: Part = [{ prefix: "", middle: [star], suffix: "" }]

/** The indexes of the parts that may match the next name, ascending. The last one may be the number of parts. */
export type States = ReadonlyArray<number>

/**
 * Parses a pattern without the `/` at its start and its end. `undefined` if no path can match it. With
 * `literalClasses` brackets also stand for themselves.
 */
export const parse = (pattern: string, literalClasses = false): ReadonlyArray<Part> | undefined => {
  const parts: Array<Part> = []
  for (const text of pattern.split("/")) {
    if (!/^\*{2,}$/.test(text)) {
      const names = [
        nameOf(text, true),
        literalClasses && text.includes("[") ? nameOf(text, false) : undefined
      ]
      const known = names.filter((name) => name !== undefined)
      if (known.length === 0) return undefined
      parts.push(known)
    } else if (parts.at(-1) !== "**") parts.push("**")
  }
  return parts
}

/** The states before the first name. */
export const start = (parts: ReadonlyArray<Part>): States => (parts[0] === "**" ? [0, 1] : [0])

/** The states after a name. */
export const step = (parts: ReadonlyArray<Part>, states: States, name: string, meter: Meter): States => {
  const next: Array<number> = []
  // States come in ascending order, so that one which is not above the last is there already.
  const add = (state: number) => {
    if (state <= (next.at(-1) ?? -1)) return
    next.push(state)
    if (parts[state] === "**") next.push(state + 1)
  }
  for (const state of states) {
    const part = parts[state]
    if (part === "**") add(state)
    else if (part !== undefined && fitsAny(part, name, meter)) add(state + 1)
  }
  meter.units += states.length
  return next
}

/** Whether the path ends as the pattern does if this is its last name. */
export const endsWith = (parts: ReadonlyArray<Part>, states: States, name: string, meter: Meter): boolean => {
  for (let index = states.length - 1; index >= 0; index--) {
    const state = states[index] ?? 0
    const part = parts[state]
    if (part === undefined) continue
    if (part === "**" && state === parts.length - 1) return true
    const isLast = state === parts.length - 1 || (state === parts.length - 2 && parts[state + 1] === "**")
    if (!isLast) return false
    if (part !== "**" && fitsAny(part, name, meter)) return true
  }
  return false
}

const fitsAny = (part: ReadonlyArray<Name>, name: string, meter: Meter): boolean => {
  for (const each of part) if (fits(each, name, meter)) return true
  return false
}

/** Whether a name matches. */
export const fits = ({ middle, prefix, suffix }: Name, name: string, meter: Meter): boolean => {
  meter.units++
  if (middle.length === 0) return name === prefix
  const end = name.length - suffix.length
  if (end < prefix.length || !name.startsWith(prefix) || !name.endsWith(suffix)) return false
  // Going back to the last star is enough, because an earlier one can leave the rest to it.
  let [at, token, afterStar, resume] = [prefix.length, 0, -1, 0]
  while (at < end) {
    meter.units++
    const wanted = middle[token]
    const code = name.codePointAt(at) ?? 0
    if (wanted === star) {
      if (++token === middle.length) return true
      ;[afterStar, resume] = [token, at]
    } else if (wanted !== undefined && takes(wanted, code)) {
      at += code > 0xffff ? 2 : 1
      token++
    } else if (afterStar === -1) return false
    else [token, at] = [afterStar, ++resume]
  }
  return token === middle.length || (token === middle.length - 1 && middle[token] === star)
}

const takes = (wanted: Token, code: number): boolean => {
  if (typeof wanted === "number") return wanted === code || wanted === single
  const { isNegated, ranges } = wanted
  for (let index = 0; index < ranges.length; index += 2) {
    if (code >= (ranges[index] ?? 0) && code <= (ranges[index + 1] ?? 0)) return !isNegated
  }
  return isNegated
}

/** Parses the pattern of one name. `undefined` for a class without an end, and a backslash without a character. */
const nameOf = (text: string, areClasses: boolean): Name | undefined => {
  const chars = Array.from(text)
  const tokens: Array<Token> = []
  for (let at = 0; at < chars.length; at++) {
    const char = chars[at] ?? ""
    if (char === "*") {
      if (tokens.at(-1) !== star) tokens.push(star)
    } else if (char === "?") tokens.push(single)
    else if (char === "[" && areClasses) {
      const found = classAt(chars, at)
      if (found === undefined) return undefined
      tokens.push(found.token)
      at = found.end
    } else {
      const literal = char === "\\" ? chars[++at] : char
      if (literal === undefined) return undefined
      tokens.push(pointOf(literal))
    }
  }
  const isLiteral = (token: Token) => typeof token === "number" && token >= 0
  const first = tokens.findIndex((token) => !isLiteral(token))
  if (first === -1) return { prefix: textOf(tokens), middle: [], suffix: "" }
  const last = tokens.findLastIndex((token) => !isLiteral(token))
  return {
    prefix: textOf(tokens.slice(0, first)),
    middle: tokens.slice(first, last + 1),
    suffix: textOf(tokens.slice(last + 1))
  }
}

const pointOf = (char: string): number => char.codePointAt(0) ?? 0

const textOf = (tokens: ReadonlyArray<Token>): string =>
  tokens.map((token) => (typeof token === "number" ? String.fromCodePoint(token) : "")).join("")

/** The class that begins at a bracket, as git reads it, and the index of its end. */
const classAt = (
  chars: ReadonlyArray<string>,
  open: number
): { readonly token: Class; readonly end: number } | undefined => {
  const ranges: Array<number> = []
  const isNegated = chars[open + 1] === "!" || chars[open + 1] === "^"
  const first = isNegated ? open + 2 : open + 1
  const member = (index: number) => (chars[index] === "\\" ? index + 1 : index)
  for (let at = first; at < chars.length; at++) {
    if (chars[at] === "]" && at > first) return { token: { ranges, isNegated }, end: at }
    const named = chars[at] === "[" && chars[at + 1] === ":" ? chars.indexOf("]", at) : -1
    if (named !== -1 && chars[named - 1] === ":") {
      const members = classes.get(chars.slice(at + 2, named - 1).join(""))
      if (members === undefined) return undefined
      ranges.push(...Array.from(members, pointOf))
      at = named
      continue
    }
    at = member(at)
    const isRange = chars[at + 1] === "-" && chars[at + 2] !== undefined && chars[at + 2] !== "]"
    const end = isRange ? member(at + 2) : at
    const [low, high] = [chars[at], chars[end]]
    if (low === undefined || high === undefined) return undefined
    ranges.push(pointOf(low), Math.max(pointOf(low), pointOf(high)))
    at = end
  }
  return undefined
}

/** The named classes, as pairs of characters. */
const classes = new Map([
  ["alnum", "09AZaz"],
  ["alpha", "AZaz"],
  ["blank", "\t\t  "],
  ["cntrl", "\0\x1f\x7f\x7f"],
  ["digit", "09"],
  ["graph", "!~"],
  ["lower", "az"],
  ["print", " ~"],
  ["punct", "!/:@[`{~"],
  ["space", "\t\n\r\r  "],
  ["upper", "AZ"],
  ["xdigit", "09AFaf"]
])
