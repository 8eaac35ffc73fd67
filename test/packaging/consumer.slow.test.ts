import { assert, describe, it } from "@effect/vitest"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import * as Published from "../faults/published.ts"
import * as Surface from "./surface.mjs"

const { repo } = Published
const home = mkdtempSync(join(tmpdir(), "effect-agent-consumer-"))
const manifest: { readonly exports: Record<string, unknown> } = Published.jsonIn(join(repo, "package.json"))
const subpaths = Object.keys(manifest.exports)
  .filter((subpath) => subpath !== "./package.json")
  .map((subpath) => `effect-agent${subpath.slice(1)}`)

const compilers = [
  { name: "TypeScript 5.9", tsc: join(repo, "node_modules/typescript-5.9/bin/tsc") },
  { name: "TypeScript 7", tsc: join(repo, "node_modules/typescript/bin/tsc") }
]

/** A fault of our package, not of a statement that spreads what is no object, nor of a type of Effect that has no name. */
const isOurs = (line: string) =>
  line.includes("error TS") && !line.includes("TS2698") && !/module "[^"]*\/node_modules\/effect\//.test(line)

describe("a project with the options of tsc --init", { timeout: 240_000 }, () => {
  beforeAll(async () => {
    const { tarball } = await Published.publish()
    writeFileSync(join(home, "package.json"), `{ "type": "module", "private": true }`)
    const packages = ["effect", "ignore", "@effect/platform-node", "@effect/platform-node-shared", "zod"]
    for (const name of packages) {
      cpSync(join(repo, "node_modules", name), join(home, "node_modules", name), { recursive: true })
    }
    mkdirSync(join(home, "node_modules/effect-agent"))
    const unpack = ["-xzf", tarball, "--strip-components=1", "-C", join(home, "node_modules/effect-agent")]
    assert.strictEqual((await Published.run("tar", unpack)).code, 0)
    for (const [subpath, source] of Surface.sourcesOf(home, subpaths)) {
      writeFileSync(join(home, `surface-${subpath.replaceAll("/", "-")}.ts`), source)
    }
    cpSync(join(import.meta.dirname, "application.ts"), join(home, "application.ts"))
  }, 240_000)
  afterAll(() => {
    rmSync(home, { recursive: true, force: true })
    Published.cleanUp()
  }, 240_000)

  /** The faults that a compiler finds, and the declarations it writes for the application. */
  const compile = async (tsc: string, ...options: ReadonlyArray<string>) => {
    rmSync(join(home, "tsconfig.json"), { force: true })
    const run = (...args: ReadonlyArray<string>) =>
      Published.run(process.execPath, [tsc, ...args], { cwd: home })
    assert.strictEqual((await run("--init")).code, 0)
    assert.include(readFileSync(join(home, "tsconfig.json"), "utf8"), '"declaration": true')
    const { stdout } = await run("--outDir", "out", ...options)
    const found = stdout.split("\n").filter((line) => line.includes("error TS"))
    return { found, declarations: readFileSync(join(home, "out/application.d.ts"), "utf8") }
  }

  it.each(compilers)("can export all there is, by $name", async ({ tsc }) => {
    const { declarations, found } = await compile(tsc)
    assert.deepStrictEqual(found.filter(isOurs), [])
    assert.notMatch(declarations, /dist|node_modules|\bany\b/)
    // Else nothing was compiled.
    assert.isAbove(declarations.split("\n").length, 20)
  })

  it.each(compilers)("finds no fault in the declarations of the package, by $name", async ({ tsc }) => {
    const { found } = await compile(tsc, "--skipLibCheck", "false")
    assert.deepStrictEqual(
      found.filter((line) => line.startsWith("node_modules/effect-agent/")),
      []
    )
  })
})
