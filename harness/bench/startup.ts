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

/** A file that imports the modules of other packages that this one does, itself or through files of its own. */
const others = async (module: string, folder: string): Promise<string> => {
  const { metafile } = await build({
    entryPoints: [module],
    bundle: true,
    write: false,
    metafile: true,
    packages: "external",
    format: "esm",
    outdir: folder,
    logLevel: "error"
  })
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports)
  const paths = new Set(imports.filter(({ external }) => external === true).map(({ path }) => path))
  const file = join(folder, "others.entry.mjs")
  const lines = [...paths].map((path) => `import ${JSON.stringify(import.meta.resolve(path))}\n`)
  writeFileSync(file, lines.join(""))
  return file
}

export const columns: ReadonlyArray<Column> = [
  { figure: "cpu", label: "CPU ms", ratio: true },
  { figure: "bundled", label: "CPU ms, bundled" },
  { figure: "gzip", label: "bundle, gzip kB" }
]

interface Subject {
  readonly name: string
  readonly measure: () => Promise<Figures>
}

const library = join(repo, "dist/index.js")

/** Bare Node comes first, and is what the others are multiples of. */
const subjects = async (
  contenders: ReadonlyArray<Contender>,
  folder: string
): Promise<ReadonlyArray<Subject>> => {
  const running = (name: string, ...args: ReadonlyArray<string>): Subject => ({
    name,
    measure: async () => ({ cpu: await cpuOf(args) })
  })
  const importing = async ({ name, path }: Contender, index: number): Promise<Subject> => {
    const { bundle, file, gzip } = await written(`import-${index}`, path, folder)
    const measure = async () => ({ cpu: await cpuOf([file]), bundled: await cpuOf([bundle]), gzip })
    return { name: `import of ${name}`, measure }
  }
  const program = join(repo, "dist/cli/main.js")
  return [
    running("Node", "-e", "0"),
    running("import of the modules of Effect it needs", await others(library, folder)),
    ...(await Promise.all([{ name: "effect-agent alone", path: library }, ...contenders].map(importing))),
    running("program: --version", program, "--version"),
    running("program: first answer of local/rules", program, "read package.json and list src")
  ]
}

/** The rounds of all rows: one after the other, each round in the same order. */
export const startup = async (
  contenders: ReadonlyArray<Contender>,
  rounds: number
): Promise<ReadonlyArray<Row>> => {
  const folder = mkdtempSync(join(tmpdir(), "effect-agent-bench-"))
  try {
    const rows = (await subjects(contenders, folder)).map((subject) => ({
      ...subject,
      rounds: Array<Figures>()
    }))
    for (let round = 0; round < rounds; round++) for (const row of rows) row.rounds.push(await row.measure())
    return rows
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
