import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Replacement } from "effect-agent/tools"
import * as LineDiff from "../../src/tools/LineDiff.ts"
import * as Paced from "../../src/tools/Paced.ts"
import { longest, tries, whole } from "./stretch.ts"

/** The new text, by the hunks of a diff. */
const patched = (original: string, diff: string): string => {
  const old = original.match(/[^\n]*\n|[^\n]+$/g) ?? []
  const made: Array<string> = []
  let at = 0
  const lines = diff.match(/[^\n]*\n/g) ?? []
  for (const [index, line] of lines.entries()) {
    const text = lines[index + 1]?.startsWith("\\ ") === true ? line.slice(1, -1) : line.slice(1)
    const [, start, size, own] = /^@@ -(\d+)(?:,(\d+))? \+(\d+)/.exec(line) ?? []
    if (start !== undefined) {
      const from = size === "0" ? Number(start) : Number(start) - 1
      made.push(...old.slice(at, from))
      at = from
      if (made.length > 0 && !/,0 @@/.test(line)) assert.strictEqual(Number(own), made.length + 1, line)
    } else if (line.startsWith("+") && !line.startsWith("+++ a\n")) made.push(text)
    else if (/^[- ]/.test(line) && !line.startsWith("--- a\n")) {
      assert.strictEqual(old[at++], text)
      if (line.startsWith(" ")) made.push(text)
    }
  }
  return made.concat(old.slice(at)).join("")
}

const changed = Effect.fnUntraced(function* (original: string, edits: ReadonlyArray<Replacement.Edit>) {
  const { places, text } = yield* Replacement.apply(original, edits)
  return { text, ...whole(LineDiff.make(original, places, "a", 10_000_000)) }
})

/** Numbers from 0 to 1 that are the same in each run. */
const random = (seed: number) => {
  let state = seed
  return () => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648
}

describe("LineDiff", () => {
  it.effect("gives the new text when it is applied to the old one", () =>
    Effect.gen(function* () {
      for (let seed = 1; seed <= 400; seed++) {
        const next = random(seed)
        const pick = (texts: ReadonlyArray<string>) => texts[Math.floor(next() * texts.length)] ?? ""
        const size = Math.floor(next() * 60)
        const original = Array.from({ length: size }, () =>
          pick(["a\n", "b\n", "\n", "x", "a\r\n", "c\u2028@@ -1 +1\n"])
        ).join("")
        const edit = {
          oldText: pick(["x", "a", "b\n", "\n", "a\nb", "\n\n"]),
          newText: pick(["", "y", "y\n", "\n", "1\n2\n3\n4\n5\n6\n7\n8\n", "\nz"]),
          replaceAll: true
        }
        const outcome = yield* Effect.option(changed(original, [edit]))
        if (outcome._tag === "None") continue
        const { added, diff, removed, text } = outcome.value
        assert.strictEqual(patched(original, diff), text, JSON.stringify([original, edit, diff]))
        assert.deepStrictEqual(
          [added, removed],
          ["+", "-"].map((sign) => diff.split("\n").filter((line) => line.startsWith(sign)).length - 1)
        )
      }
    })
  )

  it.effect.each([
    ["each of many lines", "12\n".repeat(9_000), "1", "0", 9_000],
    ["a place in each of many lines that stay", `${"1\n".repeat(6)}2\n`.repeat(4_000), "2", "0", 4_000],
    ["many places in one line", "1".repeat(9_000), "1", "0\n", 9_000],
    ["many lines that become one", "1\n".repeat(9_000), "1\n", "0", 1],
    ["a long line", `a\n${"b".repeat(300_000)}1\nc`, "1", "0", 1]
  ] as const)("marks the lines that change: %s", ([, original, oldText, newText, expected]) =>
    Effect.gen(function* () {
      const { added, diff, text } = yield* changed(original, [{ oldText, newText, replaceAll: true }])
      assert.strictEqual(added, expected)
      assert.isTrue(patched(original, diff) === text)
    })
  )

  it.effect("shows three lines around a change, and one hunk for changes close by", () =>
    Effect.gen(function* () {
      const original = Array.from({ length: 40 }, (_, index) => `${index + 1};\n`).join("")
      const edits = [5, 12, 20].map((line) => ({ oldText: `\n${line};`, newText: `\n${line}!` }))
      const { diff } = yield* changed(original, edits)
      const hunks = diff.split("\n").filter((line) => line.startsWith("@@"))
      assert.deepStrictEqual(hunks, ["@@ -2,14 +2,14 @@", "@@ -17,7 +17,7 @@"])
    })
  )

  it.live(
    "lets others go on meanwhile",
    () =>
      Effect.gen(function* () {
        const edit = { oldText: "1", newText: "\n", replaceAll: true }
        const original = "1".repeat(500_000)
        const { places } = yield* Replacement.apply(original, [edit])
        const { stretch } = yield* longest(Paced.run(LineDiff.make(original, places, "a", 10_000)))
        assert.isBelow(stretch, 60)
      }),
    tries
  )
})
