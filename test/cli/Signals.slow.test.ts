import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import * as Program from "./program.ts"

Program.bundled()

/** Starts, waits until it is where the signal is to meet it, and measures how long it takes to end. */
const interrupted = (
  args: ReadonlyArray<string>,
  options: Program.Options,
  when: (running: Program.Running) => Promise<unknown>,
  signals: ReadonlyArray<NodeJS.Signals> = ["SIGINT"]
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => Program.start(args, options)),
    (running) =>
      Effect.promise(async () => {
        await when(running)
        const from = performance.now()
        for (const signal of signals) running.child.kill(signal)
        const ended = await running.ended
        return { ...ended, took: performance.now() - from }
      }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

/** Whether a process lives that has this text in its command line. */
const lives = (mark: string): boolean =>
  spawnSync("ps", ["-A", "-o", "args="], { encoding: "utf8" }).stdout.includes(mark)

/** A provider that begins an answer and never goes on. */
const hanging = Effect.gen(function* () {
  let answering = () => {}
  const asked = new Promise<void>((resolve) => {
    answering = resolve
  })
  const url = yield* Program.server((_, __, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write(`data: {"choices":[{"index":0,"delta":{"content":"so far"}}]}\n\n`)
    answering()
  })
  const env = {
    EFFECT_AGENT_MODEL: "openai-chat/gpt-5.5",
    OPENAI_API_KEY: "sk-test",
    OPENAI_BASE_URL: `${url}/v1`
  }
  return { env, asked: () => asked }
})

describe("an end from outside", { timeout: 90_000 }, () => {
  it.effect.each([
    ["SIGINT", 130],
    ["SIGTERM", 143]
  ] as const)("by %s while the model says nothing: within a second", ([signal, code]) =>
    Effect.gen(function* () {
      const { asked, env } = yield* hanging
      const ended = yield* interrupted(["--json", "hi"], { env }, asked, [signal])
      assert.strictEqual(ended.code, code)
      assert.isBelow(ended.took, 1000)
      const events = ended.stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line))
      assert.deepInclude(events.at(-1), { _tag: "RunEnd", status: "cancelled" })
      assert.isTrue(events.some(({ _tag }) => _tag === "RunCancelled"))
    })
  )

  it.effect.each(["auto", "off"])(
    "while a command runs that does not want to end: gone too, sandbox %s",
    (mode) =>
      Effect.gen(function* () {
        const cwd = Program.folder({})
        // No other process sleeps this long.
        const mark = `sleep 30.${process.pid}${mode.length}`
        const command = `trap "" TERM; echo began > began; ${mark}; ${mark}`
        const started = async () => {
          while (!existsSync(join(cwd, "began")) || !lives(mark)) {
            await new Promise((resolve) => setTimeout(resolve, 20))
          }
        }
        const ended = yield* interrupted(["--yes", "--sandbox", mode, `run ${command}`], { cwd }, started)
        assert.strictEqual(ended.code, 130)
        assert.isBelow(ended.took, 1100)
        assert.isFalse(lives(mark))
      })
  )

  it.effect("F153: by a second signal is at once, and does not wait for the end of the run (row 267)", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const running = ({ says }: Program.Running) => says(/→ shell/)
      // bubblewrap would end the command at once.
      const args = ["--yes", "--sandbox", "off", `run trap "" TERM; sleep 30`]
      // The system may join two equal signals that wait for the program, and deliver others in any order.
      const twice = yield* interrupted(args, { cwd }, running, ["SIGINT", "SIGTERM"])
      assert.include([130, 143], twice.code)
      const once = yield* interrupted(args, { cwd }, running)
      assert.strictEqual(once.code, 130)
      // The command has to be killed first, which takes 0.4 seconds.
      assert.match(once.stderr, /✗ shell/)
      assert.notMatch(twice.stderr, /✗ shell/)
    })
  )

  it.effect("before the run, while stdin is silent", () =>
    Effect.gen(function* () {
      const waiting = () => new Promise((resolve) => setTimeout(resolve, 1_500))
      const ended = yield* interrupted(["-"], { stdin: "open" }, waiting)
      assert.strictEqual(ended.code, 130)
      assert.isBelow(ended.took, 1000)
    })
  )

  it.effect("F153: by a reader who has left is quiet", () =>
    Effect.gen(function* () {
      const url = yield* Program.server((_, __, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        const timer = setInterval(
          () => response.write(`data: {"choices":[{"index":0,"delta":{"content":"more\\n"}}]}\n\n`),
          20
        )
        response.on("close", () => clearInterval(timer))
      })
      const env = {
        EFFECT_AGENT_MODEL: "openai-chat/gpt-5.5",
        OPENAI_API_KEY: "sk-test",
        OPENAI_BASE_URL: `${url}/v1`
      }
      const left = async ({ child }: Program.Running) => {
        await new Promise((resolve) => child.stdout?.once("data", resolve))
        child.stdout?.destroy()
      }
      const ended = yield* interrupted(["hi"], { env }, left, [])
      assert.strictEqual(ended.code, 0)
      assert.isBelow(ended.took, 1100)
      assert.match(ended.stderr, /^Model: .*\n$/)
    })
  )
})
