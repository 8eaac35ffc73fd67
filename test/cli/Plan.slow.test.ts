import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Program from "./program.ts"
import * as Terminal from "./terminal.ts"

Program.bundled()

const plan = "# The plan\n\n- write `a.txt`"

interface Turn {
  readonly said?: string
  readonly call?: readonly [name: string, params: object]
}

const propose: Turn = { said: "I have looked.", call: ["propose_plan", { plan }] }
const write: Turn = { call: ["write", { path: "a.txt", content: "text" }] }

interface Body {
  readonly messages: ReadonlyArray<{ readonly role: string; readonly content?: unknown }>
  readonly tools?: ReadonlyArray<{ readonly function: { readonly name: string } }>
}

/** A model that takes these turns, and says "done" behind them. */
const model = (turns: ReadonlyArray<Turn>, bodies: Array<Body> = []) =>
  Effect.map(
    Program.server((_, text, response) => {
      const body: Body = JSON.parse(text)
      bodies.push(body)
      const { call, said = "" } = turns[bodies.length - 1] ?? { said: "done" }
      if (call === undefined) Program.says(response, [said])
      else Program.calls(response, call[0], call[1], said)
    }),
    (url) => ({
      EFFECT_AGENT_MODEL: "openai-chat/gpt-4.1",
      OPENAI_API_KEY: "sk-test",
      OPENAI_BASE_URL: `${url}/v1`,
      NO_COLOR: "1"
    })
  )

const toolsOf = (body: Body | undefined) => (body?.tools ?? []).map((tool) => tool.function.name)

describe.concurrent("--plan", { timeout: 60_000 }, () => {
  it.effect("ends with the plan on stdout where no person decides", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const bodies: Array<Body> = []
      const env = yield* model([write, propose], bodies)
      const { code, stderr, stdout } = yield* Program.run(["--plan", "-o", "plan.md", "go"], { cwd, env })
      assert.deepStrictEqual([code, stdout], [0, `${plan}\n`])
      assert.strictEqual(readFileSync(join(cwd, "plan.md"), "utf8"), `${plan}\n`)
      assert.isFalse(existsSync(join(cwd, "a.txt")))
      assert.strictEqual(bodies.length, 2)
      assert.include(toolsOf(bodies[0]), "propose_plan")
      assert.notIncludeMembers(toolsOf(bodies[0]), ["write"])
      assert.match(
        stderr,
        /1 call was refused\. Plan mode: nothing may be changed before the plan is approved\./
      )
      assert.match(
        JSON.stringify(bodies[1]),
        /Plan mode: nothing may be changed before the plan is approved\./
      )
    })
  )

  it.effect("gives the plan as the text of the result", () =>
    Effect.gen(function* () {
      const env = yield* model([propose])
      const { code, stdout } = yield* Program.run(["--plan", "--output-format", "json", "go"], { env })
      const { exitCode, text } = JSON.parse(stdout)
      assert.deepStrictEqual([code, exitCode, text], [0, 0, plan])
    })
  )

  it.effect("takes an answer without a plan as it is", () =>
    Effect.gen(function* () {
      const env = yield* model([])
      const { code, stdout } = yield* Program.run(["--plan", "go"], { env })
      assert.deepStrictEqual([code, stdout], [0, "done\n"])
    })
  )

  it.effect("continues without plan mode where the flag is not given again", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const bodies: Array<Body> = []
      const env = yield* model([propose, write], bodies)
      yield* Program.run(["--plan", "go"], { cwd, env })
      const { code } = yield* Program.run(["-c", "--allow", "write", "carry it out"], { cwd, env })
      assert.strictEqual(code, 0)
      assert.isTrue(existsSync(join(cwd, "a.txt")))
      assert.match(JSON.stringify(bodies[1]), /The user has the plan/)
      assert.notInclude(toolsOf(bodies[1]), "propose_plan")
    })
  )

  it.effect("waits for a decision with --approve defer, which approve gives", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const env = yield* model([propose, write])
      const first = yield* Program.run(["--plan", "--approve", "defer", "go"], { cwd, env })
      assert.strictEqual(first.code, 4)
      const [, run = ""] = /effect-agent approve (\S+)/.exec(first.stderr) ?? []
      const [, resume = ""] = /effect-agent (--resume .*)/.exec(first.stderr) ?? []
      assert.match(resume, / --plan\b/)
      const words = ["approve", run, "--answer", "go, and allow edits"]
      assert.strictEqual((yield* Program.run(words, { cwd, env })).code, 0)
      assert.strictEqual((yield* Program.run(resume.split(" "), { cwd, env })).code, 0)
      assert.isTrue(existsSync(join(cwd, "a.txt")))
    })
  )

  it.effect("does not go with --output-schema, nor with --url", () =>
    Effect.gen(function* () {
      const env = yield* model([])
      const typed = yield* Program.run(["--plan", "--output-schema", "{}", "go"], { env })
      const remote = yield* Program.run(["--plan", "--url", "http://127.0.0.1:9", "go"], { env })
      assert.deepStrictEqual([typed.code, remote.code], [2, 2])
      assert.match(typed.stderr, /--plan and --output-schema exclude one another/)
      assert.match(remote.stderr, /--plan does not go with --url/)
    })
  )
})

