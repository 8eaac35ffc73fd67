import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as LineSearch from "../../src/tools/LineSearch.ts"
import { whole } from "./stretch.ts"

const at = (search: LineSearch.Search) => (line: string) => whole(search(line))
const search = (pattern: string, options?: { readonly ignoreCase?: boolean }) =>
  at(Result.getOrThrow(LineSearch.regex(pattern, options)))
const found = (pattern: string, line: string, options?: { readonly ignoreCase?: boolean }) =>
  search(pattern, options)(line) !== -1
const fault = (pattern: string) => Result.getOrThrow(Result.flip(LineSearch.regex(pattern)))

describe("LineSearch", () => {
  it("finds what JavaScript finds", () => {
    const patterns = [
      "foo",
      "^foo$",
      "fo+",
      "fo*o",
      "fo?o",
      "f(o|a)o",
      "(?:ab|cd)+e",
      "[a-c]{2,3}",
      "[^a-c]x",
      "\\bfoo\\b",
      "\\Bfoo",
      "\\d+\\.\\d+",
      "\\w+\\s\\w+",
      "a{2}",
      "a{2,}b",
      "a{0,2}b",
      "(a*)*b",
      "(a|b|ab)*c",
      "x|y|^$",
      "f.o",
      "\\(foo\\)",
      "foo\\.",
      "(?<name>foo)bar",
      "(|a)b",
      "a|",
      "[\\]x]",
      "[a\\-z]",
      "[-a]",
      "[^-a]",
      "[a-]",
      "[a-b-x]",
      "[--/]",
      "[+--]",
      "[.^$]",
      "[\\^]",
      "[[x]",
      "[a\\tb]",
      "[\\b]",
      "[\\p{Lu}x]",
      "[\\u{1f600}x]",
      "[^\\s\\d]",
      "\\u0066oo",
      "\\x66oo",
      "\\t",
      "^",
      "$",
      "^\\s*$",
      "(foo)?(bar)?$",
      "é+",
      "😀",
      "[😀é]",
      "\\p{Lu}",
      "foo.*bar.*baz",
      "(^|x)foo",
      "foo(x|$)"
    ]
    const lines = [
      "",
      "foo",
      "a foo b",
      "fooo",
      "fo",
      "fao",
      "ababe",
      "cdabe",
      "abc",
      "bbx",
      "zx",
      "1.25",
      "hello world",
      "aab",
      "b",
      "abababc",
      "x",
      "f😀o",
      "(foo)",
      "foo.",
      "foobar",
      "function foo() {",
      "]",
      "-",
      "\t",
      "  ",
      "é",
      "😀",
      "Éa",
      "xfoo",
      "foo 1 bar 2 baz",
      "foox",
      "FOO"
    ]
    for (const pattern of patterns) {
      for (const line of lines) {
        assert.strictEqual(
          found(pattern, line),
          new RegExp(pattern, "us").test(line),
          `${pattern} in ${line}`
        )
      }
    }
  }, 10_000)

  it("takes a brace that counts nothing as itself", () => {
    assert.isTrue(found("foo\\(\\) {$", "function foo() {"))
    assert.isTrue(found("^}$", "}"))
  })

  it("finds what JavaScript finds, on made up patterns", () => {
    const random = seeded(7)
    const atoms = ["a", "b", "c", ".", "[ab]", "[^a]", "\\b", "^", "$", "\\w"]
    const make = (depth: number): string => {
      const pick = random(6)
      if (depth === 0 || pick < 2) return atoms[random(atoms.length)] ?? "a"
      if (pick === 2) return `(${make(depth - 1)}|${make(depth - 1)})`
      if (pick === 3) return `(?:${make(depth - 1)})${["*", "+", "?", "{1,2}", "*?"][random(5)]}`
      return make(depth - 1) + make(depth - 1)
    }
    for (let round = 0; round < 1_500; round++) {
      const pattern = make(4)
      const line = Array.from({ length: random(8) }, () => "abc -"[random(5)]).join("")
      assert.strictEqual(found(pattern, line), new RegExp(pattern).test(line), `${pattern} in "${line}"`)
    }
  })

  it("ignores case when asked to", () => {
    assert.isTrue(found("straße|foo", "A FOO", { ignoreCase: true }))
    assert.isTrue(found("(?i)[a-c]X", "Bx"))
    assert.isTrue(found("a.-}[/-b]/", "AX-}B/", { ignoreCase: true }))
    assert.isFalse(found("foo", "FOO"))
    assert.strictEqual(at(LineSearch.literal("a.b", { ignoreCase: true }))("xA.Bx"), 4)
    assert.strictEqual(at(LineSearch.literal("a.b"))("axb"), -1)
  })

  it("tells where a match ends", () => {
    assert.strictEqual(search("o+")("foo bar"), 2)
    assert.strictEqual(search("bar$")("foo bar"), 7)
  })

  it("takes time linear to the line", () => {
    const started = performance.now()
    const line = "a".repeat(50_000) + "!"
    for (const pattern of ["(a+)+$", "(a|a)*b", "(.*a){10}b", "(a*)*(a*)*c", "^(([a-z])+.)+[A-Z]([a-z])+$"]) {
      assert.isFalse(found(pattern, line))
    }
    assert.isBelow(performance.now() - started, 3_000)
  })

  it("takes marks in a class that are quoted without need as themselves", () => {
    assert.isTrue(found(`^[\\"\\'😀]+$`, `"'😀`))
    assert.isTrue(found("^[\\w-./]+$", "a-b./"))
    assert.isFalse(found("[\\w-./]", ","))
  })

  it("refuses what others read in another way", () => {
    assert.include(fault("a[^]]b"), "a class that begins with ]")
    assert.include(fault("[]]"), "a class that begins with ]")
    assert.include(fault("[^]*foo"), "a class that begins with ]")
    assert.include(fault("[[:blnk:]]"), "unknown class [:blnk:]")
    assert.include(fault("[[:^alpha:]]"), "unknown class [:^alpha:]")
    assert.include(fault("[[:constructor:]]"), "unknown class [:constructor:]")
    assert.include(fault("\\p{Greek}"), "invalid \\p{Greek}")
    assert.include(fault("[\\P{Greek}]"), "invalid [\\P{Greek}]")
    assert.include(fault("\\u{110000}"), "invalid")
    assert.include(fault("[\\1]"), "unknown escape \\1")
    assert.include(fault("[\\q]"), "unknown escape \\q")
    assert.include(fault("[+-[:digit:]]"), "a range that ends with")
    assert.include(fault("[a-\\d]"), "a range that ends with")
  })

  it("says what is wrong with a pattern", () => {
    assert.include(fault("foo("), "missing )")
    assert.include(fault("foo)"), "unmatched ) at position 4")
    assert.include(fault("[a"), "missing ]")
    assert.include(fault("*a"), "nothing to repeat at position 1")
    assert.include(fault("a**"), "nothing to repeat")
    assert.include(fault("(?=a)"), "look-around")
    assert.include(fault("(a)\\1"), "back references")
    assert.include(fault("a\\"), "nothing after")
    assert.include(fault("[z-a]"), "invalid")
    assert.include(fault("(a{1000}){1000}"), "repeats too much")
    assert.include(fault("(".repeat(2_000)), "longer than")
  })

  it("knows the classes of POSIX", () => {
    assert.isTrue(found("^[[:space:]]*[[:upper:]_]+$", "  FOO_BAR"))
    assert.isFalse(found("[[:digit:]]", "abc"))
    const members = {
      alpha: "aZ",
      digit: "09",
      alnum: "a9",
      upper: "A",
      lower: "z",
      space: " \t\r",
      blank: " \t",
      cntrl: "\u0001\u001f\u007f",
      graph: "!~a",
      print: " ~a",
      punct: "!/[`~",
      word: "_a0",
      xdigit: "fF0",
      ascii: "\u0001a\u007f"
    }
    for (const [name, chars] of Object.entries(members)) {
      for (const char of chars) {
        assert.isTrue(found(`[[:${name}:]]`, char), `${name}: ${JSON.stringify(char)}`)
        assert.isFalse(found(`[^[:${name}:]]`, char), `not ${name}: ${JSON.stringify(char)}`)
      }
      assert.isFalse(found(`[[:${name}:]]`, "é"), name)
    }
    assert.isFalse(found("[[:blank:][:graph:]]", "\r"))
  })
})

/** Numbers that are the same in each run (mulberry32). */
const seeded = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) % below
  }
}
