import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const text = readFileSync(join(import.meta.dirname, "../../docs/durable.md"), "utf8")
const unit = /```ini\n([^]*?)```/.exec(text)?.[1] ?? ""
const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0

describe.skipIf(!hasSystemd)("the unit of docs/durable.md", () => {
  it("is one that systemd takes, without a remark", { timeout: 90_000 }, () => {
    const file = join(mkdtempSync(join(tmpdir(), "effect-agent-unit-")), "effect-agent.service")
    // The check looks for the program.
    writeFileSync(file, unit.replace("/usr/bin/effect-agent", process.execPath))
    const { status, stderr } = spawnSync("systemd-analyze", ["verify", file], { encoding: "utf8" })
    assert.deepStrictEqual([status, stderr], [0, ""])
  })
})
