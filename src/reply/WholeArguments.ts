/**
 * The arguments of a call as one JSON object, where a server sent them encoded twice, repeated, or behind an empty object.
 */
import type * as Schema from "effect/Schema"
import { isObject, parse } from "../internal/json.ts"

/**
 * The JSON text of the arguments; the text as it came where it is neither an object nor a known way to send one. `last`: the last piece,
 * if it has all the pieces before.
 */
export const wholeArguments = (raw: string, last?: string): string => {
  const value = raw.trim() === "" ? undefined : parse(raw)
  if (value !== undefined) return typeof value === "string" ? (encodedIn(value) ?? raw) : raw
  if (last !== undefined && isObject(parse(last))) return last
  const texts = textsIn(raw)?.map(decoded)
  if (texts === undefined || texts.length < 2) return raw
  const given = texts.filter((text, at) => at === texts.length - 1 || !isEmpty(text))
  const [first, ...others] = given.map(canonical)
  return first !== undefined && others.every((other) => other === first) ? (given[0] ?? raw) : raw
}

/** Two texts of one JSON value have the same canonical text; `undefined` for a text that is not JSON. */
export const canonical = (text: string): string | undefined => {
  const value = parse(decoded(text))
  return value === undefined ? undefined : JSON.stringify(value)
}

/** The object that a JSON string encodes, or the text itself. */
const decoded = (text: string): string => {
  const value = text.trimStart().startsWith('"') ? parse(text) : undefined
  return typeof value === "string" ? (encodedIn(value) ?? text) : text
}

/** The JSON object in a text, which may be encoded again. */
const encodedIn = (text: string): string | undefined => {
  const value: Schema.Json | undefined = parse(text)
  if (isObject(value)) return text
  return typeof value === "string" && value.length < text.length ? encodedIn(value) : undefined
}

const isEmpty = (text: string): boolean => /^\s*\{\s*\}\s*$/.test(text)

/** The JSON objects and strings that follow each other in a text, `undefined` if it holds anything else. */
const textsIn = (raw: string): ReadonlyArray<string> | undefined => {
  const texts: Array<string> = []
  for (let at = afterBlank(raw, 0); at < raw.length; at = afterBlank(raw, at)) {
    const end = new JsonEnd().find(raw, at)
    if (end === undefined) return undefined
    texts.push(raw.slice(at, end))
    at = end
  }
  return texts
}

const afterBlank = (text: string, from: number): number => {
  let at = from
  while (isBlank(text.charCodeAt(at))) at++
  return at
}

const isBlank = (char: number): boolean => char === 0x20 || char === 0x0a || char === 0x0d || char === 0x09

/** Finds the end of a JSON object or string that arrives in pieces. */
export class JsonEnd {
  /** Whether the value has ended, and nothing but white space follows. */
  isWhole = false

  private depth = 0
  private isInString = false
  private isEscaped = false
  private isBroken = false

  /** Reads the next piece. */
  add(piece: string): this {
    const end = this.find(piece, 0)
    if (end !== undefined) this.find(piece, end)
    return this
  }

  /** Reads a piece from an index. Returns the index after the value, `undefined` if it does not end there. */
  find(text: string, from: number): number | undefined {
    for (let at = from; at < text.length && !this.isBroken; at++) {
      const char = text.charCodeAt(at)
      if (!this.isInString && isBlank(char)) continue
      this.isBroken = this.isWhole || !this.takes(char)
      this.isWhole = !this.isBroken && this.depth === 0 && !this.isInString
      if (this.isWhole) return at + 1
    }
    return undefined
  }

  /** Returns whether the character can be part of the value. */
  private takes(char: number): boolean {
    if (this.isInString) {
      if (this.isEscaped) this.isEscaped = false
      else if (char === 0x5c) this.isEscaped = true
      else if (char === 0x22) this.isInString = false
    } else if (char === 0x22) this.isInString = true
    else if (char === 0x7b || char === 0x5b) this.depth++
    else if (char === 0x7d || char === 0x5d) this.depth--
    else return this.depth > 0
    return this.depth >= 0
  }
}
