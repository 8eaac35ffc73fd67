import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, FileSystem, type PlatformError, Schema } from "effect"
import { join } from "node:path"
import * as FileKeeper from "../../src/cli/files/FileKeeper.ts"
import * as KeptStore from "../../src/cli/files/KeptStore.ts"
import type { Plan } from "../../src/cli/files/Restoring.ts"

/** The files of a folder, by name. */
const read = Effect.fnUntraced(function* (root: string) {
  const files = yield* FileSystem.FileSystem
  const names = (yield* files.readDirectory(root)).toSorted()
  const all = yield* Effect.forEach(names, (name) => files.readFileString(join(root, name)))
  return Object.fromEntries(names.map((name, index) => [name, all[index] ?? ""]))
})

const folders = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const base = yield* files.realPath(yield* files.makeTempDirectoryScoped())
  const root = join(base, "work")
  yield* files.makeDirectory(root)
  return { root, kept: join(base, "kept") }
})

const opened = (kept: string, limits?: FileKeeper.Limits) =>
  Effect.flatMap(KeptStore.inFolder(kept), (store) => FileKeeper.open(store, limits))

/** Writes a file as a tool does. */
const change = Effect.fnUntraced(function* (keeper: FileKeeper.FileKeeper, path: string, text: string) {
  const files = yield* FileSystem.FileSystem
  yield* keeper.file({ path, through: path, content: new TextEncoder().encode(text) })
  yield* files.writeFileString(path, text)
})

const Name = Schema.Literals(["a", "b", "c"])
const Text = Schema.Literals(["", "1", "2", "three\n"])
const Step = Schema.Union([
  Schema.Struct({ type: Schema.Literals(["change", "command", "person", "gone"]), name: Name, text: Text }),
  Schema.Struct({ type: Schema.Literals(["back", "forth", "restart"]) })
])
const Steps = Schema.Array(Step).check(Schema.isMinLength(1), Schema.isMaxLength(15))

/** Makes the steps, and takes back and forth again what there is at each `back` and `forth`. */
const lawful = (steps: typeof Steps.Type) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const { kept, root } = yield* folders
    let keeper = yield* opened(kept)
    for (const step of steps) {
      if (!("name" in step)) {
        if (step.type === "restart") {
          keeper = yield* opened(kept)
          continue
        }
        const [own, other] =
          step.type === "back" ? (["back", "forth"] as const) : (["forth", "back"] as const)
        if (keeper.current[own].length === 0) continue
        const before = yield* read(root)
        yield* keeper.restore(yield* keeper.plan(own, 1))
        const after = yield* read(root)
        const plan = yield* keeper.plan(other, 1)
        if (plan.conflicts.length > 0) return false
        yield* keeper.restore(plan)
        if (!equals(yield* read(root), before)) return false
        yield* keeper.restore(yield* keeper.plan(own, 1))
        if (!equals(yield* read(root), after)) return false
      } else {
        const path = join(root, step.name)
        const write = files.writeFileString(path, step.text)
        if (step.type === "change") yield* change(keeper, path, step.text)
        else if (step.type === "person") yield* write
        else if (step.type === "command") yield* keeper.command(root, write)
        else yield* keeper.command(root, files.remove(path, { force: true }))
      }
    }
    return true
  }).pipe(Effect.scoped)

const equals = (one: object, other: object) => JSON.stringify(one) === JSON.stringify(other)

