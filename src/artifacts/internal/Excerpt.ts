/**
 * The start and the end of a text, and words about the part between them.
 */

/** Characters that are reserved for the words about the rest. */
const reserved = 400

/** Returns the start and the end of a text in at most `max` characters. `artifactId` names the artifact that has all of it. */
export const make = (text: string, max: number, artifactId?: string): string => {
  const room = max - reserved
  const headEnd = lineEnd(text, whole(text, Math.ceil(room / 2)), Math.ceil(room / 8))
  const tailStart = lineStart(text, whole(text, text.length - Math.floor(room / 2)), Math.floor(room / 8))
  const head = text.slice(0, headEnd).replace(/\n$/, "")
  return `${head}\n[… ${noteOf(text, headEnd, tailStart, artifactId)} …]\n${text.slice(tailStart)}`
}

/** The start of the line in which a position is, if it is at most `slack` characters before it. */
const lineEnd = (text: string, end: number, slack: number): number => {
  const at = text.lastIndexOf("\n", end - 1) + 1
  return at > 0 && end - at <= slack ? at : end
}

/** The start of the line after a position, if it is at most `slack` characters behind it. */
const lineStart = (text: string, start: number, slack: number): number => {
  if (text[start - 1] === "\n") return start
  const at = text.indexOf("\n", start) + 1
  return at > 0 && at - start <= slack ? at : start
}

const noteOf = (text: string, from: number, to: number, artifactId: string | undefined): string => {
  const omitted = `${to - from} of ${text.length} characters are left out here`
  if (artifactId === undefined) {
    return `${omitted}. They could not be stored: call the tool again for a smaller part, if you need them`
  }
  const isAtLine = text[from - 1] === "\n"
  const first = count(text, 0, from) + 1
  const place = isAtLine ? `from line ${first} of ${total(text)}` : `from character ${from + 1}`
  const page = isAtLine ? { offset: first } : { unit: "characters", offset: from + 1 }
  return `${omitted}, ${place}. The whole text is an artifact: read it with read_artifact ${JSON.stringify({ id: artifactId, ...page })}`
}

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
