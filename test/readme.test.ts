import { assert, describe, it } from "@effect/vitest"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const read = (file: string) => readFileSync(join(root, file), "utf8")

describe("README", () => {
  const blocks = [...read("README.md").matchAll(/```ts\n\/\/ (scratchpad\/\w+\.ts)\n([^]*?)```/g)]

  it("shows code", () => {
    assert.isAtLeast(blocks.length, 5)
    assert.strictEqual(blocks.length, [...read("README.md").matchAll(/```ts\n/g)].length)
  })

  it.each(blocks.map(([, file = "", code = ""]) => [file, code] as const))(
    "shows %s as it is",
    (file, code) => {
      assert.strictEqual(code, read(file))
    }
  )

  it("stays within 400 lines, AGENTS.md within 80", () => {
    assert.isAtMost(read("README.md").split("\n").length, 400)
    assert.isAtMost(read("AGENTS.md").split("\n").length, 80)
  })

  it("has a map of the public modules in AGENTS.md", () => {
    const text = read("AGENTS.md")
    const modules = globSync("*.ts", { cwd: join(root, "src") }).filter((file) => file !== "index.ts")
    const missing = modules.filter((file) => !text.includes(file.replace(/\.ts$/, "")))
    assert.deepStrictEqual(missing, [])
  })
})
