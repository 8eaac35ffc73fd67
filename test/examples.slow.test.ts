import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll } from "vitest"
import { undocumented } from "./bounds.ts"
import { type Example, examplesOf } from "./docstrings.ts"
import { files } from "./source.ts"

const repo = join(import.meta.dirname, "..")
const home = mkdtempSync(join(tmpdir(), "effect-agent-examples-"))

const examples = files.filter((file) => !undocumented.includes(file)).flatMap(examplesOf)
const nameOf = ({ where }: Example) => `${where.replaceAll(/[/.:]/g, "-")}.ts`

/** What an application has installed. */
const packages = [
  "effect",
  "@agentclientprotocol/sdk",
  "@ai-sdk/provider",
  "@effect/platform-node",
  "@effect/sql-pg",
  "@modelcontextprotocol/client",
  "@types/node",
  "google-auth-library",
  "gpt-tokenizer",
  "zod"
]

const tsconfig = {
  extends: join(repo, "tsconfig.json"),
  compilerOptions: { noUnusedLocals: true, plugins: [] },
  include: ["*.ts"]
}

interface Ran {
  readonly error?: string
  readonly printed: ReadonlyArray<string>
}

/**
 * Imports the files one after the other, without a network, and prints for each what it printed and how it failed. A
 * request fails, and so does a file that takes more than ten seconds. Lines of a log are no part of what an example
 * prints: the cluster of Effect warns on a slow machine that the only process is gone, while it shuts down.
 */
const runner = `
  import net from "node:net"
  import { format } from "node:util"
  const offline = () => { throw new Error("An example asked the network") }
  globalThis.fetch = offline
  net.Socket.prototype.connect = offline
  const print = console.log
  const ran = {}
  for (const file of process.argv.slice(2)) {
    const printed = []
    const keep = (...values) => {
      const text = format(...values)
      if (!/^\\[[0-9:.]{12}\\] (WARN|INFO|DEBUG) /.test(text)) printed.push(...text.split("\\n"))
    }
    for (const level of ["log", "info", "warn", "error", "debug"]) console[level] = keep
    const late = new Promise((_, reject) => setTimeout(() => reject(new Error("It takes too long")), 10_000).unref())
    const error = await Promise.race([import(file), late]).then(() => undefined, String)
    ran[file] = { printed, error }
  }
  print(JSON.stringify(ran))
`

const ran: Record<string, Ran> = {}

const run = async (): Promise<void> => {
  writeFileSync(join(home, "runner.mjs"), runner)
  const keys = Object.keys(process.env).filter((name) => /_API_KEY$|_BASE_URL$/.test(name))
  const env = { ...process.env, ...Object.fromEntries(keys.map((name) => [name, undefined])) }
  const args = ["--conditions", "effect-agent-source", "runner.mjs"]
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...args, ...examples.map((example) => `./${nameOf(example)}`)],
    { cwd: home, env, timeout: 120_000 }
  )
  Object.assign(ran, JSON.parse(stdout))
}

describe("the examples of the docstrings", { timeout: 180_000 }, () => {
  beforeAll(async () => {
    mkdirSync(join(home, "node_modules/@effect"), { recursive: true })
    mkdirSync(join(home, "node_modules/@agentclientprotocol"))
    mkdirSync(join(home, "node_modules/@types"))
    mkdirSync(join(home, "node_modules/@ai-sdk"))
    mkdirSync(join(home, "node_modules/@modelcontextprotocol"))
    for (const name of packages) {
      symlinkSync(join(repo, "node_modules", name), join(home, "node_modules", name))
    }
    symlinkSync(repo, join(home, "node_modules/effect-agent"))
    writeFileSync(join(home, "package.json"), `{ "type": "module", "private": true }`)
    writeFileSync(join(home, "tsconfig.json"), JSON.stringify(tsconfig))
    for (const example of examples) writeFileSync(join(home, nameOf(example)), example.code)
    await run()
  }, 180_000)
  afterAll(() => rmSync(home, { recursive: true, force: true }))

  it("are as the types want them", async () => {
    const tsc = join(repo, "node_modules/typescript/bin/tsc")
    const { stdout } = await promisify(execFile)(process.execPath, [tsc, "-p", home], { cwd: home }).catch(
      (failed: { readonly stdout: string }) => failed
    )
    assert.deepStrictEqual(stdout.trim().split("\n").filter(Boolean), [])
  })

  it.each(examples.map((example) => [example.where, example] as const))("%s runs", (_, example) => {
    const { error, printed } = ran[`./${nameOf(example)}`] ?? { printed: [], error: "It did not run" }
    assert.strictEqual(error, undefined)
    if (example.prints.length > 0) assert.deepStrictEqual(printed, example.prints)
  })
})
