import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, type Schema } from "effect"
import { JsonlRunLogStore, RunLogStore, Runs } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import * as LogLine from "../../src/runs/internal/LogLine.ts"
import { sqlite } from "../sql/databases.ts"
import { eventsOf, layer, stores, tagsOf } from "./host.ts"
import { contract } from "./runLogContract.ts"
import { session } from "./runsContract.ts"
import { processOf } from "./sqlRuns.ts"

const storeOf = <E>(layer: Layer.Layer<RunLogStore.RunLogStore, E>) =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, RunLogStore.RunLogStore))

const folder = Effect.provide(
  FileSystem.FileSystem.use((files) => files.makeTempDirectoryScoped()),
  NodeServices.layer
)
const filesIn = (directory: string) =>
  storeOf(Layer.provide(JsonlRunLogStore.layer({ directory }), NodeServices.layer))

contract({
  name: "memory",
  place: Effect.map(storeOf(RunLogStore.layerMemory), (store) => ({ open: Effect.succeed(store) }))
})
contract({
  name: "files",
  place: Effect.map(folder, (directory) => ({ open: filesIn(directory) }))
})

contract({
  name: "SQLite",
  place: Effect.map(sqlite, (url) => ({ open: Effect.map(processOf(url), ({ logs }) => logs) }))
})

describe("a store in files", () => {
  it.live("shows the logs that another process has made, continued, ended or removed", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const [one, other] = [yield* filesIn(directory), yield* filesIn(directory)]
      const key = { runId: "r", sessionId: "s" }
      const shown = Effect.gen(function* () {
        const found = yield* other.find("r")
        const [listed, active, unended] = [
          yield* other.list("s"),
          yield* other.active("s"),
          yield* other.unended
        ]
        const newest = yield* other.newest({ limit: 10 })
        assert.deepStrictEqual([listed, newest], found === undefined ? [[], []] : [[found], [found]])
        assert.deepStrictEqual([active, unended], found?.ended === undefined ? [listed, listed] : [[], []])
        return [found && (found.ended === undefined ? "open" : "ended"), yield* other.read(key)]
      })
      assert.deepStrictEqual(yield* shown, [undefined, []])
      yield* Effect.scoped(one.open(key, "1"))
      assert.deepStrictEqual(yield* shown, ["open", ["1"]])
      yield* Effect.scoped(other.open(key, "2"))
      yield* one.end(key)
      assert.deepStrictEqual(yield* shown, ["ended", ["1"]])
      assert.strictEqual((yield* Effect.flip(Effect.scoped(other.open(key)))).reason, "ended")
      yield* one.delete(key)
      assert.deepStrictEqual(yield* shown, [undefined, []])
    }).pipe(Effect.scoped)
  )

  it.live("keeps a log open, with its lines, if its file cannot be renamed", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const files = yield* FileSystem.FileSystem
      let faults = 1
      const rename: FileSystem.FileSystem["rename"] = (from, to) =>
        faults-- > 0 ? files.rename("/none", "/none") : files.rename(from, to)
      const faulty = Layer.merge(
        NodeServices.layer,
        Layer.succeed(FileSystem.FileSystem, { ...files, rename })
      )
      const store = yield* storeOf(Layer.provide(JsonlRunLogStore.layer({ directory }), faulty))
      const key = { runId: "r", sessionId: "s" }
      yield* Effect.scoped(store.open(key, "1"))
      assert.strictEqual((yield* Effect.flip(store.end(key))).reason, "storage")
      assert.deepStrictEqual(yield* store.read(key), ["1"])
      assert.isUndefined((yield* store.find("r"))?.ended)
      yield* store.end(key)
      assert.deepStrictEqual(yield* store.read(key), ["1"])
      assert.isDefined((yield* store.find("r"))?.ended)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live("refuses ids that no file can have", () =>
    Effect.gen(function* () {
      const store = yield* filesIn(yield* folder)
      for (const key of [
        { runId: "../r", sessionId: "s" },
        { runId: "r", sessionId: ".." }
      ]) {
        const error = yield* Effect.flip(Effect.scoped(store.open(key)))
        assert.strictEqual(error.reason, "storage")
        yield* store.delete(key)
      }
    })
  )

  it.live("counts no starts that a file of another form has", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const store = yield* filesIn(directory)
      yield* Effect.scoped(store.open({ runId: "r", sessionId: "s" }))
      yield* Effect.provide(
        FileSystem.FileSystem.use((files) =>
          files.writeFileString(`${directory}/s/r.starts.json`, '{"v":2}')
        ),
        NodeServices.layer
      )
      assert.strictEqual((yield* (yield* filesIn(directory)).find("r"))?.attempts, 0)
    })
  )
})

describe("a store that redacts", () => {
  const run = { runId: "r", sessionId: "s" }
  const redact = (data: Schema.Json) => {
    const text = JSON.stringify(data)
    if (text.includes("throw")) throw new Error(text)
    return JSON.parse(text.replaceAll("hunter2", "[removed]"))
  }
  const start = { _tag: "MessageEnd", text: "the password is hunter2" }

  it.live.each([
    ["memory", storeOf(RunLogStore.layerMemory)],
    ["files", Effect.flatMap(folder, filesIn)],
    [
      "SQLite",
      Effect.flatMap(sqlite, processOf).pipe(
        Effect.flatMap(({ logs, sessions }) => Effect.as(sessions.create({ sessionId: "s" }), logs))
      )
    ]
  ] as const)("keeps no secret of events and of prompts that wait, in %s", ([, made]) =>
    Effect.gen(function* () {
      const place = Layer.succeed(RunLogStore.RunLogStore, yield* made)
      const kept = yield* storeOf(Layer.provide(RunLogStore.redacted(redact), place))
      const first = LogLine.run("r", "s", 1, { prompt: "hunter2" })
      const append = yield* kept.open(run, first)
      if (kept.inSessions === true)
        assert.deepStrictEqual(kept.redact?.({ is: "hunter2" }), { is: "[removed]" })
      else yield* append([first])
      const lines = yield* kept.read(run)
      assert.notInclude(lines.join(), "hunter2")
      assert.deepStrictEqual(LogLine.read(lines).request, { prompt: "[removed]" })
      if (kept.inSessions === true) return
      yield* append([LogLine.event(1, JSON.stringify(start))])
      const failed = yield* Effect.flip(append([LogLine.event(2, JSON.stringify({ text: "throw hunter2" }))]))
      assert.match(failed.message, /the function that redacts it failed/)
      const { entries } = LogLine.read(yield* kept.read(run))
      assert.include(entries[0]?.frame, "the password is [removed]")
    }).pipe(Effect.scoped)
  )

  it.effect("leaves the secret to those who watch the run", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const redacting = Layer.provideMerge(RunLogStore.redacted(redact), places)
      const script = [ScriptedProvider.text("It is hunter2.")]
      const { runId, seen } = yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const { runId } = yield* runs.start({ sessionId: yield* session, prompt: "The password: hunter2?" })
        return { runId, seen: JSON.stringify(yield* eventsOf(runId)) }
      }).pipe(Effect.provide(layer(script, {}, redacting)))
      const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
      assert.notInclude((yield* logs.read({ runId, sessionId: "s" })).join(), "hunter2")
      assert.include(seen, "It is hunter2.")
      const later = yield* Effect.provide(eventsOf(runId), layer(script, {}, redacting))
      assert.include(JSON.stringify(later), "It is [removed].")
      assert.strictEqual(tagsOf(later).at(-1), "RunEnd")
    })
  )
})
