import { assert, describe, it } from "@effect/vitest"
import { globSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"

/** Innermost first. A module imports from its own ring and from the rings before it. */
const rings: ReadonlyArray<readonly [name: string, files: RegExp]> = [
  [
    "data",
    /^((Usage|Message|ProviderError|ModelEvent|RunOptions|FailureReason|AgentEvent|RunReport|RunResult|RunFailed|Transcript|JsonSchema)|internal\/(failureText|inspection|callSet|jsonCoercion|jsonReference|jsonDepth|vendorKeys|jsonText|once|durationInput|nearestName|invalidInput))\.ts$/
  ],
  [
    "services",
    /^((Provider|Credentials|Tool|ToolRegistry|Hook|HookManager|ContextManager|Retry)|internal\/(handoff|alarm|byteSource|begin|work|params|toolOutput|toolContext|promiseTool|invalidTool|toolRun|toolServices|hookInput|hookOutput|invalidHook|silence))\.ts$/
  ],
  [
    "loop",
    /^((Loop)|internal\/(budget|continuation|control|queues|delivery|events|run|limits|gate|guards|pending|request|reply|modelCall|unrun|settlement|toolExecution|toolBatch|turn|ending|execution|eventsOnly))\.ts$/
  ],
  ["agent", /^((Agent)|internal\/(agentState|agentOptions|subscriptions|agentRuntime))\.ts$/],
  ["edges", /^(providers|resilience|tools|compat|promise|testing|ai|node)\//],
  ["program", /^cli\//],
  ["barrel", /^index\.ts$/]
]
const ringOf = (file: string) => rings.findIndex(([, files]) => files.test(file))
const edgeOf = (file: string) =>
  file.includes("/") && !file.startsWith("internal/") ? file.split("/")[0] : undefined

const root = join(import.meta.dirname, "../src")
const files = globSync("**/*.ts", { cwd: root })
const sourceOf = (file: string) => readFileSync(join(root, file), "utf8")
/** Examples in docstrings import as users do. */
const docs = /\/\*\*[^]*?\*\//g
const importsOf = (file: string) =>
  [
    ...sourceOf(file)
      .replace(docs, "")
      .matchAll(/(?:from|import)[ (]"(.+?)"/g)
  ].flatMap(([, to]) => (to === undefined ? [] : [to]))
const imports = files.flatMap((from) =>
  importsOf(from)
    .filter((to) => to.startsWith("."))
    .map((to) => ({ from, to: relative(root, join(root, dirname(from), to)) }))
)
const arrow = ({ from, to }: { readonly from: string; readonly to: string }) => `${from} -> ${to}`

describe("architecture", () => {
  it("finds modules and imports", () => {
    assert.isAbove(files.length, 30)
    assert.isAbove(imports.length, 100)
  })

  it("keeps at the top what index.ts exports, and the engine in internal/", () => {
    const exported = [...sourceOf("index.ts").matchAll(/export \* as (\w+) from "\.\/(\w+)\.ts"/g)]
    assert.deepStrictEqual(
      exported.map(([, name]) => name),
      exported.map(([, , file]) => file)
    )
    assert.sameMembers(
      files.filter((file) => !file.includes("/") && file !== "index.ts"),
      exported.map(([, , file]) => `${file}.ts`)
    )
  })

  it("keeps scripts in scripts/, and of the top level only what tools look for there", () => {
    assert.deepStrictEqual(globSync("*.{ts,mts,js,mjs,cjs}", { cwd: join(root, "..") }), ["vitest.config.ts"])
  })

  it("places every module in a ring", () => {
    assert.deepStrictEqual(
      files.filter((file) => ringOf(file) === -1),
      []
    )
  })

  it("imports point inwards", () => {
    assert.deepStrictEqual(imports.filter(({ from, to }) => ringOf(to) > ringOf(from)).map(arrow), [])
  })

  it("edges do not import one another, but for the program", () => {
    const across = imports.filter(
      ({ from, to }) =>
        edgeOf(from) !== undefined &&
        edgeOf(to) !== undefined &&
        edgeOf(from) !== edgeOf(to) &&
        edgeOf(from) !== "cli"
    )
    assert.deepStrictEqual(across.map(arrow), [])
  })

  it("only what says Node in its name, and the program, knows Node", () => {
    const bound = files.filter(
      (file) =>
        !file.startsWith("cli/") &&
        !/Node/.test(file) &&
        importsOf(file).some((to) => to.startsWith("node:") || to.startsWith("@effect/platform-node"))
    )
    assert.deepStrictEqual(bound, [])
  })

  it("imports modules of effect, never a barrel of it", () => {
    const barrels =
      /^effect(\/(ai|cli|cluster|encoding|http|observability|persistence|process|sql|testing|workflow))?$/
    const found = files.flatMap((from) =>
      importsOf(from)
        .filter((to) => barrels.test(to))
        .map((to) => arrow({ from, to }))
    )
    assert.deepStrictEqual(found, [])
  })

  it("keeps a module within 250 lines, a protocol within 450", () => {
    const tooLong = files.flatMap((file) => {
      const lines = sourceOf(file).split("\n").length - 1
      const max = tables.test(file) ? Infinity : protocols.test(file) ? 450 : (longer.get(file) ?? 250)
      return lines > max ? [`${file}: ${lines} lines`] : []
    })
    assert.deepStrictEqual(tooLong, [])
  })

  it("keeps the loop and the turn within 400 lines together", () => {
    const lines = ["Loop.ts", "internal/turn.ts"].map((file) => sourceOf(file).split("\n").length - 1)
    assert.isAtMost(
      lines.reduce((sum, count) => sum + count, 0),
      400
    )
  })
})

/** Facts, a rule for each family of models. */
const tables = /^providers\/internal\/models\//

const protocols = /^providers\/internal\/(anthropicMessages|googleGenerate|openAiChat|openAiResponses)\.ts$/

/** Modules whose noun does not split, each with its reason. */
const longer: ReadonlyMap<string, number> = new Map([
  // A vocabulary: thirty events and the fold that reads them, which nobody should have to look for elsewhere.
  ["AgentEvent.ts", 320]
])
