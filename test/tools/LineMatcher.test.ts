import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as LineMatcher from "../../src/tools/internal/LineMatcher.ts"
import * as Paced from "../../src/tools/Paced.ts"
import { longest, tries, whole } from "./stretch.ts"

const make = (pattern: string, options?: LineMatcher.Options) =>
  Result.getOrThrow(LineMatcher.make(pattern, options))
const search = (pattern: string, options?: LineMatcher.Options) => {
  const matcher = make(pattern, options)
  return (line: string) => whole(matcher.search(line))
}
const found = (pattern: string, line: string, options?: LineMatcher.Options) =>
  search(pattern, options)(line) !== -1
const words = (pattern: string, options?: LineMatcher.Options) => make(pattern, options).words
const fault = (pattern: string) => Result.getOrThrow(Result.flip(LineMatcher.make(pattern)))

const patterns = [
  "foo",
  "^foo$",
  "fo+",
  "fo?o",
  "f(o|a)o",
  "(?:ab|cd)+e",
  "[a-c]{2,3}",
  "[^a-c]x",
  "\\bfoo\\b",
  "\\Bfoo",
  "\\d+\\.\\d+",
  "\\w+\\s\\w+",
  "a{2,}b",
  "(a*)*b",
  "(a|b|ab)*c",
  "x|y|^$",
  "\\(foo\\)",
  "(?<name>foo)bar",
  "(|a)b",
  "[\\]x]",
  "[a-]",
  "[.^$]",
  "[^\\s\\d]",
  "^\\s*$",
  "é+",
  "😀",
  "[😀é]",
  "\\p{Lu}",
  "foo.*bar.*baz",
  "\\u0066oo",
  "\\u{1f600}",
  "\\\\u0066"
]
const lines = [
  "",
  "foo",
  "a foo b",
  "fooo",
  "fao",
  "ababe",
  "abc",
  "zx",
  "1.25",
  "hello world",
  "aab",
  "abababc",
  "f😀o",
  "(foo)",
  "foobar",
  "]",
  "-",
  "  ",
  "Éa",
  "xfoo",
  "foo 1 bar 2 baz",
  "FOO",
  "\\u0066"
]

describe("LineMatcher", () => {
  it("finds what JavaScript finds", () => {
    for (const pattern of patterns) {
      for (const line of lines) {
        assert.strictEqual(
          found(pattern, line),
          new RegExp(pattern, "us").test(line),
          `${pattern} in ${line}`
        )
      }
    }
  })

  it("takes a brace that counts nothing as itself", () => {
    assert.isTrue(found("foo\\(\\) {$", "function foo() {"))
    assert.isTrue(found("^}$", "}"))
  })

  it("ignores case when asked to", () => {
    assert.isTrue(found("straße|foo", "A FOO", { ignoreCase: true }))
    assert.isTrue(found("(?i)[a-c]X", "Bx"))
    assert.isFalse(found("foo", "FOO"))
    assert.strictEqual(search("a.b", { literal: true, ignoreCase: true })("xA.Bx"), 4)
    assert.strictEqual(search("a.b", { literal: true })("axb"), -1)
    assert.strictEqual(search("(?i)a", { literal: true })("x(?i)a"), 6)
  })

  it("tells where a match ends", () => {
    assert.strictEqual(search("o+")("foo bar"), 3)
    assert.strictEqual(search("bar$")("foo bar"), 7)
    assert.strictEqual(search("[n]eedle")(`${"x".repeat(500_000)}needle${"y".repeat(500_000)}`), 500_006)
  })

  it("finds in a long line what lies across pieces, and no line end within it", () => {
    const line = `${"ab ".repeat(100_000)}end`
    for (let at = 0; at < 300_000; at += 7_919) {
      const long = `${line.slice(0, at)}<needle>${line.slice(at)}`
      assert.isTrue(found("<[n]e+dle>", long), `at ${at}`)
    }
    assert.isTrue(found("^ab.*", line))
    assert.isTrue(found("b end$", line))
    assert.isTrue(found("\\bab.*d", line))
    for (const pattern of ["^b", "^ ab", "a$", "b$", "ab $", "^\\w*$", "\\A[ b]", "[ab]\\z"]) {
      assert.isFalse(found(pattern, line), pattern)
    }
  })

  it("names words of which each match has one", () => {
    assert.deepStrictEqual(words("function\\s+(foo|bar)"), ["function"])
    assert.deepStrictEqual(words("foo|bar"), ["foo", "bar"])
    assert.deepStrictEqual(words("foo|\\w+"), [])
    assert.deepStrictEqual(words("\\bconst\\b.*=>"), ["const"])
    assert.deepStrictEqual(words("(?i)abc"), ["abc"])
    assert.deepStrictEqual(words("a.c", { literal: true }), ["a.c"])
    assert.deepStrictEqual(words("a".repeat(1_000)), ["a".repeat(100)])
    assert.deepStrictEqual(words(`😀${"é".repeat(200)}`, { literal: true }), [`😀${"é".repeat(99)}`])
    for (const unknown of ["a\nb", "\0", "\ufffd", "\ud800", "\ufeffa"]) {
      assert.deepStrictEqual(words(unknown, { literal: true }), [], JSON.stringify(unknown))
    }
    for (const pattern of patterns) {
      for (const line of lines.filter((line) => found(pattern, line))) {
        const some = words(pattern)
        assert.isTrue(some.length === 0 || some.some((word) => line.includes(word)), `${pattern} in ${line}`)
      }
    }
  })

  it.live.each([
    ["(a+)+$", `${"a".repeat(1_000_000)}!`],
    ["(a|a)*[bc]", "a".repeat(1_000_000)],
    ["^(([a-z])+.)+[A-Z]([a-z])+$", "a".repeat(1_000_000)],
    [`(?i)${"a".repeat(500)}b`, "A".repeat(1_000_000)],
    [`${"a".repeat(30_000)}b${"a".repeat(30_000)}`, "a".repeat(1_000_000)],
    [`${"a".repeat(500_000)}b`, "a".repeat(1_000_000)]
  ] as const)(
    "takes time linear to the line, and pauses: %#",
    ([pattern, line]) =>
      Effect.gen(function* () {
        whole(make(pattern).search("warm"))
        const { result, stretch, total } = yield* longest(Paced.run(make(pattern).search(line)))
        assert.strictEqual(result, -1)
        assert.isBelow(total, 1_000)
        assert.isBelow(stretch, 60)
      }),
    tries
  )

  it("says what is wrong with a pattern", () => {
    assert.strictEqual(fault("foo("), "missing closing )")
    assert.strictEqual(fault("foo)"), "unexpected )")
    assert.strictEqual(fault("[a"), "missing closing ]")
    assert.strictEqual(fault("x*a**"), "invalid nested repetition operator: **")
    assert.strictEqual(fault("a(?=b)"), "invalid or unsupported Perl syntax: (?=")
    assert.strictEqual(fault("(a)\\1"), "invalid escape sequence: \\1")
    assert.strictEqual(fault("a\\"), "trailing backslash at end of expression")
    assert.strictEqual(fault("x[z-a]"), "invalid character class range: z-a")
    assert.strictEqual(fault("x[[:blnk:]]"), "invalid character class range: [:blnk:]")
    assert.strictEqual(fault("x\\p{Nothing}"), "invalid character class range: \\p{Nothing}")
    assert.strictEqual(fault("(a{1000}){1000}"), "invalid repeat count: {1000}")
    assert.strictEqual(fault("[ab]{600}[cd]{600}"), "it repeats too much")
    assert.strictEqual(fault("(".repeat(2_000)), "it has more than 1000 characters")
  })
})
