import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, FileSystem, PlatformError, Result } from "effect"
import { Sandbox, type Tools } from "effect-agent/tools"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import * as Workspace from "./workspace.ts"

const probed = await Effect.runPromise(
  Effect.result(Sandbox.probe({ root: "." })).pipe(Effect.provide(NodeServices.layer))
)
const works = Result.isSuccess(probed) && probed.success === "bubblewrap"
// A machine without bubblewrap, or a container that forbids it, cannot run these tests.
if (!works)
  console.warn(`Sandbox.slow.test.ts is skipped: ${Result.isFailure(probed) ? probed.failure.message : ""}`)

const make = (
  files: Readonly<Record<string, string>> = {},
  shell: NonNullable<Tools.Options["shell"]> = {},
  others: Partial<Tools.Options> = {}
) =>
  Effect.map(
    Workspace.make(files, () => ({ ...others, shell: { sandbox: "require", ...shell } })),
    (space) => {
      const sh = (command: string, params: object = {}) => space.call("shell", { command, ...params })
      const read = (name: string) => space.fs.readFileString(space.path.join(space.root, name))
      return { ...space, sh, read }
    }
  )

/** A home folder, which is not in `/tmp`, because commands have a `/tmp` of their own. */
const homeWith = (files: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const home = mkdtempSync(join(import.meta.dirname, "../../node_modules/.home-"))
      for (const [name, content] of Object.entries(files)) {
        mkdirSync(dirname(join(home, name)), { recursive: true })
        writeFileSync(join(home, name), content)
      }
      return home
    }),
    (home) => Effect.sync(() => rmSync(home, { recursive: true }))
  )

/** Sets variables of the process while an effect runs. */
const withEnv = <A, E, R>(variables: Readonly<Record<string, string>>, effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const before = Object.fromEntries(Object.keys(variables).map((name) => [name, process.env[name]]))
      Object.assign(process.env, variables)
      return before
    }),
    () => effect,
    (before) =>
      Effect.sync(() => {
        for (const [name, value] of Object.entries(before)) {
          if (value === undefined) delete process.env[name]
          else process.env[name] = value
        }
      })
  )

/** Whether a process lives that has this text in its command line. */
const lives = Effect.fnUntraced(function* (mark: string) {
  const fs = yield* FileSystem.FileSystem
  const pids = (yield* fs.readDirectory("/proc")).filter(
    (name) => /^\d+$/.test(name) && name !== `${process.pid}`
  )
  const lines = yield* Effect.forEach(pids, (pid) =>
    fs.readFileString(`/proc/${pid}/cmdline`).pipe(Effect.orElseSucceed(() => ""))
  )
  return lines.some((line) => line.includes(mark))
})

const until = <E, R>(condition: Effect.Effect<boolean, E, R>, times = 300): Effect.Effect<boolean, E, R> =>
  Effect.flatMap(condition, (is) =>
    is || times === 0 ? Effect.succeed(is) : Effect.delay(until(condition, times - 1), "10 millis")
  )

