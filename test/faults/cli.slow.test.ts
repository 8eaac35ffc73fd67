import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Program from "../cli/program.ts"
import * as Terminal from "../cli/terminal.ts"
import { active, hostile, splits } from "./sequences.ts"

Program.bundled()

const openAi = (url: string) => ({
  EFFECT_AGENT_MODEL: "openai-chat/gpt-5.5",
  OPENAI_API_KEY: "sk-test",
  OPENAI_BASE_URL: `${url}/v1`
})

/** Lets it run to its end, or ends it. */
const ended = (
  running: Program.Running,
  meanwhile: (running: Program.Running) => Promise<unknown> = () => Promise.resolve()
) =>
  Effect.acquireUseRelease(
    Effect.succeed(running),
    () => Effect.promise(() => meanwhile(running).then(() => running.ended)),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

/** Nothing of a stack trace. */
const assertNoStack = (said: string) => assert.notMatch(said, /\n\s+at |node:internal|Error:/)

describe.concurrent("the program, cut off from", { timeout: 60_000 }, () => {
  it.effect.each([
    ["stdin", `"$0" "$@" <&-`, 0, /a\.txt/],
    ["stdout", `"$0" "$@" >&-`, 0, /^$/],
    ["stderr", `"$0" "$@" 2>&-`, 0, /a\.txt/],
    ["everything", `"$0" "$@" <&- >&- 2>&-`, 0, /^$/]
  ] as const)("F153: %s: ends as ever", ([, line, code, stdout]) =>
    Effect.gen(function* () {
      const cwd = Program.folder({ "a.txt": "a" })
      const result = yield* ended(Program.startIn(line, ["list"], { cwd }))
      assert.strictEqual(result.code, code)
      assert.match(result.stdout, stdout)
      assertNoStack(result.stderr)
    })
  )

  it.effect("F153: a reader who takes one line: ends in silence, and the run with it", () =>
    Effect.gen(function* () {
      const line = `{ "$0" "$@"; echo "code $?" >&2; } | head -n 1`
      const url = yield* Program.server((_, __, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        const more = `data: {"choices":[{"index":0,"delta":{"content":"more\\n"}}]}\n\n`
        const timer = setInterval(() => response.write(more), 5)
        response.on("close", () => clearInterval(timer))
      })
      for (const args of [["hi"], ["--json", "hi"]]) {
        const { stderr, stdout } = yield* ended(Program.startIn(line, args, { env: openAi(url) }))
        assert.strictEqual(stdout.split("\n").length, 2)
        assert.match(stderr, /^Model: .*\ncode 0\n$/)
      }
    })
  )

  it.effect("F153: stderr that nobody reads: still answers", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({ "a.txt": "a" })
      const running = Program.start(["list"], { cwd })
      running.child.stderr?.destroy()
      const { code, stdout } = yield* ended(running)
      assert.strictEqual(code, 0)
      assert.match(stdout, /a\.txt/)
    })
  )

  it.effect("F153: nobody to ask: refuses, and says how to allow it", () =>
    Effect.gen(function* () {
      const { code, stderr } = yield* Program.run(["run ls"])
      assert.strictEqual(code, 5)
      assert.match(stderr, /--allow 'shell\(ls\)'/)
      assertNoStack(stderr)
    })
  )

  it.effect("F153: 1 MB that is piped in reaches the model whole", () =>
    Effect.gen(function* () {
      const pasted = "pasted ünïcödé\n".repeat(65_000)
      assert.isAbove(pasted.length, 900_000)
      let prompt = ""
      const url = yield* Program.server((_, body, response) => {
        prompt = JSON.parse(body).messages.at(-1).content
        Program.says(response, ["read"])
      })
      const { code, stdout } = yield* Program.run(["-"], { env: openAi(url), stdin: pasted })
      assert.deepStrictEqual([code, stdout], [0, "read\n"])
      assert.strictEqual(prompt, pasted.trim())
    })
  )

  it.effect.each([1, 15, 30, 60])(
    "F153: two signals, %d ms apart: ends with the code of the signal",
    (millis) =>
      Effect.gen(function* () {
        const cwd = Program.folder({})
        const running = Program.start(["--yes", `run trap "" TERM INT; sleep 30`], { cwd })
        const twice = async ({ child, says }: Program.Running) => {
          await says(/→ shell/)
          child.kill("SIGINT")
          await new Promise((resolve) => setTimeout(resolve, millis))
          child.kill("SIGINT")
        }
        const { code, stderr } = yield* ended(running, twice)
        assert.strictEqual(code, 130)
        assertNoStack(stderr)
      })
  )

  it.effect("F152: nothing that a model, a tool, a file or a server says is obeyed by the terminal", () =>
    Effect.gen(function* () {
      const corpus = hostile.filter((sequence) => !sequence.includes("\u0000"))
      const cwd = Program.folder({})
      for (const [index, sequence] of corpus.entries()) {
        if (!sequence.includes("/")) writeFileSync(join(cwd, `${index}${sequence}`), sequence)
      }
      writeFileSync(join(cwd, "all.txt"), corpus.join("\n"))
      const asks = [
        { name: "list", params: {} },
        { name: "shell", params: { command: `cat all.txt; printf '\\033[2J'; exit 1` } },
        { name: "read", params: { path: corpus.join("") } },
        { name: corpus.slice(0, 40).join(""), params: {} }
      ]
      const url = yield* Program.server((_, body, response) => {
        const turn = JSON.parse(body).messages.filter(
          ({ role }: { role: string }) => role === "assistant"
        ).length
        const ask = asks[turn]
        if (ask !== undefined) return Program.calls(response, ask.name, ask.params)
        if (turn === asks.length)
          return Program.says(
            response,
            hostile.flatMap((sequence) => splits(sequence)[1] ?? [])
          )
        response.writeHead(400, { "content-type": "application/json" })
        response.end(JSON.stringify({ error: { message: corpus.join("") } }))
      })
      for (const flags of [[], ["--verbose"], ["--json"]]) {
        const { stderr, stdout } = yield* Program.run([...flags, "--yes", "hi"], { cwd, env: openAi(url) })
        assert.deepStrictEqual(active(stdout + stderr), [])
        assert.isAbove(stdout.length, 1_000)
      }
    })
  )
})