describe.concurrent("the tool tasks", { timeout: 60_000 }, () => {
  it.effect.each([
    [["go"], true],
    [["--no-task-list", "go"], false]
  ] as const)("is there with %j: %s", ([args, isThere]) =>
    Effect.gen(function* () {
      const bodies: Array<Body> = []
      const env = yield* model([], bodies)
      yield* Program.run(args, { env })
      assert.strictEqual(toolsOf(bodies[0]).includes("tasks"), isThere)
    })
  )

  it.effect("is away with the member taskList", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({ ".effect-agent/config.json": '{ "taskList": false }' })
      const bodies: Array<Body> = []
      const env = yield* model([], bodies)
      const { stderr } = yield* Program.run(["go"], { cwd, env })
      assert.notInclude(toolsOf(bodies[0]), "tasks")
      assert.notMatch(stderr, /does not count/)
    })
  )

  it.effect("is called without an approval, where no person decides", () =>
    Effect.gen(function* () {
      const bodies: Array<Body> = []
      const tasks = [
        { text: "look", status: "done" },
        { text: "mend", status: "active" }
      ]
      const env = yield* model([{ call: ["tasks", { tasks }] }], bodies)
      const { code } = yield* Program.run(["go"], { env })
      assert.strictEqual(code, 0)
      assert.match(JSON.stringify(bodies[1]), /1 of 2 done/)
    })
  )
})

describe.skipIf(!Terminal.isThere).concurrent("a plan on a terminal", { timeout: 90_000 }, () => {
  it.effect("is changed by words, and then carried out", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const bodies: Array<Body> = []
      const env = yield* model([propose, propose, write], bodies)
      const { code, seen } = yield* Terminal.run(
        ["--plan", "go"],
        async ({ sees, type }) => {
          await sees(/The plan[^]*3 change it · 4 not now: $/)
          type("3\r")
          await sees(/What to change: $/)
          type("no new files\r")
          await sees(/change: no new files[^]*4 not now: $/)
          type("2\r")
        },
        { cwd, env }
      )
      assert.strictEqual(code, 0)
      assert.match(seen, /# The plan/)
      assert.match(JSON.stringify(bodies[1]), /Change this: no new files/)
      assert.notMatch(seen, /Allow this/)
      assert.isTrue(existsSync(join(cwd, "a.txt")))
    })
  )

  it.effect("asks before changes where the person wants that", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const env = yield* model([propose, write])
      const { code } = yield* Terminal.run(
        ["--plan", "--yes", "go"],
        async ({ sees, type }) => {
          await sees(/4 not now: $/)
          type("1\r")
          await sees(/Allow this\?/)
          type("y\r")
        },
        { cwd, env }
      )
      assert.strictEqual(code, 0)
      assert.isTrue(existsSync(join(cwd, "a.txt")))
    })
  )

  it.effect("ends the run where it is not wanted now", () =>
    Effect.gen(function* () {
      const bodies: Array<Body> = []
      const env = yield* model([propose], bodies)
      const { code, seen } = yield* Terminal.run(
        ["--plan", "go"],
        async ({ sees, type }) => {
          await sees(/4 not now: $/)
          type("4\r")
        },
        { env }
      )
      assert.deepStrictEqual([code, bodies.length], [1, 1])
      assert.match(seen, /Cancelled\./)
    })
  )
})
