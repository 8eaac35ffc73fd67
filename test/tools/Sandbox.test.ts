import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { Sandbox, ShellTool } from "effect-agent/tools"
import * as SandboxLimits from "../../src/tools/internal/SandboxLimits.ts"

const limits: SandboxLimits.Limits = {
  root: "/home/me/.claude/w",
  writable: ["/home/me/.claude/w", "/data"],
  readOnly: ["/home/me/.claude/w/.git"],
  protect: [".git", 'a"b.c'],
  hidden: [
    { path: "/home/me/.claude", isFolder: true },
    { path: "/home/me/.netrc", isFolder: false },
    { path: "/tmp", isFolder: true },
    { path: "/data/keys", isFolder: true }
  ],
  shown: ["/home/me/.claude/skills"],
  network: false
}

describe("bubblewrap", () => {
  const args = (changed: Partial<SandboxLimits.Limits> = {}) =>
    SandboxLimits.args({ ...limits, ...changed }).join(" ")

  it("mounts a folder before its content, and the root over a hidden folder", () => {
    assert.strictEqual(
      args(),
      "--unshare-user --unshare-all --die-with-parent --cap-drop ALL --ro-bind / / --dev /dev --proc /proc " +
        "--ro-bind /proc/sys /proc/sys --tmpfs /tmp --bind /data /data --tmpfs /data/keys " +
        "--ro-bind /dev/null /home/me/.netrc --tmpfs /home/me/.claude " +
        "--bind /home/me/.claude/w /home/me/.claude/w " +
        "--ro-bind-try /run/current-system /run/current-system " +
        "--ro-bind-try /home/me/.claude/skills /home/me/.claude/skills " +
        "--ro-bind /home/me/.claude/w/.git /home/me/.claude/w/.git --chdir /home/me/.claude/w --"
    )
  })

  it("prefers the root to a hidden folder of this path, and a protected path to both", () => {
    const path = "/home/me/.ssh"
    const all = args({ writable: [path], readOnly: [path], hidden: [{ path, isFolder: true }] })
    assert.include(all, `--tmpfs ${path} --bind ${path} ${path} --ro-bind ${path} ${path} `)
  })

  it("shares the network only when it may, with the files that name its resolvers", () => {
    assert.notMatch(args(), /--share-net|resolv/)
    assert.match(
      args({ network: true }),
      /--unshare-all --share-net .*--ro-bind-try \/run\/systemd\/resolve\/stub/
    )
  })
})

describe("the profile of sandbox-exec", () => {
  it("denies all but reading, and writing to the root and further folders", () => {
    assert.deepStrictEqual(SandboxLimits.profile(limits).split("\n"), [
      "(version 1)",
      "(deny default)",
      "(allow process-exec)",
      "(allow process-fork)",
      "(allow signal (target same-sandbox))",
      "(allow process-info* (target same-sandbox))",
      "(allow sysctl-read)",
      "(allow ipc-posix-sem)",
      '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") ' +
        '(global-name "com.apple.system.opendirectoryd.membership") (global-name "com.apple.system.logger") ' +
        '(global-name "com.apple.system.notification_center"))',
      "(allow file-read*)",
      '(allow file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero"))',
      '(deny file-read* file-write* (subpath "/tmp"))',
      '(allow file-read* file-write* (subpath "/data"))',
      '(deny file-read* file-write* (subpath "/data/keys"))',
      '(deny file-read* file-write* (subpath "/home/me/.netrc"))',
      '(deny file-read* file-write* (subpath "/home/me/.claude"))',
      '(allow file-read* file-write* (subpath "/home/me/.claude/w"))',
      '(allow file-read* (subpath "/home/me/.claude/skills"))',
      '(deny file-write* (subpath "/home/me/.claude/w/.git"))',
      '(deny file-write* (regex #"^/home/me/\\.claude/w/(.*/)?(\\.[gG][iI][tT]|[aA]\\"[bB]\\.[cC])(/|$)"))',
      '(deny file-write* (regex #"^/data/(.*/)?(\\.[gG][iI][tT]|[aA]\\"[bB]\\.[cC])(/|$)"))'
    ])
    assert.notInclude(SandboxLimits.profile({ ...limits, protect: [] }), "regex")
  })

  it("matches protected names at any depth, in any case, and no other", () => {
    const rule =
      /regex #"(.*)"\)\)$/m.exec(SandboxLimits.profile({ ...limits, protect: [".git"] }))?.[1] ?? ""
    const pattern = new RegExp(rule)
    for (const path of [".git", ".GIT/config", "a/b/.git", "a/.git/hooks/x"])
      assert.match(`/home/me/.claude/w/${path}`, pattern)
    for (const path of [".gitignore", "a.git", "xgit/y", ".github/z"])
      assert.notMatch(`/home/me/.claude/w/${path}`, pattern)
  })

  it("quotes paths, and reaches servers but no sockets of files", () => {
    const path = '/x/"(allow default)\\'
    assert.include(
      SandboxLimits.profile({ ...limits, writable: [path] }),
      '(subpath "/x/\\"(allow default)\\\\")'
    )
    assert.notInclude(SandboxLimits.profile(limits), "network")
    const open = SandboxLimits.profile({ ...limits, network: true })
    assert.include(open, '(allow network-outbound (remote ip) (literal "/private/var/run/mDNSResponder"))')
    assert.notMatch(open, /allow network[*]|allow default/)
  })
})

