import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import type { ServedTrip } from "../../harness/bench/servedTrip.ts"

/**
 * What one prompt over HTTP may pass of the package. A change may lower these and raise none but for what a prompt now gets: modes, plans and
 * tasks (5 files), and in a plain server the versions of the files that its command changes (7 files).
 */
const bounds: Readonly<Record<string, ServedTrip>> = {
  durable: { files: 135, functions: 1_321 },
  plain: { files: 136, functions: 1_335 }
}

describe("the way of a served prompt", () => {
  it("passes no more files and functions than the bounds allow", { timeout: 120_000 }, () => {
    const output = execFileSync(
      process.execPath,
      ["--conditions", "effect-agent-source", "--no-warnings", "harness/bench/servedTrip.ts"],
      { encoding: "utf8" }
    )
    const trips: Readonly<Record<string, ServedTrip>> = JSON.parse(output)
    for (const [name, bound] of Object.entries(bounds))
      for (const part of ["files", "functions"] as const)
        assert.isAtMost(trips[name]?.[part] ?? Infinity, bound[part], `${part} of ${name}`)
  })
})
