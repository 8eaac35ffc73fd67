/**
 * Shortens long text for a model.
 *
 * It keeps the start and the end, where the request and the outcome of a command are, and replaces the middle
 * by a note.
 *
 * @since 0.1.0
 */

/**
 * A growing text that keeps a part of what was appended and counts the rest.
 *
 * Lengths are in characters (UTF-16 code units).
 *
 * @since 0.1.0
 * @category models
 */
export interface Bounded {
  /** Adds text at the end. */
  readonly append: (text: string) => void
  /** Number of characters appended. */
  readonly total: () => number
  /** Number of characters that are no longer kept. */
  readonly omitted: () => number
  /** The last `count` characters, or fewer if not all of them are kept. */
  readonly tail: (count: number) => string
  /** The complete text, or its start, a note and its end. */
  readonly text: () => string
}

/**
 * Makes an empty text that keeps `limit` characters: half from the start and half from the end.
 *
 * **Details**
 *
 * It holds up to one and a half times `limit` characters in memory.
 *
 * **Example** (Bounding the output of a command)
 *
 * ```ts
 * import { Output } from "effect-agent/tools"
 *
 * const output = Output.bounded(10)
 * output.append("abcdefghij")
 * output.append("klmnopqrst")
 * console.log(output.text())
 * // => abcde
 * // => [... 10 characters left out ...]
 * // => pqrst
 * ```
 *
 * @since 0.1.0
 * @category constructors
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
      // Cutting at twice the limit copies once for each `tailLimit` characters, not once for each call.
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

/**
 * Returns `text` unchanged if it has at most `limit` characters, else its start and end of together `limit`
 * characters with a note in between.
 *
 * **Example** (Cutting a text)
 *
 * ```ts
 * import { Output } from "effect-agent/tools"
 *
 * console.log(Output.cut("abcdefghij", 4))
 * // => ab
 * // => [... 6 characters left out ...]
 * // => ij
 * ```
 *
 * @since 0.1.0
 * @category formatting
 */
export const cut = (text: string, limit: number): string => {
  const whole = bounded(limit)
  whole.append(text)
  return whole.text()
}

/**
 * Returns one line, cut after `limit` characters with a note.
 *
 * **Example** (Cutting a line)
 *
 * ```ts
 * import { Output } from "effect-agent/tools"
 *
 * console.log(Output.cutLine("abcdefghij", 4)) // => abcd [... 6 characters left out ...]
 * ```
 *
 * @since 0.1.0
 * @category formatting
 */
export const cutLine = (line: string, limit: number): string =>
  line.length <= limit ? line : `${endWhole(line.slice(0, limit))} ${omission(line.length - limit)}`

/**
 * Escapes control characters and line ends, so that a name stays on one line.
 *
 * **Example** (Showing a file name)
 *
 * ```ts
 * import { Output } from "effect-agent/tools"
 *
 * console.log(Output.visible("a\nb")) // => a\u{a}b
 * ```
 *
 * @since 0.1.0
 * @category formatting
 */
export const visible = (name: string): string =>
  name.replace(/\p{Cc}|[\u2028\u2029]/gu, (char) => `\\u{${char.charCodeAt(0).toString(16)}}`)

const omission = (count: number): string => `[... ${count} characters left out ...]`

// A cut in the middle of a surrogate pair would leave half a character, which is not valid text.
const endWhole = (text: string): string => (/[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text)
const startWhole = (text: string): string => (/^[\uDC00-\uDFFF]/.test(text) ? text.slice(1) : text)
