import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import * as Workspace from "./workspace.ts"

/** Whether a process is there and is more than an entry that waits to be read. */
const isAlive = ({ fs }: Workspace.Workspace, pid: string) =>
  fs.readFileString(`/proc/${pid}/stat`).pipe(
    Effect.map((stat) => !/\) [ZX] /.test(stat)),
    Effect.orElseSucceed(() => false)
  )

const pidIn = Effect.fnUntraced(function* ({ fs, path, root }: Workspace.Workspace, name: string) {
  for (let attempt = 0; attempt < 200; attempt++) {
    const pid = yield* fs.readFileString(path.join(root, name)).pipe(Effect.orElseSucceed(() => ""))
    if (pid.endsWith("\n")) return pid.trim()
    yield* Effect.sleep("10 millis")
  }
  return assert.fail(`no ${name}`)
})

// A child and a grandchild that ignore SIGTERM and hold the output open.
const deaf = `trap '' TERM; echo $$ > child; (trap '' TERM; sh -c 'echo $$ > grandchild; while :; do sleep 1; done') & wait; while :; do sleep 1; done`

// A child in the group of the command, and a parent that left it and never reads how the child ended: once killed, the
// child is an entry (a zombie) in the group until its parent ends, 5 seconds later.
const unread = `sh -c 'sh -c "echo \\$\\$ > child; exec sleep 30" & exec setsid sleep 5' > /dev/null 2>&1`

const outlived = "[A process that left the session of the command (setsid) still runs]"

/** The milliseconds of the shortest of three, which a machine that is busy for a moment does not change. */
const shortest = <E, R>(timed: Effect.Effect<Duration.Duration, E, R>) =>
  Effect.map(Effect.replicateEffect(timed, 3), (times) => Math.min(...times.map(Duration.toMillis)))

/** Bytes that a process holds while it runs a command that has said `output` bytes and goes on. */
const heldOf = async (output: number): Promise<number> => {
  const script = join(import.meta.dirname, "retained.ts")
  const args = ["--expose-gc", "--conditions", "effect-agent-source", script, String(output)]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return JSON.parse(stdout).held
}

