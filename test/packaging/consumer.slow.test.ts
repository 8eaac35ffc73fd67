import { assert, describe, it } from "@effect/vitest"
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { publicModules, subpathOf } from "../../scripts/publicModules.ts"
import * as Published from "../faults/published.ts"
import * as Project from "./project.ts"
import * as Surface from "./surface.mjs"

const home = Project.folder("consumer")
const subpaths = publicModules.map((module) => `effect-agent${subpathOf(module).slice(1)}`)

/** An application whose agent has so many tools, each with its own params, success, failure and service. */
const withTools = (count: number): string => {
  const tools = Array.from(
    { length: count },
    (_, n) => `const tool${n} = Tool.make({
      name: "tool_${n}",
      description: "Asks a station.",
      params: Schema.Struct({ city: Schema.String, days${n}: Schema.optionalKey(Schema.Finite) }),
      success: Schema.Struct({ degrees: Schema.Finite, note${n}: Schema.String }),
      failure: Schema.String,
      execute: Effect.fnUntraced(function* ({ city, days${n} = 1 }) {
        const degrees = yield* (yield* Station${n % 5}).ask(city, days${n})
        return degrees > 60 ? yield* Effect.fail("too hot") : { degrees, note${n}: city }
      })
    })`
  )
  const stations = Array.from(
    { length: 5 },
    (_, n) => `class Station${n} extends Context.Service<Station${n}, {
      readonly ask: (city: string, days: number) => Effect.Effect<number>
    }>()("Station${n}") {}`
  )
  return `import { Context, Effect, Schema } from "effect"
    import { Agent, Tool } from "effect-agent"
    ${stations.join("\n")}
    ${tools.join("\n")}
    export const program = Effect.gen(function* () {
      const agent = yield* Agent.make({ model: "m", tools: [${tools.map((_, n) => `tool${n}`).join(", ")}] })
      return yield* agent.prompt("hi")
    })`
}

/** A fault of our package, not of another one, of a statement that spreads what is no object, nor of a type of Effect that has no name. */
const isOurs = (line: string) =>
  !/^node_modules\/(?!effect-agent\/)/.test(line) &&
  !line.includes("TS2698") &&
  !/module "[^"]*\/node_modules\/effect\//.test(line)

describe("a project with the options of tsc --init", { timeout: 240_000 }, () => {
  beforeAll(async () => {
    await Project.install(home, [
      "effect",
      "@agentclientprotocol/sdk",
      "@ai-sdk/provider",
      "@effect/platform-node",
      "@effect/platform-node-shared",
      "@modelcontextprotocol",
      "zod"
    ])
    // The number keeps apart names that differ in their case alone, as Prices and prices do.
    for (const [index, [subpath, source]] of Surface.sourcesOf(home, subpaths).entries()) {
      writeFileSync(join(home, `surface-${index}-${subpath.replaceAll("/", "-")}.ts`), source)
    }
    cpSync(join(import.meta.dirname, "application.ts"), join(home, "application.ts"))
    mkdirSync(join(home, "tools"))
    writeFileSync(join(home, "tools/tools.ts"), withTools(50))
    writeFileSync(
      join(home, "tools/tsconfig.json"),
      JSON.stringify({ compilerOptions: { ...Project.strict, types: [] } })
    )
  }, 240_000)
  afterAll(() => Project.remove(home), 240_000)

  /** The faults that a compiler finds, and the declarations it writes for the application. */
  const compile = async (tsc: string) => {
    rmSync(join(home, "tsconfig.json"), { force: true })
    const run = (...args: ReadonlyArray<string>) =>
      Published.run(process.execPath, [tsc, ...args], { cwd: home })
    assert.strictEqual((await run("--init")).code, 0)
    assert.include(readFileSync(join(home, "tsconfig.json"), "utf8"), '"declaration": true')
    const { stdout } = await run("--outDir", "out", "--skipLibCheck", "false")
    const found = stdout.split("\n").filter((line) => line.includes("error TS"))
    return { found, declarations: readFileSync(join(home, "out/application.d.ts"), "utf8") }
  }

  it.each(Project.compilers)(
    "can export all there is, and finds no fault in the declarations of the package, by $name",
    async ({ tsc }) => {
      const { declarations, found } = await compile(tsc)
      assert.deepStrictEqual(found.filter(isOurs), [])
      assert.notMatch(declarations, /dist|node_modules|\bany\b/)
      // Else nothing was compiled.
      assert.isAbove(declarations.split("\n").length, 20)
    }
  )

  it.each(Project.compilers)(
    "checks an agent with 50 tools in 106,000 instantiations, by $name",
    async ({ tsc }) => {
      const { code, stdout } = await Published.run(
        process.execPath,
        [tsc, "-p", "tools", "--extendedDiagnostics"],
        { cwd: home }
      )
      assert.strictEqual(code, 0, stdout)
      const [, instantiations] = /^Instantiations: +(\d+)$/m.exec(stdout) ?? []
      // 54,000 of them are the tools, 35,000 the schema of events, of which each takes 600 in Effect.
      assert.isAtMost(Number(instantiations), 106_000)
    }
  )
})
