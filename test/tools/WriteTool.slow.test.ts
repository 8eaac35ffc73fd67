import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, PlatformError, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { Tool } from "effect-agent"
import { EditTool, WriteTool } from "effect-agent/tools"
import { readFileSync, statSync } from "node:fs"
import * as Workspace from "./workspace.ts"

const mode = (space: Workspace.Workspace, name: string) =>
  Effect.map(space.fs.stat(space.path.join(space.root, name)), (info) => (info.mode & 0o7777).toString(8))

describe("WriteTool", () => {
  it.live("makes a file, with the folders it needs (row 149)", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make()
      const { call, fs, path, root } = space
      const { details, text } = yield* call("write", { path: "a/b/c.txt", content: "one\nünï\n" })
      assert.strictEqual(text, "Wrote new file a/b/c.txt: 10 bytes, 2 lines.")
      assert.deepStrictEqual(details, { path: "a/b/c.txt", bytes: 10, lines: 2, created: true })
      assert.strictEqual(yield* fs.readFileString(path.join(root, "a/b/c.txt")), "one\nünï\n")
      const umask = yield* fs
        .writeFileString(path.join(root, "usual"), "")
        .pipe(Effect.andThen(mode(space, "usual")))
      assert.strictEqual(yield* mode(space, "a/b/c.txt"), umask)
    }).pipe(Workspace.provide)
  )

  it.live("F145: replaces a file and keeps its mode", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make({ "run.sh": "old", private: "old" })
      const { call, fs, path, root } = space
      yield* fs.chmod(path.join(root, "run.sh"), 0o4755)
      yield* fs.chmod(path.join(root, "private"), 0o600)
      const { text } = yield* call("write", { path: "run.sh", content: "new" })
      yield* call("write", { path: "private", content: "new" })
      assert.strictEqual(text, "Replaced 3 bytes of run.sh: 3 bytes, 1 line.")
      assert.strictEqual(yield* fs.readFileString(path.join(root, "run.sh")), "new")
      assert.strictEqual(yield* mode(space, "run.sh"), "4755")
      assert.strictEqual(yield* mode(space, "private"), "600")
    }).pipe(Workspace.provide)
  )

  it.live("keeps the line ends and the byte order mark of the file that it replaces, and says so", () =>
    Effect.gen(function* () {
      const { call, fs, path, root } = yield* Workspace.make({
        "crlf.txt": "a\r\nb\r\n",
        "lf.txt": "a\nb\n",
        "bom.txt": "\ufeffa\n",
        "wide.txt": Uint8Array.from(Buffer.from("\ufeffa\n", "utf16le"))
      })
      const write = (name: string, content: string) =>
        Effect.flatMap(call("write", { path: name, content }), ({ text }) =>
          Effect.map(
            fs.readFile(path.join(root, name)),
            (bytes) => [Buffer.from(bytes).toString(), text] as const
          )
        )
      const crlf = yield* write("crlf.txt", "new\nlines\n")
      assert.strictEqual(crlf[0], "new\r\nlines\r\n")
      assert.include(crlf[1], "[Lines end in CRLF, as before.]")
      const bom = yield* write("bom.txt", "b\n")
      assert.strictEqual(bom[0], "\ufeffb\n")
      assert.include(bom[1], "byte order mark, as before")
      assert.deepStrictEqual(yield* write("lf.txt", "x\r\ny\n"), [
        "x\r\ny\n",
        "Replaced 4 bytes of lf.txt: 5 bytes, 2 lines."
      ])
      assert.include((yield* write("wide.txt", "b\n"))[1], "was UTF-16")
    }).pipe(Workspace.provide)
  )

  it.live("takes a JSON value for the content of a JSON file alone", () =>
    Effect.gen(function* () {
      const { call, fs, path, root } = yield* Workspace.make()
      yield* call("write", { path: "a.json", content: { a: [1] } })
      assert.strictEqual(yield* fs.readFileString(path.join(root, "a.json")), '{\n  "a": [\n    1\n  ]\n}\n')
      assert.include((yield* call("write", { path: "a.txt", content: { a: 1 } })).text, "must be a text")
    }).pipe(Workspace.provide)
  )

  it.live("makes a file once when several calls make it side by side", () =>
    Effect.gen(function* () {
      const { call, fs, path, root } = yield* Workspace.make()
      const contents = ["one", "two", "three", "four"]
      const results = yield* Effect.forEach(
        contents,
        (content) => call("write", { path: "a/new.txt", content }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(results.map(({ text }) => text.split(" ", 1).join("")).sort(), [
        "Replaced",
        "Replaced",
        "Replaced",
        "Wrote"
      ])
      assert.include(contents, yield* fs.readFileString(path.join(root, "a/new.txt")))
    }).pipe(Workspace.provide)
  )

  it.live("leaves nothing beside the file", () =>
    Effect.gen(function* () {
      const { call, fs, root } = yield* Workspace.make({ "a.txt": "old" })
      yield* call("write", { path: "a.txt", content: "new" })
      assert.deepStrictEqual(yield* fs.readDirectory(root), ["a.txt"])
    }).pipe(Workspace.provide)
  )

  it.live("does not take a folder for a file", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a/b.txt": "old" })
      assert.include((yield* call("write", { path: "a", content: "" })).text, "it is a folder")
      assert.include((yield* call("write", { path: "new/", content: "" })).text, "it names a folder")
      assert.include((yield* call("write", { path: "a/b.txt/c", content: "" })).text, "not a directory")
    }).pipe(Workspace.provide)
  )

  it.live("F145: shows a reader the old content or the new one, never a part", () =>
    Effect.gen(function* () {
      const { call, fs, path, root } = yield* Workspace.make({ "a.txt": "0".repeat(200_000) })
      const file = path.join(root, "a.txt")
      const writer = Effect.forEach([1, 2, 3, 4, 5, 6, 7, 8], (round) =>
        call("write", { path: "a.txt", content: String(round).repeat(200_000) })
      )
      let writing = true
      const reader = Effect.gen(function* () {
        while (writing) {
          const content = yield* fs.readFileString(file)
          assert.strictEqual(content, (content[0] ?? "").repeat(200_000))
        }
      })
      const stopping = Effect.ensuring(
        writer,
        Effect.sync(() => (writing = false))
      )
      yield* Effect.all([stopping, reader], { concurrency: 2 })
    }).pipe(Workspace.provide)
  )

  it.live.each(["write", "edit"] as const)(
    "F145: %s leaves the old file or the new one, with its mode, whichever call of the system fails",
    (name) =>
      Effect.gen(function* () {
        const space = yield* Workspace.make()
        const { fs, path, root } = space
        const file = path.join(root, "a.txt")
        const seen = { old: 0, new: 0 }
        for (let nth = 1; ; nth++) {
          yield* fs.remove(file, { force: true })
          yield* fs.writeFileString(file, "old", { mode: 0o640 })
          // A kill leaves what is there between two calls.
          const look = () => {
            const isWhole = ["old", "new"].includes(readFileSync(file, "utf8"))
            assert.isTrue(isWhole && (statSync(file).mode & 0o777) === 0o640)
          }
          const { failing, hasFailed } = failAt(fs, nth, look)
          const result = yield* change(name, root).pipe(Effect.provideService(FileSystem.FileSystem, failing))
          const content = yield* fs.readFileString(file)
          assert.strictEqual(content, result.isError === true ? "old" : "new")
          assert.strictEqual(yield* mode(space, "a.txt"), "640")
          assert.deepStrictEqual(yield* fs.readDirectory(root), ["a.txt"])
          if (!hasFailed()) break
          if (result.isError === true)
            assert.match(textOf(result), /ENOSPC|another process changed it|outside/)
          seen[content === "old" ? "old" : "new"]++
        }
        // Only syncing the folder and asking for the anchor may fail unnoticed.
        assert.isAtLeast(seen.old, 10)
        assert.isAtMost(seen.new, 3)
      }).pipe(Workspace.provide)
  )

  it.live.each(["write", "edit"])(
    "F145: %s leaves a whole file, with its mode, when the process is killed",
    (name) =>
      Effect.gen(function* () {
        const space = yield* Workspace.make({ "a.txt": "0".repeat(300_000) })
        const { fs, path, root } = space
        const file = path.join(root, "a.txt")
        yield* fs.chmod(file, 0o640)
        const script = path.resolve("test/tools/writer.ts")
        const args = ["--conditions", "effect-agent-source", script, name, root]
        const writer = yield* ChildProcess.make(process.execPath, args, { stderr: "inherit" })
        yield* Stream.runHead(writer.stdout)
        yield* Effect.sleep("23 millis")
        yield* writer.kill({ killSignal: "SIGKILL" })
        const content = yield* fs.readFileString(file)
        assert.strictEqual(content, (content[0] ?? "").repeat(300_000))
        assert.strictEqual(yield* mode(space, "a.txt"), "640")
      }).pipe(Workspace.provide)
  )
})

