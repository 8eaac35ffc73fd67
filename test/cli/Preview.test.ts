import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import * as Preview from "../../src/cli/Preview.ts"
import { longest } from "../tools/stretch.ts"

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
  ] as const)("does not block the program: %s", ([name, isChanged, changed]) =>
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
    })
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
