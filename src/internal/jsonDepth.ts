/**
 * Limits the depth of JSON from outside: functions that walk deeper values overflow the stack.
 */
import type * as Schema from "effect/Schema"

/** Most levels of brackets. */
export const maxDepth = 256

/**
 * Returns whether a JSON text nests deeper than `maxDepth`. Counts brackets and skips strings: 10 MB take a few milliseconds. A
 * text of at most `2 * maxDepth` characters cannot nest deeper and still be JSON.
 */
export const nestsTooDeep = (json: string): boolean => {
  if (json.length <= 2 * maxDepth) return false
  let depth = 0
  for (let at = 0; at < json.length; at++) {
    const char = json.charCodeAt(at)
    if (char === 0x22) at = endOfString(json, at)
    else depth += levelsOf(char)
    if (depth > maxDepth) return true
  }
  return false
}

/** The value of a JSON text, or `undefined` if the text is not JSON or nests too deep. */
export const parse = (text: string): Schema.Json | undefined => {
  if (nestsTooDeep(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The levels that a bracket opens or closes. */
const levelsOf = (char: number): number =>
  char === 0x7b || char === 0x5b ? 1 : char === 0x7d || char === 0x5d ? -1 : 0

/** The index of the quote that ends the string which begins at `start`, or the length of the text if no quote does. */
export const endOfString = (json: string, start: number): number => {
  let end = json.indexOf('"', start + 1)
  while (end !== -1 && isEscaped(json, end)) end = json.indexOf('"', end + 1)
  return end === -1 ? json.length : end
}

/** Returns whether an odd number of backslashes stands before the character. */
const isEscaped = (json: string, at: number): boolean => {
  let slashes = 0
  while (json.charCodeAt(at - 1 - slashes) === 0x5c) slashes++
  return slashes % 2 === 1
}
