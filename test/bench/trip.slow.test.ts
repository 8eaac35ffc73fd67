import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import type { Trip } from "../../harness/bench/trip.ts"

/** What the core may cost, as `trip.ts` counts it. A change may lower these and raise none. */
const bounds: Readonly<Record<string, Trip>> = {
  make: { files: 18, functions: 66, calls: 69 },
  tool: { files: 47, functions: 370, calls: 1_039 },
  heard: { files: 47, functions: 374, calls: 1_161 },
  text: { files: 38, functions: 258, calls: 501 }
}

describe("the way of a prompt", () => {
  it("passes no more files, functions and calls of the core than the bounds allow", () => {
    const output = execFileSync(
      process.execPath,
      ["--conditions", "effect-agent-source", "--no-warnings", "harness/bench/trip.ts"],
      { encoding: "utf8" }
    )
    const trips: Readonly<Record<string, Trip>> = JSON.parse(output)
    assert.deepStrictEqual(Object.keys(trips).sort(), Object.keys(bounds).sort())
    for (const [name, bound] of Object.entries(bounds))
      for (const part of ["files", "functions", "calls"] as const)
        assert.isAtMost(trips[name]?.[part] ?? Infinity, bound[part], `${part} of ${name}`)
  })
})
