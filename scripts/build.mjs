// Builds `dist`: the types by tsc, the library and the program by esbuild. With `--program`, that alone.
import { build } from "esbuild"
import { spawnSync } from "node:child_process"
import { chmodSync, rmSync } from "node:fs"
import { entryOf, library, program } from "./bundle.config.ts"

const onlyProgram = process.argv.includes("--program")

rmSync(onlyProgram ? "dist/cli" : "dist", { recursive: true, force: true })
if (!onlyProgram) {
  const tsc = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], {
    stdio: "inherit"
  })
  if (tsc.status !== 0) process.exit(tsc.status ?? 1)
  rmSync("dist/cli", { recursive: true, force: true })
  await build(library("dist"))
}
await build(program("dist"))
chmodSync(entryOf("dist"), 0o755)
