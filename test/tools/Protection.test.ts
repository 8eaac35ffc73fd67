import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { Protection, WriteTool } from "effect-agent/tools"
import * as Workspace from "./workspace.ts"

const config = "[core]\n\tbare = false\n"
const repository = { ".git/config": config, ".git/HEAD": "ref: refs/heads/main\n", "a.txt": "old" }

/** `write` and `edit` refuse the path, and leave what is there. */
const assertRefused = Effect.fnUntraced(function* (space: Workspace.Workspace, path: string, why: string) {
  const { call, fs, root } = space
  const at = space.path.join(root, path)
  const before = yield* Effect.option(fs.readFileString(at))
  for (const [tool, params] of [
    ["write", { content: "mine" }],
    ["edit", { oldText: "[core]", newText: '[core]\n\tfsmonitor = "touch pwned"' }]
  ] as const) {
    const { isError, text } = yield* call(tool, { path, ...params })
    assert.isTrue(isError, `${tool} ${path}: ${text}`)
    assert.include(text, why, `${tool} ${path}`)
    assert.include(text, "ask the user to change it")
  }
  assert.deepStrictEqual(yield* Effect.option(fs.readFileString(at)), before)
})

describe("Protection", () => {
  it.live("refuses to change what other programs run", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make(repository)
      for (const name of Protection.names) {
        yield* assertRefused(space, name, `${name} is protected`)
        yield* assertRefused(space, `${name}/config`, `${name} is protected`)
        yield* assertRefused(space, `deep/er/${name}/new/x`, `${name} is protected`)
      }
      yield* assertRefused(space, ".git/config", '".git/config" is refused: .git is protected')
      yield* assertRefused(space, "a/../.git/hooks/pre-commit", ".git is protected")
      yield* assertRefused(space, `${space.root}/.git/config`, ".git is protected")
      assert.deepStrictEqual((yield* space.fs.readDirectory(space.root)).toSorted(), [".git", "a.txt"])
    }).pipe(Workspace.provide)
  )

  it.live("refuses other spellings of a name, which some file systems take for it", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make(repository)
      for (const name of [
        ".GIT",
        ".Git",
        ".g\u200cit",
        ".gi\ufefft",
        ".git.",
        ".git ",
        ".git. .",
        "GIT~1",
        "git~2"
      ]) {
        yield* assertRefused(space, `${name}/config`, ".git is protected")
      }
      yield* assertRefused(space, ".git::$INDEX_ALLOCATION/config", ".git is protected")
      yield* assertRefused(space, ".HUSKY/pre-commit", ".husky is protected")
      yield* assertRefused(space, ".hu\u017f\u212ay/pre-commit", ".husky is protected")
      yield* assertRefused(space, "VSCODE~1/tasks.json", ".vscode is protected")
    }).pipe(Workspace.provide)
  )

  it.live("writes what only looks like it", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make(repository)
      for (const path of [
        ".gitignore",
        ".gitattributes",
        ".github/workflows/ci.yml",
        "git/config",
        "a.git/config",
        ".git-x",
        "AGENTS.md",
        "CLAUDE.md",
        "package.json",
        "vscode~x",
        "HEAD",
        "hooks/pre-commit"
      ]) {
        const { outcome, text } = yield* call("write", { path, content: "x" })
        assert.strictEqual(outcome, "success", text)
      }
      assert.strictEqual((yield* call("read", { path: ".git/config" })).text, config.trimEnd())
    }).pipe(Workspace.provide)
  )

  it.live("refuses what a link leads to, and what stands behind a link of that name", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make({ ...repository, "elsewhere/x": "", "real.json": config })
      const link = (target: string, name: string) =>
        space.fs.symlink(target, space.path.join(space.root, name))
      yield* link(".git", "link")
      yield* link(".git/config", "file")
      yield* link("elsewhere", ".vscode")
      yield* link("real.json", ".mcp.json")
      yield* assertRefused(space, "link/config", ".git is protected")
      yield* assertRefused(space, "link/hooks/pre-commit", ".git is protected")
      yield* assertRefused(space, "file", ".git is protected")
      yield* assertRefused(space, ".vscode/tasks.json", ".vscode is protected")
      yield* assertRefused(space, ".mcp.json", ".mcp.json is protected")
    }).pipe(Workspace.provide)
  )

  it.live("refuses the files by which worktrees and submodules find their repository", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make({
        ".git": "gitdir: ../main/.git/worktrees/x\n",
        "sub/.git": "gitdir: x\n"
      })
      yield* assertRefused(space, ".git", ".git is protected")
      yield* assertRefused(space, "sub/.git", ".git is protected")
    }).pipe(Workspace.provide)
  )

  it.live("refuses folders of git under other names", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make({
        "bare/HEAD": "ref: refs/heads/main\n",
        "bare/config": config,
        "bare/objects/x": "",
        "bare/refs/x": "",
        "half/HEAD": "",
        "half/refs/x": ""
      })
      yield* assertRefused(space, "bare/config", "it is in a folder of git")
      yield* assertRefused(space, "bare/hooks/new/pre-commit", "it is in a folder of git")
      assert.strictEqual(
        (yield* space.call("write", { path: "half/config", content: "x" })).outcome,
        "success"
      )
    }).pipe(Workspace.provide)
  )

  it.live("refuses the folder that core.hooksPath names", () =>
    Effect.gen(function* () {
      const hooks = (path: string) => `[core]\n\thooksPath = ${path}\n`
      const space = yield* Workspace.make({
        ".git/config": hooks("tools/hooks ; ours"),
        "tools/hooks/pre-commit": "true",
        "sub/.git/config": hooks('"git hooks"').toUpperCase().replace("GIT HOOKS", "git hooks"),
        "odd/.git/config": hooks(".")
      })
      yield* assertRefused(space, "tools/hooks/pre-commit", "it is in the folder of git's hooks")
      yield* assertRefused(space, "tools/hooks/lib/x", "it is in the folder of git's hooks")
      yield* assertRefused(space, "sub/git hooks/pre-push", "it is in the folder of git's hooks")
      for (const path of ["tools/x", "git hooks/x", "odd/x"]) {
        assert.strictEqual((yield* space.call("write", { path, content: "x" })).outcome, "success", path)
      }
    }).pipe(Workspace.provide)
  )

  it.live("can be extended, and turned off", () =>
    Effect.gen(function* () {
      const more = yield* Workspace.make({}, () => ({ protect: [...Protection.names, "Keys"] }))
      yield* assertRefused(more, "a/keys/x", "Keys is protected")
      yield* assertRefused(more, ".git/config", ".git is protected")
      const none = yield* Workspace.make(
        { ...repository, "bare/HEAD": "", "bare/objects/x": "", "bare/refs/x": "" },
        () => ({ protect: [] })
      )
      for (const path of [".git/config", "bare/config", ".husky/pre-commit"]) {
        assert.strictEqual((yield* none.call("write", { path, content: "x" })).outcome, "success", path)
      }
    }).pipe(Workspace.provide)
  )

  it.live("leaves a root to the application that chose it", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make({ ".claude/commands/x.md": "", ".git/config": config }, () => ({
        writeRoots: [".claude/commands", "."]
      }))
      const path = ".claude/commands/y.md"
      const written = yield* WriteTool.make({ root: `${space.root}/.claude` }).execute({
        path: "y.md",
        content: "x"
      })
      assert.notStrictEqual(written.isError, true)
      const { outcome, text } = yield* space.call("write", { path, content: "x" })
      assert.strictEqual(outcome, "success", text)
      yield* assertRefused(space, ".claude/settings.json", ".claude is protected")
    }).pipe(Workspace.provide)
  )

  it.live("refuses a folder that got a protected name while it was open", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make({ "plain/config": config })
      const { fs, root } = space
      const at = (name: string) => space.path.join(root, name)
      // The last question before the write, asked with the folder open: who may write the file.
      const renaming: FileSystem.FileSystem = {
        ...fs,
        access: (path, options) =>
          Effect.andThen(fs.access(path, options), Effect.ignore(fs.rename(at("plain"), at(".git"))))
      }
      const result = yield* WriteTool.make({ root })
        .execute({ path: "plain/config", content: "mine" })
        .pipe(Effect.provideService(FileSystem.FileSystem, renaming), Effect.exit)
      assert.strictEqual(result._tag, "Failure")
      assert.strictEqual(yield* fs.readFileString(at(".git/config")), config)
    }).pipe(Workspace.provide)
  )
})
