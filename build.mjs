// Builds `dist`: the library by tsc, and the program as one bundled file, with what only the program needs inside.
import { build } from "esbuild"
import { spawnSync } from "node:child_process"
import { chmodSync, rmSync } from "node:fs"

rmSync("dist", { recursive: true, force: true })
const tsc = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], {
  stdio: "inherit"
})
if (tsc.status !== 0) process.exit(tsc.status ?? 1)

rmSync("dist/cli", { recursive: true, force: true })
await build({
  entryPoints: ["src/cli/main.ts"],
  outfile: "dist/cli/main.js",
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node22",
  minify: true,
  // What is bundled and still asks for CommonJS, undici first of all, gets it.
  banner: {
    js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);'
  },
  logLevel: "warning"
})
chmodSync("dist/cli/main.js", 0o755)
