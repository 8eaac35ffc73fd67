import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { appendFileSync, cpSync, mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"

const repo = join(import.meta.dirname, "../..")
const parts = ["package.json", "package-lock.json", "scripts", "src"]

describe("npm start", { timeout: 60_000 }, () => {
  it("bundles the program when there is no bundle, or an older one, and not again", async () => {
    const home = mkdtempSync(join(tmpdir(), "effect-agent-start-"))
    try {
      for (const part of parts) cpSync(join(repo, part), join(home, part), { recursive: true })
      symlinkSync(join(repo, "node_modules"), join(home, "node_modules"))
      const start = () =>
        promisify(execFile)(process.execPath, [join(home, "scripts/start.mjs"), "--version"])
      const bundledAt = () => statSync(join(home, "dist/cli/main.js")).mtimeMs
      const version: unknown = (await start()).stdout.trim()
      assert.match(String(version), /^\d+\.\d+\.\d+$/)
      const first = bundledAt()
      await start()
      assert.strictEqual(bundledAt(), first)
      appendFileSync(join(home, "src/cli/main.ts"), `process.stderr.write("changed")\n`)
      assert.strictEqual((await start()).stderr, "changed")
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  })
})
