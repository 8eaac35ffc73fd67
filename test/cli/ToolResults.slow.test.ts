import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import * as Program from "./program.ts"

Program.bundled()

interface Body {
  readonly messages: ReadonlyArray<{ readonly role: string; readonly content: string }>
  readonly tools?: ReadonlyArray<{
    readonly function: { readonly name: string; readonly description: string }
  }>
}

const lines = Array.from({ length: 900 }, (_, n) => `line ${n + 1} of the log`)

/** A model that calls the tool that a prompt names, `TOOL JSON`, and then answers with its result; `{ID}` is the last artifact. */
const setUp = Effect.gen(function* () {
  const bodies: Array<Body> = []
  const url = yield* Program.server((_, text, response) => {
    const body: Body = JSON.parse(text)
    bodies.push(body)
    const { content = "", role } = body.messages.at(-1) ?? {}
    if (role === "tool") return Program.says(response, [content])
    const [, id = "none"] = /(artifact_[\w-]+)/.exec(text) ?? []
    const [, name = "", params = "{}"] = /^(\w+) (.*)$/.exec(content) ?? []
    Program.calls(response, name, JSON.parse(params.replace("{ID}", id)))
  })
  const cwd = Program.folder({ "app.log": lines.join("\n") })
  const env = {
    EFFECT_AGENT_MODEL: "openai-chat/gpt-4.1",
    OPENAI_API_KEY: "sk-test",
    OPENAI_BASE_URL: `${url}/v1`,
    EFFECT_AGENT_HOME: join(cwd, "home")
  }
  const run = (...args: ReadonlyArray<string>) => Program.run(args, { cwd, env })
  return { bodies, cwd, run }
})

const read = 'read {"path":"app.log"}'
const rest = 'read_artifact {"id":"{ID}","offset":500,"limit":1}'
const toolsOf = ({ tools = [] }: Body) => tools.map((tool) => tool.function.name)

describe("large results", { timeout: 60_000 }, () => {
  for (const store of ["kept", "sqlite:kept.db"]) {
    it.effect(`are cut, and stay in ${store} for the runs that continue or fork the session`, () =>
      Effect.gen(function* () {
        const { cwd, run } = yield* setUp
        const { code, stdout } = yield* run("--store", store, "--max-result", "2000", read)
        assert.strictEqual(code, 0)
        assert.isAtMost(stdout.length, 2_001)
        assert.match(stdout, /line 1 of the log[^]*read_artifact [^]*line 900 of the log/)
        const page = "line 500 of the log\n[line 500 of 900; next: offset 501]\n"
        assert.strictEqual((yield* run("--store", store, "-c", rest)).stdout, page)
        const listed = JSON.parse((yield* run("sessions", "--json", "--store", store)).stdout)
        const [{ sessionId }] = listed.items
        assert.strictEqual((yield* run("--store", store, "--fork", sessionId, rest)).stdout, page)
        yield* run("sessions", "rm", sessionId, "--store", store)
        assert.strictEqual((yield* run("--store", store, "-c", rest)).stdout, page)
        if (store !== "kept") return
        const folder = join(cwd, "kept/artifacts")
        const [name = ""] = readdirSync(folder)
        assert.strictEqual(statSync(join(folder, name)).mode & 0o777, 0o600)
        assert.strictEqual(JSON.parse(readFileSync(join(folder, name), "utf8")).toolName, "read")
        const left = JSON.parse((yield* run("sessions", "--json", "--store", store)).stdout)
        for (const { sessionId } of left.items) yield* run("sessions", "rm", sessionId, "--store", store)
        assert.deepStrictEqual(readdirSync(folder), [])
      })
    )
  }

  it.effect("stay in the home of the program by default, and in memory without a session", () =>
    Effect.gen(function* () {
      const { cwd, run } = yield* setUp
      const whole = yield* run(read)
      assert.match(whole.stdout, /line 450 of the log/)
      assert.match((yield* run("--no-session", "--max-result", "2000", read)).stdout, /artifact_/)
      assert.notInclude(readdirSync(join(cwd, "home/sessions")), "artifacts")
      assert.match((yield* run("--max-result", "2000", "--json", read)).stdout, /"_tag":"ArtifactStored"/)
      assert.strictEqual(readdirSync(join(cwd, "home/sessions/artifacts")).length, 1)
    })
  )

  it.effect("have a bound of at least 1000, and no tool that reads them without other tools", () =>
    Effect.gen(function* () {
      const { bodies, run } = yield* setUp
      const { code, stderr } = yield* run("--max-result", "10", "hi")
      assert.strictEqual(code, 2)
      assert.match(stderr, /max-result.*a number of at least 1000/)
      yield* run("--tools", "none", "hi")
      assert.deepStrictEqual(toolsOf(bodies[0] ?? { messages: [] }), [])
    })
  )
})

describe("tool search", { timeout: 60_000 }, () => {
  it.effect("begins beyond 40 tools, or where --tool-search says", () =>
    Effect.gen(function* () {
      const { bodies, run } = yield* setUp
      const search = 'tool_search {"query":"read a file"}'
      yield* run("--tool-search", "3", search)
      const [first, second] = bodies.map(toolsOf)
      // The tools of the program itself stay beside the search.
      assert.deepStrictEqual(first, ["tool_search", "tasks", "read_artifact"])
      assert.includeMembers([...(second ?? [])], ["tool_search", "read_artifact", "read"])
      bodies.length = 0
      for (const args of [[], ["--tool-search", "off"]]) yield* run(...args, "list {}")
      for (const body of bodies) assert.notInclude(toolsOf(body), "tool_search")
      assert.include(toolsOf(bodies[0] ?? { messages: [] }), "read_artifact")
      const wrong = yield* run("--tool-search", "many", "hi")
      assert.strictEqual(wrong.code, 2)
      assert.match(wrong.stderr, /a number of at least 0, or off/)
    })
  )
})
