import { assert, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Program from "./program.ts"

Program.bundled()

const keyed = (url: string) => ({ OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${url}/v1` })

describe.concurrent("flags", { timeout: 60_000 }, () => {
  it.effect("--fallback-model asks the next model when one fails", () =>
    Effect.gen(function* () {
      const seen: Array<readonly [model: string, effort: unknown]> = []
      const url = yield* Program.server((_, body, response) => {
        const { model, reasoning } = JSON.parse(body)
        seen.push([model, reasoning?.effort])
        if (model === "gpt-5.5") {
          response.writeHead(401, { "content-type": "application/json" })
          response.end(`{"error":{"message":"no","type":"invalid_request_error"}}`)
        } else Program.says(response, ["spare"])
      })
      const args = ["-m", "openai/gpt-5.5:high", "--fallback-model", "openai/gpt-5.4:low,openai/o3", "hi"]
      const { code, stderr, stdout } = yield* Program.run(args, { env: keyed(url) })
      assert.deepStrictEqual([code, stdout], [0, "spare\n"])
      assert.match(stderr, /Model: openai\/gpt-5\.5 \(--model; then openai\/gpt-5\.4, openai\/o3\)/)
      assert.deepStrictEqual(seen, [
        ["gpt-5.5", "high"],
        ["gpt-5.4", "low"]
      ])
      const keyless = yield* Program.run(["--fallback-model", "groq/x", "hi"], { env: keyed(url) })
      assert.strictEqual(keyless.code, 2)
      assert.match(keyless.stderr, /groq needs a key: set GROQ_API_KEY/)
    })
  )

  it.effect("--max-cost and --max-tokens-total end a run", () =>
    Effect.gen(function* () {
      const url = yield* Program.server((_, __, response) => Program.calls(response, "list", {}))
      const tokens = yield* Program.run(["--max-tokens-total", "3", "hi"], { env: keyed(url) })
      assert.strictEqual(tokens.code, 3)
      const cost = yield* Program.run(["--max-cost", "0.000001", "hi"], { env: keyed(url) })
      assert.strictEqual(cost.code, 3)
    })
  )

  it.effect("--max-cost names a model whose price is not known, once", () =>
    Effect.gen(function* () {
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
      const call = { index: 0, id: "call_1", type: "function", function: { name: "list", arguments: "{}" } }
      const url = yield* Program.server((_, body, response) => {
        const isFirst = !body.includes("call_1")
        const delta = isFirst ? { tool_calls: [call] } : { content: "Hi" }
        const choice = { index: 0, delta, finish_reason: isFirst ? "tool_calls" : "stop" }
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.end(
          `data: ${JSON.stringify({ model: "house", choices: [choice], usage })}\n\ndata: [DONE]\n\n`
        )
      })
      const args = ["-m", "openai-chat/house", "hi"]
      const bounded = yield* Program.run(["--max-cost", "1", ...args], { env: keyed(url) })
      assert.strictEqual(bounded.stdout, "Hi\n")
      assert.lengthOf(
        bounded.stderr.match(/--max-cost does not count the model: its price is not known/g) ?? [],
        1
      )
      const free = yield* Program.run(args, { env: keyed(url) })
      assert.notInclude(free.stderr, "--max-cost")
    })
  )

  it.effect("--approve defer without a session says that nothing keeps the run", () =>
    Effect.gen(function* () {
      const { code, stderr } = yield* Program.run(["--no-session", "--approve", "defer", "run true"])
      assert.strictEqual(code, 4)
      assert.match(stderr, /Suspended: the run waits for a person, and no session keeps it\./)
    })
  )

  it.effect("--append-system follows the system prompt", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const url = yield* Program.server((_, body, response) => {
        seen.push(JSON.stringify(JSON.parse(body)))
        Program.says(response, ["Hi"])
      })
      yield* Program.run(["--append-system", "Be brave.", "hi"], { env: keyed(url) })
      yield* Program.run(["hi"], {
        env: { ...keyed(url), EFFECT_AGENT_SYSTEM: "Be short.", EFFECT_AGENT_APPEND_SYSTEM: "Be kind." }
      })
      assert.match(seen[0] ?? "", /in plain text\.\\n\\nBe brave\./)
      assert.include(seen[1] ?? "", `Be short.\\n\\nBe kind.`)
    })
  )

  it.effect("--approve says what becomes of calls that need an approval", () =>
    Effect.gen(function* () {
      const run = (...args: ReadonlyArray<string>) =>
        Effect.map(Program.run([...args, "run true"]), ({ code }) => code)
      assert.deepStrictEqual(
        yield* Effect.all([
          run("--approve", "allow"),
          run("--approve", "deny"),
          run("--approve", "deny", "--yes"),
          run("--approve", "deny", "--allow", "shell(true)"),
          run("--approve", "allow", "--deny", "shell"),
          run("--allow", "shell", "--deny", "shell(true)")
        ]),
        [0, 5, 0, 0, 5, 5]
      )
    })
  )

  it.effect("reads AGENTS.md and skills of the project, unless they are not wanted", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({
        ".git/config": "",
        "AGENTS.md": "Use tabs.",
        "src/CLAUDE.md": "Use Effect.",
        ".agents/skills/pdf/SKILL.md": "---\nname: pdf\ndescription: Reads PDF files.\n---\nUse pdftotext."
      })
      const bodies: Array<string> = []
      const url = yield* Program.server((_, body, response) => {
        bodies.push(body)
        if (body.includes("function_call_output") || !body.includes("pdf please"))
          Program.says(response, ["Hi"])
        else Program.calls(response, "skill", { name: "pdf" })
      })
      const run = (...args: ReadonlyArray<string>) =>
        Program.run(["--cwd", "src", ...args], { cwd, env: keyed(url) })
      const { stderr } = yield* run("pdf please")
      assert.match(stderr, /Instructions: \.\.\/AGENTS\.md, CLAUDE\.md, the skill pdf\n/)
      assert.match(bodies[0] ?? "", /Use tabs\.[^]*Use Effect\.[^]*pdf: Reads PDF files\./)
      assert.include(bodies[1], "Use pdftotext.")
      yield* run("--no-context-files", "hi")
      assert.notInclude(bodies[2], "Use tabs.")
      assert.include(bodies[2], "Reads PDF files.")
      yield* run("--tools", "read", "--no-context-files", "hi")
      assert.notInclude(bodies[3], "Reads PDF files.")
    })
  )

  const png = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64"
  )

  it.effect("--file and @path send text, images and PDF, by their content", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({
        "a.ts": "one\n",
        "lib/there": "",
        "b c.txt": "two",
        "d.pdf": "%PDF-1.4 x",
        "e.zip": "PK\0"
      })
      writeFileSync(join(cwd, "picture.txt"), png)
      const seen: Array<ReadonlyArray<Record<string, unknown>>> = []
      const url = yield* Program.server((_, body, response) => {
        seen.push(JSON.parse(body).input.at(-1).content)
        Program.says(response, ["Hi"])
      })
      const prompt = 'compare @a.ts, (not \\@me or a@b) with @"b c.txt" and @a.ts'
      const args = ["-f", "picture.txt", "--file", "d.pdf", prompt]
      assert.strictEqual((yield* Program.run(args, { cwd, env: keyed(url) })).code, 0)
      const [text = {}, image = {}, pdf = {}, ...rest] = seen[0] ?? []
      assert.deepInclude(text, { text: prompt.replace("\\", "") })
      assert.deepInclude(image, { image_url: `data:image/png;base64,${png.toString("base64")}` })
      assert.deepInclude(pdf, { filename: "d.pdf" })
      assert.deepStrictEqual(
        rest.map((block) => "text" in block && block.text),
        ['<file path="a.ts">\none\n</file>', '<file path="b c.txt">\ntwo\n</file>']
      )
      const faults: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
        [["-f", "gone.txt", "x"], /gone\.txt: there is no such file/],
        [["look at @src/gone.ts."], /src\/gone\.ts: there is no such file/],
        [["look at @./gone"], /\.\/gone: there is no such file/],
        [["look at @/gone."], /\/gone: there is no such file/],
        [["look at @lib/gone"], /lib\/gone: there is no such file/],
        [['look at @"not here"'], /not here: there is no such file/],
        [["-f", "e.zip", "x"], /e\.zip: it is neither text nor an image nor a PDF/],
        [["look at @."], /\.: it is no file/]
      ]
      for (const [args, fault] of faults) {
        const { code, stderr } = yield* Program.run(args, { cwd, env: keyed(url) })
        assert.strictEqual(code, 2)
        assert.match(stderr, fault)
      }
      assert.strictEqual(seen.length, 1)
    })
  )

  it.effect("@word stays text if it is no path, such as the name of a package", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({ Makefile: "all:" })
      const seen: Array<unknown> = []
      const url = yield* Program.server((_, body, response) => {
        seen.push(JSON.parse(body).input.at(-1).content)
        Program.says(response, ["Hi"])
      })
      const prompt = "explain @effect/platform, @effect/sql@4.1.0 and @ada, not @ada. or @Makefile"
      const { code, stderr } = yield* Program.run([prompt], { cwd, env: keyed(url) })
      assert.strictEqual(code, 0)
      for (const word of ["effect/platform", "effect/sql@4.1.0", "ada"])
        assert.strictEqual(stderr.split(`@${word} names no file and stays text.\n`).length, 2, word)
      assert.notMatch(stderr, /Makefile/)
      const texts = JSON.stringify(seen)
      assert.include(texts, prompt)
      assert.include(texts, "all:")
    })
  )

  it.effect("@ before more characters than a path has stays text", () =>
    Effect.gen(function* () {
      const url = yield* Program.server((_, __, response) => Program.says(response, ["Hi"]))
      const input = `@${".".repeat(2 ** 18)}a`
      const { code, stderr } = yield* Program.run([], { env: keyed(url), stdin: input })
      assert.deepStrictEqual([code, stderr.includes("....")], [0, false])
    })
  )

  const schema = JSON.stringify({
    type: "object",
    properties: { grade: { type: "integer" } },
    required: ["grade"]
  })

  it.effect("--output-schema gives JSON that matches, or exit code 1", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({ "schema.json": schema })
      const url = yield* Program.server((_, body, response) =>
        Program.says(response, [body.includes("bad") ? "no grade" : '{"grade": 2}'])
      )
      const run = (...args: ReadonlyArray<string>) => Program.run(args, { cwd, env: keyed(url) })
      const good = yield* run("--output-schema", "schema.json", "-o", "out.json", "hi")
      assert.deepStrictEqual([good.code, good.stdout], [0, '{"grade":2}\n'])
      assert.strictEqual(readFileSync(join(cwd, "out.json"), "utf8"), '{"grade":2}\n')
      const object = yield* run("--output-schema", schema, "--output-format", "json", "hi")
      assert.deepInclude(JSON.parse(object.stdout), { exitCode: 0, output: { grade: 2 } })
      const bad = yield* run("--output-schema", schema, "--output-format", "json", "bad")
      assert.strictEqual(bad.code, 1)
      assert.deepInclude(JSON.parse(bad.stdout), { status: "failed", exitCode: 1 })
      for (const wrong of ["nowhere.json", "{", "[]"])
        assert.strictEqual((yield* run("--output-schema", wrong, "hi")).code, 2)
    })
  )

  it.effect("--output-format json writes one object, whatever the end", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({ a: "x" })
      const run = (...args: ReadonlyArray<string>) =>
        Effect.map(Program.run(["--output-format", "json", ...args], { cwd }), ({ code, stdout }) => {
          const result = JSON.parse(stdout)
          assert.deepStrictEqual([result.type, result.exitCode], ["result", code])
          return result
        })
      const done = yield* run("list")
      assert.deepInclude(done, { status: "completed", exitCode: 0, turns: 2 })
      assert.match(done.text, /list \.:/)
      assert.isString(done.runId)
      assert.isNumber(done.usage.total)
      const limit = yield* run("--max-turns", "1", "list")
      assert.deepInclude(limit, { status: "failed", exitCode: 3 })
      assert.deepInclude(limit.error, { _tag: "LimitExceeded", limit: "maxTurns" })
      assert.isString(limit.error.message)
      assert.deepInclude(yield* run("run true"), { status: "completed", exitCode: 5 })
    })
  )
})

describe.concurrent("--input-format stream-json", { timeout: 60_000 }, () => {
  const lines = (...lines: ReadonlyArray<object | string>) =>
    lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("")
  const args = ["--input-format", "stream-json"]
  /** A model that repeats the last message of the user. */
  const echo = (bodies: Array<string> = []) =>
    Program.server((_, body, response) => {
      bodies.push(body)
      Program.says(response, [JSON.parse(body).input.at(-1).content])
    })

  it.effect("answers prompts one after the other, in one conversation (row 267)", () =>
    Effect.gen(function* () {
      const bodies: Array<string> = []
      const env = keyed(yield* echo(bodies))
      const stdin = lines({ type: "prompt", text: "one" }, "", { type: "prompt", text: "two" })
      const { code, stdout } = yield* Program.run(args, { env, stdin })
      assert.deepStrictEqual([code, stdout], [0, "one\ntwo\n"])
      assert.strictEqual(JSON.parse(bodies[1] ?? "").input.length, 3)
      const first = yield* Program.run([...args, "zero"], { env, stdin })
      assert.strictEqual(first.stdout, "zero\none\ntwo\n")
    })
  )

  it.effect("delivers messages for a run that goes on, and begins one where none does", () =>
    Effect.gen(function* () {
      const env = keyed(yield* echo())
      const stdin = lines({ type: "prompt", text: "one" }, { type: "followUp", text: "two" })
      const { code, stdout } = yield* Program.run([...args, "--output-format", "stream-json"], { env, stdin })
      assert.strictEqual(code, 0)
      assert.strictEqual(stdout.match(/"_tag":"RunEnd"/g)?.length, 1)
      const alone = yield* Program.run(args, { env, stdin: lines({ type: "steer", text: "three" }) })
      assert.strictEqual(alone.stdout, "three\n")
    })
  )

  it.effect("cancels the run, and goes on with the next prompt", () =>
    Effect.gen(function* () {
      const url = yield* Program.server((_, body, response) => {
        if (!body.includes("next"))
          return void response.writeHead(200, { "content-type": "text/event-stream" })
        Program.says(response, ["done"])
      })
      const stdin = lines(
        { type: "prompt", text: "hang" },
        { type: "cancel", reason: "enough" },
        { type: "prompt", text: "next" }
      )
      const { code, stdout } = yield* Program.run([...args, "--json"], { env: keyed(url), stdin })
      assert.strictEqual(code, 0)
      assert.match(stdout, /"status":"cancelled"[^]*"status":"completed"/)
      const only = lines({ type: "prompt", text: "hang" }, { type: "cancel" })
      assert.strictEqual((yield* Program.run(args, { env: keyed(url), stdin: only })).code, 1)
    })
  )

  it.effect("approves calls by their hash, and rejects those without an answer", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const url = yield* Program.server((_, body, response) =>
        body.includes("function_call_output")
          ? Program.says(response, ["done"])
          : Program.calls(response, "write", { path: "new.txt", content: "hi" })
      )
      const options = { cwd, env: keyed(url), stdin: "open" }
      const start = () => Program.start([...args, "--json", "--approve", "ask", "go"], options)
      /** Sends the lines that an event leads to, and closes stdin. */
      const played = (lines: (event: Record<string, string>) => ReadonlyArray<object>) =>
        Effect.promise(async () => {
          const { child, ended } = start()
          let seen = ""
          for await (const text of child.stdout ?? []) {
            seen += text
            const line = seen.split("\n").find((line) => line.includes('"ApprovalRequested"'))
            if (line === undefined || child.stdin?.writableEnded !== false) continue
            child.stdin.end(
              lines(JSON.parse(line))
                .map((line) => `${JSON.stringify(line)}\n`)
                .join("")
            )
          }
          return { ...(await ended), seen }
        })
      const rejected = yield* played(() => [])
      assert.deepStrictEqual([rejected.code, existsSync(join(cwd, "new.txt"))], [0, false])
      assert.match(rejected.seen, /no answer came on stdin/)
      const wrong = yield* played(({ approvalId }) => [
        { type: "approve", approvalId, decision: "approve", argumentsHash: "0".repeat(64) }
      ])
      assert.deepStrictEqual([wrong.code, existsSync(join(cwd, "new.txt"))], [2, false])
      assert.match(wrong.stderr, /Line 1 of stdin: .*argumentsHash/)
      const { code } = yield* played(({ approvalId, argumentsHash }) => [
        {
          type: "approve",
          approvalId,
          decision: "approve",
          argumentsHash,
          params: { path: "new.txt", content: "edited" }
        }
      ])
      assert.strictEqual(code, 0)
      assert.strictEqual(readFileSync(join(cwd, "new.txt"), "utf8"), "edited")
    })
  )

  it.effect("continues a suspended run when its calls have answers, and keeps messages for it", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const url = yield* Program.server((_, body, response) =>
        body.includes("function_call_output")
          ? Program.says(response, [body.includes("and more") ? "done" : "alone"])
          : Program.calls(response, "write", { path: "new.txt", content: "hi" })
      )
      const env = { ...keyed(url), EFFECT_AGENT_HOME: Program.folder({}) }
      const run = (more: ReadonlyArray<string>, stdin: string) =>
        Program.run([...args, "--json", ...more], { cwd, env, stdin })
      const prompts = lines({ type: "prompt", text: "go" }, { type: "followUp", text: "and more" })
      const suspended = yield* run(["--approve", "defer"], prompts)
      const events = suspended.stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
      const named = (tag: string) => events.filter(({ _tag }) => _tag === tag)
      assert.deepStrictEqual([suspended.code, named("RunStart").length], [4, 1])
      const [{ approvalId, argumentsHash }] = named("ApprovalRequested")
      const { sessionId } = named("RunEnd")[0].resume
      const approve = { type: "approve", approvalId, decision: "approve", argumentsHash }
      const resumed = yield* run(["-r", sessionId], lines(approve))
      assert.strictEqual(resumed.code, 0)
      assert.match(resumed.stdout, /"resumes":[^]*"text":"done"[^]*"status":"completed"/)
      assert.strictEqual(readFileSync(join(cwd, "new.txt"), "utf8"), "hi")
    })
  )

  it.effect("continues what is open in a session where no prompt comes", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const url = yield* Program.server((_, body, response) =>
        body.includes("function_call_output")
          ? Program.says(response, ["done"])
          : Program.calls(response, "write", { path: "new.txt", content: "hi" })
      )
      const env = { ...keyed(url), EFFECT_AGENT_HOME: Program.folder({}) }
      yield* Program.run(["--approve", "defer", "go"], { cwd, env })
      const { code, stdout } = yield* Program.run([...args, "-c"], { cwd, env, stdin: "" })
      assert.deepStrictEqual([code, stdout, existsSync(join(cwd, "new.txt"))], [0, "done\n", false])
      const nothing = yield* Program.run([...args, "-c"], { cwd, env, stdin: "" })
      assert.strictEqual(nothing.code, 2)
      assert.match(nothing.stderr, /There is nothing to continue in this session/)
    })
  )

  it.effect("names each bad line, and ends with 2", () =>
    Effect.gen(function* () {
      const env = keyed(yield* echo())
      const stdin = lines("bad", { type: "prompt", text: "one" }, { type: "nothing" })
      const { code, stderr, stdout } = yield* Program.run(args, { env, stdin })
      assert.deepStrictEqual([code, stdout], [2, "one\n"])
      assert.deepStrictEqual(stderr.match(/Line \d of stdin/g), ["Line 1 of stdin", "Line 3 of stdin"])
      assert.strictEqual((yield* Program.run(args, { env, stdin: "" })).code, 2)
    })
  )

  it.effect("ends by a signal while it waits for a line", () =>
    Effect.gen(function* () {
      const env = keyed(yield* echo())
      const running = Program.start(args, { env, stdin: "open" })
      running.child.stdin?.write(lines({ type: "prompt", text: "one" }))
      const { code, stdout } = yield* Effect.promise(async () => {
        await new Promise((resolve) => running.child.stdout?.once("data", resolve))
        running.child.kill("SIGTERM")
        return running.ended
      })
      assert.deepStrictEqual([code, stdout], [143, "one\n"])
    })
  )
})

describe("the help", () => {
  it.effect("is this", () =>
    Effect.gen(function* () {
      for (const command of [
        [],
        ["acp"],
        ["mcp"],
        ["mcp", "login"],
        ["config"],
        ["models"],
        ["sessions"],
        ["approve"],
        ["serve"],
        ["worker"],
        ["runs"]
      ]) {
        const { code, stdout } = yield* Program.run([...command, "--help"])
        assert.strictEqual(code, 0)
        const file = ["help", ...command].join("-")
        yield* Effect.promise(() => expect(stdout).toMatchFileSnapshot(`help/${file}.txt`))
      }
    })
  )
})
