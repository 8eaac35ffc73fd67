import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Program from "./program.ts"

const text = readFileSync(join(import.meta.dirname, "../../DURABLE.md"), "utf8")
const unit = /```ini\n([^]*?)```/.exec(text)?.[1] ?? ""
const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0

describe.skipIf(!hasSystemd)("the unit of DURABLE.md", () => {
  it("is one that systemd takes, without a remark", { timeout: 30_000 }, () => {
    const folder = Program.folder({})
    const file = join(folder, "effect-agent.service")
    // The check looks for the program.
    writeFileSync(file, unit.replace("/usr/bin/effect-agent", process.execPath))
    const { status, stderr } = spawnSync("systemd-analyze", ["verify", file], { encoding: "utf8" })
    assert.deepStrictEqual([status, stderr], [0, ""])
  })
})
