import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import * as Screen from "../../src/cli/terminal/Screen.ts"
import * as Preview from "../../src/cli/terminal/Preview.ts"
import { longest, tries } from "../tools/stretch.ts"

/** Lines of 20 characters, of which `isChanged` says which ones begin with the letter. */
const text = (count: number, letter: string, isChanged: (line: number) => boolean) =>
  Array.from(
    { length: count },
    (_, n) => `${isChanged(n) ? letter : "x"}${String(n).padStart(18, ".")}\n`
  ).join("")

/** The preview of a write over a file, and the longest time for which it holds the thread. */
const over = Effect.fnUntraced(
  function* (before: string, content: string) {
    const files = yield* FileSystem.FileSystem
    const root = yield* files.makeTempDirectoryScoped()
    yield* files.writeFileString(`${root}/a`, before)
    return yield* longest(Preview.of("write", { path: "a", content }, root))
  },
  Effect.scoped,
  Effect.provide(NodeServices.layer)
)

describe("the preview of a large write", () => {
  it.live.each([
    ["all lines", () => true, 49_000],
    ["every second line", (n: number) => n % 2 === 0, 24_500],
    ["every line of a smaller file", () => true, 9_000]
  ] as const)(
    "does not block the program: %s",
    ([name, isChanged, changed]) =>
      Effect.gen(function* () {
        const count = name === "every line of a smaller file" ? 9_000 : 49_000
        // The first run compiles.
        yield* over(text(2_000, "a", isChanged), text(2_000, "b", isChanged))
        const { result, stretch } = yield* over(text(count, "a", isChanged), text(count, "b", isChanged))
        // CPU time of this thread in milliseconds. It takes some 30.
        assert.isBelow(stretch, 100)
        const { lines } = result
        const [inserted, deleted] = ["+", "-"].map(
          (mark) => lines.filter((line) => line.startsWith(mark)).length
        )
        assert.strictEqual(result.title, `write a: +${inserted} -${deleted} lines`)
        assert.isAtLeast(inserted ?? 0, changed)
        assert.match(lines[0] ?? "", /^@@ /)
      }),
    tries
  )

  it.live("does not block the program: two megabytes, which it does not compare", () =>
    Effect.gen(function* () {
      const [before, after] = ["a", "b"].map((letter) => text(100_000, letter, () => true))
      const { result, stretch } = yield* over(before ?? "", after ?? "")
      assert.isBelow(stretch, 100)
      assert.match(result.title, /^write a: not compared with the existing file: /)
      assert.strictEqual(result.lines.length, 100_000)
    })
  )

  it.live("shows a change and the lines around it", () =>
    Effect.gen(function* () {
      const { result } = yield* over(
        text(49_000, "a", (n) => n === 30_000),
        text(49_000, "b", (n) => n === 30_000)
      )
      assert.strictEqual(result.title, "write a: +1 -1 lines")
      assert.deepStrictEqual(
        result.lines.filter((line) => /^[-+]/.test(line)),
        ["-a.............30000", "+b.............30000"]
      )
    })
  )

  it.live("shows no change of an equal text", () =>
    Effect.gen(function* () {
      const same = text(49_000, "a", () => true)
      const { result } = yield* over(same, same)
      assert.strictEqual(result.title, "write a: +0 -0 lines")
      assert.deepStrictEqual(result.lines, [""])
    })
  )
})

describe("the preview of an edit", () => {
  const of = Effect.fnUntraced(
    function* (oldText: string, colours = false) {
      const files = yield* FileSystem.FileSystem
      const root = yield* files.makeTempDirectoryScoped()
      yield* files.writeFileString(`${root}/a`, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n")
      const params = { path: "a", oldText, newText: "new\nlines" }
      const preview = yield* Preview.of("edit", params, root)
      return { title: preview.title, lines: Preview.brief(preview, Screen.paintOf(colours)) }
    },
    Effect.scoped,
    Effect.provide(NodeServices.layer)
  )

  it.live("has the numbers of the lines, and the lines around them", () =>
    Effect.gen(function* () {
      const { lines, title } = yield* of("5\n6")
      assert.strictEqual(title, "edit a: +2 -2 lines")
      assert.deepStrictEqual(lines.slice(1), [
        "    2  2",
        "    3  3",
        "    4  4",
        "    5 -5",
        "    6 -6",
        "    5 +new",
        "    6 +lines",
        "    7  7",
        "    8  8",
        "    9  9",
        ""
      ])
      const painted = (yield* of("5\n6", true)).lines
      assert.include(painted[4], "\u001b[31m")
      assert.include(painted[6], "\u001b[32m")
    })
  )

  it.live("has the texts alone where they do not fit the file", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* of("12"), { title: "edit a", lines: ["-12", "+new", "+lines"] })
    })
  )
})
