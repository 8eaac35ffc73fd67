import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { createServer } from "node:net"
import * as Stretch from "./stretch.ts"
import * as Workspace from "./workspace.ts"

/** Every tool that takes a path, with what it needs beside. */
const readers = ["read", "list", "find", "grep"] as const
const extra = { read: {}, list: {}, find: { pattern: "*" }, grep: { pattern: "secret" } }

/** No tool gets anything out of, or into, what is outside by this path. */
const assertConfined = Effect.fnUntraced(function* (space: Workspace.Workspace, path: string) {
  for (const name of readers) {
    const { isError, text } = yield* space.call(name, { path, ...extra[name] })
    assert.isTrue(isError, `${name} ${JSON.stringify(path)}: ${text}`)
    assert.notInclude(text, Workspace.secret)
  }
  const written = yield* space.call("write", { path, content: "overwritten" })
  const edited = yield* space.call("edit", { path, oldText: "secret", newText: "overwritten" })
  assert.isTrue(written.isError, `write ${JSON.stringify(path)}: ${written.text}`)
  assert.isTrue(edited.isError, `edit ${JSON.stringify(path)}: ${edited.text}`)
  yield* assertUntouched(space)
})

const assertUntouched = Effect.fnUntraced(function* ({ fs, outside, path }: Workspace.Workspace) {
  assert.deepStrictEqual(yield* fs.readDirectory(outside), ["secret.txt"])
  assert.strictEqual(yield* fs.readFileString(path.join(outside, "secret.txt")), Workspace.secret)
})

