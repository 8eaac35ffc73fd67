import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { EditTool, ReadTool, WriteTool } from "effect-agent/tools"
import { renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Workspace from "./workspace.ts"

const textOf = ({ content }: { readonly content: ReadonlyArray<object> }) => JSON.stringify(content)

/** A file system on which something happens the first time before a call of that name is made. */
const before = (
  fs: FileSystem.FileSystem,
  moments: Partial<Record<"access" | "exists" | "openNew" | "open", () => void>>
) => {
  const left = new Map(Object.entries(moments))
  const moment = (name: string) => {
    left.get(name)?.()
    left.delete(name)
  }
  return {
    ...fs,
    access: (path, options) => Effect.suspend(() => (moment("access"), fs.access(path, options))),
    exists: (path) => Effect.suspend(() => (moment("exists"), fs.exists(path))),
    open: (path, options) =>
      Effect.suspend(() => {
        if (options?.flag === "wx") moment("openNew")
        // Not the folder of the file, which is opened as well.
        else if (path.endsWith(".txt")) moment("open")
        return fs.open(path, options)
      })
  } satisfies FileSystem.FileSystem
}

const write = (root: string, path: string, fs: FileSystem.FileSystem) =>
  WriteTool.make({ root })
    .execute({ path, content: "mine" })
    .pipe(
      Effect.map((output) => textOf(output)),
      Effect.catch((failure) => Effect.succeed(failure.message)),
      Effect.provideService(FileSystem.FileSystem, fs)
    )

const changed = "another process changed it meanwhile"

describe("AtomicWrite", () => {
  const time = new Date("2026-01-01T00:00:00Z")
  it.live.each([
    ["its content", (file: string) => writeFileSync(file, "new")],
    [
      "its size, within one tick of the clock",
      (file: string) => {
        writeFileSync(file, "longer")
        utimesSync(file, time, time)
      }
    ],
    [
      "the file, for one of the same size and time",
      (file: string) => {
        writeFileSync(`${file}.other`, "new")
        utimesSync(`${file}.other`, time, time)
        renameSync(`${file}.other`, file)
      }
    ],
    ["that it is there", (file: string) => rmSync(file)]
  ] as const)("F145: does not overwrite what another process changed meanwhile: %s", ([, change]) =>
    Effect.gen(function* () {
      const { fs, root } = yield* Workspace.make({ "a.txt": "old" })
      const file = join(root, "a.txt")
      utimesSync(file, time, time)
      assert.include(yield* write(root, "a.txt", before(fs, { openNew: () => change(file) })), changed)
      const after = yield* Effect.orElseSucceed(fs.readFileString(file), () => "")
      assert.notInclude(after, "mine")
      assert.deepStrictEqual(
        (yield* fs.readDirectory(root)).filter((name) => name !== "a.txt"),
        [],
        "what was written beside it is gone"
      )
    }).pipe(Workspace.provide)
  )

  it.live("F145: does not overwrite a file that another process made meanwhile", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* Workspace.make()
      const make = () => writeFileSync(join(root, "a.txt"), "theirs")
      assert.include(yield* write(root, "a.txt", before(fs, { openNew: make })), changed)
      assert.strictEqual(yield* fs.readFileString(join(root, "a.txt")), "theirs")
    }).pipe(Workspace.provide)
  )

  it.live("F145: keeps a mode that the mask of the process would not give", () =>
    Effect.gen(function* () {
      const { call, fs, root } = yield* Workspace.make({ "a.txt": "old" })
      yield* fs.chmod(join(root, "a.txt"), 0o666)
      yield* call("write", { path: "a.txt", content: "new" })
      assert.strictEqual((yield* fs.stat(join(root, "a.txt"))).mode & 0o7777, 0o666)
    }).pipe(Workspace.provide)
  )

  it.live("F145: brings the content to the disk before it gets its name, and the name after", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* Workspace.make({ "a.txt": "old" })
      const calls: Array<string> = []
      const log = <A, E>(call: string, effect: Effect.Effect<A, E>) =>
        Effect.tap(effect, () => Effect.sync(() => void calls.push(call)))
      const logged: FileSystem.FileSystem = {
        ...fs,
        rename: (from, to) => log("rename", fs.rename(from, to)),
        open: (path, options) =>
          Effect.map(fs.open(path, options), (file) => {
            const what = options?.flag === "wx" ? "file" : "folder"
            return new Proxy(file, {
              get: (target, key) => {
                if (key === "sync") return log(`sync ${what}`, target.sync)
                if (key === "writeAll")
                  return (bytes: Uint8Array) => log(`write ${what}`, target.writeAll(bytes))
                const member: unknown = Reflect.get(target, key)
                return typeof member === "function" ? member.bind(target) : member
              }
            })
          })
      }
      assert.include(yield* write(root, "a.txt", logged), "Replaced 3 bytes")
      assert.deepStrictEqual(calls, ["write file", "sync file", "rename", "sync folder"])
    }).pipe(Workspace.provide)
  )
})

describe("Files", () => {
  it.live("F142: does not write where a path leads by the time it has the lock, if that is elsewhere", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* Workspace.make({ "a/x.txt": "a", "b/x.txt": "b" })
      const link = join(root, "d")
      symlinkSync("a", link)
      const relink = () => {
        rmSync(link)
        symlinkSync("b", link)
      }
      assert.include(yield* write(root, "d/x.txt", before(fs, { exists: relink })), changed)
      assert.strictEqual(yield* fs.readFileString(join(root, "a/x.txt")), "a")
      assert.strictEqual(yield* fs.readFileString(join(root, "b/x.txt")), "b")
    }).pipe(Workspace.provide)
  )

  it.live("F142: edits no file but the one it looked at", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* Workspace.make({ "a.txt": "old", "b.txt": "old, and of others" })
      const [a, b, aside] = [join(root, "a.txt"), join(root, "b.txt"), join(root, "aside")]
      const swap = () => {
        renameSync(a, aside)
        renameSync(b, a)
        renameSync(aside, b)
      }
      const text = yield* EditTool.make({ root })
        .execute({ path: "a.txt", oldText: "old", newText: "new" })
        .pipe(
          Effect.map((output) => textOf(output)),
          Effect.catch((failure) => Effect.succeed(failure.message)),
          // There and back: at the end it is the file it was at first.
          Effect.provideService(FileSystem.FileSystem, before(fs, { access: swap, openNew: swap }))
        )
      assert.include(text, changed)
    }).pipe(Workspace.provide)
  )

  it.live("F142: reads no file but the one it looked at", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* Workspace.make({ "a.txt": "old", "b.txt": "of others" })
      const swap = () => renameSync(join(root, "b.txt"), join(root, "a.txt"))
      const text = yield* ReadTool.make({ root })
        .execute({ path: "a.txt" })
        .pipe(
          Effect.map((output) => textOf(output)),
          Effect.catch((failure) => Effect.succeed(failure.message)),
          Effect.provideService(FileSystem.FileSystem, before(fs, { open: swap }))
        )
      assert.include(text, changed)
      assert.notInclude(text, "of others")
    }).pipe(Workspace.provide)
  )
})
