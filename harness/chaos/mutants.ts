/**
 * Takes out each guard against a fault, one at a time, in a copy of the project: the test of that fault has to fail.
 */
import { Effect, FileSystem, Path, Schema } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import * as NodeServices from "@effect/platform-node/NodeServices"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import type { Mutant } from "./mutants/Mutant.ts"
import { mutants as all } from "./mutants/all.ts"

export const mutants: Chaos = {
  count: all.length,
  run: (options) => run(options).pipe(Effect.scoped, Effect.provide(NodeServices.layer), Effect.orDie)
}

const run = Effect.fnUntraced(function* ({ count, only = "", say, seed }: Options) {
  const copy = yield* copied
  const named = all.filter(({ fault, file }) => new RegExp(only).test(`${file} ${fault}`))
  const chosen = count < named.length ? rotated(named, seed).slice(0, count) : named
  const titles = [...new Set(chosen.map(({ fault }) => escaped(fault)))]
  const before = yield* tested(copy, [...new Set(chosen.map(({ test }) => test))], titles.join("|"))
  say(`${before.length} tests, ${before.filter(hasFailed).length} of them fail with all guards in place`)
  const found = yield* Effect.forEach(chosen, (mutant) =>
    Effect.tap(judged(copy, before, mutant), (verdict) =>
      Effect.sync(() => say(`${mutant.fault} ${verdict ?? "noticed"}: ${mutant.without}`))
    )
  )
  const violations = chosen.flatMap((mutant, index) => {
    const verdict = found[index]
    return verdict === undefined ? [] : [`${mutant.fault} ${verdict}: ${mutant.without} (${mutant.file})`]
  })
  return {
    figures: { mutants: chosen.length, noticed: chosen.length - violations.length },
    violations
  } satisfies Outcome
})

/** A part of them is another part with another seed. */
const rotated = (mutants: ReadonlyArray<Mutant>, seed: number): ReadonlyArray<Mutant> => {
  const from = seed % mutants.length
  return [...mutants.slice(from), ...mutants.slice(0, from)]
}

/** What the tests need of the project, in a folder of its own. What is installed is shared. */
const copied = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* fs.makeTempDirectoryScoped({ prefix: "effect-agent-mutants-" })
  const left = new Set(["node_modules", ".git", "coverage"])
  for (const name of yield* fs.readDirectory(".")) {
    if (!left.has(name)) yield* fs.copy(name, path.join(folder, name))
  }
  yield* fs.symlink(path.resolve("node_modules"), path.join(folder, "node_modules"))
  return folder
})

/** Why it proves nothing; undefined if the tests are as they should be: green with the guard, red without. */
const judged = Effect.fnUntraced(function* (copy: string, before: ReadonlyArray<Test>, mutant: Mutant) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const own = before.filter(({ file, title }) => file.endsWith(mutant.test) && title.includes(mutant.fault))
  if (own.length === 0) return "has no test"
  if (own.some(hasFailed)) return "fails with its guard"
  const file = path.join(copy, mutant.file)
  const source = yield* fs.readFileString(file)
  if (source.split(mutant.from).length !== 2) return "cannot be planted"
  yield* fs.writeFileString(
    file,
    source.replace(mutant.from, () => mutant.to)
  )
  const after = yield* tested(copy, [mutant.test], escaped(mutant.fault))
  yield* fs.writeFileString(file, source)
  if (after.length === 0) return "does not even load"
  return after.some(hasFailed) ? undefined : "survived"
})

/** A regular expression for a text as it stands. */
const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")

interface Test {
  readonly file: string
  readonly title: string
  readonly status: string
}

const hasFailed = ({ status }: Test): boolean => status === "failed"

const Report = Schema.fromJsonString(
  Schema.Struct({
    testResults: Schema.Array(
      Schema.Struct({
        name: Schema.String,
        assertionResults: Schema.Array(Schema.Struct({ title: Schema.String, status: Schema.String }))
      })
    )
  })
)

/** The tests of these files with that in their titles. One that hangs runs into its own time limit. */
const tested = Effect.fnUntraced(function* (cwd: string, files: ReadonlyArray<string>, title: string) {
  const fs = yield* FileSystem.FileSystem
  const report = (yield* Path.Path).join(cwd, "report.json")
  const args = ["run", ...files, "-t", title, "--reporter=json", `--outputFile=${report}`]
  yield* (yield* ChildProcessSpawner.ChildProcessSpawner).exitCode(
    ChildProcess.make("node_modules/.bin/vitest", args, { cwd, stdout: "ignore", stderr: "ignore" })
  )
  const { testResults } = yield* Schema.decodeEffect(Report)(yield* fs.readFileString(report))
  return testResults
    .flatMap(({ assertionResults, name: file }) =>
      assertionResults.map(({ status, title }): Test => ({ file, title, status }))
    )
    .filter(({ status }) => status === "passed" || status === "failed")
})
