// Runs Effect's own diagnostics over the project. They come by `npm exec`, in no lock file, because the package has
// optional parts for other platforms that a registry mirror may lack. Fails on any finding, and when nothing was checked.
import { spawnSync } from "node:child_process"

const { status, stdout } = spawnSync(
  "npm",
  [
    "exec",
    "--yes",
    "--package=@effect/tsgo@0.45.0",
    "--",
    "effect-tsgo",
    "diagnostics",
    "--project",
    "tsconfig.json",
    "--format",
    "text",
    "--strict"
  ],
  { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }
)
process.stdout.write(stdout)
const checked = Number(/Checked (\d+) files/.exec(stdout)?.[1] ?? 0)
if (checked === 0) {
  console.error("The Effect diagnostics checked no file")
  process.exit(1)
}
process.exit(status ?? 1)