/** Makes "new" of "old", either way. */
const change = (name: "write" | "edit", root: string) =>
  Effect.catch(
    name === "write"
      ? WriteTool.make({ root }).execute({ path: "a.txt", content: "new" })
      : EditTool.make({ root }).execute({ path: "a.txt", oldText: "old", newText: "new" }),
    (failure) => Effect.succeed(Tool.failure(failure.message))
  )

/** A file system on which one call fails: the `nth`, of all that the tool makes. Looks `before` each. */
const failAt = (fs: FileSystem.FileSystem, nth: number, before: () => void) => {
  let calls = 0
  const count = <A>(method: string, effect: Effect.Effect<A, PlatformError.PlatformError>) =>
    Effect.suspend(() => (before(), ++calls === nth ? Effect.fail(noSpace(method)) : effect))
  const file = (opened: FileSystem.File): FileSystem.File => ({
    ...opened,
    // Where the folder's paths come from.
    ...("fd" in opened ? { fd: opened.fd } : {}),
    stat: count("stat", opened.stat),
    sync: count("sync", opened.sync),
    seek: (offset, from) => opened.seek(offset, from),
    read: (buffer, options) => opened.read(buffer, options),
    readAlloc: (size, options) => opened.readAlloc(size, options),
    truncate: (length) => opened.truncate(length),
    write: (buffer) => opened.write(buffer),
    writeAll: (buffer) =>
      count(
        "writeAll",
        Effect.andThen(opened.write(buffer.subarray(0, 1)), opened.writeAll(buffer.subarray(1)))
      )
  })
  const failing: FileSystem.FileSystem = {
    ...fs,
    access: (path, options) => count("access", fs.access(path, options)),
    chmod: (path, mode) => count("chmod", fs.chmod(path, mode)),
    lstat: (path) => count("lstat", fs.lstat(path)),
    open: (path, options) =>
      Effect.flatMap(count("open", Effect.void), () => Effect.map(fs.open(path, options), file)),
    readLink: (path) => count("readLink", fs.readLink(path)),
    realPath: (path) => count("realPath", fs.realPath(path)),
    rename: (from, to) => count("rename", fs.rename(from, to))
  }
  return { failing, hasFailed: () => calls >= nth }
}

const noSpace = (method: string) =>
  PlatformError.systemError({
    module: "FileSystem",
    method,
    _tag: "Unknown",
    cause: new Error("ENOSPC: no space left on device, write")
  })

const textOf = (output: Tool.ToolOutput): string =>
  output.content.map((block) => (block.type === "text" ? block.text : "")).join("")
