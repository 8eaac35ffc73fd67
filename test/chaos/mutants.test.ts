import { assert, describe, it } from "@effect/vitest"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { mutants } from "../../harness/chaos/mutants/all.ts"

const root = join(import.meta.dirname, "../..")

describe("mutants", () => {
  it("each has one place where it can be planted", () => {
    const lost = mutants.filter(({ file, from }) => {
      const path = join(root, file)
      return !existsSync(path) || readFileSync(path, "utf8").split(from).length !== 2
    })
    assert.deepStrictEqual(
      lost.map(({ fault, without }) => `${fault}: ${without}`),
      []
    )
  })
})