// Side by side: most of the time is spent waiting for processes to end.
describe.concurrent("ShellTool", () => {
  it.live("runs a command in the root", () =>
    Effect.gen(function* () {
      const { call, root } = yield* Workspace.make({ "a.txt": "x" })
      const { details, isError, text } = yield* call("shell", {
        command: "pwd && ls | cat && echo $((1 + 2))"
      })
      assert.strictEqual(text, `${root}\na.txt\n3`)
      assert.isFalse(isError)
      assert.deepStrictEqual(details, {
        exitCode: 0,
        timedOut: false,
        characters: text.length + 1,
        omitted: 0
      })
    }).pipe(Workspace.provide)
  )

  it.live("keeps the order of both outputs", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make()
      const command = "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done"
      const expected = [1, 2, 3, 4, 5].flatMap((index) => [`out ${index}`, `err ${index}`]).join("\n")
      assert.strictEqual((yield* call("shell", { command })).text, expected)
    }).pipe(Workspace.provide)
  )

  it.live("reports a command that fails, with its output", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make()
      const failed = yield* call("shell", { command: "echo before; exit 3" })
      assert.isTrue(failed.isError)
      assert.strictEqual(failed.text, "before\n[Exit code 3]")
      assert.include((yield* call("shell", { command: "no-such-program" })).text, "[Exit code 127]")
      assert.include((yield* call("shell", { command: "if" })).text, "[Exit code 2]")
      const killed = yield* call("shell", { command: "kill -KILL $$" })
      assert.strictEqual(killed.text, "(no output)\n[Ended by SIGKILL]")
      assert.strictEqual((yield* call("shell", { command: "true" })).text, "(no output)")
    }).pipe(Workspace.provide)
  )

  it.live("gives no input", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make()
      assert.strictEqual((yield* call("shell", { command: "cat; read x; echo end" })).text, "end")
    }).pipe(Workspace.provide)
  )

  it.live("waits for no editor and no pager", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make()
      const names =
        "$EDITOR $VISUAL $GIT_EDITOR $GIT_SEQUENCE_EDITOR $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT $DEBIAN_FRONTEND"
      const { text } = yield* call("shell", { command: `echo ${names}` })
      assert.strictEqual(text, "true true true true cat cat 0 noninteractive")
      const commit =
        "git init -q . && git -c user.name=a -c user.email=a@b -c core.editor=vi commit --allow-empty"
      assert.include((yield* call("shell", { command: commit })).text, "empty commit message")
    }).pipe(Workspace.provide)
  )

  it.live("refuses a command that the system cannot take, with advice", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make()
      for (const letter of ["x", "é"]) {
        const { isError, text } = yield* call("shell", { command: `echo ${letter.repeat(131_000)}` })
        assert.isTrue(isError)
        assert.match(text, /^The command was not run: it has \d+ bytes.*Write it to a file/)
      }
      const most = yield* call("shell", { command: `echo ${"x".repeat(130_000)} | wc -c` })
      assert.strictEqual(most.text, "130001")
    }).pipe(Workspace.provide)
  )

  it.live("says that a process left the session of the command and still runs", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make()
      const { text } = yield* call("shell", { command: "setsid sleep 3 & sleep 0.5; echo done" })
      assert.strictEqual(text, `done\n${outlived}`)
      assert.strictEqual((yield* call("shell", { command: "sleep 2 & echo done" })).text, "done")
    }).pipe(Workspace.provide)
  )

  it.live("says why a command could not be run", () =>
    Effect.gen(function* () {
      const { call, fs, root } = yield* Workspace.make()
      yield* fs.remove(root, { recursive: true })
      const { isError, text } = yield* call("shell", { command: "true" })
      assert.isTrue(isError)
      assert.include(text, "The command was not run")
    }).pipe(Workspace.provide)
  )

  it.live("holds no more of the output while it comes than it will show", () =>
    Effect.gen(function* () {
      const output = 200_000_000
      const held = yield* Effect.promise(() => heldOf(output))
      // The rest is code that was compiled meanwhile.
      assert.isBelow(held, output / 50)
    })
  )

  it.live("keeps the head and tail of a long output (row 149)", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make()
      // 60 MB.
      const command = "echo first; head -c 60000000 /dev/zero | tr '\\0' x; echo; echo last"
      const { details, text } = yield* call("shell", { command })
      assert.isBelow(text.length, 30_100)
      assert.isTrue(text.startsWith("first\nxxx"))
      assert.isTrue(text.endsWith("xxx\nlast"))
      assert.include(text, "[... 59970012 characters left out ...]")
      assert.deepInclude(details, { characters: 60_000_012, omitted: 59_970_012 })
    }).pipe(Workspace.provide)
  )

  it.live("shows progress, at most twice a second", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make()
      const shown: Array<string> = []
      const command = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i; sleep 0.1; done"
      yield* call("shell", { command }, (text) => shown.push(text))
      assert.isAtLeast(shown.length, 1)
      assert.isAtMost(shown.length, 3)
      assert.isTrue(shown[0]?.startsWith("1\n2\n3\n"))
    }).pipe(Workspace.provide)
  )

  it.live("F089: ends what takes too long, grandchildren that ignore SIGTERM too", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make()
      const started = performance.now()
      const { details, isError, text } = yield* space.call("shell", {
        command: `echo started; ${deaf}`,
        timeout: 0.4
      })
      assert.isBelow(performance.now() - started, 400 + 2_000)
      assert.isTrue(isError)
      assert.include(text, "started\n[Timed out after 0.4 seconds.")
      assert.deepInclude(details, { timedOut: true })
      for (const name of ["child", "grandchild"])
        assert.isFalse(yield* isAlive(space, yield* pidIn(space, name)), name)
    }).pipe(Workspace.provide)
  )

  it.live("F089: ends everything within 2 seconds of an interruption", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make()
      const fiber = yield* Effect.forkChild(space.call("shell", { command: deaf }))
      const pids = [yield* pidIn(space, "child"), yield* pidIn(space, "grandchild")]
      for (const pid of pids) assert.isTrue(yield* isAlive(space, pid))
      const started = performance.now()
      yield* Fiber.interrupt(fiber)
      assert.isBelow(performance.now() - started, 2_000)
      for (const pid of pids) assert.isFalse(yield* isAlive(space, pid))
    }).pipe(Workspace.provide)
  )

  it.live("is over when all it started is dead, although a parent elsewhere has not noticed yet", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make()
      const interruption = Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(space.call("shell", { command: `${unread} & wait` }))
        const child = yield* pidIn(space, "child")
        const [time] = yield* Effect.timed(Fiber.interrupt(fiber))
        assert.isFalse(yield* isAlive(space, child))
        assert.match(yield* space.fs.readFileString(`/proc/${child}/stat`), /\) Z /)
        yield* space.fs.remove(space.path.join(space.root, "child"))
        return time
      })
      const command = `${unread} & sleep 0.1; echo done`
      const call = Effect.map(Effect.timed(space.call("shell", { command })), ([time, { text }]) => {
        assert.strictEqual(text, "done")
        return time
      })
      assert.isBelow(yield* shortest(interruption), 1_000)
      assert.isBelow(yield* shortest(call), 100 + 1_000)
    }).pipe(Workspace.provide)
  )

  it.live("waits for what ends slowly when told to, though its output is closed", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make()
      // The shell itself is gone at once; a process of its group needs a moment to clean up.
      const slow =
        "sh -c 'trap \"sleep 0.1; echo clean > cleaned; exit\" TERM; echo $$ > child; while :; do sleep 0.01; done'"
      const command = `${slow} > /dev/null 2>&1 & wait`
      const fiber = yield* Effect.forkChild(space.call("shell", { command }))
      const child = yield* pidIn(space, "child")
      yield* Fiber.interrupt(fiber)
      assert.isFalse(yield* isAlive(space, child))
      assert.strictEqual(yield* space.fs.readFileString(space.path.join(space.root, "cleaned")), "clean\n")
    }).pipe(Workspace.provide)
  )

  it.live("does not wait for what runs in the background, and ends it", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make()
      const started = performance.now()
      const { text } = yield* space.call("shell", {
        command: "sh -c 'echo $$ > pid; exec sleep 30' & sleep 0.1; echo done"
      })
      assert.strictEqual(text, "done")
      assert.isBelow(performance.now() - started, 2_000)
      assert.isFalse(yield* isAlive(space, yield* pidIn(space, "pid")))
    }).pipe(Workspace.provide)
  )

  it.live("F089: does not wait for a process that left its group, nor for its output", () =>
    Effect.gen(function* () {
      const space = yield* Workspace.make()
      const started = performance.now()
      const { text } = yield* space.call("shell", {
        command:
          "setsid sh -c 'echo $$ > pid; exec sleep 3' & until [ -s pid ]; do sleep 0.01; done; echo done"
      })
      assert.strictEqual(text, `done\n${outlived}`)
      assert.isBelow(performance.now() - started, 2_500)
    }).pipe(Workspace.provide)
  )

  it.live("allows no more time than it may", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({}, () => ({
        shell: { timeout: "200 millis", maxTimeout: "300 millis" }
      }))
      const [usual, most] = yield* Effect.all(
        [call("shell", { command: "sleep 5" }), call("shell", { command: "sleep 5", timeout: 60 })],
        { concurrency: 2 }
      )
      assert.include(usual.text, "Timed out after 0.2 seconds")
      assert.include(most.text, "Timed out after 0.3 seconds")
    }).pipe(Workspace.provide)
  )

  it.live("runs commands in the shell it is given", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({}, () => ({ shell: { shell: "/bin/bash" } }))
      assert.strictEqual(
        (yield* call("shell", { command: '[[ a == a ]] && echo "$0 $#"' })).text,
        "/bin/bash 0"
      )
    }).pipe(Workspace.provide)
  )

  it.live("F151: keeps keys out of the environment of commands", () =>
    Effect.gen(function* () {
      const planted = {
        ANTHROPIC_API_KEY: "planted-1",
        MY_HOUSE_SETTING: "sk-ant-planted-2-long-enough",
        DATABASE_URL: "postgres://user:planted-3@host/db",
        GITHUB_TOKEN: "planted-4"
      }
      Object.assign(process.env, planted)
      const { call } = yield* Workspace.make({}, () => ({
        shell: { passEnvironment: ["GITHUB_TOKEN"], environment: { EXTRA: "given" } }
      }))
      const { text } = yield* call("shell", { command: "env; cat /proc/self/environ | tr '\\0' '\\n'" })
      for (const name of Object.keys(planted)) delete process.env[name]
      assert.notMatch(text, /planted-[123]/)
      assert.include(text, "GITHUB_TOKEN=planted-4")
      assert.include(text, "EXTRA=given")
      assert.include(text, "AI_AGENT=effect-agent")
      assert.include(text, `PATH=${process.env["PATH"]}`)
    }).pipe(Workspace.provide)
  )
})
