/**
 * The start and the end of a text, and words about the part between them.
 */
import * as Lines from "./Lines.ts"

/** Characters that are reserved for the words about the rest. */
const reserved = 400

/** Returns the start and the end of a text in at most `max` characters. `artifactId` names the artifact that has all of it. */
export const make = (text: string, max: number, artifactId?: string): string => {
  const room = max - reserved
  const headEnd = lineEnd(text, Lines.whole(text, Math.ceil(room / 2)), Math.ceil(room / 8))
  const tailStart = lineStart(
    text,
    Lines.whole(text, text.length - Math.floor(room / 2)),
    Math.floor(room / 8)
  )
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
  const first = Lines.count(text, 0, from) + 1
  const place = isAtLine ? `from line ${first} of ${Lines.total(text)}` : `from character ${from + 1}`
  const page = isAtLine ? { offset: first } : { unit: "characters", offset: from + 1 }
  return `${omitted}, ${place}. The whole text is an artifact: read it with read_artifact ${JSON.stringify({ id: artifactId, ...page })}`
}
