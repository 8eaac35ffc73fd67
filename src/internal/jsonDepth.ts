/**
 * How deep JSON from outside may nest: what is deeper says nothing, and whoever walks it runs out of stack.
 */

/** Levels of brackets. */
export const maxDepth = 256

/**
 * Counts brackets outside of strings, which it leaps over: 10 MB take a few milliseconds. A text too short to close as
 * many as it opens is none that parses, and most events of a stream are that short.
 */
export const nestsTooDeep = (json: string): boolean => {
  if (json.length <= 2 * maxDepth) return false
  let depth = 0
  for (let at = 0; at < json.length; at++) {
    const char = json.charCodeAt(at)
    if (char === 0x22) at = endOfString(json, at)
    else if (char === 0x7b || char === 0x5b) depth++
    else if (char === 0x7d || char === 0x5d) depth--
    if (depth > maxDepth) return true
  }
  return false
}

/** The index behind a string, an object or an array that begins at `start`; the length of the text where it does not end. */
export const endOfValue = (json: string, start: number): number => {
  let depth = 0
  for (let at = start; at < json.length; at++) {
    const char = json.charCodeAt(at)
    if (char === 0x22) at = endOfString(json, at)
    else if (char === 0x7b || char === 0x5b) depth++
    else if (char === 0x7d || char === 0x5d) depth--
    if (depth === 0) return at + 1
  }
  return json.length
}

/** The index of the quote that ends the string which begins at `start`; the length of the text where none does. */
export const endOfString = (json: string, start: number): number => {
  let end = json.indexOf('"', start + 1)
  while (end !== -1 && isEscaped(json, end)) end = json.indexOf('"', end + 1)
  return end === -1 ? json.length : end
}

/** An odd number of backslashes stands before it. */
const isEscaped = (json: string, at: number): boolean => {
  let slashes = 0
  while (json.charCodeAt(at - 1 - slashes) === 0x5c) slashes++
  return slashes % 2 === 1
}
