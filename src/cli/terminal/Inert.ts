/**
 * Makes text from models, tools and servers safe for a terminal. Characters that could move the cursor, change
 * the title, write to the clipboard or hide text become visible escapes.
 *
 * Works on single characters, so a sequence that is split across two texts is safe too. Takes linear time.
 */

/** Keeps line ends and tabs, removes carriage returns. */
export const text = (raw: string): string =>
  control.test(raw) ? raw.replaceAll("\r", "").replaceAll(controls, escaped) : raw

/** Escapes as `text` does, joins the lines, and cuts after `limit` characters. */
export const line = (raw: string, limit = 400): string => joined(text(raw), limit)

/** Escapes as `exact` does, joins the lines, and cuts after `limit` characters. */
export const exactLine = (raw: string, limit: number): string => joined(exact(raw), limit)

const joined = (escaped: string, limit: number): string => {
  const lines = escaped.split("\n")
  const flat = lines.flatMap((each) => each.trim() || []).join(" ")
  return flat.length <= limit ? flat : `${flat.slice(0, limit).trimEnd()} …`
}

/**
 * Escapes text for an approval. Keeps line ends, tabs, plain spaces and visible characters. All others become
 * escapes: they reorder or hide text, or look like a plain space.
 */
export const exact = (raw: string): string => raw.replaceAll(deceptions, escaped)

/** Escapes as `exact` does, and line ends and tabs too, so that a name stays on one line. */
export const name = (raw: string): string => exact(raw).replaceAll(/[\n\t]/g, escaped)

// Those that reorder text too.
const control = /(?![\n\t])[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u
const controls = new RegExp(control, "gu")

// In order: control, format, unassigned and private characters, and surrogate halves; separators except the
// plain space; characters that Unicode defines as invisible (fillers, joiners, variation selectors, tags);
// characters with an empty glyph; and marks on a letter that has four already, which would cover other lines.
const deceptions =
  /(?![\n\t ])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\ufffc\u{13441}\u{13442}\u{16fe4}\u{1d159}]|(?<=\p{M}{4})\p{M}/gu

const escaped = (char: string): string => `\\u{${char.codePointAt(0)?.toString(16)}}`

/** A value as a line of JSON. */
export const json = (value: unknown): string => `${jsonText(JSON.stringify(value))}\n`

/** Escapes the characters above the space in JSON that terminals obey too, and those that reorder text. JSON itself escapes those below it. */
export const jsonText = (json: string): string =>
  json.replaceAll(
    /[\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`
  )
