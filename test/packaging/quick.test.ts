import { assert, describe, it } from "@effect/vitest"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { slowFiles, vitestFor } from "../../vitest.config.ts"

const repo = join(import.meta.dirname, "../..")
const excludedBy = (...args: ReadonlyArray<string>) => vitestFor(["vitest", "run", ...args]).exclude

describe("npm test", () => {
  it("leaves out the slow files, and there are some", () => {
    assert.include(excludedBy(), slowFiles)
    assert.include(excludedBy("--reporter=json", "-t", "a name"), slowFiles)
    assert.isAbove(globSync(slowFiles, { cwd: repo, exclude: ["node_modules/**"] }).length, 10)
  })

  it("runs files and folders that are named, slow or not", () => {
    for (const named of ["test/", "test/chaos", "test/cli/Cli.slow.test.ts", "Cli.slow.test.ts"]) {
      assert.notInclude(excludedBy(named), slowFiles, named)
    }
  })

  it("has a script that runs all tests", () => {
    const { scripts } = JSON.parse(readFileSync(join(repo, "package.json"), "utf8"))
    assert.strictEqual(scripts.test, "vitest run")
    assert.strictEqual(scripts["test:all"], "vitest run test/")
    // npm warns of these when it installs the package.
    for (const name of ["preinstall", "install", "postinstall", "prepare"]) assert.notProperty(scripts, name)
  })
})
