import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Program from "./program.ts"

Program.bundled()

type Call = readonly [name: string, params: object]

const append: Call = ["shell", { command: "echo x >> ran" }]

/** A model that calls tools, and then says what came of it, with a program that suspends runs. */
const setUp = Effect.fnUntraced(function* (...calls: ReadonlyArray<Call>) {
  const url = yield* Program.server((_, body, response) => {
    const results = JSON.parse(body).messages.filter(({ role }: { readonly role: string }) => role === "tool")
    if (results.length === 0) return Program.callsAll(response, calls)
    Program.says(response, [results.map(({ content }: { readonly content: string }) => content).join("|")])
  })
  const cwd = Program.folder({})
  const env = {
    EFFECT_AGENT_MODEL: "openai-chat/gpt-4.1",
    OPENAI_API_KEY: "sk-test",
    OPENAI_BASE_URL: `${url}/v1`,
    EFFECT_AGENT_HOME: Program.folder({})
  }
  const run = (...args: ReadonlyArray<string>) => Program.run(args, { cwd, env })
  const suspended = yield* run("--approve", "defer", "--output-format", "json", "go")
  const result = JSON.parse(suspended.stdout)
  const open = Effect.map(run("sessions", "show", result.sessionId, "--json"), ({ stdout }) =>
    JSON.parse(stdout).view.open?.approvals.map(({ request }: { readonly request: object }) => request)
  )
  const ran = () => (existsSync(join(cwd, "ran")) ? readFileSync(join(cwd, "ran"), "utf8") : "")
  return { open, ran, result, run, suspended }
})

describe.concurrent("an approval in another process", { timeout: 60_000 }, () => {
  it.effect("lets the call run once, when the run is resumed", () =>
    Effect.gen(function* () {
      const { open, ran, result, run, suspended } = yield* setUp(append, ["list", {}])
      const { runId, sessionId } = result
      assert.strictEqual(suspended.code, 4)
      assert.deepInclude(result, { status: "suspended", exitCode: 4 })
      assert.include(suspended.stderr, `session ${sessionId}, run ${runId}`)
      const [request] = yield* open
      assert.deepInclude(request, { toolName: "shell", params: append[1] })
      assert.match(request.argumentsHash, /^[0-9a-f]{64}$/)
      const approved = yield* run("approve", runId, "--yes", "--hash", request.argumentsHash)
      assert.deepStrictEqual([approved.code, approved.stdout, ran()], [0, "", ""])
      assert.match(approved.stderr, /shell echo x >> ran is approved/)
      const resumed = yield* run("-r", sessionId)
      assert.strictEqual(resumed.code, 0)
      assert.strictEqual(ran(), "x\n")
      assert.strictEqual((yield* run("-r", sessionId)).code, 2)
      assert.strictEqual((yield* run("approve", runId, "--yes")).code, 2)
      assert.strictEqual(ran(), "x\n")
    })
  )

  it.effect("is refused with another hash, and records nothing", () =>
    Effect.gen(function* () {
      const { ran, result, run } = yield* setUp(append)
      const refused = yield* run("approve", result.runId, "--yes", "--hash", "0".repeat(64))
      assert.strictEqual(refused.code, 1)
      assert.strictEqual((yield* run("-r", result.sessionId, "--approve", "defer")).code, 4)
      assert.strictEqual(ran(), "")
    })
  )

  it.effect("gives the first answer when it is answered again", () =>
    Effect.gen(function* () {
      const { open, ran, result, run } = yield* setUp(append)
      const [{ approvalId }] = yield* open
      assert.strictEqual((yield* run("approve", result.runId, "--no", "--reason", "not today")).code, 0)
      const again = yield* run("approve", result.runId, approvalId, "--yes")
      assert.strictEqual(again.code, 0)
      assert.match(again.stderr, /is already rejected/)
      assert.strictEqual((yield* run("approve", result.runId, "--yes")).code, 2)
      const resumed = yield* run("-r", result.sessionId)
      assert.match(resumed.stdout, /not today/)
      assert.strictEqual(ran(), "")
    })
  )

  it.effect("runs with the params that replace those of the call", () =>
    Effect.gen(function* () {
      const { ran, result, run } = yield* setUp(append)
      const params = JSON.stringify({ command: "echo y >> ran" })
      assert.strictEqual((yield* run("approve", result.runId, "--yes", "--params", params)).code, 0)
      assert.strictEqual((yield* run("-r", result.sessionId)).code, 0)
      assert.strictEqual(ran(), "y\n")
    })
  )

  it.effect("names its call, if several wait", () =>
    Effect.gen(function* () {
      const { open, ran, result, run } = yield* setUp(append, ["shell", { command: "echo z >> ran" }])
      const [first, second] = yield* open
      const several = yield* run("approve", result.runId, "--yes")
      assert.strictEqual(several.code, 2)
      assert.include(several.stderr, second.approvalId)
      assert.strictEqual((yield* run("approve", result.runId, second.approvalId, "--yes")).code, 0)
      assert.strictEqual((yield* run("approve", result.runId, first.approvalId, "--no")).code, 0)
      assert.strictEqual((yield* run("-r", result.sessionId)).code, 0)
      assert.strictEqual(ran(), "z\n")
    })
  )

  it.effect("is wrong usage without a run, a decision or JSON", () =>
    Effect.gen(function* () {
      const { result, run } = yield* setUp(append)
      for (const args of [
        ["run_unknown", "--yes"],
        [result.runId],
        [result.runId, "--yes", "--no"],
        [result.runId, "apr_unknown", "--yes"],
        [result.runId, "--yes", "--params", "{"],
        [result.runId, "--no", "--params", "{}"]
      ])
        assert.strictEqual((yield* run("approve", ...args)).code, 2, args.join(" "))
    })
  )
})
