// Runs the kinds of conformance tests that have a floor, and fails when one passes fewer cases than its floor says.
//
//     node test/conformance/ci.mjs DIR
//
// DIR holds the folders named below. The floor is raised by hand, in floor.json, when more cases pass.
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"

const folders = {
  golden: "golden/scenarios",
  wire: "wire/corpus",
  requests: "wire/requests",
  models: "wire/models",
  cuts: "wire/corpus",
  faults: "faults"
}

const [dir] = process.argv.slice(2)
if (dir === undefined) {
  console.error("usage: ci.mjs DIR")
  process.exit(2)
}

const floors = JSON.parse(readFileSync(join(import.meta.dirname, "floor.json"), "utf8"))
let ok = true
for (const [kind, floor] of Object.entries(floors)) {
  const { passed, total, output } = run(kind)
  console.log(`${kind} ${passed} of ${total}`)
  if (passed >= floor) continue
  ok = false
  console.log(`${output}\n${kind}: ${passed} passed, the floor is ${floor}`)
}
process.exit(ok ? 0 : 1)

function run(kind) {
  const main = join(import.meta.dirname, "main.ts")
  const args = ["--conditions", "effect-agent-source", main, kind, join(dir, folders[kind])]
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", maxBuffer: 2 ** 26 })
  const counts = stdout.match(new RegExp(`^${kind}: (\\d+) passed, (\\d+) failed$`, "m"))
  const [passed, failed] = counts === null ? [0, 0] : [Number(counts[1]), Number(counts[2])]
  return { passed, total: passed + failed, output: `${stdout}${stderr}` }
}