describe.skipIf(!works)("the sandbox of shell", { timeout: 90_000 }, () => {
  it.live("lets a command change the root and temporary files, and nothing else", () =>
    Effect.gen(function* () {
      const { fs, outside, path, read, root, sh } = yield* make({ "a.txt": "a" })
      const { details, isError, text } = yield* sh(
        'cat a.txt; echo b > a.txt; mkdir -p c/d; pwd; echo $TMPDIR; echo t > /tmp/t; cat "$TMPDIR/t"'
      )
      assert.strictEqual(text, `a${root}\n/tmp\nt`)
      assert.isFalse(isError)
      assert.deepInclude(details, { exitCode: 0, sandbox: "bubblewrap" })
      assert.strictEqual(yield* read("a.txt"), "b\n")
      assert.isFalse(yield* fs.exists("/tmp/t"))
      assert.isTrue((yield* sh("ls /tmp/t")).isError)
      const places = [
        path.dirname(process.execPath),
        import.meta.dirname,
        "/",
        "/etc",
        "/usr/bin",
        "/proc/sys/vm"
      ]
      const made = yield* sh(places.map((place) => `echo x > '${place}/effect-agent-made'`).join("; "))
      assert.isTrue(made.isError)
      // The folder of the root is a private one, like all of /tmp.
      yield* sh("echo x > ../effect-agent-made")
      for (const place of [...places, path.dirname(root)])
        assert.isFalse(yield* fs.exists(path.join(place, "effect-agent-made")), place)
      const written = yield* sh(`echo x > '${outside}/secret.txt'; cat '${outside}/secret.txt'`)
      assert.include(written.text, "[Exit code 1]")
      assert.strictEqual(yield* fs.readFileString(path.join(outside, "secret.txt")), Workspace.secret)
      const kernel = yield* sh("echo 1 > /proc/sys/vm/drop_caches; echo x > /proc/sysrq-trigger")
      assert.isTrue(kernel.isError)
    }).pipe(Workspace.provide)
  )

  it.live("keeps protected files as they are, whatever a command tries", () =>
    Effect.gen(function* () {
      const files = {
        ".git/config": "config",
        ".git/hooks/pre-commit": "hook",
        ".vscode/tasks.json": "tasks",
        ".mcp.json": "mcp",
        "packages/a/.npmrc": "npmrc",
        "packages/a/.Claude/settings.json": "settings",
        "src/x.ts": "x"
      }
      const { fs, path, read, root, sh } = yield* make(files)
      const attempts = [
        ...Object.keys(files).map((name) => `echo evil > ${name}; rm -f ${name}; mv ${name} gone`),
        "rm -rf .git .vscode; mv .git g; mkdir -p .git/hooks; ln -s /tmp .git",
        "echo '../evil' > .git/commondir; touch .git/index.lock",
        "ln .git/config linked; echo evil > linked",
        "mount -o remount,rw .git; umount .git; umount -l .git",
        "unshare -Urm sh -c 'umount -l .git; mount -o remount,rw,bind .git; echo evil > .git/config'",
        "chmod 777 .git/config; truncate -s0 .git/config; cp /dev/null .git/config",
        "bwrap --bind / / sh -c 'echo evil > .git/config'"
      ]
      for (const attempt of attempts) yield* sh(attempt)
      for (const [name, content] of Object.entries(files)) {
        if (name !== "src/x.ts") assert.strictEqual(yield* read(name), content, name)
      }
      assert.isFalse(yield* fs.exists(path.join(root, "src/x.ts")))
      assert.deepStrictEqual((yield* fs.readDirectory(path.join(root, ".git"))).toSorted(), [
        "config",
        "hooks"
      ])
      assert.include((yield* sh("git --version && cat .git/config")).text, "config")
    }).pipe(Workspace.provide)
  )

  it.live(
    "protects the hooks folder that git's configuration names, and the names of the option protect",
    () =>
      Effect.gen(function* () {
        const files = {
          ".git/config": "[core]\n\thooksPath = tools/hooks\n",
          "tools/hooks/x": "hook",
          "keys/k": "k"
        }
        const space = yield* make(files, {}, { protect: [".git", "keys"] })
        yield* space.sh(
          "echo evil > tools/hooks/x; rm -r tools/hooks; echo evil > keys/k; echo new > tools/y"
        )
        assert.strictEqual(yield* space.read("tools/hooks/x"), "hook")
        assert.strictEqual(yield* space.read("keys/k"), "k")
        assert.strictEqual(yield* space.read("tools/y"), "new\n")
        const none = yield* make(files, { protect: [] })
        yield* none.sh("echo mine > tools/hooks/x; rm .git/config")
        assert.strictEqual(yield* none.read("tools/hooks/x"), "mine\n")
        assert.isFalse(yield* none.fs.exists(none.path.join(none.root, ".git/config")))
      }).pipe(Workspace.provide)
  )

  it.live("hides keys in the home folder, sockets, and what the option hidden names", () =>
    Effect.gen(function* () {
      const files = {
        ".ssh/id": "planted-1",
        ".aws/credentials": "planted-2",
        ".config/gh/hosts.yml": "planted-3",
        ".netrc": "planted-4",
        ".real/key": "planted-5",
        "project/private/x": "planted-6",
        ".claude/secret": "planted-7"
      }
      const others = { ".gitconfig": "name = me\n", "project/a": "a\n", ".claude/worktrees/w/a": "a\n" }
      const home = yield* homeWith({ ...files, ...others })
      symlinkSync(join(home, ".real"), join(home, ".kube"))
      const all = [...Object.keys(files), ".kube/key"]
      const reading = (from: string) => all.map((name) => `cat '${from}/${name}'`).join("; ")
      const look = Effect.gen(function* () {
        const project = yield* make({}, { hidden: ["private"] }, { root: join(home, "project") })
        const { text } = yield* project.sh(`${reading(home)}; cat ~/.gitconfig a`)
        assert.notInclude(text, "planted")
        assert.include(text, "name = me\na")
        assert.match((yield* project.sh("ls -A /run /var/run/ | grep -c sock")).text, /^0/)
        // A root in a hidden folder is there, and nothing else of that folder.
        const inside = yield* make({}, {}, { root: join(home, ".claude/worktrees/w") })
        const { text: own } = yield* inside.sh("cat a; echo b > b; ls -A ../..; cat ../../secret")
        assert.match(own, /^a\nworktrees\ncat: .*No such file/)
        // With the home as root, its keys stay hidden.
        const whole = yield* make({}, {}, { root: home })
        const { text: rest } = yield* whole.sh(
          `${reading(".").replace("cat './project/private/x'; ", "")}; cat .gitconfig`
        )
        assert.notInclude(rest, "planted")
        assert.include(rest, "name = me")
      })
      yield* withEnv({ HOME: home }, look)
      assert.strictEqual(readFileSync(join(home, ".claude/worktrees/w/b"), "utf8"), "b\n")
    }).pipe(Workspace.provide)
  )

  it.live("hides every place of `secrets`, in the home and where XDG variables move it, but for skills", () =>
    Effect.gen(function* () {
      const keys = Object.fromEntries(Sandbox.secrets.map((name, at) => [`${name}/key`, `planted-${at}`]))
      const skill = { ".config/effect-agent/skills/s/run.sh": "echo ran" }
      const elsewhere = yield* homeWith({
        "data/effect-agent/sessions/x.jsonl": "planted",
        "config/sops/age/keys.txt": "planted",
        "own/sessions/y.jsonl": "planted"
      })
      const home = yield* homeWith({ ...keys, ...skill, "project/a": "a" })
      const variables = {
        HOME: home,
        XDG_DATA_HOME: `${elsewhere}/data`,
        XDG_CONFIG_HOME: `${elsewhere}/config`,
        EFFECT_AGENT_HOME: `${elsewhere}/own`
      }
      const { sh } = yield* make({}, {}, { root: join(home, "project") })
      const { text } = yield* withEnv(
        variables,
        sh(
          `grep -rhas planted '${home}' '${elsewhere}' | sort -u; sh '${home}/.config/effect-agent/skills/s/run.sh'; ` +
            `echo x > '${home}/.config/effect-agent/skills/s/y' || echo refused`
        )
      )
      assert.match(text, /^ran\n.*Read-only file system\nrefused$/)
    }).pipe(Workspace.provide)
  )

  it.live("has no network, unless the option allows it", () =>
    Effect.gen(function* () {
      const server = createServer((_, response) => response.end("reached")).listen(0, "127.0.0.1")
      yield* Effect.promise(() => once(server, "listening"))
      const { port } = server.address() as AddressInfo
      const script = `fetch("http://127.0.0.1:${port}").then((r) => r.text()).then(console.log, () => console.log("failed"))`
      const command = `'${process.execPath}' -e '${script}'`
      const closed = yield* make()
      assert.strictEqual((yield* closed.sh(command)).text, "failed")
      const open = yield* make({}, { network: true })
      assert.strictEqual((yield* open.sh(command)).text, "reached")
      server.close()
    }).pipe(Workspace.provide)
  )

  it.live("hides other processes and their environment, and cleans that of commands", () =>
    Effect.gen(function* () {
      const planted = {
        MY_API_KEY: "planted-1",
        SSH_AUTH_SOCK: "/nowhere/agent",
        XDG_RUNTIME_DIR: "/run/user/0"
      }
      const { sh } = yield* make({}, { environment: { EXTRA: "given" } })
      const { text } = yield* withEnv(
        planted,
        sh("cat /proc/*/environ | tr '\\0' '\\n'; env; ls -d /proc/[0-9]*")
      )
      assert.notMatch(text, /planted|SSH_AUTH_SOCK|XDG_RUNTIME_DIR|AI_AGENT=effect-agentx/)
      assert.include(text, "EXTRA=given")
      assert.isBelow((text.match(/^\/proc\/\d+$/gm) ?? []).length, 8)
      const killed = yield* sh(`kill -9 ${process.pid}; echo still here`)
      assert.include(killed.text, "still here")
    }).pipe(Workspace.provide)
  )

  it.live("writes to further folders that the option names, and follows no link to others", () =>
    Effect.gen(function* () {
      const space = yield* make()
      const { fs, outside, path, root } = space
      const open = yield* make({}, { writable: [outside, path.join(root, "build")] }, { root })
      assert.isFalse((yield* open.sh(`echo x > '${outside}/made'`)).isError)
      assert.strictEqual(yield* fs.readFileString(path.join(outside, "made")), "x\n")
      // A command makes a link of a writable folder inside the root.
      yield* open.sh(`ln -s '${path.dirname(root)}' build`)
      yield* open.sh("echo x > build/escaped")
      assert.isFalse(yield* fs.exists(path.join(path.dirname(root), "escaped")))
    }).pipe(Workspace.provide)
  )

  it.live("ends all processes at the time limit, also those that left their group", () =>
    Effect.gen(function* () {
      const { sh } = yield* make()
      const mark = `31.${process.pid}`
      const started = performance.now()
      const command = `trap '' TERM; setsid sleep ${mark} & nohup sleep ${mark} & (trap '' TERM; sleep ${mark}) & echo started; wait`
      const { details, text } = yield* sh(command, { timeout: 0.5 })
      assert.isBelow(performance.now() - started, 500 + 2_000)
      assert.include(text, "started\n[Timed out after 0.5 seconds.")
      assert.deepInclude(details, { timedOut: true })
      assert.isTrue(yield* until(Effect.map(lives(mark), (is) => !is)))
      // The end of the command ends the others.
      assert.strictEqual((yield* sh(`setsid sleep ${mark} & sleep 0.1; echo done`)).text, "done")
      assert.isTrue(yield* until(Effect.map(lives(mark), (is) => !is)))
    }).pipe(Workspace.provide)
  )

  it.live("ends all processes within 2 seconds of an interruption", () =>
    Effect.gen(function* () {
      const { sh } = yield* make()
      const mark = `32.${process.pid}`
      const fiber = yield* Effect.forkChild(sh(`trap '' TERM; setsid sleep ${mark} & sleep ${mark}; wait`))
      assert.isTrue(yield* until(lives(`sleep\0${mark}`)))
      const started = performance.now()
      yield* Fiber.interrupt(fiber)
      assert.isBelow(performance.now() - started, 2_000)
      assert.isTrue(yield* until(Effect.map(lives(mark), (is) => !is)))
    }).pipe(Workspace.provide)
  )

  it.live("ends all processes with a parent that is killed", () =>
    Effect.gen(function* () {
      const mark = `33.${process.pid}`
      const script = join(import.meta.dirname, "sandboxed.ts")
      const { outside } = yield* make()
      // It has no time to remove its folder.
      const parent = spawn(
        process.execPath,
        ["--conditions", "effect-agent-source", script, `sleep ${mark}`],
        { env: { ...process.env, TMPDIR: outside } }
      )
      assert.isTrue(yield* until(lives(`sleep\0${mark}`), 1_000))
      parent.kill("SIGKILL")
      assert.isTrue(yield* until(Effect.map(lives(mark), (is) => !is)))
    }).pipe(Workspace.provide)
  )

  it.live("gives exit codes, output in order, and other shells", () =>
    Effect.gen(function* () {
      const { sh } = yield* make({}, { shell: "/bin/bash" })
      assert.strictEqual(
        (yield* sh("echo a; echo b >&2; [[ a == a ]] && echo c; exit 3")).text,
        "a\nb\nc\n[Exit code 3]"
      )
      assert.include((yield* sh("kill -KILL $$")).text, "[Exit code 137]")
      assert.include((yield* sh("--version")).text, "[Exit code 127]")
    }).pipe(Workspace.provide)
  )

  it.live("looks again when the root was not there at first", () =>
    Effect.gen(function* () {
      const { fs, path, root } = yield* make()
      const later = path.join(root, "later")
      const { sh } = yield* make({}, { sandbox: "auto" }, { root: later })
      assert.isTrue((yield* sh("true")).isError)
      yield* fs.makeDirectory(later)
      assert.deepInclude((yield* sh("true")).details, { sandbox: "bubblewrap" })
    }).pipe(Workspace.provide)
  )

  it.live("fails for a root that is not there", () =>
    Effect.gen(function* () {
      const { fs, root, sh } = yield* make()
      assert.isFalse((yield* sh("true")).isError)
      yield* fs.remove(root, { recursive: true })
      assert.include((yield* sh("true")).text, "The command was not run")
    }).pipe(Workspace.provide)
  )
})

