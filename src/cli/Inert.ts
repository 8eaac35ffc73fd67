/**
 * Text of others (models, tools, servers) for a terminal: whatever could move the cursor, change a title, write to the
 * clipboard or hide what is there is shown as an escape, not obeyed.
 *
 * Character by character, so a sequence cut in two is as inert as a whole one.
 */

/** Keeps line ends and tabs; carriage returns go. */
export const text = (raw: string): string =>
  control.test(raw) ? raw.replaceAll("\r", "").replaceAll(controls, escaped) : raw

/** The same on one line, cut to `limit` characters. */
export const line = (raw: string, limit = 400): string => {
  const flat = text(raw)
    .replaceAll(/\s*\n\s*/g, " ")
    .trim()
  return flat.length <= limit ? flat : `${flat.slice(0, limit).trimEnd()} …`
}

/** For what a person is to decide on: what reorders or hides characters is shown too. */
export const exact = (raw: string): string => raw.replaceAll(deceptions, escaped)

const control = /(?![\n\t])\p{Cc}/u
const controls = new RegExp(control, "gu")
// Format characters: bidirectional overrides, zero width ones, tags. And spaces that are none to a shell.
const deceptions = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u00a0]/gu

const escaped = (char: string): string => `\\u{${char.codePointAt(0)?.toString(16)}}`
