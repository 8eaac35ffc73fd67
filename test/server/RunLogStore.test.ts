import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer } from "effect"
import { JsonlRunLogStore, RunLogStore } from "effect-agent/server"
import { sqlite } from "../sql/databases.ts"
import { contract } from "./runLogContract.ts"
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
