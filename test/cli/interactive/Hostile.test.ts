import { assert, describe, it } from "@effect/vitest"
import * as Inert from "../../../src/cli/terminal/Inert.ts"
import * as Random from "./random.ts"

/** What must not reach a terminal from others: C0 but tab and line end, DEL, C1, and what reorders text. */
const forbidden = new RegExp(
  String.raw`[\0-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]`,
  "u"
)

const pieces = [
  "\u001b",
  "\u001b[",
  "\u001b]",
  "\u009b",
  "\u009d",
  "\u001b[2J",
  "\u001b[31m",
  "\u001b[?1049h",
  "\u001b]0;title\u0007",
  "\u001b]52;c;ZXZpbA==\u001b\\",
  "\u001b]8;;http://example.com\u001b\\",
  "\u001bP$q\u001b\\",
  "\u001b_G\u001b\\",
  "\u001bc",
  "\u0007",
  "\b",
  "\r",
  "\0",
  "\u007f",
  "\u0085",
  "\u202e",
  "\u2066",
  "\u2069",
  "\u200e",
  "\u200f",
  "\u061c",
  "\n",
  "\t",
  "2J",
  "[",
  "m",
  ";",
  "text",
  "漢字",
  "👨‍👩‍👧",
  "e\u0301"
]

describe("P-89 hostile text", () => {
  it("P-89 of 10,000 texts, cut anywhere, no character reaches the terminal that must not", () => {
    const below = Random.numbers(42)
    for (let round = 0; round < 10_000; round++) {
      const raw = Array.from({ length: 1 + below(12) }, () => pieces[below(pieces.length)] ?? "").join("")
      const cut = below(raw.length + 1)
      const shown = Inert.text(raw.slice(0, cut)) + Inert.text(raw.slice(cut))
      assert.notMatch(shown, forbidden, JSON.stringify(raw))
      const back = shown.replaceAll(/\\u\{([0-9a-f]+)\}/g, (_, code: string) =>
        String.fromCodePoint(Number.parseInt(code, 16))
      )
      assert.strictEqual(back.replaceAll("\r", ""), raw.replaceAll("\r", ""))
    }
  })
})
