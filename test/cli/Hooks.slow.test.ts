import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as Program from "./program.ts"

Program.bundled()

type Call = readonly [name: string, params: object]

interface Body {
  readonly messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }>
}

const textOf = ({ messages }: Body): string => JSON.stringify(messages)

/** A model that makes the calls in its first answer of a prompt, and a program with hooks of the user. */
const setUp = Effect.fnUntraced(function* (
  hooks: object,
  calls: ReadonlyArray<Call> = [],
  files: Readonly<Record<string, string>> = {},
  members: object = {}
) {
  const bodies: Array<Body> = []
  const url = yield* Program.server((_, text, response) => {
    const body: Body = JSON.parse(text)
    bodies.push(body)
    const hasResults = body.messages.some(({ role }) => role === "tool")
    if (calls.length > 0 && !hasResults) return Program.callsAll(response, calls)
    Program.says(response, ["Done."])
  })
  const cwd = Program.folder(files)
  const home = Program.folder({ ".config/effect-agent/config.json": JSON.stringify({ hooks, ...members }) })
  const env = {
    HOME: home,
    EFFECT_AGENT_MODEL: "openai-chat/gpt-4.1",
    OPENAI_API_KEY: "sk-test",
    OPENAI_BASE_URL: `${url}/v1`,
    EFFECT_AGENT_HOME: join(home, "data")
  }
  const run = (...args: ReadonlyArray<string>) => Program.run(args, { cwd, env })
  const has = (name: string) => existsSync(join(cwd, name))
  const read = (name: string) => readFileSync(join(cwd, name), "utf8")
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(cwd, name)), { recursive: true })
    writeFileSync(join(cwd, name), text)
  }
  return { bodies, cwd, has, home, read, run, write }
})

const on = (point: string, command: string, rest: object = {}, matcher?: string) => ({
  [point]: [{ ...(matcher === undefined ? {} : { matcher }), hooks: [{ type: "command", command, ...rest }] }]
})

const touch: Call = ["shell", { command: "echo x > ran" }]

/** A command that answers with JSON. */
const says = (output: object): string => `cat >/dev/null; echo '${JSON.stringify(output)}'`

const specific = (output: object): string =>
  says({ hookSpecificOutput: { hookEventName: "PreToolUse", ...output } })

