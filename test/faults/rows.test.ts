import { assert, describe, it } from "@effect/vitest"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { mutants } from "../../harness/chaos/mutants/all.ts"

const root = join(import.meta.dirname, "..")

/** The faults there are tests for, by what goes wrong. */
const groups: Readonly<Record<string, ReadonlyArray<number>>> = {
  connecting: [1, 2, 3, 4, 5, 6, 8],
  status: [9, 10, 11, 13, 14, 15, 16, 18, 19, 23, 24, 25, 27, 29],
  framing: [31, 34, 35, 38, 39, 41, 42, 44],
  stalls: [47, 48, 51, 52],
  truncation: [53, 54, 56, 58],
  garbage: [60, 62],
  midstream: [66, 67, 70, 71],
  toolCalls: [73, 74, 75, 76, 77, 79, 81, 82, 86, 87, 89],
  hooksAndReaders: [91, 92, 93, 94, 95, 96],
  aborts: [99, 101, 103, 105, 106],
  limits: [116, 117, 118, 119],
  filesAndShell: [141, 142, 145, 146, 147],
  secretsAndTerminal: [150, 151, 152, 153],
  supply: [154, 155, 156, 157]
}

describe.each(Object.entries(groups))("faults of %s", (_, numbers) => {
  const faults = numbers.map((number) => `F${String(number).padStart(3, "0")}`)

  it("have tests that name them", () => {
    const tests = globSync("**/*.test.ts", { cwd: root }).map((file) =>
      readFileSync(join(root, file), "utf8")
    )
    const untested = faults.filter(
      (fault) => !tests.some((text) => new RegExp(`["\`][F\\d ]*${fault}`).test(text))
    )
    assert.deepStrictEqual(untested, [])
  })

  it("have mutants that their tests notice", () => {
    assert.deepStrictEqual(
      faults.filter((fault) => !mutants.some((mutant) => mutant.fault === fault)),
      []
    )
  })
})
