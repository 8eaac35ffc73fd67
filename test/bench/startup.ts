/**
 * W5: what it costs to begin. CPU of whole processes, so that what Node itself needs is a row too.
 */
import { build } from "esbuild"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { gzipSync } from "node:zlib"
import type { Contender } from "./contenders.ts"
import type { Column } from "./jobs.ts"
import type { Row } from "./table.ts"
import type { Figures } from "./workloads.ts"

const repo = join(import.meta.dirname, "../..")

/** Has a process tell its CPU, user and system, when it leaves. */
const tell = `data:text/javascript,${encodeURIComponent(
  `import { writeSync } from "node:fs"
   process.on("exit", () => {
     const { system, user } = process.cpuUsage()
     writeSync(3, String((user + system) / 1000))
   })`
)}`

/** CPU of a process in milliseconds. */
const cpuOf = async (args: ReadonlyArray<string>): Promise<number> => {
  const child = spawn(process.execPath, ["--import", tell, ...args], {
    cwd: repo,
    env: { PATH: process.env["PATH"], CI: "true" },
    stdio: ["ignore", "ignore", "ignore", "pipe"]
  })
  let said = ""
  child.stdio[3]?.on("data", (bytes: Buffer) => (said += bytes.toString()))
  const [code] = await once(child, "close")
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}`)
  return Number(said)
}

/** A file that imports this module, and a bundle of it. */
const written = async (name: string, module: string, folder: string) => {
  const file = join(folder, `${name}.entry.mjs`)
  const bundle = join(folder, `${name}.bundle.mjs`)
  const from = JSON.stringify(pathToFileURL(module).href)
  writeFileSync(file, `import * as all from ${from}\nglobalThis.all = all\n`)
  const contents = `import * as all from ${JSON.stringify(module)}\nglobalThis.all = all`
  await build({
    stdin: { contents, resolveDir: repo },
    outfile: bundle,
    bundle: true,
    minify: true,
    platform: "node",
    format: "esm",
    logLevel: "error",
    banner: { js: `import{createRequire}from"node:module";const require=createRequire(import.meta.url);` }
  })
  const gzip = gzipSync(readFileSync(bundle)).length / 1024
  return { file, bundle, gzip }
}

export const columns: ReadonlyArray<Column> = [
  { figure: "cpu", label: "CPU ms", ratio: true },
  { figure: "bundled", label: "CPU ms, bundled" },
  { figure: "gzip", label: "bundle, gzip kB" }
]

/** The rounds of all rows, one after the other. Bare Node comes first, and is what the others are multiples of. */
export const startup = async (
  contenders: ReadonlyArray<Contender>,
  rounds: number
): Promise<ReadonlyArray<Row>> => {
  const folder = mkdtempSync(join(tmpdir(), "effect-agent-bench-"))
  const imports = [{ name: "effect-agent alone", path: join(repo, "dist/index.js") }, ...contenders]
  const subjects: Array<{ readonly name: string; readonly measure: () => Promise<Figures> }> = [
    { name: "Node", measure: async () => ({ cpu: await cpuOf(["-e", "0"]) }) }
  ]
  for (const [index, { name, path }] of imports.entries()) {
    const { bundle, file, gzip } = await written(`import-${index}`, path, folder)
    const measure = async () => ({ cpu: await cpuOf([file]), bundled: await cpuOf([bundle]), gzip })
    subjects.push({ name: `import of ${name}`, measure })
  }
  const program = (name: string, ...args: ReadonlyArray<string>) =>
    subjects.push({ name, measure: async () => ({ cpu: await cpuOf(["dist/cli/main.js", ...args]) }) })
  program("program: --version", "--version")
  program("program: first answer of local/rules", "read package.json and list src")
  const rows = subjects.map(({ name }) => ({ name, rounds: Array<Figures>() }))
  for (let round = 0; round < rounds; round++) {
    for (const [index, { measure }] of subjects.entries()) rows[index]?.rounds.push(await measure())
  }
  rmSync(folder, { recursive: true, force: true })
  return rows
}
