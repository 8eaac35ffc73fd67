import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { send } from "../server/http.ts"
import * as Program from "./program.ts"
import * as Terminal from "./terminal.ts"

Program.bundled()

const secret = "a-token-of-the-test"
const env = { EFFECT_AGENT_TOKEN: secret, NO_COLOR: "1" }

/** Serves an agent until the test ends. Gives the flag that names the server, its port and the folder of its tools. */
const served = (flags: ReadonlyArray<string> = [], model: Readonly<Record<string, string>> = {}) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const cwd = Program.folder({})
        const place = ["--port", "0", "--json", "--session-dir", Program.folder({}), "--sandbox", "off"]
        const named = Object.keys(model).length > 0 ? [] : ["-m", "local/rules"]
        const { child, ended } = Program.start(["serve", ...place, ...named, ...flags], {
          cwd,
          env: { ...env, ...model }
        })
        const [line] = await Promise.race([
          once(child.stdout ?? child, "data"),
          ended.then(({ stderr }) => Promise.reject(new Error(stderr)))
        ])
        return { child, cwd, url: String(JSON.parse(line).url) }
      }),
      ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
    ),
    ({ cwd, url }) => ({ cwd, at: ["--url", url], port: Number(new URL(url).port) })
  )

/** A model that calls tools, one after the other, and then says "done". */
const calling = (calls: ReadonlyArray<readonly [name: string, params: object]>) =>
  Effect.map(
    Program.server((_, body, response) => {
      const turn = JSON.parse(body).messages.filter(({ role }: { role: string }) => role === "assistant")
      const call = calls[turn.length]
      if (call === undefined) Program.says(response, ["done"])
      else Program.calls(response, call[0], call[1])
    }),
    (url) => ({
      EFFECT_AGENT_MODEL: "openai-chat/gpt-4.1",
      OPENAI_API_KEY: "sk-test",
      OPENAI_BASE_URL: `${url}/v1`
    })
  )

/** The runs of a server, the newest first. */
const runsOf = (port: number) =>
  Effect.map(
    send(port, { path: "/runs", headers: { authorization: `Bearer ${secret}` } }),
    ({ json }): ReadonlyArray<{ readonly status: string; readonly usage: object }> => json.items
  )

