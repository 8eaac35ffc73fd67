import { assert, describe, it } from "@effect/vitest"
import { globSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import * as Bounds from "./bounds.ts"
import { codeOf, files, functionsOf, linesOf, textOf, treeOf } from "./source.ts"

/** Innermost first. A module imports from its own ring and from the rings before it. */
const rings: ReadonlyArray<readonly [name: string, files: RegExp]> = [
  [
    "data",
    /^((Usage|Message|ProviderError|ModelEvent|RunOptions|StopCondition|AgentEvent|RunReport|Run|Transcript)|internal\/(failureReason|usageSum|eventParts|growing|continuation|limitTable|openTurn|failureText|callSet|jsonText|json|jsonSchema|answerSize|durationInput|nearestName|invalidInput|errors))\.ts$/
  ],
  [
    "services",
    /^((Provider|Tool|ToolRegistry|Hook|HookManager|ContextManager|Approval|Prices|Session|Telemetry)|internal\/(attempts|interruption|params|invalidTool|toolOutput|toolRun|hookCalls|hookOutput|invalidHook))\.ts$/
  ],
  [
    "loop",
    /^((Loop)|internal\/(background|backgroundTool|waiting|requests|consent|team|compact|compactions|journal|mailbox|reader|runSpec|run|limits|gate|guards|pending|queues|request|recovery|partials|reply|modelCall|toolOutcome|batch|toolCall|turn|ending|execution|loop|output|options|eventsOnly|spans|telemetry))\.ts$/
  ],
  ["agent", /^((Agent)|internal\/(agentState|agentRuntime|openAgent|subAgent))\.ts$/],
  // The parts that several edges share.
  ["parts of edges", /^(http|reply|media|ui|resilience|sql)\//],
  [
    "edges",
    /^(providers|tools|compat|testing|ai|ai-sdk|ai-sdk-ui|ag-ui|prices|context|sessions|artifacts|guardrails|skills|tool-search|mcp|steps|view|api|proxy)\//
  ],
  ["runs", /^runs\//],
  ["outer edges", /^(server|client|promise)\//],
  ["durable runs", /^durable\//],
  ["runs elsewhere", /^(acp|node)\//],
  ["program", /^cli\//],
  ["barrel", /^index\.ts$/]
]
const ringOf = (file: string) => rings.findIndex(([, files]) => files.test(file))
const edgeOf = (file: string) =>
  file.includes("/") && !file.startsWith("internal/") ? file.split("/")[0] : undefined

/** Edges use the shared parts, and outer edges compose those of the rings before, but not one another. */
const composed = (from: string, to: string) => ringOf(to) < ringOf(from)

const root = join(import.meta.dirname, "../src")
/** Examples in docstrings import as users do. */
const docs = /\/\*\*[^]*?\*\//g
const importsOf = (file: string) =>
  [
    ...textOf(file)
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
    const exported = [...textOf("index.ts").matchAll(/export \* as (\w+) from "\.\/(\w+)\.ts"/g)]
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
        edgeOf(from) !== "cli" &&
        !composed(from, to)
    )
    assert.deepStrictEqual(across.map(arrow), [])
  })

  it("keeps what is in internal/ to the folder that it is in", () => {
    const across = imports.filter(({ from, to }) => {
      const [folder] = to.split("internal/")
      return folder !== undefined && folder !== "" && folder !== to && !from.startsWith(folder)
    })
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

  it("keeps modules short", () => {
    const found = files.flatMap((file) => {
      const lines = linesOf(treeOf(file))
      const [max] = Bounds.longModules[file] ?? [Bounds.maxModule]
      return lines > max ? [`${file}: ${lines} lines of code, at most ${max}`] : []
    })
    const stale = Object.keys(Bounds.longModules).filter(
      (file) => !files.includes(file) || linesOf(treeOf(file)) <= Bounds.maxModule
    )
    assert.deepStrictEqual({ found, stale }, { found: [], stale: [] })
  }, 60_000)

  it("keeps functions short", () => {
    const found = files.flatMap((file) =>
      functionsOf(file).flatMap(({ lines, name }) => (lines > Bounds.maxFunction ? [`${file} ${name}`] : []))
    )
    matches(found, Bounds.longFunctions)
  }, 60_000)

  it("keeps the core small", () => {
    const core = files.filter((file) => edgeOf(file) === undefined)
    const lines = core.reduce((sum, file) => sum + linesOf(treeOf(file)), 0)
    assert.isAtMost(lines, Bounds.maxCore)
    const modules = core.filter((file) => !file.startsWith("internal/") && file !== "index.ts")
    assert.isAtMost(modules.length, Bounds.maxPublic)
  })

  it("keeps the loop and the turn, with the calls of its answer, within 390 lines of code together", () => {
    const lines = ["internal/loop.ts", "internal/turn.ts"].map((file) => linesOf(treeOf(file)))
    assert.isAtMost(
      lines.reduce((sum, count) => sum + count, 0),
      390
    )
  })

  it("leaves fibers to effects", () => {
    const own = files.filter((file) => !file.startsWith("cli/"))
    matches(
      own.filter((file) =>
        /runForkWith|addObserver|interruptUnsafe|queueMicrotask|setImmediate/.test(codeOf(file))
      ),
      Bounds.schedulers
    )
    assert.isAtMost(Object.keys(Bounds.schedulers).length, Bounds.maxSchedulers)
  })

  it("uses no functions such as Effect.flatMapEager, which save a step of a fiber", () => {
    assert.deepStrictEqual(
      files.filter((file) => /Eager\b/.test(codeOf(file))),
      []
    )
  })

  it("does not reach into what Effect keeps to itself", () => {
    assert.deepStrictEqual(
      files.filter((file) => codeOf(file).includes("~effect/")),
      []
    )
  })
})

/** Every place that was found is in the list, and every place in the list was found. */
const matches = (found: ReadonlyArray<string>, list: Readonly<Record<string, string>>) =>
  assert.deepStrictEqual([...new Set(found)].sort(), Object.keys(list).sort())
