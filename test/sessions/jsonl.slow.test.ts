import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber, FileSystem, Latch, PlatformError, Stream } from "effect"
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

it.effect(
  "a session that cannot be read is missing in lists and searches, and leaves the others readable",
  () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const directory = yield* folder
      const store = SessionStore.make(yield* JsonlSessionStore.storage({ directory }))
      yield* store.create({ sessionId: "kept", cwd: "/work" })
      yield* store.create({ sessionId: "foreign", cwd: "/work" })
      yield* files.makeDirectory(`${directory}/2026-11-22T22-57-00-000Z_folder.jsonl`)
      const denied = (path: string) =>
        PlatformError.systemError({
          _tag: "PermissionDenied",
          module: "FileSystem",
          method: "open",
          pathOrDescriptor: path
        })
      const isForeign = (path: string) => path.includes("foreign")
      const access: typeof files.access = (path, options) =>
        isForeign(path) ? Effect.fail(denied(path)) : files.access(path, options)
      const open: typeof files.open = (path, options) =>
        isForeign(path) ? Effect.fail(denied(path)) : files.open(path, options)
      const reading = yield* JsonlSessionStore.storage({ directory }).pipe(
        Effect.provideService(FileSystem.FileSystem, { ...files, access, open })
      )
      const readable = SessionStore.make(reading)
      const { items } = yield* readable.list({ cwd: "/work" })
      assert.deepStrictEqual(
        items.map(({ sessionId }) => sessionId),
        ["kept"]
      )
      assert.deepStrictEqual(yield* Stream.runCollect(readable.search("coat")), [])
      assert.isUndefined(yield* readable.sessionOf("run_1"))
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.effect("two processes that make one session at a time do not both have it", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const directory = yield* folder
    const isHeld = yield* Latch.make(false)
    const go = yield* Latch.make(false)
    // The first one looks for the session and finds none, and takes a while until it makes the file.
    const makeDirectory: typeof files.makeDirectory = (path, options) =>
      Effect.andThen(Effect.andThen(isHeld.open, go.await), files.makeDirectory(path, options))
    const slow = yield* JsonlSessionStore.storage({ directory }).pipe(
      Effect.provideService(FileSystem.FileSystem, { ...files, makeDirectory })
    )
    const other = yield* JsonlSessionStore.storage({ directory })
    const session = { sessionId: "s", cwd: "" }
    const first = yield* Effect.forkChild(Effect.exit(slow.create({ ...session, created: 1_000 })), {
      startImmediately: true
    })
    yield* isHeld.await
    const second = yield* Effect.exit(other.create({ ...session, created: 2_000 }))
    yield* go.open
    const exits = [yield* Fiber.join(first), second]
    assert.strictEqual(exits.filter(Exit.isSuccess).length, 1)
    assert.lengthOf(
      (yield* files.readDirectory(directory)).filter((name) => name.endsWith(".jsonl")),
      1
    )
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

for (const how of ["removed", "replaced"]) {
  it.effect(`a session whose file was ${how} from outside takes no entry`, () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const directory = yield* folder
      const store = SessionStore.make(yield* JsonlSessionStore.storage({ directory }))
      const session = yield* store.create({ sessionId: "s" })
      const mood = { type: "custom", kind: "mood", data: null } as const
      yield* session.append([mood])
      const [name = ""] = (yield* files.readDirectory(directory)).filter((name) => name.endsWith(".jsonl"))
      const path = `${directory}/${name}`
      yield* files.copyFile(path, `${path}.copy`)
      yield* how === "removed" ? files.remove(path) : files.rename(`${path}.copy`, path)
      const { reason } = yield* Effect.flip(session.append([mood]))
      assert.deepInclude(reason, { _tag: "StorageFailed", operation: "append" })
      assert.include(reason.message, "removed or replaced")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
}

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