describe.concurrent("a prompt at --url", { timeout: 90_000 }, () => {
  it.effect("runs there, with the output, the exit codes and the sessions of a prompt here", () =>
    Effect.gen(function* () {
      const { at, cwd, port } = yield* served()
      const run = (...args: ReadonlyArray<string>) => Program.run([...at, ...args], { env })
      const answered = yield* run("--name", "Trip", "list .")
      assert.deepStrictEqual([answered.code, answered.stdout], [0, "list .:\n  (The folder is empty.)\n"])
      assert.match(answered.stderr, /^Server: http:.*, session (\w+)\n→ list \.\n← list: .*\nsession \w+\n$/)
      const refused = yield* run("run touch made")
      assert.strictEqual(refused.code, 5)
      assert.match(
        refused.stderr,
        /rejected: it needs approval[^]*To let it run give --allow 'shell\(touch made\)'/
      )
      assert.isFalse(existsSync(join(cwd, "made")))
      const allowed = yield* run("--allow", "shell(touch made)", "run touch made")
      assert.deepStrictEqual([allowed.code, existsSync(join(cwd, "made"))], [0, true])
      assert.strictEqual((yield* run("--yes", "--max-turns", "1", "run true")).code, 3)
      const again = yield* run("-c", "--output-format", "json", "list .")
      assert.deepInclude(JSON.parse(again.stdout), { type: "result", status: "completed", exitCode: 0 })
      assert.strictEqual((yield* runsOf(port)).length, 5)
      const wrong = yield* run("--output-schema", "{}", "hi")
      assert.deepStrictEqual([wrong.code, wrong.stdout], [2, ""])
      assert.match(wrong.stderr, /--output-schema does not go with --url/)
      const none = yield* run("-r", "none", "hi")
      assert.deepStrictEqual([none.code, none.stderr], [2, 'effect-agent: There is no session "none".\n'])
      const other = yield* Program.run([...at, "hi"], { env: { ...env, EFFECT_AGENT_TOKEN: "x".repeat(20) } })
      assert.deepStrictEqual(
        [other.code, other.stderr],
        [1, "effect-agent: The request needs a valid token\n"]
      )
      const away = yield* Program.run(["--url", "http://127.0.0.1:1", "hi"], { env })
      assert.strictEqual(away.code, 1)
      assert.match(away.stderr, /^effect-agent: The server does not answer: /)
    })
  )

  it.effect("ends with 1 where the run fails there, and says why", () =>
    Effect.gen(function* () {
      const url = yield* Program.server((_request, _body, response) => {
        response.writeHead(401, { "content-type": "application/json" })
        response.end(JSON.stringify({ error: { message: "wrong key" } }))
      })
      const model = { EFFECT_AGENT_MODEL: "openai-chat/gpt-4.1", OPENAI_API_KEY: "sk-test" }
      const { at } = yield* served([], { ...model, OPENAI_BASE_URL: `${url}/v1` })
      const { code, stderr } = yield* Program.run([...at, "hi"], { env })
      assert.strictEqual(code, 1)
      assert.match(stderr, /Unauthenticated: wrong key/)
    })
  )

  it.effect("is cancelled there by SIGINT", () =>
    Effect.gen(function* () {
      const { at, port } = yield* served(["--yes"])
      const { child, ended, says } = Program.start([...at, "run sleep 30"], { env })
      yield* Effect.promise(() => says(/→ shell sleep 30/))
      child.kill("SIGINT")
      const { code } = yield* Effect.promise(() => ended)
      assert.strictEqual(code, 130)
      const [run] = yield* runsOf(port)
      assert.strictEqual(run?.status, "cancelled")
    })
  )

  it.effect("writes its events as lines, and takes lines with prompts and answers", () =>
    Effect.gen(function* () {
      const { at, cwd } = yield* served()
      const flags = ["--input-format", "stream-json", "--json", "--approve", "ask"]
      const { child, ended } = Program.start([...at, ...flags, "run touch made"], { env, stdin: "open" })
      const seen = yield* Effect.promise(async () => {
        let seen = ""
        let isAnswered = false
        for await (const text of child.stdout ?? []) {
          seen += text
          const line = seen.split("\n").find((line) => line.includes('"ApprovalRequested"'))
          if (line === undefined || isAnswered) continue
          isAnswered = true
          const { approvalId, argumentsHash } = JSON.parse(line)
          const lines = [
            { type: "approve", approvalId, decision: "approve", argumentsHash },
            { type: "prompt", text: "list ." }
          ]
          child.stdin?.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
        }
        return seen
      })
      assert.strictEqual((yield* Effect.promise(() => ended)).code, 0)
      const events = seen.trim().split("\n")
      assert.isTrue(events.every((line) => JSON.parse(line)._tag !== undefined))
      assert.lengthOf(
        events.filter((line) => JSON.parse(line)._tag === "RunEnd"),
        2
      )
      assert.isTrue(existsSync(join(cwd, "made")))
    })
  )

  it.effect("is left with 4 where an approval is deferred, and continues with the answer", () =>
    Effect.gen(function* () {
      const { at, cwd, port } = yield* served()
      const left = yield* Program.run([...at, "--approve", "defer", "run touch made"], { env })
      assert.strictEqual(left.code, 4)
      const [, id = ""] = /--resume (\S+)\n/.exec(left.stderr) ?? []
      assert.strictEqual((yield* runsOf(port))[0]?.status, "running")
      const { code } = yield* Program.run([...at, "--yes", "--resume", id.slice(0, 12)], { env })
      assert.deepStrictEqual([code, existsSync(join(cwd, "made"))], [0, true])
      const nothing = yield* Program.run([...at, "--resume", id], { env })
      assert.strictEqual(nothing.code, 2)
      assert.match(nothing.stderr, /There is nothing to continue in this session/)
    })
  )

  it.skipIf(!Terminal.isThere)(
    "asks the person at the terminal about calls and questions of the server",
    () =>
      Effect.gen(function* () {
        const model = yield* calling([
          ["shell", { command: "touch first" }],
          ["ask_user", { question: "Which colour?" }],
          ["shell", { command: "touch second" }]
        ])
        const { at, cwd } = yield* served([], model)
        const { code, seen } = yield* Terminal.run(
          [...at, "go"],
          async ({ sees, type }) => {
            await sees(/touch first\r?\nAllow this\?/)
            type("y\r")
            await sees(/The model asks\r?\n {2}Which colour\?\r?\nAnswer: /)
            type("dark red\r")
            await sees(/touch second\r?\nAllow this\?/)
            type("n\r")
          },
          { env }
        )
        assert.strictEqual(code, 0)
        assert.match(seen, /rejected: the user answered no/)
        assert.deepStrictEqual(
          ["first", "second"].map((name) => existsSync(join(cwd, name))),
          [true, false]
        )
      }).pipe(Effect.scoped, Effect.runPromise)
  )
})
