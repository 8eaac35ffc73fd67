// Runs the kinds of conformance tests that have a floor, and fails when one passes fewer cases than its floor says.
//
//     node harness/conformance/ci.mjs DIR
//
// DIR holds the folders named below. The floor is raised by hand, in floor.json, when more cases pass.
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"

/** By kind, the longest first: several run at once. */
const folders = {
  cuts: "wire/corpus",
  wire: "wire/corpus",
  faults: "faults",
  golden: "golden/scenarios",
  requests: "wire/requests",
  models: "wire/models"
}

const [dir] = process.argv.slice(2)
if (dir === undefined) {
  console.error("usage: ci.mjs DIR")
  process.exit(2)
}

const floors = JSON.parse(readFileSync(join(import.meta.dirname, "floor.json"), "utf8"))
const kinds = Object.keys(folders)
let ok = true
await Promise.all(Array.from({ length: availableParallelism() }, judge))
process.exit(ok ? 0 : 1)

/** Runs one kind after the other, of those that nobody has taken yet. */
async function judge() {
  for (let kind = kinds.shift(); kind !== undefined; kind = kinds.shift()) {
    const { passed, total, output } = await run(kind)
    console.log(`${kind} ${passed} of ${total}`)
    if (passed >= floors[kind]) continue
    ok = false
    console.log(`${output}\n${kind}: ${passed} passed, the floor is ${floors[kind]}`)
  }
}

async function run(kind) {
  const main = join(import.meta.dirname, "main.ts")
  const args = ["--conditions", "effect-agent-source", main, kind, join(dir, folders[kind])]
  const { stdout, stderr } = await new Promise((resolve) =>
    execFile(process.execPath, args, { maxBuffer: 2 ** 26 }, (_, stdout, stderr) =>
      resolve({ stdout, stderr })
    )
  )
  const counts = stdout.match(new RegExp(`^${kind}: (\\d+) passed, (\\d+) failed$`, "m"))
  const [passed, failed] = counts === null ? [0, 0] : [Number(counts[1]), Number(counts[2])]
  return { passed, total: passed + failed, output: `${stdout}${stderr}` }
}
