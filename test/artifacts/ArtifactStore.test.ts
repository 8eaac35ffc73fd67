import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { ArtifactStore, FileArtifactStore, SqlArtifactStore } from "effect-agent/artifacts"
import { TestClock } from "effect/testing"
import * as NodeSqlite from "effect-agent/node/NodeSqlite"
import { artifact, contract } from "./contract.ts"

const files = Layer.unwrap(
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const directory = yield* fs.makeTempDirectoryScoped()
    return FileArtifactStore.layer({ directory: `${directory}/a/b` })
  })
).pipe(Layer.provide(NodeServices.layer))

contract("layerMemory", ArtifactStore.layerMemory())
contract("FileArtifactStore", files)
contract(
  "SqlArtifactStore",
  Layer.provide(SqlArtifactStore.layer, NodeSqlite.layer({ filename: ":memory:" }))
)

describe("layerMemory", () => {
  it.effect("drops the oldest, and refuses what is larger than all of it", () =>
    Effect.gen(function* () {
      const store = yield* ArtifactStore.ArtifactStore
      for (const id of ["one", "two", "three"]) yield* store.put(artifact(id, "12345"))
      assert.strictEqual((yield* Effect.flip(store.get("one")))._tag, "ArtifactNotFound")
      assert.strictEqual((yield* store.get("three")).text, "12345")
      const error = yield* Effect.flip(store.put(artifact("four", "x".repeat(11))))
      assert.match(error.message, /four could not be stored: it has 11 characters, and the store keeps 10/)
      assert.strictEqual((yield* store.get("two")).text, "12345")
    }).pipe(Effect.provide(ArtifactStore.layerMemory({ maxCharacters: 10 })))
  )
})

describe("redacted", () => {
  it.effect("keeps what the function leaves under the id, and nothing where it fails", () =>
    Effect.gen(function* () {
      const store = yield* ArtifactStore.ArtifactStore
      yield* store.put(artifact("one", "password: hunter2"))
      assert.strictEqual((yield* store.get("one")).text, "password: [removed]")
      const failed = yield* Effect.flip(store.put(artifact("two", "throw hunter2")))
      assert.match(failed.message, /two could not be stored: the function that redacts it failed/)
      assert.strictEqual((yield* Effect.flip(store.get("two")))._tag, "ArtifactNotFound")
    }).pipe(
      Effect.provide(
        ArtifactStore.redacted((artifact) => {
          if (artifact.text.startsWith("throw")) throw new Error(artifact.text)
          return { ...artifact, id: "other", text: artifact.text.replaceAll("hunter2", "[removed]") }
        })
      ),
      Effect.provide(ArtifactStore.layerMemory())
    )
  )
})

describe("FileArtifactStore", () => {
  it.effect("retains the newest within the bounds, and removes what killed processes left", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const directory = yield* fs.makeTempDirectoryScoped()
      const retain = (retention: FileArtifactStore.Retention) =>
        FileArtifactStore.retain({ directory, ...retention })
      const write = (name: string, minute: number) =>
        Effect.andThen(
          fs.writeFileString(`${directory}/${name}`, "12345"),
          fs.utimes(`${directory}/${name}`, minute * 60, minute * 60)
        )
      yield* TestClock.adjust("100 minutes")
      yield* Effect.forEach(["a", "b", "c", "d", "e"], (id, minute) => write(`${id}.json`, minute))
      yield* write(`.x-${crypto.randomUUID()}.tmp`, 10)
      const young = `.x-${crypto.randomUUID()}.tmp`
      yield* write(young, 90)
      yield* write("notes.txt", 1)
      assert.deepStrictEqual(yield* retain({}), [])
      assert.deepStrictEqual(yield* retain({ maxAge: "99 minutes" }), ["a"])
      assert.deepStrictEqual(yield* retain({ maxCount: 3 }), ["b"])
      assert.deepStrictEqual(yield* retain({ maxBytes: 10 }), ["c"])
      assert.deepStrictEqual((yield* fs.readDirectory(directory)).toSorted(), [
        young,
        "d.json",
        "e.json",
        "notes.txt"
      ])
      assert.deepStrictEqual(yield* FileArtifactStore.retain({ directory: `${directory}/none` }), [])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("keeps files that only the user can read, and no other ones", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const directory = `${yield* fs.makeTempDirectoryScoped()}/artifacts`
      yield* Effect.gen(function* () {
        const store = yield* ArtifactStore.ArtifactStore
        yield* store.put(artifact("a", "text"))
        assert.deepStrictEqual(yield* fs.readDirectory(directory), ["a.json"])
        assert.strictEqual((yield* fs.stat(`${directory}/a.json`)).mode & 0o777, 0o600)
        assert.strictEqual((yield* fs.stat(directory)).mode & 0o777, 0o700)
        const error = yield* Effect.flip(store.put(artifact("../b", "text")))
        assert.match(error.message, /an id has 1 to 100 letters/)
        yield* fs.writeFileString(`${directory}/c.json`, "{")
        const broken = yield* Effect.flip(store.get("c"))
        assert.match(broken.message, /c could not be read: its file does not hold an artifact/)
        // A folder in the place of a file: the rename fails, and the temporary file is removed.
        yield* fs.makeDirectory(`${directory}/d.json/e`, { recursive: true })
        yield* Effect.flip(store.put(artifact("d", "text")))
        assert.deepStrictEqual((yield* fs.readDirectory(directory)).toSorted(), [
          "a.json",
          "c.json",
          "d.json"
        ])
      }).pipe(Effect.provide(FileArtifactStore.layer({ directory })))
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("a folder that cannot be made is a typed error", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const file = `${yield* fs.makeTempDirectoryScoped()}/file`
      yield* fs.writeFileString(file, "")
      const store = ArtifactStore.ArtifactStore.use((store) => Effect.flip(store.put(artifact("a", "text"))))
      const error = yield* Effect.provide(store, FileArtifactStore.layer({ directory: `${file}/x` }))
      assert.strictEqual(error._tag, "ArtifactStoreFailed")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
