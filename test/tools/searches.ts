/** Searches of made up folders, with ripgrep and without it. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { GrepTool } from "effect-agent/tools"
import { execFileSync } from "node:child_process"
import * as Workspace from "./workspace.ts"

export const isInstalled = (() => {
  try {
    return execFileSync("rg", ["--version"], { encoding: "utf8" }).startsWith("ripgrep")
  } catch {
    return false
  }
})()

type Params = Parameters<ReturnType<typeof GrepTool.make>["execute"]>[0]
type Tool = ReturnType<typeof GrepTool.make>

export const grep = (tool: Tool, params: Params) =>
  tool.execute(params).pipe(
    Effect.map(({ content, details }) => ({ content, details })),
    Effect.orDie
  )

/** Without processes, so without ripgrep. */
const alone = (tool: Tool, params: Params) =>
  grep(tool, params).pipe(Effect.provide(Layer.merge(NodeFileSystem.layer, NodePath.layer)))

/** Counts the processes that a search starts. */
const counted = Effect.fnUntraced(function* (tool: Tool, params: Params) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  let processes = 0
  const counting = ChildProcessSpawner.make((command) => {
    processes++
    return spawner.spawn(command)
  })
  const found = yield* grep(tool, params).pipe(
    Effect.provideService(ChildProcessSpawner.ChildProcessSpawner, counting)
  )
  return { found, processes }
})

/** Numbers that are the same in each run (mulberry32). */
export const seeded = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) % below
  }
}

const names = [
  "a.ts",
  "b.md",
  "-e",
  "--files",
  "sp ace",
  "new\nline",
  "[odd]*",
  "é.ts",
  ".hidden",
  "x.log",
  "k.tmp"
]
const folders = [
  "",
  "src/",
  "src/deep/",
  "dist/",
  "-d/",
  "node_modules/x/",
  ".git/",
  "in ner/.git/",
  "in ner/"
]
const pieces = [
  "foo",
  "Foo",
  "FOO bar",
  "bar",
  "one two",
  "caf\u00e9",
  "stra\u00dfe",
  "\u017ft \u212a",
  "\u0130i",
  "12.5",
  "a_b",
  "  ",
  "x\ry",
  "\u{1f600}",
  "\n",
  "\n",
  "\r\n"
]
const bytes: ReadonlyArray<Uint8Array> = [
  Uint8Array.from([0xef, 0xbb, 0xbf, 0x66, 0x6f, 0x6f, 0x0a]),
  Uint8Array.from([0x63, 0x61, 0x66, 0xe9, 0x20, 0x66, 0x6f, 0x6f, 0xff, 0x0a, 0xc3, 0x66]),
  Uint8Array.from([0x66, 0x6f, 0x6f, 0x00, 0x0a]),
  Uint8Array.from([0xff, 0xfe, 0x66, 0x00, 0x6f, 0x00, 0x6f, 0x00]),
  new TextEncoder().encode(`${"x".repeat(9_000)}\0foo`)
]

const treeOf = (seed: number): Readonly<Record<string, string | Uint8Array>> => {
  const random = seeded(seed)
  const files: Record<string, string | Uint8Array> = {
    ".gitignore": "*.log\n/dist\n",
    "src/.gitignore": "!x.log\nk.*\n"
  }
  for (let count = 0; count < 40; count++) {
    const path = `${folders[random(folders.length)]}${names[random(names.length)]}`
    const content = Array.from({ length: random(12) }, () => pieces[random(pieces.length)]).join("")
    files[path] = random(8) === 0 ? (bytes[random(bytes.length)] ?? "") : content
  }
  return files
}

const patterns = [
  "foo",
  "Foo|bar",
  "fo+\\b",
  "^foo",
  "bar$",
  "^$",
  "\\bone\\s+two\\b",
  "caf.",
  "caf[^x]",
  "caf\\W",
  "stra\u00dfe",
  "st k",
  "i",
  "\\d+\\.\\d",
  "[A-Z]\\w+",
  "x.y",
  "x\\ry",
  "\u{1f600}",
  "\ufffd",
  "a_b",
  "(?i)foo bar",
  "(?:foo|bar)+",
  "o{2}",
  "f.*r",
  "nothing",
  "-e",
  "foo\n"
]

const everyCase: ReadonlyArray<Params> = [...patterns, "secret", "(the|a) secret"].flatMap(
  (pattern, index) => [
    { pattern },
    { pattern, ignoreCase: true, context: index % 3 },
    { pattern, literal: true, includeIgnored: true },
    { pattern, limit: 1 + (index % 4), glob: "*.{ts,md}" },
    { pattern, path: "src", limit: 2 }
  ]
)

/** Asserts that ripgrep changes nothing about what these searches find. */
export const compare = (seed: number, isTried: (index: number) => boolean) =>
  Effect.gen(function* () {
    const { fs, outside, path, root } = yield* Workspace.make({ "src/a.ts": "", ...treeOf(seed) })
    yield* fs.symlink(path.join(outside, "secret.txt"), path.join(root, "link"))
    yield* fs.symlink(outside, path.join(root, "folder"))
    yield* fs.link(path.join(outside, "secret.txt"), path.join(root, "hard"))
    yield* fs.writeFileString(path.join(root, "src/closed"), "foo\n", { mode: 0 })
    yield* fs.writeFileString(path.join(root, "large"), "foo\n")
    yield* fs.truncate(path.join(root, "large"), GrepTool.maxFileBytes + 1)
    const tool = GrepTool.make({ root })
    const cases = everyCase.filter((_, index) => isTried(index))
    let started = 0
    for (const params of cases) {
      const { found, processes } = yield* counted(tool, params)
      assert.deepStrictEqual(found, yield* alone(tool, params), JSON.stringify(params))
      started += processes
    }
    assert.isAbove(started, cases.length / 2)
  }).pipe(Workspace.provide)