describe("a system without a sandbox", () => {
  /** Nothing is installed. */
  const bare = Effect.map(FileSystem.FileSystem, (fs) =>
    FileSystem.FileSystem.of({
      ...fs,
      exists: (path) =>
        path.startsWith("/usr/bin/") || path.endsWith("/bwrap") ? Effect.succeed(false) : fs.exists(path)
    })
  )

  it.live("runs commands without one for auto, and none for require", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(Sandbox.probe({ root: "." }))
      assert.isTrue(Exit.isFailure(exit))
      const auto = yield* Workspace.make({}, () => ({ shell: { sandbox: "auto" } }))
      const ran = yield* auto.call("shell", { command: "echo ran" })
      assert.strictEqual(ran.text, "ran")
      assert.deepInclude(ran.details, { sandbox: "none" })
      const required = yield* Workspace.make({}, () => ({ shell: { sandbox: "require" } }))
      const { isError, text } = yield* required.call("shell", { command: "echo ran" })
      assert.isTrue(isError)
      assert.match(text, /There is no sandbox for commands: neither bwrap/)
    }).pipe(Effect.provideServiceEffect(FileSystem.FileSystem, bare), Workspace.provide)
  )

  const fails = Effect.fail(
    PlatformError.systemError({ _tag: "Busy", module: "FileSystem", method: "exists" })
  )
  it.live.each([
    { why: "the file system has no files", exists: () => Effect.succeed(false) },
    { why: "a look fails", exists: () => fails }
  ])("runs no command for auto where it cannot find out: $why", ({ exists }) =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const auto = yield* Workspace.make({}, () => ({ shell: { sandbox: "auto" } }))
      const { isError, text } = yield* auto
        .call("shell", { command: "echo ran > a.txt" })
        .pipe(Effect.provideService(FileSystem.FileSystem, { ...fs, exists }))
      assert.isTrue(isError)
      assert.include(text, "There is no sandbox for commands: ")
      assert.isFalse(yield* fs.exists(`${auto.root}/a.txt`))
    }).pipe(Workspace.provide)
  )
})
