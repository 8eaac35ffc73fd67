import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Stretch from "./stretch.ts"
import * as Workspace from "./workspace.ts"

/** Edits a file of this content; gives the call's result and the content afterwards. */
const edit = Effect.fnUntraced(function* (content: string | Uint8Array, params: object) {
  const { call, fs, path, root } = yield* Workspace.make({ "a.txt": content })
  const result = yield* call("edit", { path: "a.txt", ...params })
  return { ...result, after: yield* fs.readFileString(path.join(root, "a.txt")) }
})

describe("EditTool", () => {
  it.live("replaces a text that is there once (row 149)", () =>
    Effect.gen(function* () {
      const { after, details, text } = yield* edit("one\ntwo\nthree\n", { oldText: "two", newText: "2\n2b" })
      assert.strictEqual(after, "one\n2\n2b\nthree\n")
      assert.strictEqual(text, "Replaced 1 place in a.txt (+2 -1 lines).")
      assert.deepStrictEqual(details, {
        path: "a.txt",
        replaced: 1,
        added: 2,
        removed: 1,
        diff: "--- a.txt\n+++ a.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n"
      })
    }).pipe(Workspace.provide)
  )

  it.live("takes the texts as they are, dollars and all", () =>
    Effect.gen(function* () {
      const { after } = yield* edit("a.*b", { oldText: ".*", newText: "$& $1 $$" })
      assert.strictEqual(after, "a$& $1 $$b")
    }).pipe(Workspace.provide)
  )

  it.live("makes several replacements, each found in the file as it was", () =>
    Effect.gen(function* () {
      const edits = [
        { oldText: "two", newText: "one" },
        { oldText: "one", newText: "two" }
      ]
      assert.strictEqual((yield* edit("one two", { edits })).after, "two one")
    }).pipe(Workspace.provide)
  )

  it.live("makes all replacements or none", () =>
    Effect.gen(function* () {
      const edits = [
        { oldText: "one", newText: "1" },
        { oldText: "four", newText: "4" }
      ]
      const { after, isError, text } = yield* edit("one two", { edits })
      assert.isTrue(isError)
      assert.include(text, "a.txt was not changed: edit 2 of 2: the old text is not in the file")
      assert.strictEqual(after, "one two")
    }).pipe(Workspace.provide)
  )

  it.live("refuses edits that change the same text", () =>
    Effect.gen(function* () {
      const edits = [
        { oldText: "one two", newText: "1" },
        { oldText: "two", newText: "2" }
      ]
      const { after, text } = yield* edit("one two", { edits })
      assert.include(text, "two of the edits change the same text")
      assert.strictEqual(after, "one two")
    }).pipe(Workspace.provide)
  )

  it.live("asks for more when the text is there more than once", () =>
    Effect.gen(function* () {
      const content = "x = 1\ny\nx = 1\n"
      const refused = yield* edit(content, { oldText: "x = 1", newText: "x = 2" })
      assert.include(refused.text, "the old text is there 2 times, at line 1, 3.")
      assert.strictEqual(refused.after, content)
      const done = yield* edit(content, { oldText: "x = 1", newText: "x = 2", replaceAll: true })
      assert.strictEqual(done.after, "x = 2\ny\nx = 2\n")
      assert.include(done.text, "Replaced 2 places")
    }).pipe(Workspace.provide)
  )

  it.live("shows what differs only in white space", () =>
    Effect.gen(function* () {
      const { text } = yield* edit("if (a) {\n\treturn  1\n}\n", {
        oldText: "if (a) {\n  return 1\n}",
        newText: ""
      })
      assert.include(text, "It differs only in white space from line 1 on:\nif (a) {\n\treturn  1\n}")
    }).pipe(Workspace.provide)
  )

  it.live("shows the lines most like the text", () =>
    Effect.gen(function* () {
      const { text } = yield* edit("const alpha = 1\nconst beta = 2\n", {
        oldText: "const betta = 2",
        newText: ""
      })
      assert.include(text, "Most like its first line:\n2: const beta = 2")
      const other = yield* edit("const alpha = 1\n", { oldText: "zzzzzz", newText: "" })
      assert.include(other.text, "No line of the file is like it")
    }).pipe(Workspace.provide)
  )

  it.live("guesses in time that grows with the file, not with the file times the text", () =>
    Effect.gen(function* () {
      const started = performance.now()
      const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index} of the file`).join("\n")
      const long = yield* edit(lines, { oldText: "line 7 ".repeat(1_400), newText: "" })
      assert.include(long.text, "No line of the file is like it")
      const alike = yield* edit("a\n".repeat(100_000), { oldText: `${"a \n".repeat(2_000)}b`, newText: "" })
      assert.include(alike.text, "Most like its first line:\n1: a\n")
      assert.isBelow(performance.now() - started, 3_000)
    }).pipe(Workspace.provide)
  )

  const size = 256 * 1024
  const numbered = Array.from({ length: size / 13 }, (_, index) => `line ${String(index).padStart(7, "0")}`)
  const word = `${"a".repeat(30_000)}b${"a".repeat(30_000)}`
  it.live.each([
    ["a text that nearly is there everywhere", "a".repeat(size), { oldText: word, newText: "" }],
    ["a place at each character", " ".repeat(size), { oldText: " ", newText: "\n", replaceAll: true }],
    ["a place in each line", "\r\n".repeat(size / 2), { oldText: "\n", newText: "x", replaceAll: true }],
    [
      "many edits, none of them in order",
      numbered.join("\n"),
      {
        edits: numbered
          .slice(0, 3_000)
          .toReversed()
          .map((oldText) => ({ oldText, newText: "z" }))
      }
    ],
    ["lines that are all alike", numbered.join("\n"), { oldText: "line 000000X\nno", newText: "" }],
    [
      "empty lines in what is looked for",
      " ".repeat(size),
      { oldText: `x${"\n".repeat(size)}y`, newText: "" }
    ],
    [
      "white space in what is looked for",
      "\n".repeat(size),
      { oldText: `${" \n".repeat(size / 2)}x`, newText: "" }
    ],
    ["one line of words", "words and ".repeat(900_000), { oldText: "not there", newText: "" }],
    ["line ends of Windows", "a\r\n".repeat(1_000_000), { oldText: "not there", newText: "" }],
    ["bytes that are no text", new Uint8Array(size).fill(0xff), { oldText: "a", newText: "b" }]
  ] as const)(
    "lets others go on meanwhile: %s",
    ([, content, params]) =>
      Effect.gen(function* () {
        const { call } = yield* Workspace.make({ "a.txt": content })
        // Not what is compiled first.
        yield* call("edit", { path: "a.txt", oldText: "no", newText: "" })
        const { stretch } = yield* Stretch.longest(
          Effect.timeoutOption(call("edit", { path: "a.txt", ...params }), "1 second")
        )
        assert.isBelow(stretch, 50)
      }).pipe(Workspace.provide),
    Stretch.tries
  )

  it.live.each([
    [
      "quotes",
      "it\u2019s \u201cfine\u201d",
      'it\'s "fine"',
      'it\'s "good"',
      "it\u2019s \u201cgood\u201d",
      "\u2019 (U+2019)"
    ],
    ["a dash", "a \u2014 b c", "a - b c", "a - b d", "a \u2014 b d", "\u2014 (U+2014)"],
    ["a space", "a\u00a0b", "a b", "a c", "a\u00a0c", "(U+00A0)"],
    [
      "an accent in two characters",
      "cafe\u0301 x",
      "caf\u00e9 x",
      "caf\u00e9 y",
      "cafe\u0301 y",
      "(U+0065 U+0301)"
    ],
    ["an accent in one character", "caf\u00e9 x", "cafe\u0301 x", "tea x", "tea x", "\u00e9 (U+00E9)"]
  ] as const)(
    "matches the only place that looks alike, and keeps what both texts share: %s",
    ([, line, oldText, newText, expected, named]) =>
      Effect.gen(function* () {
        const { after, text } = yield* edit(`one\r\n${line}\r\ntwo\r\n`, { oldText, newText })
        assert.strictEqual(after, `one\r\n${expected}\r\ntwo\r\n`)
        assert.include(text, named)
      }).pipe(Workspace.provide)
  )

  it.live("names a character that looks alike, if it cannot match", () =>
    Effect.gen(function* () {
      const twice = yield* edit("it\u2019s\nit\u2019s\n", { oldText: "it's", newText: "is" })
      assert.include(twice.text, "several times, but with \u2019 (U+2019)")
      const cyrillic = yield* edit("const v\u0430lue = 1\n", { oldText: "const value = 1", newText: "x" })
      assert.include(cyrillic.text, "Line 1 has \u0430 (U+0430) where the old text has a (U+0061).")
    }).pipe(Workspace.provide)
  )

  it.live("passes over empty texts beside edits, and over an edit that is given twice", () =>
    Effect.gen(function* () {
      const edits = [{ oldText: "a", newText: "b" }]
      for (const beside of [{ oldText: "" }, { oldText: "", newText: "" }, { oldText: "a", newText: "b" }]) {
        assert.strictEqual((yield* edit("a", { edits, ...beside })).after, "b")
      }
      const padded = { edits: [...edits, { oldText: "", newText: "" }] }
      assert.strictEqual((yield* edit("a", padded)).after, "b")
      assert.strictEqual((yield* edit("\ufeffa", { oldText: "\ufeffa", newText: "b" })).after, "b")
    }).pipe(Workspace.provide)
  )

  it.live("refuses what would do nothing", () =>
    Effect.gen(function* () {
      assert.include((yield* edit("a", { oldText: "a", newText: "a" })).text, "are the same")
      assert.include((yield* edit("a", { oldText: "", newText: "a" })).text, "the old text is empty")
      assert.include((yield* edit("a", {})).text, "give oldText and newText, or edits")
      const both = { oldText: "a", newText: "b", edits: [{ oldText: "a", newText: "c" }] }
      assert.include((yield* edit("a", both)).text, "give either")
    }).pipe(Workspace.provide)
  )

  it.live("keeps line ends and the byte order mark", () =>
    Effect.gen(function* () {
      const crlf = yield* edit("one\r\ntwo\r\nthree\r\n", { oldText: "one\ntwo\n", newText: "1\n2\n" })
      assert.strictEqual(crlf.after, "1\r\n2\r\nthree\r\n")
      const mixed = yield* edit("one\ntwo\r\nthree\nfour\n", { oldText: "three", newText: "3\n3b" })
      assert.strictEqual(mixed.after, "one\ntwo\r\n3\n3b\nfour\n")
      const atEnd = yield* edit("one\r\ntwo\r\n", { oldText: "one", newText: "1" })
      assert.strictEqual(atEnd.after, "1\r\ntwo\r\n")
      const fromEnd = yield* edit("one\r\ntwo\r\n", { oldText: "\ntwo", newText: "" })
      assert.strictEqual(fromEnd.after, "one\r\n")
    }).pipe(Workspace.provide)
  )

  it.live("keeps the byte order mark", () =>
    Effect.gen(function* () {
      const { call, fs, path, root } = yield* Workspace.make({ "a.txt": "\uFEFFone" })
      yield* call("edit", { path: "a.txt", oldText: "one", newText: "two" })
      assert.deepStrictEqual(Array.from(yield* fs.readFile(path.join(root, "a.txt"))), [
        0xef,
        0xbb,
        0xbf,
        ...new TextEncoder().encode("two")
      ])
    }).pipe(Workspace.provide)
  )

  it.live("does not touch what is not UTF-8 text", () =>
    Effect.gen(function* () {
      const latin = yield* edit(Uint8Array.from([0x61, 0xe9, 0x62]), { oldText: "a", newText: "b" })
      assert.include(latin.text, "not valid UTF-8")
      const binary = yield* edit(Uint8Array.from([0x61, 0, 0x62]), { oldText: "a", newText: "b" })
      assert.include(binary.text, "only UTF-8 text can be edited")
    }).pipe(Workspace.provide)
  )

  it.live("does not make files", () =>
    Effect.gen(function* () {
      const { call, fs, root } = yield* Workspace.make()
      const { text } = yield* call("edit", { path: "new/a.txt", oldText: "a", newText: "b" })
      assert.include(text, "To make it use write")
      assert.deepStrictEqual(yield* fs.readDirectory(root), [])
    }).pipe(Workspace.provide)
  )

  it.live("loses no edit when several of one file run side by side", () =>
    Effect.gen(function* () {
      const words = Array.from({ length: 20 }, (_, index) => `word${index};`)
      const { call, fs, path, root } = yield* Workspace.make({ "a.txt": words.join("\n") })
      const results = yield* Effect.forEach(
        words,
        (word) => call("edit", { path: "a.txt", oldText: word, newText: word.toUpperCase() }),
        { concurrency: "unbounded" }
      )
      assert.isTrue(results.every((result) => result.outcome === "success"))
      assert.strictEqual(yield* fs.readFileString(path.join(root, "a.txt")), words.join("\n").toUpperCase())
    }).pipe(Workspace.provide)
  )
})
