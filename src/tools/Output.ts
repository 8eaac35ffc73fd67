/**
 * Long text for a model: its head and its tail, and a note of what was left out between them. The head says what was
 * asked for, the tail how it ended; what is lost is the middle.
 */

/** Text that may come without end. Holds a part of it, in characters (UTF-16 code units), and counts the rest. */
export interface Bounded {
  readonly append: (text: string) => void
  /** Characters appended so far. */
  readonly total: () => number
  /** Characters that are no longer held. */
  readonly omitted: () => number
  /** The last `count` characters, or as many of them as are held without a gap. */
  readonly tail: (count: number) => string
  /** All of it, or head, note and tail. */
  readonly text: () => string
}

/**
 * An empty text that keeps half of `limit` from its start and half from its end. Holds up to one and a half times
 * `limit` in between.
 */
export const bounded = (limit: number): Bounded => {
  const headLimit = Math.floor(limit / 2)
  const tailLimit = limit - headLimit
  let head = ""
  let tail = ""
  let total = 0

  const omitted = () => total - head.length - Math.min(tail.length, tailLimit)
  return {
    append: (text) => {
      total += text.length
      const room = headLimit - head.length
      if (room > 0) head += text.slice(0, room)
      if (text.length <= room) return
      tail += text.slice(Math.max(room, text.length - tailLimit, 0))
      // Cut at twice the limit, not at each call: one copy for each `tailLimit` characters.
      if (tail.length > 2 * tailLimit) tail = tail.slice(-tailLimit)
    },
    total: () => total,
    omitted,
    tail: (count) => startWhole((omitted() === 0 ? head + tail : tail.slice(-tailLimit)).slice(-count)),
    text: () =>
      omitted() === 0
        ? head + tail
        : `${endWhole(head)}\n${omission(omitted())}\n${startWhole(tail.slice(-tailLimit))}`
  }
}

/** `text` as it is, or its head and tail of together `limit` characters with a note between them. */
export const cut = (text: string, limit: number): string => {
  const whole = bounded(limit)
  whole.append(text)
  return whole.text()
}

/** One line cut at its end to `limit` characters, with a note. */
export const cutLine = (line: string, limit: number): string =>
  line.length <= limit ? line : `${endWhole(line.slice(0, limit))} ${omission(line.length - limit)}`

/** A name on one line: control characters, line ends among them, are written as escapes. */
export const visible = (name: string): string =>
  name.replace(/\p{Cc}|[\u2028\u2029]/gu, (char) => `\\u{${char.charCodeAt(0).toString(16)}}`)

const omission = (count: number): string => `[... ${count} characters left out ...]`

// A cut in the middle of a surrogate pair would leave half a character, which is not valid text.
const endWhole = (text: string): string => (/[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text)
const startWhole = (text: string): string => (/^[\uDC00-\uDFFF]/.test(text) ? text.slice(1) : text)
