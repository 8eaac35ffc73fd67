/**
 * The widths of a terminal that draws each grapheme as a whole, as those of today do: the emulator by itself knows Unicode 6 alone.
 */
import type { IUnicodeHandling } from "@xterm/headless"

const joiner = 0x200d
const mark = /^(?:\p{M}|\u200d|\p{Emoji_Modifier})$/u
const emoji = /^\p{Emoji_Presentation}$/u
const flag = /^\p{Regional_Indicator}$/u
const wide =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]$/u

type Provider = Parameters<IUnicodeHandling["register"]>[0]

/** The width of one character that stands alone. */
const widthOf = (code: number): 0 | 1 | 2 => {
  const char = String.fromCodePoint(code)
  if (mark.test(char)) return 0
  return wide.test(char) || emoji.test(char) || flag.test(char) ? 2 : 1
}

/** What the emulator keeps of a character: its code as state, the width of its grapheme, and whether it belongs to the one before. */
const packed = (code: number, width: number, joins: boolean) => (code << 3) | (width << 1) | (joins ? 1 : 0)

const codeOf = (properties: number) => properties >> 3
const widthIn = (properties: number) => (properties >> 1) & 3

/** Marks the second half of a flag, behind which a new one begins. */
const closed = 0x1fffff

export const provider: Provider = {
  version: "graphemes",
  wcwidth: widthOf,
  charProperties: (code, preceding) => {
    const before = codeOf(preceding)
    const isFlag = flag.test(String.fromCodePoint(code)) && flag.test(codeText(before))
    const follows = before !== 0 && (mark.test(String.fromCodePoint(code)) || before === joiner || isFlag)
    if (!follows) return packed(code, widthOf(code), false)
    const width = code === 0xfe0f ? 2 : widthIn(preceding)
    return packed(isFlag ? closed : code, width, true)
  }
}

const codeText = (code: number): string => (code <= 0x10ffff ? String.fromCodePoint(code) : "")