describe("files back", () => {
  it.live("restores exactly: forth brings what back took away, in any sequence of changes", () =>
    Effect.gen(function* () {
      const result = yield* Arbitrary.checkEffect(Arbitrary.schema(Steps), lawful, { runs: 100 })
      assert.strictEqual(Arbitrary.formatCheckFailure(result), undefined)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("finds conflicts before it writes, keeps what is overwritten, and leaves what stays", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const { kept, root } = yield* folders
      const [a, b] = [join(root, "a"), join(root, "b")]
      yield* files.writeFileString(a, "1")
      const keeper = yield* opened(kept)
      yield* change(keeper, a, "2")
      yield* change(keeper, b, "2")
      yield* files.writeFileString(a, "mine")
      const plan = yield* keeper.plan("back", 1)
      assert.deepStrictEqual(plan.conflicts, [a])
      assert.deepStrictEqual(yield* read(root), { a: "mine", b: "2" })
      yield* keeper.restore(yield* keeper.plan("back", 1, new Set([a])))
      assert.deepStrictEqual(yield* read(root), { a: "mine" })
      yield* keeper.restore(yield* keeper.plan("forth", 1))
      assert.deepStrictEqual(yield* read(root), { a: "mine", b: "2" })
      yield* keeper.restore(yield* keeper.plan("back", 1))
      assert.deepStrictEqual(yield* read(root), { a: "1" })
      yield* keeper.restore(yield* keeper.plan("forth", 1))
      assert.deepStrictEqual(yield* read(root), { a: "mine", b: "2" })
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live("lists what is over a limit, and leaves it", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const { kept, root } = yield* folders
      const [a, b] = [join(root, "a"), join(root, "b")]
      yield* files.writeFileString(a, "123456789")
      yield* files.writeFileString(b, "1")
      const keeper = yield* opened(kept, { keepFile: 5, keepSession: 100 })
      yield* change(keeper, a, "2")
      yield* change(keeper, b, "2")
      const plan = yield* keeper.plan("back", 1)
      assert.deepStrictEqual([plan.notKept, plan.conflicts], [[a], []])
      yield* keeper.restore(plan)
      assert.deepStrictEqual(yield* read(root), { a: "2", b: "1" })
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live("takes back files whose names are members of each object", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const { kept, root } = yield* folders
      const names = ["constructor", "toString", "__proto__"]
      yield* files.writeFileString(join(root, "__proto__"), "1")
      const keeper = yield* opened(kept)
      const writes = names.map((name) => files.writeFileString(join(root, name), "2"))
      yield* keeper.command(root, Effect.all(writes))
      yield* keeper.restore(yield* keeper.plan("back", 1))
      assert.deepStrictEqual(Object.entries(yield* read(root)), [["__proto__", "1"]])
      yield* keeper.restore(yield* keeper.plan("forth", 1))
      assert.deepStrictEqual(Object.keys(yield* read(root)).toSorted(), names.toSorted())
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live("does not write through a folder that has become a link", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const { kept, root } = yield* folders
      const keeper = yield* opened(kept)
      yield* files.makeDirectory(join(root, "d"))
      yield* files.makeDirectory(join(root, "other"))
      yield* files.writeFileString(join(root, "d/a"), "1")
      yield* change(keeper, join(root, "d/a"), "2")
      yield* files.rename(join(root, "d"), join(root, "moved"))
      yield* files.symlink(join(root, "other"), join(root, "d"))
      yield* files.writeFileString(join(root, "other/a"), "2")
      const plan = yield* keeper.plan("back", 1)
      assert.deepStrictEqual(plan.notKept, [join(root, "d/a")])
      yield* keeper.restore(plan)
      assert.strictEqual(yield* files.readFileString(join(root, "other/a")), "2")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live("ends what a killed process has left of a command", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const { kept, root } = yield* folders
      yield* files.writeFileString(join(root, "a"), "1")
      // The store of a process that ends within the command: it writes no record of the end.
      const store = yield* KeptStore.inFolder(kept)
      const dying = {
        ...store,
        append: (line: string) => (line.includes('"end"') ? Effect.never : store.append(line))
      }
      const first = yield* FileKeeper.open(dying)
      const run = first.command(root, files.writeFileString(join(root, "a"), "2"))
      yield* Effect.forkDetach(run)
      while ((yield* read(root))["a"] !== "2") yield* Effect.sleep("10 millis")
      const next = yield* opened(kept)
      yield* next.restore(yield* next.plan("back", 1))
      assert.deepStrictEqual(yield* read(root), { a: "1" })
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live("takes back the change before one that was kept and never made", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const { kept, root } = yield* folders
      const path = join(root, "a")
      yield* files.writeFileString(path, "1")
      const first = yield* opened(kept)
      yield* change(first, path, "2")
      yield* first.file({ path, through: path, content: new TextEncoder().encode("3") })
      const next = yield* opened(kept)
      const plan = yield* next.plan("back", 1)
      assert.deepStrictEqual(plan.conflicts, [])
      yield* next.restore(plan)
      assert.deepStrictEqual(yield* read(root), { a: "1" })
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live("is whole at the next start, wherever a restore is cut", () =>
    Effect.gen(function* () {
      const real = yield* FileSystem.FileSystem
      for (let cut = 0; ; cut++) {
        const { kept, root } = yield* folders
        const before: Record<string, string> = { a: "1", b: "1", c: "1" }
        for (const [name, text] of Object.entries(before)) yield* real.writeFileString(join(root, name), text)
        // A process that is killed at the call of this number makes no other one.
        let left = Infinity
        const counted = <B, R>(call: Effect.Effect<B, PlatformError.PlatformError, R>) =>
          Effect.suspend(() => (left-- > 0 ? call : Effect.interrupt))
        const dying: FileSystem.FileSystem = {
          ...real,
          open: (...args) => counted(real.open(...args)),
          rename: (...args) => counted(real.rename(...args)),
          remove: (...args) => counted(real.remove(...args)),
          chmod: (...args) => counted(real.chmod(...args)),
          makeDirectory: (...args) => counted(real.makeDirectory(...args))
        }
        const first = yield* Effect.provideService(opened(kept), FileSystem.FileSystem, dying)
        yield* change(first, join(root, "a"), "2")
        yield* change(first, join(root, "b"), "2")
        yield* change(first, join(root, "d"), "2")
        const plan: Plan = yield* first.plan("back", 1)
        const changed = yield* read(root)
        left = cut
        const exit = yield* Effect.exit(first.restore(plan))
        const isCut = exit._tag === "Failure"
        const next = yield* opened(kept)
        const now = yield* read(root)
        assert.include(
          [JSON.stringify(before), JSON.stringify(changed)],
          JSON.stringify(now),
          `cut at ${cut}`
        )
        if (next.current.back.length > 0) yield* next.restore(yield* next.plan("back", 1))
        assert.deepStrictEqual(yield* read(root), before, `cut at ${cut}`)
        yield* next.restore(yield* next.plan("forth", 1))
        assert.deepStrictEqual(yield* read(root), changed, `cut at ${cut}`)
        if (!isCut) break
      }
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
