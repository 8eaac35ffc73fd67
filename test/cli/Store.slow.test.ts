import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { onEach } from "../sql/suites.ts"
import * as Program from "./program.ts"

Program.bundled()

/** A model that calls the shell once and then says what came of it, and else how many messages of the user it has read. */
const setUp = Effect.gen(function* () {
  const url = yield* Program.server((_, body, response) => {
    const messages = JSON.parse(body).messages
    const users = messages.filter(({ role }: { readonly role: string }) => role === "user")
    const { content, role } = messages.at(-1)
    if (role === "tool") Program.says(response, [`ran ${content}`])
    else if (content === "call") Program.calls(response, "shell", { command: "echo x" })
    else Program.says(response, [`${users.length}: ${content}`])
  })
  const cwd = Program.folder({})
  const home = Program.folder({})
  const env = {
    EFFECT_AGENT_MODEL: "openai-chat/gpt-4.1",
    OPENAI_API_KEY: "sk-test",
    OPENAI_BASE_URL: `${url}/v1`,
    EFFECT_AGENT_HOME: home
  }
  const run = (args: ReadonlyArray<string>, more: Readonly<Record<string, string>> = {}) =>
    Program.run(args, { cwd, env: { ...env, ...more } })
  return { cwd, home, run }
})

const parsed = ({ stdout }: Program.Ended) => JSON.parse(stdout)
const idsOf = (ended: Program.Ended): ReadonlyArray<string> =>
  parsed(ended).items.map(({ sessionId }: { readonly sessionId: string }) => sessionId)

onEach((name, make) => {
  describe(`sessions in ${name}`, { timeout: 60_000 }, () => {
    it.live("are continued, listed, shown, exported and removed", () =>
      Effect.gen(function* () {
        const { home, run } = yield* setUp
        const store = yield* make
        const on = { EFFECT_AGENT_STORE: store }
        const { sessionId } = parsed(yield* run(["--store", store, "--output-format", "json", "one"]))
        assert.strictEqual((yield* run(["-c", "two"], on)).stdout, "2: two\n")
        assert.strictEqual((yield* run(["-r", sessionId, "three"], on)).stdout, "3: three\n")
        assert.deepStrictEqual(idsOf(yield* run(["sessions", "--json", "--store", store])), [sessionId])
        assert.deepStrictEqual(idsOf(yield* run(["sessions", "list", "--json"], on)), [sessionId])
        const shown = parsed(yield* run(["sessions", "show", sessionId, "--json"], on))
        assert.strictEqual(shown.view.messages.length, 6)
        const exported = (yield* run(["sessions", "export", sessionId], on)).stdout.trimEnd().split("\n")
        assert.strictEqual(exported.length, shown.entries.length)
        assert.strictEqual((yield* run(["sessions", "rm", sessionId], on)).code, 0)
        assert.strictEqual((yield* run(["sessions", "show", sessionId], on)).code, 2)
        assert.deepStrictEqual(readdirSync(home), [])
      })
    )

    it.live("keep a call that waits for an approval", () =>
      Effect.gen(function* () {
        const { run } = yield* setUp
        const on = { EFFECT_AGENT_STORE: yield* make }
        const ended = yield* run(["--approve", "defer", "--output-format", "json", "call"], on)
        const { runId, sessionId } = parsed(ended)
        assert.strictEqual(ended.code, 4)
        assert.strictEqual((yield* run(["approve", runId, "--yes"])).code, 2)
        assert.strictEqual((yield* run(["approve", runId, "--yes"], on)).code, 0)
        assert.match((yield* run(["-r", sessionId], on)).stdout, /^ran [^]*x/)
      })
    )
  })
})

describe("the place of sessions", { timeout: 60_000 }, () => {
  it.effect("is a member of the configuration, and a project cannot set it", () =>
    Effect.gen(function* () {
      const { cwd, run } = yield* setUp
      const user = Program.folder({ "effect-agent/config.json": '{"store": "sqlite:kept/agent.db"}' })
      assert.strictEqual((yield* run(["hi"], { XDG_CONFIG_HOME: user })).stdout, "1: hi\n")
      assert.strictEqual(statSync(join(cwd, "kept/agent.db")).mode & 0o777, 0o600)
      const project = Program.folder({ ".effect-agent/config.json": '{"store": "jsonl:here"}' })
      const ignored = yield* run(["--cwd", project, "hi"])
      assert.match(ignored.stderr, /config\.json does not count for store until you trust it/)
      assert.deepStrictEqual(readdirSync(project), [".effect-agent"])
    })
  )

  it.effect("is a folder, as with --session-dir, and the flag wins over the variable of the other", () =>
    Effect.gen(function* () {
      const { cwd, run } = yield* setUp
      yield* run(["--store", "kept", "hi"], { EFFECT_AGENT_SESSION_DIR: "other" })
      yield* run(["--session-dir", "kept", "hi"], { EFFECT_AGENT_STORE: "sqlite:other.db" })
      assert.strictEqual(readdirSync(join(cwd, "kept")).length, 2)
      assert.deepStrictEqual(readdirSync(cwd), ["kept"])
      const both = yield* run(["--store", "kept", "--session-dir", "kept", "hi"])
      assert.strictEqual(both.code, 2)
      assert.match(both.stderr, /--store and --session-dir exclude one another/)
    })
  )

  it.effect("is wrong usage if it names no kind of store, and fails if it cannot be opened", () =>
    Effect.gen(function* () {
      const { cwd, run } = yield* setUp
      const unknown = yield* run(["hi"], { EFFECT_AGENT_STORE: "mysql://ada:secret@host/db" })
      assert.strictEqual(unknown.code, 2)
      assert.match(unknown.stderr, /EFFECT_AGENT_STORE: .* Expected: sqlite:FILE, postgres:\/\//)
      assert.notMatch(unknown.stderr, /secret/)
      const nowhere = { EFFECT_AGENT_STORE: "postgres://ada:secret@127.0.0.1:1/db" }
      for (const args of [["hi"], ["sessions"], ["approve", "run_x", "--yes"]]) {
        const { code, stderr } = yield* run(args, nowhere)
        assert.strictEqual(code, 1, args.join(" "))
        assert.match(stderr, /Sessions: the store failed at open: postgres:\/\/\S+: connect ECONNREFUSED/)
        assert.notMatch(stderr, /secret/)
      }
      assert.notMatch((yield* run(["config"], nowhere)).stdout, /secret/)
      const file = join(cwd, "no.db")
      writeFileSync(file, "no database")
      for (const args of [["hi"], ["serve", "--durable", "--port", "0"]]) {
        const { code, stderr } = yield* run(args, { EFFECT_AGENT_STORE: `sqlite:${file}` })
        assert.deepStrictEqual(
          [code, stderr.includes(`failed at open: ${file}: file is not a database`)],
          [1, true]
        )
      }
    })
  )
})
