import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  globSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import * as Program from "./program.ts"

Program.bundled()

type Call = readonly [name: string, params: object]

/** A model that makes the calls that it was given, one in each answer. */
const model = Effect.gen(function* () {
  const calls: Array<Call> = []
  const url = yield* Program.server((_, __, response) => {
    const [name, params] = calls.shift() ?? []
    if (name === undefined || params === undefined) Program.says(response, ["Done."])
    else Program.calls(response, name, params)
  })
  return {
    env: { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${url}/v1` },
    script: (more: ReadonlyArray<Call>) => calls.push(...more)
  }
})

/** A folder of work with files, and a home of the program. `prompt` has the model make calls, and gives the id of the session. */
const setUp = (files: Readonly<Record<string, string>>, store?: (home: string) => ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { env, script } = yield* model
    const cwd = Program.folder(files)
    const home = Program.folder({})
    const run = (...args: ReadonlyArray<string>) =>
      Program.run(args, { cwd, env: { ...env, EFFECT_AGENT_HOME: home } })
    const stored = store?.(home) ?? []
    const prompt = (calls: ReadonlyArray<Call>, ...more: ReadonlyArray<string>) => {
      script(calls)
      return Effect.map(
        run("--yes", "--sandbox", "off", "--output-format", "json", ...stored, ...more, "go"),
        ({ stderr, stdout }) => {
          assert.include(stdout, "sessionId", stderr)
          return String(JSON.parse(stdout).sessionId)
        }
      )
    }
    const rewind = (id: string, ...more: ReadonlyArray<string>) =>
      run("sessions", "rewind", id, ...stored, ...more)
    const read = (name: string) => readFileSync(join(cwd, name), "utf8")
    return { cwd, home, prompt, read, rewind, run }
  })

const write = (path: string, content: string): Call => ["write", { path, content }]
const edit = (path: string, oldText: string, newText: string): Call => ["edit", { path, oldText, newText }]
const shell = (command: string): Call => ["shell", { command }]

describe.concurrent("sessions rewind", { timeout: 60_000 }, () => {
  it.effect("takes back what the last prompt changed in files, with their modes (P-82)", () =>
    Effect.gen(function* () {
      const { cwd, home, prompt, read, rewind } = yield* setUp({ "a.txt": "one\n", "b.sh": "echo b\n" })
      chmodSync(join(cwd, "b.sh"), 0o750)
      const id = yield* prompt([
        write("a.txt", "two\n"),
        edit("b.sh", "echo b", "echo c"),
        write("new/c.txt", "c")
      ])
      assert.deepStrictEqual([read("a.txt"), read("b.sh"), read("new/c.txt")], ["two\n", "echo c\n", "c"])
      const [kept = ""] = globSync(join(home, "sessions/*/files"))
      assert.strictEqual(statSync(kept).mode & 0o777, 0o700)
      for (const file of globSync(join(kept, "*/*")))
        assert.strictEqual(statSync(file).mode & 0o777, 0o600, file)
      const dry = yield* rewind(id, "--files", "--dry-run")
      assert.strictEqual(dry.code, 0, dry.stderr)
      assert.include(dry.stdout, "restored a.txt\nrestored b.sh\n")
      assert.strictEqual(read("a.txt"), "two\n")
      const back = yield* rewind(id, "--files")
      assert.strictEqual(back.code, 0, back.stderr)
      assert.include(back.stdout, "Restored 2 files, removed 1.\n")
      assert.include(back.stdout, "removed new/c.txt\n")
      assert.deepStrictEqual([read("a.txt"), read("b.sh")], ["one\n", "echo b\n"])
      assert.isFalse(existsSync(join(cwd, "new/c.txt")))
      assert.strictEqual(statSync(join(cwd, "b.sh")).mode & 0o777, 0o750)
      assert.strictEqual((yield* rewind(id, "--files")).code, 2)
    })
  )

  it.effect("goes back before the Nth prompt, with the conversation alone or with the files (P-82)", () =>
    Effect.gen(function* () {
      const { prompt, read, rewind, run } = yield* setUp({ "a.txt": "0" })
      const id = yield* prompt([write("a.txt", "1")])
      yield* prompt([write("a.txt", "2")], "-r", id)
      yield* prompt([write("a.txt", "3")], "-r", id)
      assert.strictEqual((yield* rewind(id)).code, 0)
      assert.strictEqual(read("a.txt"), "3")
      const view = JSON.parse((yield* run("sessions", "show", id, "--json")).stdout).view
      assert.strictEqual(
        view.messages.filter(({ role }: { readonly role: string }) => role === "user").length,
        2
      )
      assert.strictEqual((yield* rewind(id, "--to", "2", "--files")).code, 0)
      assert.strictEqual(read("a.txt"), "0")
    })
  )

  it.effect("changes nothing where a file changed since, unless --force is given (P-82)", () =>
    Effect.gen(function* () {
      const { cwd, prompt, read, rewind } = yield* setUp({ "a.txt": "one", "b.txt": "one" })
      const id = yield* prompt([write("a.txt", "two"), write("b.txt", "two")])
      writeFileSync(join(cwd, "a.txt"), "mine")
      const refused = yield* rewind(id, "--files")
      assert.strictEqual(refused.code, 1)
      assert.include(refused.stderr, "a.txt changed since")
      assert.deepStrictEqual([read("a.txt"), read("b.txt")], ["mine", "two"])
      assert.strictEqual((yield* rewind(id, "--files", "--force")).code, 0)
      assert.deepStrictEqual([read("a.txt"), read("b.txt")], ["one", "one"])
    })
  )

  it.effect("names a file that is larger than --keep-file, and leaves it", () =>
    Effect.gen(function* () {
      const { prompt, read, rewind } = yield* setUp({ "a.txt": "a".repeat(2_000), "b.txt": "b" })
      const id = yield* prompt([write("a.txt", "two"), write("b.txt", "two")], "--keep-file", "0.001")
      const back = yield* rewind(id, "--files")
      assert.include(
        back.stdout,
        "Restored 1 files, removed 0.\nrestored b.txt\nnot kept: a.txt\n",
        back.stderr
      )
      assert.deepStrictEqual([read("a.txt"), read("b.txt")], ["two", "b"])
    })
  )

  it.effect("takes back what a command changed in a git work tree, and leaves git alone (P-83)", () =>
    Effect.gen(function* () {
      const { cwd, prompt, read, rewind } = yield* setUp({
        "clean.txt": "clean\n",
        "dirty.txt": "committed\n",
        "gone.txt": "gone\n",
        ".gitignore": "*.log\n"
      })
      const git = (...args: ReadonlyArray<string>) =>
        execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd, encoding: "utf8" })
      git("init", "-q")
      git("add", ".")
      git("commit", "-qm", "one")
      writeFileSync(join(cwd, "dirty.txt"), "stashed\n")
      git("stash", "-q")
      writeFileSync(join(cwd, "dirty.txt"), "dirty\n")
      writeFileSync(join(cwd, "free.txt"), "free\n")
      const state = () => [git("status", "--porcelain"), git("stash", "list"), git("rev-parse", "HEAD")]
      const before = state()
      const index = readFileSync(join(cwd, ".git/index"))
      const id = yield* prompt([
        shell(
          "echo x > clean.txt; echo x > dirty.txt; echo x > free.txt; rm gone.txt; echo n > 'new ü.txt'; echo l > a.log"
        )
      ])
      assert.isTrue(index.equals(readFileSync(join(cwd, ".git/index"))))
      const back = yield* rewind(id, "--files")
      assert.include(back.stdout, "Restored 4 files, removed 1.", back.stderr)
      assert.deepStrictEqual(["clean.txt", "dirty.txt", "free.txt", "gone.txt"].map(read), [
        "clean\n",
        "dirty\n",
        "free\n",
        "gone\n"
      ])
      assert.isFalse(existsSync(join(cwd, "new ü.txt")))
      assert.isTrue(existsSync(join(cwd, "a.log")))
      assert.isTrue(index.equals(readFileSync(join(cwd, ".git/index"))))
      assert.deepStrictEqual(state(), before)
    })
  )

  it.effect("takes back what a command changed in a folder that the work tree around it ignores", () =>
    Effect.gen(function* () {
      const { cwd, prompt, read, rewind } = yield* setUp({ ".gitignore": "sub\n", "sub/a.txt": "one" })
      execFileSync("git", ["init", "-q"], { cwd })
      const id = yield* prompt([shell("echo two > a.txt")], "--cwd", join(cwd, "sub"))
      assert.include((yield* rewind(id, "--files")).stdout, "restored a.txt")
      assert.strictEqual(read("sub/a.txt"), "one")
    })
  )

  it.effect("takes back clean files that a command has committed", () =>
    Effect.gen(function* () {
      const { cwd, prompt, read, rewind } = yield* setUp({ "a.txt": "one\n" })
      const git = (...args: ReadonlyArray<string>) => execFileSync("git", args, { cwd })
      git("init", "-q")
      git("config", "user.name", "a")
      git("config", "user.email", "a@b")
      git("add", ".")
      git("commit", "-qm", "one")
      const id = yield* prompt([shell("echo two > a.txt; git commit -qam two")])
      assert.strictEqual(read("a.txt"), "two\n")
      assert.include((yield* rewind(id, "--files")).stdout, "restored a.txt")
      assert.strictEqual(read("a.txt"), "one\n")
    })
  )

  it.effect("takes back what a command changed outside of a work tree", () =>
    Effect.gen(function* () {
      const { cwd, prompt, read, rewind } = yield* setUp({ "a.txt": "one", "d/b.txt": "two" })
      const id = yield* prompt([shell("rm -r d; echo x > a.txt; ln -s a.txt link; mkdir e; echo e > e/f")])
      assert.include((yield* rewind(id, "--files")).stdout, "Restored 2 files, removed 2.")
      assert.deepStrictEqual([read("a.txt"), read("d/b.txt")], ["one", "two"])
      assert.deepStrictEqual(readdirSync(cwd), ["a.txt", "d", "e"])
    })
  )

  it.effect("has its versions in the database of --store, and removes them with the session", () =>
    Effect.gen(function* () {
      const { home, prompt, read, rewind, run } = yield* setUp({ "a.txt": "one" }, (home) => [
        "--store",
        `sqlite:${join(home, "s.db")}`
      ])
      const id = yield* prompt([write("a.txt", "two"), shell("echo three > a.txt")])
      assert.strictEqual((yield* rewind(id, "--files")).code, 0)
      assert.strictEqual(read("a.txt"), "one")
      assert.deepStrictEqual(globSync(join(home, "**/files")), [])
      assert.strictEqual(
        (yield* run("sessions", "rm", id, "--store", `sqlite:${join(home, "s.db")}`)).code,
        0
      )
    })
  )

  it.effect("has no part of an export, and goes with the session", () =>
    Effect.gen(function* () {
      const { home, prompt, run } = yield* setUp({ "a.txt": "earlier words" })
      const id = yield* prompt([write("a.txt", "two")])
      assert.notInclude((yield* run("sessions", "export", id)).stdout, "earlier words")
      assert.strictEqual(globSync(join(home, "sessions/*/files/*")).length, 1)
      assert.strictEqual((yield* run("sessions", "rm", id)).code, 0)
      assert.strictEqual(globSync(join(home, "sessions/*/files/*")).length, 0)
      rmSync(home, { recursive: true })
    })
  )
})
