import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { GrepTool } from "effect-agent/tools"
import { existsSync } from "node:fs"
import { compare, grep, isInstalled } from "./searches.ts"
import * as Workspace from "./workspace.ts"

describe("Ripgrep", () => {
  for (const seed of Array.from({ length: 8 }, (_, index) => index + 1)) {
    it.live.skipIf(!isInstalled)(
      `finds with rg, where it is installed, what it finds alone: tree ${seed}`,
      () => compare(seed, (index) => index % 3 === seed % 3),
      60_000
    )
  }

  it.live.skipIf(!isInstalled)("opens no file that rg, where it is installed, does not name", () =>
    Effect.gen(function* () {
      const files = Object.fromEntries(
        Array.from({ length: 60 }, (_, index) => [`d/${index}.txt`, `is ${index}.\n`])
      )
      const { fs, root } = yield* Workspace.make(files)
      const opened: Array<string> = []
      const watched: FileSystem.FileSystem = {
        ...fs,
        open: (path, options) => {
          if (path.endsWith(".txt")) opened.push(path)
          return fs.open(path, options)
        }
      }
      const found = yield* grep(GrepTool.make({ root }), { pattern: "is 4[27]\\." }).pipe(
        Effect.provideService(FileSystem.FileSystem, watched)
      )
      assert.deepStrictEqual(found.details, { matches: 2, files: 2, complete: true, leftOut: 0 })
      assert.strictEqual(opened.length, 11, "those with the words `is 4`")
    }).pipe(Workspace.provide)
  )

  /** Runs a search with a program named `rg` in `PATH`, which is in this folder beside or below the root. */
  const withProgram = Effect.fnUntraced(function* (
    script: string,
    place: "outside" | "root",
    time = "10 seconds" as const
  ) {
    const space = yield* Workspace.make({ "a.txt": "hit\n", "b.txt": "no\n" })
    const { fs, path } = space
    const at = path.join(space[place], "rg")
    yield* fs.writeFileString(at, `#!/bin/sh\necho ran > ${space.outside}/ran\n${script}\n`, { mode: 0o755 })
    const before = process.env["PATH"]
    process.env["PATH"] = [".", space[place], before].join(":")
    const result = yield* grep(GrepTool.make({ root: space.root, searchTime: time }), {
      pattern: "hit"
    }).pipe(Effect.ensuring(Effect.sync(() => (process.env["PATH"] = before))))
    return { result, hasRun: existsSync(path.join(space.outside, "ran")) }
  })
  const all = { matches: 1, files: 1, complete: true, leftOut: 0 }

  it.live("runs no program inside the root", () =>
    Effect.gen(function* () {
      const { hasRun, result } = yield* withProgram("exit 1", "root")
      assert.isFalse(hasRun)
      assert.deepInclude(result.details, { complete: true })
    }).pipe(Workspace.provide)
  )

  it.live.each([
    ["fails", "exit 2"],
    ["fails after an answer", "printf 'b.txt\\0'; exit 2"],
    ["is killed", "kill -9 $$"],
    ["names files that it was not asked for", "printf '../outside/secret.txt\\0'"],
    ["names no file that matches, but one that does not", "printf 'a.txt\\0b.txt\\0'"]
  ] as const)("finds the lines without a program that %s", ([, script]) =>
    Effect.gen(function* () {
      const { hasRun, result } = yield* withProgram(script, "outside")
      assert.isTrue(hasRun)
      assert.deepStrictEqual(result.details, all)
    }).pipe(Workspace.provide)
  )

  it.live("stops a program that does not end when the time of the search is over", () =>
    Effect.gen(function* () {
      const started = performance.now()
      const { hasRun, result } = yield* withProgram("exec sleep 60", "outside", "1 second")
      assert.isBelow(performance.now() - started, 10_000)
      assert.isTrue(hasRun)
      assert.deepStrictEqual(result.details, { matches: 0, files: 0, complete: false, leftOut: 0 })
    }).pipe(Workspace.provide)
  )
})
