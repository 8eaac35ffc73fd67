import { assert, describe, it } from "@effect/vitest"
import * as Inert from "../../src/cli/terminal/Inert.ts"

/** First and last code points of what a terminal shows as nothing, as a space, or in another order. */
const unseen: ReadonlyArray<readonly [name: string, first: number, last: number]> = [
  ["C0 controls before the tab", 0x0, 0x8],
  ["C0 controls behind the line end", 0xb, 0x1f],
  ["delete, C1 controls and the space that does not break", 0x7f, 0xa0],
  ["soft hyphen", 0xad, 0xad],
  ["combining grapheme joiner", 0x34f, 0x34f],
  ["Arabic letter mark", 0x61c, 0x61c],
  ["Hangul fillers", 0x115f, 0x1160],
  ["Ogham space", 0x1680, 0x1680],
  ["Khmer inherent vowels", 0x17b4, 0x17b5],
  ["Mongolian selectors and separator", 0x180b, 0x180f],
  ["spaces, zero width characters and direction marks", 0x2000, 0x200f],
  ["separators, embeddings and the narrow space", 0x2028, 0x202f],
  ["mathematical space, invisible operators, isolates", 0x205f, 0x206f],
  ["Braille blank", 0x2800, 0x2800],
  ["ideographic space", 0x3000, 0x3000],
  ["Hangul filler", 0x3164, 0x3164],
  ["halves of characters", 0xd800, 0xdfff],
  ["private use", 0xe000, 0xf8ff],
  ["variation selectors", 0xfe00, 0xfe0f],
  ["byte order mark", 0xfeff, 0xfeff],
  ["halfwidth Hangul filler", 0xffa0, 0xffa0],
  ["specials and the object that is not there", 0xfff0, 0xfffc],
  ["noncharacters", 0xfffe, 0xffff],
  ["Egyptian blanks", 0x13441, 0x13442],
  ["Khitan filler", 0x16fe4, 0x16fe4],
  ["shorthand controls", 0x1bca0, 0x1bca3],
  ["a note without a head", 0x1d159, 0x1d159],
  ["musical controls", 0x1d173, 0x1d17a],
  ["tags and further variation selectors", 0xe0000, 0xe0fff]
]

const codesOf = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index)

describe("Inert.exact", () => {
  it.each(unseen)("spells out %s", (_, first, last) => {
    for (const code of codesOf(first, last)) {
      const expected = `a\\u{${code.toString(16)}}b`
      assert.strictEqual(Inert.exact(`a${String.fromCodePoint(code)}b`), expected)
      assert.strictEqual(Inert.name(`a${String.fromCodePoint(code)}b`), expected)
    }
  })

  it("leaves what can be seen, line ends and tabs", () => {
    const ascii = String.fromCharCode(...codesOf(0x20, 0x7e))
    const words =
      "Übung e\u0301 Ελληνικά Кириллица עברית العربية हिन्दी ไทย 한국어 ひらがな 漢字 ＡＢ ░▒▓ ─│ 😀👍🏽 ⠁ ﷽"
    for (const seen of [ascii, words, "a\n\tb\n"]) assert.strictEqual(Inert.exact(seen), seen)
  })

  it("spells out line ends and tabs of a name", () => {
    assert.strictEqual(Inert.name("a b\n\tc\r\n"), "a b\\u{a}\\u{9}c\\u{d}\\u{a}")
  })
})

describe("Inert.line", () => {
  it.each([
    ["a \n\t\n  b\r\n\nc  ", "a b c"],
    [" \n\t a  b ", "a  b"],
    ["\n \n", ""],
    ["a\u001b[2J\nb", "a\\u{1b}[2J b"],
    [`${" ".repeat(1_000)}a`, "a"]
  ])("shows %j on one line", (raw, shown) => {
    assert.strictEqual(Inert.line(raw), shown)
  })

  it("cuts behind its limit, not before", () => {
    assert.strictEqual(Inert.line("abcd", 4), "abcd")
    assert.strictEqual(Inert.line("abc d", 4), "abc …")
  })
})