describe("Root", () => {
  it.live(
    "refuses a path that is longer than any system takes, in few words and at once",
    () =>
      Effect.gen(function* () {
        const { call } = yield* Workspace.make({})
        for (const path of ["a/".repeat(500_000) + "a", "a".repeat(1_000_000)]) {
          const params = { path, pattern: "a", content: "", oldText: "a", newText: "b" }
          for (const name of [...readers, "write", "edit"] as const) {
            const { result, stretch } = yield* Stretch.longest(call(name, params))
            assert.include(result.text, "and a path may have 32768", name)
            assert.isBelow(result.text.length, 500)
            assert.isBelow(stretch, 100, name)
          }
        }
      }).pipe(Workspace.provide),
    Stretch.tries
  )

  it.live("F141: refuses paths that lead outside", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make({ "a/b.txt": "inside" })
      const { outside } = space
      for (const path of [
        "../outside/secret.txt",
        "a/../../outside/secret.txt",
        "./a/./../../outside/../outside/secret.txt",
        `${outside}/secret.txt`,
        `${space.root}-not/secret.txt`,
        `${space.root}/../outside/secret.txt`,
        "..",
        "/",
        "/etc/passwd",
        "~/secret.txt",
        "~",
        `file://${outside}/secret.txt`,
        "C:\\Windows\\win.ini",
        "..\\outside\\secret.txt",
        "\\\\host\\share",
        "a\0b",
        "../outside/secret.txt\0.png",
        "",
        "  ",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/dev/stdin",
        "/sys/kernel"
      ]) {
        yield* assertConfined(space, path)
      }
    }).pipe(Workspace.provide)
  )

  it.live("says what is allowed instead", () =>
    Effect.gen(function* () {
      const { call, root } = yield* Workspace.make({ "a.txt": "inside" })
      const refused = (path: string, verb = "read") =>
        `"${path}" is refused: it leads outside. Only paths inside ${root} may be ${verb}; a relative path starts at ${root}.`
      const path = "../outside/secret.txt"
      assert.strictEqual((yield* call("read", { path })).text, refused(path))
      assert.strictEqual((yield* call("write", { path, content: "" })).text, refused(path, "changed"))
      for (const up of ["..", "../", "../..", "a/../.."]) {
        assert.strictEqual((yield* call("list", { path: up })).text, refused(up))
        assert.strictEqual((yield* call("find", { path: up, pattern: "*" })).text, refused(up))
        assert.strictEqual((yield* call("grep", { path: up, pattern: "x" })).text, refused(up))
      }
      for (const windows of ["..\\a", "a\\..", "a\\..\\b", "..\\", "C:\\a", "c:/a", "\\\\host\\a"]) {
        assert.include((yield* call("list", { path: windows })).text, "it is a path of Windows; use /")
      }
    }).pipe(Workspace.provide)
  )

  it.live("F142: refuses links that lead outside, wherever they stand", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make({ "a/b.txt": "inside" })
      const { fs, outside, path, root } = space
      const link = (target: string, name: string) => fs.symlink(target, path.join(root, name))
      yield* link(path.join(outside, "secret.txt"), "file")
      yield* link("../outside/secret.txt", "relative")
      yield* link(outside, "folder")
      yield* link("folder", "chain")
      yield* link("chain/secret.txt", "longer")
      yield* link(path.join(outside, "new.txt"), "dangling")
      yield* link(path.join(outside, "new"), "danglingFolder")
      yield* link("loop", "loop")
      yield* link("/proc/self/root", "proc")
      yield* link("/proc/self/environ", "environ")
      yield* link("/", "slash")
      for (const name of [
        "file",
        "relative",
        "folder/secret.txt",
        "chain/secret.txt",
        "longer",
        "dangling",
        "danglingFolder/x.txt",
        "loop",
        "loop/x",
        "proc/etc/passwd",
        "environ",
        `slash${outside}/secret.txt`,
        "folder/new/deep/x.txt",
        "a/../folder/secret.txt"
      ]) {
        yield* assertConfined(space, name)
      }
    }).pipe(Workspace.provide)
  )

  it.live("F142: follows links that stay inside", () =>
    Effect.gen(function* () {
      const { call, fs, path, root } = yield* Workspace.make({ "a/b.txt": "inside" })
      yield* fs.symlink("a", path.join(root, "link"))
      yield* fs.symlink("a/b.txt", path.join(root, "file"))
      assert.strictEqual((yield* call("read", { path: "link/b.txt" })).text, "inside")
      yield* call("write", { path: "file", content: "new" })
      assert.strictEqual(yield* fs.readFileString(path.join(root, "a/b.txt")), "new")
      assert.strictEqual(yield* fs.readLink(path.join(root, "file")), "a/b.txt")
      yield* call("write", { path: "link/deep/c.txt", content: "made" })
      assert.strictEqual(yield* fs.readFileString(path.join(root, "a/deep/c.txt")), "made")
    }).pipe(Workspace.provide)
  )

  it.live("F142: does not walk into links", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make({ "a.txt": "no such word" })
      const { call, fs, outside, path, root } = space
      yield* fs.symlink(outside, path.join(root, "folder"))
      yield* fs.symlink(path.join(outside, "secret.txt"), path.join(root, "file"))
      yield* fs.symlink(".", path.join(root, "self"))
      const grep = yield* call("grep", { pattern: "secret" })
      assert.strictEqual(grep.text, "No line matches.\n[Not searched: 3 links (file, folder, self).]")
      const find = yield* call("find", { pattern: "**" })
      assert.notInclude(find.text, "secret")
    }).pipe(Workspace.provide)
  )

  it.live("F142: reads no file that may be the same as one outside", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make()
      const { call, fs, outside, path, root } = space
      yield* fs.link(path.join(outside, "secret.txt"), path.join(root, "hard.txt"))
      const read = yield* call("read", { path: "hard.txt" })
      assert.include(read.text, "hard link")
      assert.notInclude(read.text, Workspace.secret)
      assert.include(read.text, "hardLinks")
      assert.strictEqual(
        (yield* call("grep", { pattern: "secret" })).text,
        "No line matches.\n[Not searched: 1 hard link (hard.txt).]"
      )
      assert.isTrue((yield* call("edit", { path: "hard.txt", oldText: "secret", newText: "x" })).isError)
      // Writing replaces the name, and leaves what the other name shows.
      yield* call("write", { path: "hard.txt", content: "mine" })
      assert.strictEqual(yield* fs.readFileString(path.join(root, "hard.txt")), "mine")
      yield* assertUntouched(space)
    }).pipe(Workspace.provide)
  )

  it.live("reads hard links when told that they are harmless", () =>
    Effect.gen(function* () {
      const { call, fs, path, root } = yield* Workspace.make({ "a.txt": "shared" }, () => ({
        hardLinks: "allow"
      }))
      yield* fs.link(path.join(root, "a.txt"), path.join(root, "b.txt"))
      assert.strictEqual((yield* call("read", { path: "b.txt" })).text, "shared")
      assert.strictEqual(
        (yield* call("grep", { pattern: "shared" })).text,
        "a.txt:1: shared\nb.txt:1: shared"
      )
      const { text } = yield* call("edit", { path: "b.txt", oldText: "shared", newText: "own" })
      assert.include(text, "[It was a hard link: 1 other name keeps the old content.]")
      assert.strictEqual(yield* fs.readFileString(path.join(root, "a.txt")), "shared")
    }).pipe(Workspace.provide)
  )

  it.live("refuses pipes, sockets and devices without waiting for them", () =>
    Effect.gen(function* () {
      const { call, path, root } = yield* Workspace.make()
      yield* Stream.runDrain((yield* ChildProcess.make("mkfifo", [path.join(root, "pipe")])).all)
      const server = createServer().listen(path.join(root, "socket"))
      yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
      yield* Effect.promise(() => new Promise((resolve) => server.once("listening", resolve)))
      assert.include((yield* call("read", { path: "pipe" })).text, "FIFO")
      assert.include((yield* call("read", { path: "socket" })).text, "Socket")
      assert.include((yield* call("write", { path: "pipe", content: "x" })).text, "FIFO")
      assert.strictEqual((yield* call("grep", { pattern: "x" })).text, "No line matches.")
    }).pipe(Workspace.provide)
  )

  it.live("F147: takes odd names as they are", () =>
    Effect.gen(function* () {
      const { call, fs, path, root } = yield* Workspace.make()
      const names = [
        "with space.txt",
        " leading",
        "-rf",
        "--help",
        "ünïcödé 文字 😀.txt",
        "..foo",
        "...",
        "a..b",
        "~tilde",
        "$HOME",
        "`id`",
        "a;b&c|d",
        "new\nline",
        "quote'\"",
        "*",
        "[x]",
        "back\\slash",
        "．．",
        "con",
        "%2e%2e",
        "a".repeat(255)
      ]
      for (const [index, name] of names.entries()) {
        const written = yield* call("write", { path: name, content: `content ${index}` })
        assert.strictEqual(written.outcome, "success", written.text)
        assert.strictEqual(yield* fs.readFileString(path.join(root, name)), `content ${index}`)
        assert.strictEqual((yield* call("read", { path: name })).text, `content ${index}`)
        assert.include(
          (yield* call("grep", { path: name, pattern: "^content" })).text,
          `:1: content ${index}`
        )
      }
      assert.include((yield* call("list", {})).text, "new\\u{a}line (")
      assert.deepStrictEqual((yield* fs.readDirectory(root)).toSorted(), names.toSorted())
    }).pipe(Workspace.provide)
  )

  it.live("keeps to the roots it is given", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make({ "a.txt": "inside", "out/b.txt": "old" }, ({ outside }) => ({
        readRoots: [outside],
        writeRoots: ["out"]
      }))
      const { call, outside } = space
      assert.strictEqual((yield* call("read", { path: "a.txt" })).text, "inside")
      assert.strictEqual((yield* call("read", { path: `${outside}/secret.txt` })).text, Workspace.secret)
      assert.include(
        (yield* call("grep", { pattern: "secret", path: outside })).text,
        `${outside}/secret.txt:1: `
      )
      assert.strictEqual((yield* call("write", { path: "out/b.txt", content: "new" })).outcome, "success")
      assert.include((yield* call("write", { path: "a.txt", content: "new" })).text, "may be changed")
      assert.isTrue((yield* call("write", { path: `${outside}/secret.txt`, content: "new" })).isError)
      yield* assertUntouched(space)
    }).pipe(Workspace.provide)
  )

  it.live("can be read-only", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "a.txt": "inside" }, () => ({ writeRoots: [] }))
      assert.strictEqual((yield* call("read", { path: "a.txt" })).text, "inside")
      assert.include(
        (yield* call("write", { path: "a.txt", content: "" })).text,
        "nothing may be changed here"
      )
    }).pipe(Workspace.provide)
  )

  it.live("does not run without its root", () =>
    Effect.gen(function* () {
      const { call, fs, root } = yield* Workspace.make()
      yield* fs.remove(root, { recursive: true })
      assert.include((yield* call("read", { path: "a.txt" })).text, "the root folder")
    }).pipe(Workspace.provide)
  )
})
