/**
 * Positions in a text.
 */

/** Returns the position, or the one before it where it stands within a surrogate pair. */
export const whole = (text: string, at: number): number => {
  if (at <= 0) return 0
  if (at >= text.length) return text.length
  return isHigh(text.charCodeAt(at - 1)) && isLow(text.charCodeAt(at)) ? at - 1 : at
}

const isHigh = (code: number): boolean => code >= 0xd800 && code <= 0xdbff
const isLow = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

/** Counts the line ends of a part. */
export const count = (text: string, from: number, to: number): number => {
  let ends = 0
  for (let at = text.indexOf("\n", from); at >= 0 && at < to; at = text.indexOf("\n", at + 1)) ends++
  return ends
}

/** Returns the number of lines. A line end at the end of the text begins no further line. */
export const total = (text: string): number => count(text, 0, text.length) + (text.endsWith("\n") ? 0 : 1)

/** Returns where a line begins, from 1; `undefined` behind the last line. */
export const startOf = (text: string, line: number): number | undefined => {
  let start = 0
  for (let number = 1; number < line; number++) {
    const end = text.indexOf("\n", start)
    if (end < 0) return undefined
    start = end + 1
  }
  return start
}
