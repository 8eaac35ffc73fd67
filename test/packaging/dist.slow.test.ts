import { assert, describe, it } from "@effect/vitest"
import { build } from "esbuild"
import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll } from "vitest"
import { library, program } from "../../scripts/bundle.config.ts"
import { bundle, closure } from "./bundle.ts"

const repo = join(import.meta.dirname, "../..")
const cache = join(repo, "node_modules/.cache")
mkdirSync(cache, { recursive: true })
/** Inside, so that what is built finds `effect`. */
const home = mkdtempSync(join(cache, "effect-agent-dist-"))
const entries = [
  "ai",
  "ai-sdk",
  "ai-sdk-ui",
  "ag-ui",
  "acp",
  "api",
  "artifacts",
  "client",
  "compat",
  "durable",
  "guardrails",
  "context",
  "mcp",
  "node",
  "prices",
  "promise",
  "providers",
  "resilience",
  "runs",
  "server",
  "sessions",
  "skills",
  "steps",
  "testing",
  "proxy",
  "tool-search",
  "tools",
  "view"
]

/** Runs a script in a Node of its own, and gives what it prints. */
const node = async (script: string): Promise<unknown> => {
  const file = join(home, "script.mjs")
  writeFileSync(file, script)
  const { stdout } = await promisify(execFile)(process.execPath, [file])
  return JSON.parse(stdout)
}

/** The size of what an application loads at once that imports this, in kB. */
const bundled = async (contents: string, platform: "node" | "browser" = "node"): Promise<number> =>
  (await bundle(contents, home, { platform })).size

describe("what is built", { timeout: 60_000 }, () => {
  beforeAll(async () => {
    await build(library(home))
    // As that of the package.
    writeFileSync(join(home, "package.json"), '{ "type": "module", "sideEffects": false }')
  })
  afterAll(() => rmSync(home, { recursive: true, force: true }))

  it("exports what the source does", async () => {
    const all = ["core", ...entries].map((name) => (name === "core" ? "index" : `${name}/index`))
    const imports = all.map((path, index) => `import * as m${index} from "./${path}.js"`)
    const names = ["core", ...entries].map((name, index) => `"${name}": Object.keys(m${index}).sort()`)
    const pinned: unknown = JSON.parse(readFileSync(join(repo, "test/exports.json"), "utf8"))
    const script = `${imports.join("\n")}\nconsole.log(JSON.stringify({ ${names.join(", ")} }))`
    assert.deepStrictEqual(await node(script), pinned)
  })

  it("is one library: what one subpath fails with is the class of another", async () => {
    const script = `
      import * as Stream from "effect/Stream"
      import { ProviderError, Run } from "./index.js"
      import { createAgent } from "./promise/index.js"
      const failure = new ProviderError.ProviderError({
        provider: "none",
        reason: new ProviderError.Overloaded({ detail: "full" })
      })
      await using agent = createAgent({ provider: { id: "none", stream: () => Stream.fail(failure) }, model: "m" })
      const error = await agent.prompt("go").catch((error) => error)
      console.log(error instanceof Run.RunFailed && error.reason === failure)`
    assert.isTrue(await node(script))
  })

  // One for each namespace of the core, and what those share with one another and with the edges.
  it("loads few files of its own, and none of the heavy parts of Node", async () => {
    const script = `
      import { registerHooks } from "node:module"
      const files = []
      registerHooks({ load: (url, context, next) => (files.push(url), next(url, context)) })
      const before = new Set(process.moduleLoadList)
      await import("./index.js")
      const own = files.filter((url) => url.startsWith(new URL(".", import.meta.url).href)).length
      const heavy = process.moduleLoadList.filter((name) => !before.has(name) && /crypto|http|net|stream/.test(name))
      console.log(JSON.stringify({ isFew: own > 0 && own <= 58, heavy }))`
    assert.deepStrictEqual(await node(script), { isFew: true, heavy: [] })
  })

  it("leaves out of an application what that does not use", async () => {
    const core = await bundled(`export * from "./index.js"`)
    const one = await bundled(
      `export { Agent } from "./index.js"
       import { OpenAi } from "./providers/index.js"
       export const { layer } = OpenAi`
    )
    // 4.5 kB of it are the telemetry, with Effect's metrics; 2 kB are Effect's `HashMap`; 2 kB are sources, media, hosted tools and prices.
    // 17 kB are approvals, questions, sessions, compaction, sub-agents and hand-offs; 1 kB is the continuation of runs and the changes of a registry;
    // 1 kB is the question to a person about a call whose end is not known.
    // 8 kB are the table of what errors of vendors mean, the recovery from refusals, and the look at images.
    // 7 kB are calls in the background, records of calls, stop conditions, and handles with their events.
    // 1.5 kB are the loop by steps, 3 kB the values of arguments that grow.
    assert.isBelow(core, 134)
    // 3 kB of it are the rules of OpenAI's models, with their sources; 8 kB are the hosted tools and items of the Responses API, and the counting of
    // tokens; 1 kB is the vendor's search for tools. The forms of tool schemas, and the readings of sloppy servers.
    assert.isBelow(one, 203)
    // 3 kB are requests to a person in the middle of a call, the tools of an owner, and messages that a guard refused.
    assert.isBelow(await bundled(`export { make } from "./Agent.js"`), 133.5)
    assert.isBelow(await bundled(`export * from "./AgentEvent.js"`), 49.5)
    assert.isBelow(await bundled(`export * from "./Message.js"`), 28)
  })

  it("makes bundles for browsers of the sizes in the README", async () => {
    const example = (name: string) =>
      readFileSync(join(repo, `examples/${name}.ts`), "utf8")
        .replaceAll('"effect-agent"', '"./index.js"')
        .replaceAll(/"effect-agent\/(\w+)"/g, '"./$1/index.js"')
    const modules = example("quickstart").replaceAll(
      /import \{ (.*) \} from "(effect(?:\/http)?)"/g,
      (_, names: string, from) =>
        names
          .split(", ")
          .map((name) => `import * as ${name} from "${from}/${name}"`)
          .join("\n")
    )
    const sizes = await Promise.all(
      [example("quickstart"), modules, example("plain"), `export { make } from "./Agent.js"`].map(
        (contents) => bundled(contents, "browser")
      )
    )
    const [, section = ""] = readFileSync(join(repo, "docs/package.md"), "utf8").split("\n## Size and cost\n")
    const shown = Array.from(section.matchAll(/(\d+) kB/g), ([, size]) => Number(size))
    assert.strictEqual(shown.length, sizes.length)
    for (const [index, size] of sizes.entries()) assert.closeTo(shown[index] ?? 0, size, 5)
  })
})

describe("the program", { timeout: 60_000 }, () => {
  it("says its version alone, and answers without a client for HTTP", async () => {
    const { metafile } = await build({ ...program(home), write: false, metafile: true })
    const outputs = Object.keys(metafile.outputs)
    const named = (name: string) => outputs.find((output) => output.includes(`/${name}`)) ?? name
    assert.deepStrictEqual([...closure(metafile, named("main.js"))], [named("main.js")])
    const answers = [...closure(metafile, named("Program-"))].flatMap((output) =>
      Object.keys(metafile.outputs[output]?.inputs ?? {})
    )
    assert.include(answers, "src/cli/Program.ts")
    assert.deepStrictEqual(
      answers.filter((input) => /undici|NodeHttpClient|providers\/(Anthropic|Google|OpenAi)/.test(input)),
      []
    )
  })
})
