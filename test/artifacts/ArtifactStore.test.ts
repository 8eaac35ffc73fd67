import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { ArtifactStore, FileArtifactStore } from "effect-agent/artifacts"

const artifact = (id: string, text: string): ArtifactStore.Artifact => ({
  id,
  runId: "run_1",
  toolCallId: "call_1",
  toolName: "log",
  mediaType: "text/plain",
  text
})

const files = Layer.unwrap(
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const directory = yield* fs.makeTempDirectoryScoped()
    return FileArtifactStore.layer({ directory: `${directory}/a/b` })
  })
).pipe(Layer.provide(NodeServices.layer))

/** What every store of artifacts promises. */
const contract = (name: string, layer: Layer.Layer<ArtifactStore.ArtifactStore, unknown>) =>
  describe(name, () => {
    it.effect("returns what was put, whatever its characters", () =>
      Effect.gen(function* () {
        const store = yield* ArtifactStore.ArtifactStore
        const kept = {
          ...artifact("a-1_B", "a\u0000b \u2028 🎉 \ud800 \"'\\\r\n"),
          trust: "untrusted" as const
        }
        yield* store.put(kept)
        assert.deepStrictEqual(yield* store.get("a-1_B"), kept)
        yield* store.put(artifact("a-1_B", "again"))
        assert.strictEqual((yield* store.get("a-1_B")).text, "again")
      }).pipe(Effect.provide(layer))
    )

    it.effect("fails for ids that it does not have, whatever they look like", () =>
      Effect.gen(function* () {
        const store = yield* ArtifactStore.ArtifactStore
        yield* store.put(artifact("a", "text"))
        for (const id of [
          "b",
          "",
          "../a",
          "a/../a",
          "a.json",
          ".a",
          "a\u0000",
          "/etc/passwd",
          "x".repeat(5_000)
        ]) {
          const error = yield* Effect.flip(store.get(id))
          assert.strictEqual(error._tag, "ArtifactNotFound")
        }
      }).pipe(Effect.provide(layer))
    )
  })

contract("layerMemory", ArtifactStore.layerMemory())
contract("FileArtifactStore", files)

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

describe("FileArtifactStore", () => {
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
