import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Stream } from "effect"
import { JsonlRunLogStore, RunLogStore } from "effect-agent/server"
import { JsonlSessionStore, SessionStore } from "effect-agent/sessions"
import { TestClock } from "effect/testing"
import { globSync } from "node:fs"
import { join } from "node:path"
import { over, process } from "./interrupted.ts"
import type { Disk } from "./killing.ts"

/** Folders with a session and its runs as each version wrote them: `begun` of `interrupted.ts`. They do not change. */
const versions = join(import.meta.dirname, "versions")

/** A copy of the files of a version, with changes. */
const filesOf = Effect.fnUntraced(function* (
  version: string,
  change: (path: string, text: string) => string = (_, text) => text
) {
  const files = yield* FileSystem.FileSystem
  const directory = yield* files.makeTempDirectoryScoped()
  yield* files.copy(join(versions, version), directory, { overwrite: true })
  for (const path of globSync("**/*.jsonl", { cwd: directory })) {
    const file = join(directory, path)
    yield* files.writeFileString(file, change(path, yield* files.readFileString(file)))
  }
  // An hour after they were written.
  yield* TestClock.setTime(1_795_491_429_000)
  const sessions = SessionStore.make(yield* JsonlSessionStore.storage({ directory }))
  const logs = yield* Effect.provide(
    RunLogStore.RunLogStore,
    JsonlRunLogStore.layer({ directory: `${directory}/logs` })
  )
  return { sessions, logs } satisfies Disk
})

const first = "run_532f4u162v2r_1"
const queued = "run_532f4u162v2r_5"

const results = [
  ["look", "success", "look done"],
  ["put", "success", "put done"],
  ["deploy", "success", "deploy done"]
] as const

describe("the runs of each version", () => {
  it.effect.each(globSync("*", { cwd: versions }))(
    "continue and begin, with the keys of their prompts: %s",
    (version) =>
      Effect.gen(function* () {
        yield* process(yield* filesOf(version), {}, (runs, ran) =>
          Effect.gen(function* () {
            const again = { key: "k", body: { prompt: "Go" } }
            const { runId } = yield* runs.start({ sessionId: "s", prompt: "Go", idempotency: again })
            assert.strictEqual(runId, first)
            assert.deepStrictEqual(yield* over(runs, first), { results: [...results], status: "completed" })
            assert.strictEqual((yield* over(runs, queued)).status, "completed")
            assert.deepStrictEqual(
              ran.map(([tool]) => tool),
              ["put", "deploy"]
            )
          })
        )
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("continue beside events and entries of a later version", () =>
    Effect.gen(function* () {
      const later = (path: string, text: string) =>
        path.endsWith("_s.jsonl")
          ? `${text}{"v":9,"type":"later","id":"ent_later","parentId":"ent_10284f40-e36f_5","timestamp":1795487829250}\n`
          : path.includes(first)
            ? `${text}{"type":"later"}\n{"type":"event","position":26,"event":{"_tag":"Later","runId":"${first}","seq":26,"timestamp":1795487829250}}\n`
            : text
      yield* process(yield* filesOf("1", later), {}, (runs) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* over(runs, first), { results: [...results], status: "completed" })
        })
      )
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("fail with the reason if a later version stored their beginning, and stay readable", () =>
    Effect.gen(function* () {
      const places = yield* filesOf("1", (path, text) =>
        path.includes(queued) ? text.replace('"request":{"v":1', '"request":{"v":2') : text
      )
      yield* process(places, {}, (runs) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* over(runs, first)).status, "completed")
          const events = yield* Stream.runCollect(yield* runs.events(queued, 0))
          assert.strictEqual(events.at(-1)?.event._tag, "RunEnd")
          const { error, status } = yield* runs.get(queued)
          assert.strictEqual(status, "failed")
          assert.include(error?.message, "its request was stored by a later version")
        })
      )
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