/** Runs on a terminal, and types once it is asked. */
const onTerminal = (args: ReadonlyArray<string>, typed: string, beside = ":") =>
  Terminal.run(args, ({ sees, type }) => sees(/Allow this\?/).then(() => type(typed)), { beside })

describe.skipIf(!Terminal.isThere).concurrent("the program on a terminal", { timeout: 60_000 }, () => {
  const echo = ["run echo hello"]

  it.effect.each([
    ["y", "y\n", 0],
    ["Ctrl-C", "\u0003", 130],
    ["Ctrl-D", "\u0004", 5],
    ["1 MB on one line", `${"x".repeat(1_000_000)}\n`, 5],
    ["1 MB of lines", "not a word of this is yes\n".repeat(40_000), 5]
  ] as const)(
    "F153: asked, and answered by %s: ends right and leaves the terminal as it was",
    ([, text, code]) =>
      Effect.gen(function* () {
        const result = yield* onTerminal(echo, text)
        assert.strictEqual(result.code, code)
        assert.strictEqual(/^ {2}hello\r?$/m.test(result.seen.split("Allow this?")[1] ?? ""), code === 0)
      })
  )

  it.effect("F153: resized while it asks and while it runs: goes on", () =>
    Effect.gen(function* () {
      const resize = "for size in 20 200 1 80; do sleep 0.1; stty rows $size columns $size; done"
      const { code, seen } = yield* onTerminal(["run sleep 0.5; echo hello"], "y\n", resize)
      assert.strictEqual(code, 0)
      assert.match(seen, /^ {2}hello\r?$/m)
    })
  )
})
