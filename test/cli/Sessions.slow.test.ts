import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { createHash } from "node:crypto"
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Program from "./program.ts"

Program.bundled()

/** A model that says how many messages of the user it has read, and the last of them. */
const counting = Effect.map(
  Program.server((_, body, response) => {
    const users = JSON.parse(body).input.filter(({ role }: { readonly role?: string }) => role === "user")
    Program.says(response, [`${users.length}: ${users.at(-1).content}`])
  }),
  (url) => ({ OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${url}/v1` })
)

/** A folder of work, and a home of the program. */
const setUp = Effect.map(counting, (env) => {
  const cwd = Program.folder({})
  const home = Program.folder({})
  const run = (args: ReadonlyArray<string>, options: Program.Options = {}) =>
    Program.run(args, { cwd, ...options, env: { ...env, EFFECT_AGENT_HOME: home, ...options.env } })
  const listed = (...args: ReadonlyArray<string>) =>
    Effect.map(run(["sessions", "list", "--json", ...args]), ({ stdout }) => JSON.parse(stdout).items)
  return { cwd, home, listed, run }
})

const resultOf = ({ stdout }: Program.Ended) => JSON.parse(stdout)

describe.concurrent("sessions", { timeout: 60_000 }, () => {
  it.effect("are kept in the folder of the working directory, for the user alone", () =>
    Effect.gen(function* () {
      const { cwd, home, run } = yield* setUp
      const { sessionId } = resultOf(yield* run(["--output-format", "json", "hi"]))
      const hash = createHash("sha256").update(cwd).digest("hex").slice(0, 8)
      const folder = join(home, "sessions", `${cwd.replaceAll(/[^A-Za-z0-9._-]/g, "-")}-${hash}`)
      const [file = "", ...others] = readdirSync(folder)
      assert.deepStrictEqual(others, [])
      assert.match(file, /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_.*\.jsonl$/)
      assert.isTrue(file.endsWith(`_${sessionId}.jsonl`))
      assert.strictEqual(statSync(join(folder, file)).mode & 0o777, 0o600)
      const lines = readFileSync(join(folder, file), "utf8").trimEnd().split("\n")
      assert.deepInclude(JSON.parse(lines[0] ?? ""), { v: 1, type: "session", sessionId, cwd })
    })
  )

  it.effect("continue with -c, -r and --fork (row 233)", () =>
    Effect.gen(function* () {
      const { listed, run } = yield* setUp
      const none = yield* run(["-c", "hi"])
      assert.deepStrictEqual([none.code, none.stdout], [2, ""])
      const { sessionId } = resultOf(yield* run(["--output-format", "json", "--name", "first", "one"]))
      assert.strictEqual((yield* run(["-c", "two"])).stdout, "2: two\n")
      assert.strictEqual((yield* run(["--resume", sessionId, "three"])).stdout, "3: three\n")
      const fork = resultOf(yield* run(["--output-format", "json", "--fork", sessionId, "four"]))
      assert.notStrictEqual(fork.sessionId, sessionId)
      assert.strictEqual(fork.text, "4: four")
      assert.strictEqual((yield* run(["-r", sessionId, "five"])).stdout, "4: five\n")
      assert.strictEqual((yield* run(["six"])).stdout, "1: six\n")
      assert.strictEqual((yield* listed()).length, 3)
      const unknown = yield* run(["-r", "nobody", "hi"])
      assert.strictEqual(unknown.code, 2)
      assert.match(unknown.stderr, /There is no session "nobody"/)
      assert.strictEqual((yield* run(["-c", "--no-session", "hi"])).code, 2)
    })
  )

  it.effect("have nothing to continue after an answer, without a prompt", () =>
    Effect.gen(function* () {
      const { run } = yield* setUp
      yield* run(["one"])
      const { code, stderr } = yield* run(["-c"])
      assert.strictEqual(code, 2)
      assert.match(stderr, /There is nothing to continue in this session: give a prompt/)
    })
  )

  it.effect("are not kept with --no-session, and lie in the folder of --session-dir", () =>
    Effect.gen(function* () {
      const { cwd, home, listed, run } = yield* setUp
      assert.notProperty(resultOf(yield* run(["--output-format", "json", "--no-session", "hi"])), "sessionId")
      assert.isFalse(existsSync(join(home, "sessions")))
      yield* run(["--session-dir", "kept", "hi"])
      assert.strictEqual(readdirSync(join(cwd, "kept")).length, 1)
      assert.strictEqual(
        (yield* run(["-c", "again"], { env: { EFFECT_AGENT_SESSION_DIR: "kept" } })).stdout,
        "2: again\n"
      )
      assert.strictEqual((yield* listed("--session-dir", "kept")).length, 1)
      assert.deepStrictEqual(yield* listed(), [])
    })
  )

  it.effect("are listed, shown, exported and removed", () =>
    Effect.gen(function* () {
      const { listed, run } = yield* setUp
      yield* run(["--name", "first", "one"])
      yield* run(["two"])
      const [newest, oldest] = yield* listed()
      assert.deepStrictEqual([newest.title, oldest.name], ["two", "first"])
      const id = oldest.sessionId
      const list = yield* run(["sessions"])
      assert.match(
        list.stdout,
        new RegExp(`^${newest.sessionId.slice(0, 8)}  .* two\n${id.slice(0, 8)}  .* first\n$`)
      )
      const shown = resultOf(yield* run(["sessions", "show", id, "--json"]))
      assert.sameMembers(Object.keys(shown), ["session", "entries", "view"])
      assert.strictEqual(shown.session.sessionId, id)
      assert.strictEqual(shown.entries[0].type, "session")
      assert.deepStrictEqual(
        shown.view.messages.map(({ role }: { readonly role: string }) => role),
        ["user", "assistant"]
      )
      assert.match((yield* run(["sessions", "show", id.slice(0, 8)])).stdout, /one[^]*1: one/)
      const lines = (yield* run(["sessions", "export", id])).stdout.trimEnd().split("\n")
      assert.strictEqual(lines.length, shown.entries.length)
      assert.match((yield* run(["sessions", "export", id, "--format", "md"])).stdout, /1: one/)
      assert.strictEqual((yield* run(["sessions", "rm", id])).code, 0)
      assert.deepStrictEqual(
        (yield* listed()).map(({ sessionId }: { readonly sessionId: string }) => sessionId),
        [newest.sessionId]
      )
      yield* run(["sessions", "rm", newest.sessionId.slice(0, 8)])
      const none = yield* run(["sessions"])
      assert.deepStrictEqual([none.stdout, none.stderr], ["", "There are no sessions of this folder.\n"])
      for (const action of ["show", "export", "rm"])
        assert.strictEqual((yield* run(["sessions", action, id])).code, 2, action)
    })
  )

  it.effect("are named by the beginning of the id, and listed where several begin so", () =>
    Effect.gen(function* () {
      const { home, run } = yield* setUp
      const { sessionId } = resultOf(yield* run(["--output-format", "json", "one"]))
      const folder = join(home, "sessions", readdirSync(join(home, "sessions"))[0] ?? "")
      const file = readdirSync(folder)[0] ?? ""
      const other = `${sessionId.slice(0, 9)}${sessionId[9] === "0" ? "1" : "0"}${sessionId.slice(10)}`
      const copied = readFileSync(join(folder, file), "utf8").replaceAll(sessionId, other)
      writeFileSync(join(folder, file.replace(sessionId, other)), copied)
      const several = yield* run(["-r", sessionId.slice(0, 4), "two"])
      assert.strictEqual(several.code, 2)
      for (const id of [sessionId, other]) assert.include(several.stderr, `${id} (one)`)
      assert.include((yield* run(["sessions"])).stdout, `\n${sessionId.slice(0, 10)}  `.slice(1))
      assert.strictEqual((yield* run(["-r", sessionId.slice(0, 10), "two"])).stdout, "2: two\n")
      const bare = yield* run(["-r", "--no-color"])
      assert.deepStrictEqual([bare.code, /effect-agent sessions lists them/.test(bare.stderr)], [2, true])
    })
  )

  it.effect("with damage are continued and shown, and stderr names the damage", () =>
    Effect.gen(function* () {
      const { cwd, run } = yield* setUp
      const on = ["--session-dir", "kept"]
      const { sessionId } = resultOf(yield* run([...on, "--output-format", "json", "one"]))
      const file = join(cwd, "kept", readdirSync(join(cwd, "kept"))[0] ?? "")
      const whole = readFileSync(file, "utf8")
      appendFileSync(file, '{"v":1,"type":"mess')
      const line = whole.split("\n").length
      const said = new RegExp(
        `Session ${sessionId} is damaged: 1 line is left out\\. Line ${line}: no entry: `
      )
      const shown = yield* run(["sessions", "show", sessionId, ...on])
      assert.match(shown.stderr, said)
      assert.match(shown.stdout, /one[^]*1: one/)
      assert.match((yield* run(["sessions", "show", sessionId, "--json", ...on])).stderr, said)
      const next = yield* run([...on, "-c", "two"])
      assert.deepStrictEqual([next.code, next.stdout], [0, "2: two\n"])
      assert.match(next.stderr, said)
      assert.isTrue(readFileSync(file, "utf8").startsWith(`${whole}{"v":1,"type":"mess\n`))
    })
  )

  it.effect("that another process has open are refused with 1", () =>
    Effect.gen(function* () {
      const { cwd, home, run } = yield* setUp
      const first = resultOf(yield* run(["--output-format", "json", "one"]))
      const asked = yield* Deferred.make<void>()
      const url = yield* Program.server(() => void Deferred.doneUnsafe(asked, Effect.void))
      const env = { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${url}/v1`, EFFECT_AGENT_HOME: home }
      const running = Program.start(["-c", "hang"], { cwd, env })
      yield* Deferred.await(asked)
      const { code, stderr } = yield* run(["-c", "two"])
      assert.strictEqual(code, 1)
      assert.match(stderr, new RegExp(`Session ${first.sessionId}: another writer has it open`))
      running.child.kill("SIGKILL")
      yield* Effect.promise(() => running.ended)
      assert.strictEqual((yield* run(["-c", "three"])).stdout, "3: three\n")
    })
  )

  it.effect("that cannot be kept are no obstacle, unless they are wanted", () =>
    Effect.gen(function* () {
      const { run } = yield* setUp
      const env = { EFFECT_AGENT_HOME: "/dev/null/home" }
      const { code, stderr, stdout } = yield* run(["hi"], { env })
      assert.deepStrictEqual([code, stdout], [0, "1: hi\n"])
      assert.match(stderr, /The conversation is not kept/)
      const wanted = yield* run(["--name", "kept", "hi"], { env })
      assert.deepStrictEqual([wanted.code, wanted.stdout], [1, ""])
    })
  )

  it.effect("are compacted when the model refuses their length, and continue from the summary", () =>
    Effect.gen(function* () {
      const { cwd, home } = yield* setUp
      const bodies: Array<string> = []
      const url = yield* Program.server((_, body, response) => {
        bodies.push(body)
        const isSummary = !body.includes("You work from a terminal")
        if (isSummary || !body.includes("five") || body.includes("THE SUMMARY"))
          return Program.says(response, [isSummary ? "THE SUMMARY" : "ok ".repeat(400)])
        response.writeHead(400, { "content-type": "application/json" })
        response.end(
          JSON.stringify({
            error: { code: "context_length_exceeded", message: "too long", type: "invalid_request_error" }
          })
        )
      })
      const env = { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${url}/v1`, EFFECT_AGENT_HOME: home }
      yield* Program.run(["one"], { cwd, env })
      for (const word of ["two", "three", "four"]) yield* Program.run(["-c", word], { cwd, env })
      const { code, stdout } = yield* Program.run(["-c", "five"], { cwd, env })
      assert.deepStrictEqual([code, stdout.slice(0, 5)], [0, "ok ok"])
      yield* Program.run(["-c", "six"], { cwd, env })
      assert.include(bodies.at(-1), "THE SUMMARY")
    })
  )
})