describe.concurrent("command hooks", { timeout: 60_000 }, () => {
  it.effect("P-70: exit code 2 of PreToolUse refuses the call, and the model reads why", () =>
    Effect.gen(function* () {
      const { bodies, has, run } = yield* setUp(on("PreToolUse", "echo not on Fridays >&2; exit 2"), [touch])
      const { stderr } = yield* run("--yes", "go")
      assert.isFalse(has("ran"))
      assert.include(textOf(bodies[1] ?? { messages: [] }), "not on Fridays")
      assert.match(stderr, /✗ shell.*refused by hook: not on Fridays/)
    })
  )

  it.effect("P-71: the stdin of a hook has the members", () =>
    Effect.gen(function* () {
      const { cwd, read, run } = yield* setUp(
        on(
          "PreToolUse",
          'cat > input; echo "$CLAUDE_PROJECT_DIR $EFFECT_AGENT_PROJECT_DIR $OPENAI_API_KEY" > seen'
        ),
        [touch]
      )
      yield* run("--yes", "go")
      const input = JSON.parse(read("input"))
      assert.strictEqual(input.cwd, cwd)
      assert.strictEqual(input.hook_event_name, "PreToolUse")
      assert.strictEqual(input.permission_mode, "bypassPermissions")
      assert.strictEqual(input.tool_name, "shell")
      assert.deepStrictEqual(input.tool_input, { command: "echo x > ran" })
      assert.strictEqual(input.tool_use_id, "call_1")
      assert.match(input.session_id, /^[0-9a-f-]{32,36}$/)
      assert.isTrue(existsSync(input.transcript_path))
      assert.strictEqual(read("seen"), `${cwd} ${cwd} \n`)
    })
  )

  it.effect("P-72: another exit code is a line, and the call runs", () =>
    Effect.gen(function* () {
      const { has, run } = yield* setUp(on("PreToolUse", "echo broken >&2; exit 1"), [touch])
      const { stderr } = yield* run("--yes", "go")
      assert.include(stderr, "hook echo broken >&2; exit 1 failed (exit 1): broken")
      assert.isTrue(has("ran"))
    })
  )

  it.effect("P-72: a guard that cannot judge refuses, unless onFailure says otherwise", () =>
    Effect.gen(function* () {
      for (const command of ["no-such-command-here", "echo '{oops'", "kill -9 $$"]) {
        const closed = yield* setUp(on("PreToolUse", command), [touch])
        assert.include((yield* closed.run("--yes", "go")).stderr, "refused by hook", command)
        assert.isFalse(closed.has("ran"), command)
      }
      const open = yield* setUp(on("PreToolUse", "no-such-command-here", { onFailure: "continue" }), [touch])
      yield* open.run("--yes", "go")
      assert.isTrue(open.has("ran"))
      const strict = yield* setUp(on("PreToolUse", "exit 1", { onFailure: "block" }), [touch])
      yield* strict.run("--yes", "go")
      assert.isFalse(strict.has("ran"))
    })
  )

  it.effect("P-73: at its time-out the whole group ends, and the call is refused", () =>
    Effect.gen(function* () {
      const command = "(sleep 3; echo late > late) & sleep 30"
      const { has, run } = yield* setUp(on("PreToolUse", command, { timeout: 1 }), [touch])
      const { stderr } = yield* run("--yes", "go")
      assert.include(stderr, "timed out after 1 s")
      assert.isFalse(has("ran"))
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 3000)))
      assert.isFalse(has("late"))
    })
  )

  it.effect("P-74: updatedInput changes the call, and allow spares the question, but not --deny", () =>
    Effect.gen(function* () {
      const hook = specific({ permissionDecision: "allow", updatedInput: { command: "echo y > other" } })
      const changed = yield* setUp(on("PreToolUse", hook), [touch])
      yield* changed.run("go")
      assert.isFalse(changed.has("ran"))
      assert.strictEqual(changed.read("other"), "y\n")
      const denied = yield* setUp(on("PreToolUse", specific({ permissionDecision: "allow" })), [touch])
      yield* denied.run("--deny", "shell", "go")
      assert.isFalse(denied.has("ran"))
      const asked = yield* setUp(on("PreToolUse", specific({ permissionDecision: "ask" })), [touch])
      yield* asked.run("--yes", "go")
      assert.isFalse(asked.has("ran"))
      const two = { type: "command", command: `: two; ${hook}` }
      const both = yield* setUp({ PreToolUse: [{ hooks: [{ type: "command", command: hook }, two] }] }, [
        touch
      ])
      assert.include((yield* both.run("--yes", "go")).stderr, "2 hooks change this call")
      assert.isFalse(both.has("other"))
    })
  )

  it.effect("P-74: PermissionRequest answers in place of a person", () =>
    Effect.gen(function* () {
      const answer = (decision: object) => on("PermissionRequest", says({ hookSpecificOutput: { decision } }))
      const allowed = yield* setUp(
        answer({ behavior: "allow", updatedInput: { command: "echo y > other" } }),
        [touch]
      )
      yield* allowed.run("go")
      assert.isTrue(allowed.has("other"))
      const denied = yield* setUp(answer({ behavior: "deny", message: "not today" }), [touch])
      yield* denied.run("go")
      assert.include(textOf(denied.bodies[1] ?? { messages: [] }), "not today")
      const spared = yield* setUp(answer({ behavior: "deny", message: "not today" }), [touch])
      yield* spared.run("--yes", "go")
      assert.isTrue(spared.has("ran"))
    })
  )

  it.effect("P-75: UserPromptSubmit keeps a prompt back, or adds text to it", () =>
    Effect.gen(function* () {
      const kept = yield* setUp(on("UserPromptSubmit", "echo has a secret >&2; exit 2"))
      const { code, stderr } = yield* kept.run("go")
      assert.strictEqual(kept.bodies.length, 0)
      assert.include(stderr, "has a secret")
      assert.notStrictEqual(code, 0)
      const told = yield* setUp(on("UserPromptSubmit", "echo the sprint ends on Friday"))
      assert.strictEqual((yield* told.run("go")).code, 0)
      assert.include(textOf(told.bodies[0] ?? { messages: [] }), "the sprint ends on Friday")
    })
  )

  it.effect("P-76: Stop continues the run, at most 8 times in a row", () =>
    Effect.gen(function* () {
      const once = yield* setUp(
        on("Stop", "cat > input; [ -e ended ] && exit 0; touch ended; echo run the tests >&2; exit 2")
      )
      yield* once.run("go")
      assert.strictEqual(once.bodies.length, 2)
      assert.include(textOf(once.bodies[1] ?? { messages: [] }), "run the tests")
      const input = JSON.parse(once.read("input"))
      assert.deepStrictEqual([input.stop_hook_active, input.last_assistant_message], [true, "Done."])
      const always = yield* setUp(on("Stop", "echo more >&2; exit 2"))
      yield* always.run("go")
      assert.strictEqual(always.bodies.length, 9)
    })
  )

  it.effect("P-77: hooks of a project run once it is trusted, and no longer when the file changes", () =>
    Effect.gen(function* () {
      const config = (command: string) => JSON.stringify({ hooks: on("PreToolUse", command) })
      const { has, home, run, write } = yield* setUp({}, [touch], {
        ".effect-agent/config.json": config("touch hooked")
      })
      const line = "1 hook of this project does not run: effect-agent config --trust"
      assert.include((yield* run("--yes", "go")).stderr, line)
      assert.isFalse(has("hooked"))
      assert.strictEqual((yield* run("config", "--trust")).code, 0)
      assert.strictEqual(statSync(join(home, ".config/effect-agent/trusted-hooks.json")).mode & 0o777, 0o600)
      assert.notInclude((yield* run("--yes", "go")).stderr, "do not run")
      assert.isTrue(has("hooked"))
      write(".effect-agent/config.json", config("touch changed"))
      assert.include((yield* run("--yes", "go")).stderr, line)
      assert.isFalse(has("changed"))
      yield* run("config", "--trust")
      yield* run("--yes", "--no-hooks", "go")
      assert.isFalse(has("changed"))
    })
  )

  it.effect("P-78: a settings file of Claude Code works with its names", () =>
    Effect.gen(function* () {
      const settings = {
        permissions: {},
        hooks: { ...on("PreToolUse", "cat > bash", {}, "Bash"), Setup: [] }
      }
      const guard = on("PreToolUse", 'cat > "$CLAUDE_PROJECT_DIR/written"', {}, "Write|Edit")
      const { read, run } = yield* setUp({}, [touch, ["write", { path: "a.txt", content: "x" }]], {
        ".effect-agent/config.json": JSON.stringify({
          hooksFrom: [".claude/settings.json", ".claude/more.json"]
        }),
        ".claude/settings.json": JSON.stringify(settings),
        ".claude/more.json": JSON.stringify({ hooks: guard })
      })
      yield* run("config", "--trust")
      const { stderr } = yield* run("--yes", "go")
      assert.include(stderr, "hooks.Setup is left out")
      const bash = JSON.parse(read("bash"))
      assert.deepStrictEqual([bash.tool_name, bash.tool_input], ["Bash", { command: "echo x > ran" }])
      const written = JSON.parse(read("written"))
      assert.deepStrictEqual(
        [written.tool_name, written.tool_input],
        ["Write", { file_path: "a.txt", content: "x" }]
      )
    })
  )

  it.effect("P-79: the modules in Karl's folders get Karl's events", () =>
    Effect.gen(function* () {
      const log = (name: string) =>
        `import { appendFileSync } from "node:fs"
const on = (point) => (event) => appendFileSync("log", JSON.stringify(["${name}", point, event]) + "\\n")
export default { "pre-task": on("pre-task"), "post-task": on("post-task"), "pre-tool": on("pre-tool"), "post-tool": on("post-tool"), "on-error": on("on-error") }
`
      const { has, home, read, run } = yield* setUp({}, [touch], {
        ".karl/hooks/b.mjs": log("b"),
        ".karl/hooks/a.mjs": "throw new Error('broken')",
        ".karl/hooks/c.txt": "no module"
      })
      mkdirSync(join(home, ".config/karl/hooks"), { recursive: true })
      writeFileSync(join(home, ".config/karl/hooks/u.mjs"), log("u"))
      chmodSync(join(home, ".config/karl/hooks/u.mjs"), 0o600)
      assert.include((yield* run("--yes", "go")).stderr, "2 hooks of this project do not run")
      assert.notInclude(read("log"), '"b"')
      assert.isTrue(has("log"))
      assert.strictEqual((yield* run("config", "--trust")).code, 0)
      const { code, stderr } = yield* run("--yes", "go")
      assert.strictEqual(code, 0)
      assert.match(stderr, /a\.mjs cannot be loaded: .*broken/)
      const lines = read("log")
        .trim()
        .split("\n")
        .slice(4)
        .map((line) => JSON.parse(line))
      assert.deepStrictEqual(
        lines.map(([name, point]) => `${name} ${point}`),
        ["pre-task", "pre-tool", "post-tool", "post-task"].flatMap((point) => [`b ${point}`, `u ${point}`])
      )
      const [[, , task], , [, , tool]] = lines
      assert.deepStrictEqual(task, {
        task: "go",
        index: 0,
        attempt: 1,
        model: "gpt-4.1",
        provider: "openai-chat"
      })
      assert.deepStrictEqual(tool, { tool: "shell", input: { command: "echo x > ran" } })
    })
  )

  it.effect("names the file and the member of a mistake", () =>
    Effect.gen(function* () {
      for (const [hooks, words] of [
        [on("PreToolUse", "true", {}, "("), /config\.json: hooks\.PreToolUse\[0\]\.matcher: /],
        [
          on("PreToolUs", "true"),
          /config\.json: hooks\.PreToolUs: it is no point\. Did you mean "PreToolUse"\?/
        ],
        [on("Stop", "true", { timeout: 0 }), /config\.json: hooks: .*timeout/]
      ] as const) {
        const { run } = yield* setUp(hooks)
        const { code, stderr } = yield* run("go")
        assert.strictEqual(code, 2, stderr)
        assert.match(stderr, words)
      }
    })
  )
})
