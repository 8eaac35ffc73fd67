/**
 * Matches paths against patterns with `*`, `?`, `[a-z]` and `**`, one name after the other.
 *
 * The time for a name is at most proportional to its length and that of the pattern, whatever both hold. A regular
 * expression with several stars needs a power of that.
 */
import * as Effect from "effect/Effect"
import * as Path from "effect/Path"
import * as Result from "effect/Result"
import type * as Paced from "../Paced.ts"
import { PathRefused } from "../PathFailure.ts"
import type * as Root from "../Root.ts"
import type * as Folder from "./Folder.ts"

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
interface Name {
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
const fits = ({ middle, prefix, suffix }: Name, name: string, meter: Meter): boolean => {
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

// ───────────────────────── Globs

/** Whether a path below the folder of the search matches. Paths of folders end in `/`. */
export type PathGlob = (path: string) => Paced.Work<boolean>

/** Maximum characters of a glob, and of the patterns for which its braces stand. */
const maximum = { characters: 1_000, patterns: 200 }

/**
 * Makes a matcher. Fails with what is wrong with the glob. Several globs are separated by commas, spaces or `|`;
 * one with a leading `!` excludes paths. `[id]` matches a name with these brackets too. `tops` are names of the
 * folder of the search, for absolute globs. With `forFiles` a folder stands for the files in it.
 */
export const make = (
  glob: string,
  { forFiles = false, tops = [] }: { readonly tops?: ReadonlyArray<string>; readonly forFiles?: boolean } = {}
): Result.Result<PathGlob, string> =>
  Result.gen(function* () {
    if (glob.length > maximum.characters)
      return yield* Result.fail(`it has more than ${maximum.characters} characters`)
    if (/[@!+]\([^)]*\|/.test(glob)) return yield* Result.fail("for alternatives use {a,b}, not @(a|b)")
    const wanted: Array<ReadonlyArray<Pattern>> = []
    const unwanted: Array<ReadonlyArray<Pattern>> = []
    for (const one of listed(glob)) {
      const isExclusion = one.startsWith("!")
      const relative = relativeTo(tops, isExclusion ? one.slice(1) : one)
      const patterns = expanded(forFiles ? withFiles(relative) : [relative])
      if (patterns === undefined)
        return yield* Result.fail(`its braces stand for more than ${maximum.patterns} patterns`)
      ;(isExclusion ? unwanted : wanted).push(patterns.flatMap(patternOf))
    }
    const [included, excluded] = [wanted.flat(), unwanted.flat()]
    return function* (path) {
      const isIncluded = wanted.length === 0 || (yield* isMatch(included, path))
      return isIncluded && !(yield* isMatch(excluded, path))
    }
  })

/** Makes the matcher of a call that searches a folder. `forFiles`: a folder stands for the files in it. */
export const within = Effect.fnUntraced(function* (
  options: Root.Options,
  folder: Folder.Folder,
  shown: string,
  glob: string,
  forFiles: boolean
) {
  const paths = yield* Path.Path
  const tops = [folder.path, paths.resolve(options.root, shown)]
  return yield* Effect.fromResult(
    Result.mapError(make(glob, { tops, forFiles }), (detail) => new PathRefused({ path: glob, detail }))
  )
})

interface Pattern {
  readonly parts: ReadonlyArray<Part>
  readonly forFolders: boolean
}

function* isMatch(patterns: ReadonlyArray<Pattern>, path: string): Paced.Work<boolean> {
  const isFolder = path.endsWith("/")
  const names = (isFolder ? path.slice(0, -1) : path).split("/")
  const last = names.pop() ?? ""
  const meter = { units: 0 }
  for (const { forFolders, parts } of patterns) {
    if (forFolders && !isFolder) continue
    let states = start(parts)
    for (const name of names) {
      states = step(parts, states, name, meter)
      if (states.length === 0) break
      if (meter.units < stride) continue
      meter.units = 0
      yield
    }
    if (endsWith(parts, states, last, meter)) return true
  }
  return false
}

/** The globs of a list. One text is a list only if each part has a wildcard. */
const listed = (glob: string): ReadonlyArray<string> => {
  const parts = glob.split(/[,|;\s]+(?![^{]*\})/).filter((part) => part !== "")
  return parts.length > 1 && parts.every((part) => /[*?]|^!/.test(part)) ? parts : [glob]
}

/** An absolute glob below the folder starts there, as one with a leading `/` does. */
const relativeTo = (tops: ReadonlyArray<string>, glob: string): string => {
  const top = tops.find((top) => glob === top || glob.startsWith(`${top}/`))
  return top === undefined ? glob : glob.slice(top.length) || "/"
}

const withFiles = (glob: string): ReadonlyArray<string> =>
  glob.endsWith("/")
    ? [`${glob}**`.replace(/\*\*\/\*\*$/, "**")]
    : /[*?]/.test(glob)
      ? [glob]
      : [glob, `${glob}/**`]

/** The patterns for which braces stand, innermost first. `undefined` if there are too many. */
const expanded = (globs: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
  const done = new Set<string>()
  const left = [...globs]
  for (let glob = left.pop(); glob !== undefined; glob = left.pop()) {
    const braces = /\{([^{}]*,[^{}]*|\d{1,4}\.\.\d{1,4})\}/.exec(glob)
    if (braces === null) done.add(glob)
    else {
      const [all, inner = ""] = braces
      const [before, after] = [glob.slice(0, braces.index), glob.slice(braces.index + all.length)]
      for (const word of wordsOf(inner)) left.push(before + word + after)
    }
    if (done.size + left.length > maximum.patterns) return undefined
  }
  return Array.from(done)
}

const wordsOf = (inner: string): ReadonlyArray<string> => {
  const [first, last] = inner.split("..").map(Number)
  if (inner.includes(",") || first === undefined || last === undefined) return inner.split(",")
  return Array.from({ length: Math.abs(last - first) + 1 }, (_, index) => `${Math.min(first, last) + index}`)
}

/** A glob without a `/` is one for names in all folders. */
const patternOf = (glob: string): ReadonlyArray<Pattern> => {
  const forFolders = glob.endsWith("/")
  const names = glob.split("/").filter((name) => name !== "" && name !== ".")
  const isPlaced = glob.slice(0, -1).includes("/")
  // `**.ts` means `**/*.ts`.
  const parts = parse(
    [...(isPlaced ? [] : ["**"]), ...names.map((name) => name.replace(/^\*\*+(?=[^*])/, "**/*"))].join("/"),
    true
  )
  return parts === undefined ? [] : [{ parts, forFolders }]
}

const advice: ReadonlyArray<readonly [RegExp, string]> = [
  [/^~/, "~ is not expanded"],
  [/(?:^|\/)\.\.(?:\/|$)/, "A glob does not leave the folder that is searched: set path"],
  [/[^\\]\\[A-Za-z*]/, "Use / between names"],
  [/^\.\*|\\\.|.\$$|^\^|\.\+/, "This is a glob, not a regular expression: * stands for any characters"],
  [/^\/?[^/*]+\//, "A glob with / starts at the folder that is searched. For any depth begin it with **/"]
]

/** Advice for the model on a glob that matches nothing, `""` if there is none. */
export const adviceOn = (glob: string): string => {
  const found = advice.find(([form]) => form.test(glob))
  return found === undefined ? "" : ` ${found[1]}.`
}
