import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { JsonlSessionStore, SessionStore } from "effect-agent/sessions"
import { contract } from "./contract.ts"

const folder = Effect.flatMap(FileSystem.FileSystem, (files) => files.makeTempDirectoryScoped())

contract({
  name: "files in one folder",
  storage: Effect.flatMap(folder, (directory) => JsonlSessionStore.storage({ directory })).pipe(
    Effect.provide(NodeServices.layer)
  )
})

contract({
  name: "files in folders by working directory",
  storage: Effect.flatMap(folder, (root) => JsonlSessionStore.storage({ root, fsync: "always" })).pipe(
    Effect.provide(NodeServices.layer)
  )
})

it.effect("a list of sessions leaves out one that another process removes meanwhile", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const directory = yield* folder
    const store = SessionStore.make(yield* JsonlSessionStore.storage({ directory }))
    yield* store.create({ sessionId: "kept", cwd: "/work" })
    yield* store.create({ sessionId: "removed", cwd: "/work" })
    // Removed between the look at the folder and the look into the file.
    const stat: typeof files.stat = (path) =>
      Effect.tap(files.stat(path), () => (path.includes("removed") ? files.remove(path) : Effect.void))
    const removing = yield* JsonlSessionStore.storage({ directory }).pipe(
      Effect.provideService(FileSystem.FileSystem, { ...files, stat })
    )
    const { items } = yield* SessionStore.make(removing).list({ cwd: "/work" })
    assert.deepStrictEqual(
      items.map(({ sessionId }) => sessionId),
      ["kept"]
    )
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.effect("files of sessions are for their user alone", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const directory = `${yield* folder}/sessions`
    const store = SessionStore.make(yield* JsonlSessionStore.storage({ directory }))
    yield* store.create({ sessionId: "s" })
    const [name = ""] = (yield* files.readDirectory(directory)).filter((name) => name.endsWith(".jsonl"))
    const modes = yield* Effect.forEach([directory, `${directory}/${name}`], (path) =>
      Effect.map(files.stat(path), ({ mode }) => mode & 0o777)
    )
    assert.deepStrictEqual(modes, [0o700, 0o600])
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)
