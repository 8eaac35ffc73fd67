/**
 * Text of others (models, tools, servers) for a terminal: whatever could move the cursor, change a title, write to the
 * clipboard or hide what is there is shown as an escape, not obeyed.
 *
 * Character by character, so a sequence cut in two is as inert as a whole one. In linear time, whatever the text.
 */

/** Keeps line ends and tabs; carriage returns go. */
export const text = (raw: string): string =>
  control.test(raw) ? raw.replaceAll("\r", "").replaceAll(controls, escaped) : raw

/** The same on one line, cut to `limit` characters. */
export const line = (raw: string, limit = 400): string => {
  const lines = text(raw).split("\n")
  const flat = lines.flatMap((each) => each.trim() || []).join(" ")
  return flat.length <= limit ? flat : `${flat.slice(0, limit).trimEnd()} …`
}

/**
 * For what a person is to decide on. Line ends, tabs, plain spaces and what leaves a mark on the screen stay as they are;
 * all other characters, which reorder, hide or look like a space that they are not, are escapes.
 */
export const exact = (raw: string): string => raw.replaceAll(deceptions, escaped)

/** The same for a name: it stays on one line, so line ends and tabs are escapes too. */
export const name = (raw: string): string => exact(raw).replaceAll(/[\n\t]/g, escaped)

const control = /(?![\n\t])\p{Cc}/u
const controls = new RegExp(control, "gu")

// In this order: control, format, unassigned and private characters, and halves of one; all that separates but the plain
// space; what Unicode says to draw as nothing (fillers, joiners, variation selectors, tags); and what has an empty glyph.
const deceptions =
  /(?![\n\t ])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\ufffc\u{13441}\u{13442}\u{16fe4}\u{1d159}]/gu

const escaped = (char: string): string => `\\u{${char.codePointAt(0)?.toString(16)}}`
