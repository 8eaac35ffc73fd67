import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"

const repo = join(import.meta.dirname, "../..")
const bench = async (...args: ReadonlyArray<string>) => {
  const flags = ["--conditions", "effect-agent-source", "--no-warnings", "harness/bench/main.ts"]
  const { PEERS: _, ...env } = process.env
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, ...args], { cwd: repo, env })
  return stdout
}

/** The figures of a table in the Markdown of the bench, by the names of its rows. */
const rowsOf = (markdown: string, id: string): ReadonlyMap<string, ReadonlyArray<number>> => {
  const [, table = ""] = markdown.split(`### ${id}: `)
  const [body = ""] = table.split("\n###")
  const rows = body.split("\n").filter((line) => line.startsWith("| effect-agent"))
  return new Map(
    rows.map((row) => {
      const [, name = "", ...cells] = row.split("|").map((cell) => cell.trim())
      return [name, cells.slice(0, -1).map((cell) => Number(cell.replaceAll(",", "")))]
    })
  )
}

describe("npm run bench -- durable", () => {
  it("counts statements and kB of runs, the cost of those that wait, and that of a turn", async () => {
    const markdown = await bench("durable", "--quick")
    for (const [id, columns] of [
      ["D1", 10],
      ["D2", 5],
      ["D3", 6]
    ] as const) {
      const figures = rowsOf(markdown, id).get("effect-agent, SQLite") ?? []
      assert.lengthOf(figures, columns, markdown)
      // The processes of a quick look may hold less than before the runs.
      for (const figure of figures) assert.isTrue(Number.isFinite(figure), markdown)
    }
    const [statements = NaN] = rowsOf(markdown, "D1").get("effect-agent, SQLite") ?? []
    assert.isAbove(statements, 5, markdown)
    assert.isBelow(statements, 60, markdown)
  }, 240_000)
})
