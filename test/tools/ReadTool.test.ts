import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Images from "../providers/images.ts"
import * as Workspace from "./workspace.ts"

const numbered = (count: number) =>
  Array.from({ length: count }, (_, index) => `line ${index + 1}`).join("\n")
const png = Buffer.from(Images.png(7, 5), "base64")

describe("ReadTool", () => {
  it.live("takes 0 for the start, negative offsets from the end, and a limit below 1 for none", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": "1\n2\n3\n" })
      const read = (params: object) =>
        Effect.map(call("read", { path: "a.txt", ...params }), ({ text }) => text)
      assert.strictEqual(yield* read({ offset: 0 }), "1\n2\n3")
      assert.strictEqual(yield* read({ limit: -1 }), "1\n2\n3")
      assert.strictEqual(yield* read({ offset: -2 }), "2\n3\n\n[Lines 2-3 of 3.]")
      assert.strictEqual(
        yield* read({ offset: -2, limit: 1 }),
        "2\n\n[Lines 2-2 of 3. Read on with offset 3.]"
      )
      assert.strictEqual(yield* read({ offset: -9 }), "1\n2\n3")
      const long = yield* Workspace.make({ "a.txt": `${"x".repeat(200_000)}\n`.repeat(3) + "end\n" })
      assert.include(
        (yield* long.call("read", { path: "a.txt", offset: -1 })).text,
        "end\n\n[Lines 4-4 of 4.]"
      )
    }).pipe(Workspace.provide)
  )

  it.live("cuts no character in two", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": `${"x".repeat(1_999)}\u{1f600}tail\n` })
      const { text } = yield* call("read", { path: "a.txt" })
      assert.notMatch(text, /[\ud800-\udbff](?![\udc00-\udfff])/)
      assert.include(text, "[Line 1 is cut after")
    }).pipe(Workspace.provide)
  )

  it.live("reads a file as it is", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": "one\ntwo\n\tünï 😀\n" })
      const { details, isError, text } = yield* call("read", { path: "a.txt" })
      assert.strictEqual(text, "one\ntwo\n\tünï 😀")
      assert.isUndefined(isError)
      assert.deepStrictEqual(details, {
        path: "a.txt",
        from: 1,
        to: 3,
        lines: 3,
        bytes: 20,
        crlf: false,
        bom: false
      })
    }).pipe(Workspace.provide)
  )

  it.live("reads a window of lines, and says how to read on", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": numbered(10) })
      assert.strictEqual(
        (yield* call("read", { path: "a.txt", offset: 4, limit: 2 })).text,
        "line 4\nline 5\n\n[Lines 4-5 of 10. Read on with offset 6.]"
      )
      assert.strictEqual(
        (yield* call("read", { path: "a.txt", offset: 9 })).text,
        "line 9\nline 10\n\n[Lines 9-10 of 10.]"
      )
      assert.include(
        (yield* call("read", { path: "a.txt", offset: 11 })).text,
        "it has 10 lines, so there is no line 11"
      )
      assert.strictEqual(
        (yield* call("read", { path: "a.txt", offset: 10, lineNumbers: true })).text,
        "10\tline 10\n\n[Lines 10-10 of 10.]"
      )
    }).pipe(Workspace.provide)
  )

  it.live("stops at 2000 lines (row 149)", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": numbered(5_400) })
      const { text } = yield* call("read", { path: "a.txt" })
      assert.isTrue(text.endsWith("line 2000\n\n[Lines 1-2000 of 5400. Read on with offset 2001.]"))
      assert.include((yield* call("read", { path: "a.txt", limit: 9_000 })).text, "[Lines 1-2000 of 5400.")
    }).pipe(Workspace.provide)
  )

  it.live("stops at 50 kB (row 149)", () =>
    Effect.gen(function* () {
      const line = "x".repeat(999)
      const { call } = yield* Workspace.make({ "a.txt": Array.from({ length: 200 }, () => line).join("\n") })
      const { text } = yield* call("read", { path: "a.txt" })
      assert.isTrue(text.endsWith("[Lines 1-50 of 200. Read on with offset 51.]"))
      const next = yield* call("read", { path: "a.txt", offset: 51 })
      assert.isTrue(next.text.endsWith("[Lines 51-100 of 200. Read on with offset 101.]"))
    }).pipe(Workspace.provide)
  )

  it.live("cuts long lines, and holds none of their rest", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": `short\n${"y".repeat(3_000_000)}\nend` })
      assert.strictEqual(
        (yield* call("read", { path: "a.txt" })).text,
        `short\n${"y".repeat(2_000)}\nend\n\n[Line 2 is cut after 2000 of 3000000 characters.]`
      )
    }).pipe(Workspace.provide)
  )

  it.live("does not read a huge file to its end", () =>
    Effect.gen(function* () {
      const { call, fs, path, root } = yield* Workspace.make()
      const file = path.join(root, "huge.log")
      yield* fs.writeFileString(file, numbered(3_000))
      // A hole: 1 TB that takes no space, and that nothing could read in time.
      yield* fs.truncate(file, 2 ** 40)
      const { text } = yield* call("read", { path: "huge.log", limit: 3 })
      assert.strictEqual(
        text,
        `line 1\nline 2\nline 3\n\n[Lines 1-3 of a file of ${2 ** 40} bytes. Read on with offset 4.]`
      )
    }).pipe(Workspace.provide)
  )

  it.live("says what is not seen: line ends and byte order marks", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": "\uFEFFone\r\ntwo\r\n" })
      const { text } = yield* call("read", { path: "a.txt" })
      assert.strictEqual(text, "one\ntwo\n\n[Lines end in CRLF.]\n[The file begins with a byte order mark.]")
    }).pipe(Workspace.provide)
  )

  it.live("keeps characters whole that lie across two reads of the disk", () =>
    Effect.gen(function* () {
      const content = `${"a".repeat(1_999)}\n`.repeat(32) + "a".repeat(1_535) + "😀\r\nend"
      const { call } = yield* Workspace.make({ "a.txt": content })
      const { text } = yield* call("read", { path: "a.txt", offset: 33 })
      assert.strictEqual(text.split("\n")[0], "a".repeat(1_535) + "😀")
      assert.notInclude(text, "\uFFFD")
    }).pipe(Workspace.provide)
  )

  it.live("says that a file is empty", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": "" })
      assert.strictEqual((yield* call("read", { path: "a.txt" })).text, "(The file is empty.)")
    }).pipe(Workspace.provide)
  )

  it.live("shows images, whatever they are named", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "image.txt": png })
      const { content } = yield* call("read", { path: "image.txt" })
      assert.deepStrictEqual(content[1], {
        type: "image",
        source: { data: Images.png(7, 5), mediaType: "image/png" }
      })
    }).pipe(Workspace.provide)
  )

  it.live("refuses images that are cut", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.png": png.subarray(0, 40) })
      const { content, isError, text } = yield* call("read", { path: "a.png" })
      assert.deepStrictEqual([content.length, isError], [1, true])
      assert.include(text, "it is not a whole png image: it is cut or damaged")
    }).pipe(Workspace.provide)
  )

  it.live("says in place of an image that the model cannot take it", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.png": png })
      const refuses = () => "m takes no images"
      const { content, isError, text } = yield* call("read", { path: "a.png" }, undefined, { refuses })
      assert.deepStrictEqual([content.length, isError], [1, true])
      assert.include(
        text,
        `it is an image (image/png, ${png.length} bytes) that you cannot see: m takes no images`
      )
    }).pipe(Workspace.provide)
  )

  it.live("refuses images of more than 5 MiB in base64", () =>
    Effect.gen(function* () {
      const { call, fs, path, root } = yield* Workspace.make({ "a.png": png })
      yield* fs.truncate(path.join(root, "a.png"), 3_932_161)
      assert.include((yield* call("read", { path: "a.png" })).text, "at most 3932160 can be shown")
    }).pipe(Workspace.provide)
  )

  it.live("refuses binary files, with their size", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({
        "a.bin": Uint8Array.from([1, 2, 0, 3]),
        "utf16.txt": Uint8Array.from([0xff, 0xfe, 0x61, 0]),
        "a.wav": new TextEncoder().encode("RIFF\0\0\0\0WAVE")
      })
      assert.strictEqual(
        (yield* call("read", { path: "a.bin" })).text,
        '"a.bin": it is binary (4 bytes); inspect it with another tool.'
      )
      assert.include((yield* call("read", { path: "utf16.txt" })).text, "UTF-16")
      assert.include((yield* call("read", { path: "a.wav" })).text, "binary")
    }).pipe(Workspace.provide)
  )

  it.live("names what is near to a missing file", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "src/Provider.ts": "", "src/Tool.ts": "", "README.md": "" })
      assert.include((yield* call("read", { path: "src/provider.ts" })).text, "Near to it: src/Provider.ts")
      assert.include((yield* call("read", { path: "readme.md" })).text, "Near to it: README.md")
      assert.include((yield* call("read", { path: "scr/Tool.ts" })).text, "there is no such file")
      const { details, isError } = yield* call("read", { path: "nothing-like-it" })
      assert.isTrue(isError)
      assert.deepStrictEqual(details, {
        _tag: "FileFailed",
        path: "nothing-like-it",
        reason: "notFound",
        detail: "there is no such file or folder"
      })
    }).pipe(Workspace.provide)
  )

  it.live("takes a name that is not there for the only one that looks like it", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({
        "cafe\u0301/it\u2019s a\u202fshot.txt": "found",
        "two/one long\u00a0name": "",
        "two/one long\u202fname": ""
      })
      const path = "caf\u00e9/it's a shot.txt"
      assert.strictEqual((yield* call("read", { path })).text, "found")
      assert.include((yield* call("list", { path: "caf\u00e9" })).text, "shot.txt")
      yield* call("edit", { path, oldText: "found", newText: "edited" })
      assert.strictEqual((yield* call("grep", { path, pattern: "edited" })).isError, undefined)
      assert.include((yield* call("read", { path: "two/one long name" })).text, "Near to it")
      assert.include(
        (yield* call("edit", { path: "two/one long name", oldText: "x", newText: "y" })).text,
        "no such file"
      )
    }).pipe(Workspace.provide)
  )

  it.live("says that a path is a folder, or goes through a file", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "src/a.ts": "x" })
      assert.include((yield* call("read", { path: "src" })).text, "it is a folder, not a file")
      assert.include((yield* call("read", { path: "." })).text, "it is a folder, not a file")
      assert.include((yield* call("read", { path: "src/a.ts/b" })).text, "not a directory")
    }).pipe(Workspace.provide)
  )
})