const input = { root: "", writable: [], protect: [], hidden: [], shown: [], network: false }

describe("the limits", () => {
  it.live("have real paths, and no further folder inside another one", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const base = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
      for (const name of ["root/in", "more/in", "other/skills"])
        yield* fs.makeDirectory(`${base}/${name}`, { recursive: true })
      yield* fs.symlink(`${base}/root`, `${base}/link`)
      const limits = yield* SandboxLimits.of({
        ...input,
        root: `${base}/link`,
        writable: ["in", `${base}/link/in`, "../more", `${base}/more/in`, `${base}/more`, "/nowhere"],
        hidden: ["../other", "/nowhere", `${base}/other`],
        // Shown ones outside of hidden ones would become read-only.
        shown: [`${base}/other/skills`, `${base}/root/in`, "/nowhere"]
      })
      assert.deepStrictEqual(limits.shown, [`${base}/other/skills`])
      assert.deepStrictEqual(limits.writable, [`${base}/root`, `${base}/more`])
      assert.deepStrictEqual(limits.hidden, [{ path: `${base}/other`, isFolder: true }])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live("have the protected files that exist, also behind links, without those of packages", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const base = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
      const root = `${base}/.idea`
      for (const name of [
        ".git/x",
        "a/.GIT",
        "a/b[1]",
        "node_modules/p/.git",
        "real",
        "1/2/3/4/.git",
        "1/2/3/4/5/.git"
      ])
        yield* fs.makeDirectory(`${root}/${name}`, { recursive: true })
      yield* fs.symlink(`${root}/real`, `${root}/.vscode`)
      yield* fs.symlink("/etc", `${root}/.zed`)
      const protect = [".git", ".vscode", ".zed", ".idea", "b[1]"]
      const { readOnly } = yield* SandboxLimits.of({ ...input, root, protect })
      const expected = [".git", "a/.GIT", "a/b[1]", "real", "1/2/3/4/.git"].map((name) => `${root}/${name}`)
      assert.sameMembers([...readOnly], expected)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})

describe("a root that cannot be listed", () => {
  it.live("has its protected files all the same", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const root = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
      yield* fs.makeDirectory(`${root}/.git`)
      const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
      // The user root may list every folder, so `find` finds nothing here.
      const blind = ChildProcessSpawner.ChildProcessSpawner.of({
        ...spawner,
        string: () => Effect.succeed("")
      })
      const { readOnly } = yield* SandboxLimits.of({ ...input, root, protect: [".git", ".idea"] }).pipe(
        Effect.provideService(ChildProcessSpawner.ChildProcessSpawner, blind)
      )
      assert.deepStrictEqual(readOnly, [`${root}/.git`])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})

describe("hidden paths in the root", () => {
  it.live("are not mounted again as protected ones", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const root = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
      for (const name of [".ssh", ".claude/.git", ".git"])
        yield* fs.makeDirectory(`${root}/${name}`, { recursive: true })
      const protect = [".ssh", ".claude", ".git"]
      const hidden = [".ssh", ".claude", root]
      const { readOnly } = yield* SandboxLimits.of({ ...input, root, protect, hidden })
      assert.deepStrictEqual(readOnly, [`${root}/.git`])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})

describe("the tool shell", () => {
  it("has a description with the limits that a model needs to know", () => {
    const of = (options: Omit<ShellTool.Options, "root">) =>
      ShellTool.make({ root: ".", ...options }).description
    assert.notInclude(of({}), "change files")
    assert.match(
      of({ sandbox: "auto" }),
      / If the system has a sandbox, commands can change .*, and have no network\.$/
    )
    assert.match(
      of({ sandbox: "require", network: true }),
      / Commands can change [^.]*\$TMPDIR only, but not \.git\.$/
    )
  })

  it("hides the places of keys, by relative paths", () => {
    assert.includeMembers(
      [...Sandbox.secrets],
      ".ssh .aws .gnupg .netrc .npmrc .config/gh .docker .kube .claude .bash_history".split(" ")
    )
    assert.deepStrictEqual(
      Sandbox.secrets.filter((name) => name.startsWith("/") || name.includes("..")),
      []
    )
    assert.strictEqual(new Set(Sandbox.secrets).size, Sandbox.secrets.length)
  })
})
