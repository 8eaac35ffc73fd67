import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import * as Program from "./program.ts"

Program.bundled()

type Call = readonly [name: string, params: object]

const append: Call = ["shell", { command: "echo x >> ran" }]

/** A model that calls tools, and then says what came of it, with a program that suspends runs. */
const setUp = Effect.fnUntraced(function* (...calls: ReadonlyArray<Call>) {
  const models: Array<string> = []
  const url = yield* Program.server((_, body, response) => {
    models.push(JSON.parse(body).model)
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
  return { cwd, env, models, open, ran, result, run, suspended }
})

const asks = (question: string, schema?: object): Call => [
  "ask_user",
  { question, ...(schema === undefined ? {} : { schema }) }
]

/** The ids of the questions that wait for an answer. */
const questionsOf = ({ stdout }: Program.Ended): ReadonlyArray<string> =>
  JSON.parse(stdout).view.open.questions.map(
    ({ request }: { readonly request: { readonly questionId: string } }) => request.questionId
  )

describe.concurrent("an answer in another process", { timeout: 60_000 }, () => {
  it.effect("is the result of the question, when the run is resumed", () =>
    Effect.gen(function* () {
      const { result, run, suspended } = yield* setUp(asks("Which colour?"))
      const { runId, sessionId } = result
      assert.strictEqual(suspended.code, 4)
      assert.include(suspended.stderr, `The model asks: "Which colour?"`)
      assert.include(suspended.stderr, `\n  effect-agent approve ${runId} --answer TEXT\n`)
      const wrong = yield* run("approve", runId, "--yes")
      assert.strictEqual(wrong.code, 2)
      assert.match(wrong.stderr, /A question waits: give --answer\./)
      const answered = yield* run("approve", runId, "--answer", "dark red")
      assert.deepStrictEqual([answered.code, answered.stdout], [0, ""])
      assert.match(
        answered.stderr,
        /The question "Which colour\?" is answered\. Continue the run:\n  effect-agent --resume/
      )
      assert.strictEqual((yield* run("-r", sessionId)).stdout, "dark red\n")
      assert.strictEqual((yield* run("approve", runId, "--answer", "blue")).code, 2)
    })
  )

  it.effect("matches the schema of the question, and the first one counts", () =>
    Effect.gen(function* () {
      const { result, run } = yield* setUp(asks("How many?", { type: "integer" }))
      const answer = (text: string) => run("approve", result.runId, "--answer", text)
      const refused = yield* answer("a few")
      assert.strictEqual(refused.code, 2)
      assert.match(refused.stderr, /--answer does not match the schema of the question: /)
      assert.strictEqual((yield* answer("3")).code, 0)
      const again = yield* answer("3")
      assert.strictEqual(again.code, 2)
      const [id = ""] = questionsOf(yield* run("sessions", "show", result.sessionId, "--json"))
      const same = yield* run("approve", result.runId, id, "--answer", "3")
      assert.deepStrictEqual([same.code, /already answered/.test(same.stderr)], [0, true])
      const other = yield* run("approve", result.runId, id, "--answer", "4")
      assert.deepStrictEqual(
        [other.code, /has another answer: nothing is recorded/.test(other.stderr)],
        [1, true]
      )
      assert.strictEqual((yield* run("-r", result.sessionId)).stdout, "3\n")
    })
  )

  it.effect("names its question, if several wait, and stands beside approvals", () =>
    Effect.gen(function* () {
      const { ran, result, run } = yield* setUp(asks("One?"), append, asks("Two?", { enum: ["yes", "no"] }))
      const answer = (...args: ReadonlyArray<string>) => run("approve", result.runId, ...args)
      const several = yield* answer("--answer", "1")
      assert.strictEqual(several.code, 2)
      assert.match(
        several.stderr,
        /Several questions wait: name one of qst_\S+ \(One\?\), qst_\S+ \(Two\?\)\./
      )
      const [one = "", two = ""] = questionsOf(yield* run("sessions", "show", result.sessionId, "--json"))
      assert.strictEqual((yield* answer(two, "--answer", "no")).code, 0)
      assert.strictEqual((yield* answer(one, "--answer", '"1"')).code, 0)
      assert.strictEqual((yield* answer("--yes")).code, 0)
      const resumed = yield* run("-r", result.sessionId)
      assert.match(resumed.stdout, /^1\|[^]*\|no\n$/)
      assert.strictEqual(ran(), "x\n")
    })
  )

  it.effect("is wrong usage with the flags of an approval", () =>
    Effect.gen(function* () {
      const { result, run } = yield* setUp(asks("Which?"))
      for (const args of [["--yes"], ["--params", "{}"], ["--reason", "x"], ["--hash", "0"]])
        assert.strictEqual(
          (yield* run("approve", result.runId, "--answer", "a", ...args)).code,
          2,
          args.join(" ")
        )
    })
  )
})

/** The words of the commands that the program has written to go on with a run. */
const commandsIn = ({ stderr }: Program.Ended) =>
  Array.from(stderr.matchAll(/^ {2}effect-agent (.*)$/gm), ([, words = ""]) => words.split(" "))

describe.concurrent("a session", { timeout: 60_000 }, () => {
  it.effect("continues in its folder and with its model, wherever the process is", () =>
    Effect.gen(function* () {
      const { cwd, env, models, ran, result, run } = yield* setUp(append)
      yield* run("approve", result.runId, "--yes")
      const elsewhere = Program.folder({})
      const resumed = yield* Program.run(["-r", result.sessionId.slice(0, 8)], {
        cwd: elsewhere,
        env: { ...env, EFFECT_AGENT_MODEL: "openai-chat/other" }
      })
      assert.deepStrictEqual([resumed.code, ran(), readdirSync(elsewhere)], [0, "x\n", []], resumed.stderr)
      assert.deepStrictEqual(models, ["gpt-4.1", "gpt-4.1"])
      assert.include(resumed.stderr, `Folder: ${cwd} (the session)`)
      const flags = ["-m", "openai-chat/flag", "--cwd", elsewhere]
      const named = yield* Program.run(["-r", result.sessionId, ...flags, "again"], { cwd, env })
      assert.deepStrictEqual([named.code, models.at(-1)], [0, "flag"])
      rmSync(cwd, { recursive: true })
      const gone = yield* Program.run(["-r", result.sessionId, "again"], { cwd: elsewhere, env })
      assert.strictEqual(gone.code, 2)
      assert.include(gone.stderr, `The folder of the session, ${cwd}, does not exist`)
    })
  )

  it.effect("continues by the commands that were printed, with the flags that they need", () =>
    Effect.gen(function* () {
      const { cwd, env, models } = yield* setUp(append)
      mkdirSync(join(cwd, "it's"))
      const { OPENAI_BASE_URL, ...others } = env
      const flags = ["--base-url", OPENAI_BASE_URL, "--store", "sqlite:s.db", "-m", "openai-chat/x"]
      const act = (args: ReadonlyArray<string>) => Program.run(args, { cwd, env: others })
      const suspended = yield* act([...flags, "--cwd", "it's", "--approve", "defer", "go"])
      const [approve = [], resume = []] = commandsIn(suspended)
      const approved = yield* act(approve)
      assert.deepStrictEqual(
        [approved.code, commandsIn(approved)],
        [0, [resume.slice(0, 4)]],
        approved.stderr
      )
      const resumed = yield* act(resume)
      assert.strictEqual(resumed.code, 0, resumed.stderr)
      assert.strictEqual(readFileSync(join(cwd, "it's", "ran"), "utf8"), "x\n")
      assert.strictEqual(models.at(-1), "x")
    })
  )

  it.effect("says which approved call a new prompt has made void", () =>
    Effect.gen(function* () {
      const { ran, result, run } = yield* setUp(append)
      yield* run("approve", result.runId, "--yes")
      const { code, stderr } = yield* run("-r", result.sessionId, "never mind")
      assert.deepStrictEqual([code, ran()], [0, ""])
      assert.match(stderr, /The approved call shell echo x >> ran was not run: a new prompt came first\./)
    })
  )

  it.effect("has an approval that another run has taken over, under the run that asked first", () =>
    Effect.gen(function* () {
      const { open, ran, result, run } = yield* setUp(append, ["shell", { command: "echo z >> ran" }])
      const [first, second] = yield* open
      yield* run("approve", result.runId, first.approvalId, "--no")
      const moved = yield* run("-r", result.sessionId, "--approve", "defer", "--output-format", "json")
      assert.strictEqual(moved.code, 4)
      const unnamed = yield* run("approve", result.runId, "--yes")
      assert.strictEqual(unnamed.code, 2)
      assert.include(unnamed.stderr, `Run ${JSON.parse(moved.stdout).runId} continues it`)
      assert.strictEqual((yield* run("approve", result.runId, second.approvalId, "--yes")).code, 0)
      assert.strictEqual((yield* run("-r", result.sessionId)).code, 0)
      assert.strictEqual(ran(), "z\n")
    })
  )
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
      const approved = yield* run(
        "approve",
        runId.slice(4).replace(/[^_]+$/, ""),
        "--yes",
        "--hash",
        request.argumentsHash
      )
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
