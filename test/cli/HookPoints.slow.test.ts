import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { CliOutput } from "effect/cli"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { ArtifactStore } from "effect-agent/artifacts"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as AgentSetup from "../../src/cli/agent/AgentSetup.ts"
import * as CommandLine from "../../src/cli/CommandLine.ts"
import * as Settings from "../../src/cli/settings/Settings.ts"
import * as Requests from "../../src/cli/terminal/Requests.ts"
import * as Screen from "../../src/cli/terminal/Screen.ts"

const services = Layer.mergeAll(
  NodeServices.layer,
  CliOutput.layerPresenter({ present: () => Effect.void }),
  Layer.sync(Screen.Screen, () => Screen.make({ color: false, env: {} }))
)

const none = () => Effect.succeed(0)
const commands = {
  models: none,
  config: none,
  acp: none,
  runs: none,
  mcp: none,
  mcpServers: none,
  approve: none,
  sessions: none
}

const folder = () => realpathSync(mkdtempSync(join(tmpdir(), "effect-agent-points-")))

/** The agent of the program with hooks of the user, and a script in place of a model. */
const setUp = Effect.fnUntraced(function* (
  hooks: Readonly<Record<string, string>>,
  script: ScriptedProvider.Script,
  flags: ReadonlyArray<string> = ["--yes"]
) {
  const [root, home] = [folder(), folder()]
  const entries = Object.entries(hooks).map(([point, command]) => [
    point,
    [{ hooks: [{ type: "command", command }] }]
  ])
  mkdirSync(join(home, "effect-agent"))
  writeFileSync(
    join(home, "effect-agent/config.json"),
    JSON.stringify({ hooks: Object.fromEntries(entries) })
  )
  const parsed = yield* CommandLine.parse([...flags, "--sandbox", "off", "--cwd", root], "0", commands)
  if (!("line" in parsed)) return yield* Effect.die("no run")
  const { prompt: _, ...given } = parsed.line
  const { settings } = yield* Settings.read(given, { XDG_CONFIG_HOME: home, HOME: home })
  const provider = yield* ScriptedProvider.make(script)
  const plan = {
    settings,
    prompt: undefined,
    choice: { model: "scripted/m", why: "", provider: provider.layer },
    output: undefined,
    project: { system: "", tools: [], contextFiles: [], leftOut: [], skills: [], problems: [] },
    hooks: yield* AgentSetup.loadHooks(settings),
    shell: { sandbox: "off" }
  } as const
  const session = yield* SessionStore.make(MemorySessionStore.storage()).create({ cwd: root })
  const artifacts = Context.get(yield* Layer.build(ArtifactStore.layerMemory()), ArtifactStore.ArtifactStore)
  const agent = yield* Effect.provide(
    AgentSetup.make(plan, { session, artifacts }, Requests.policyOf(settings, root)),
    provider.layer
  )
  const read = (name: string) => readFileSync(join(root, name), "utf8")
  const json = (name: string): Readonly<Record<string, unknown>> => JSON.parse(read(name))
  const has = (name: string) => existsSync(join(root, name))
  const texts = Effect.map(provider.requests, (requests) =>
    requests.map(({ messages }) => messages.map((message) => JSON.stringify(message)).join("\n"))
  )
  return { agent, has, json, read, texts }
})

const shell = (command: string) => ScriptedProvider.toolCall("shell", { command })
const done = ScriptedProvider.text("Done.")
const says = (output: object) => `cat >/dev/null; echo '${JSON.stringify(output)}'`

describe("points of command hooks", { timeout: 60_000 }, () => {
  it.live("PostToolUse adds to the result of a call, and PostToolUseFailure to that of one that failed", () =>
    Effect.gen(function* () {
      const context = says({ hookSpecificOutput: { additionalContext: "2 warnings" } })
      const { agent, json, texts } = yield* setUp(
        {
          PostToolUse: `tee post | grep -q second && { echo look again >&2; exit 2; }; ${context}`,
          PostToolUseFailure: "cat > failure"
        },
        [shell("echo first"), shell("echo second"), shell("echo oh no; exit 3"), done]
      )
      yield* agent.prompt("go")
      const [, one = "", two = ""] = yield* texts
      assert.match(one, /first.*2 warnings/)
      assert.match(two, /second.*look again/)
      const { error, hook_event_name: point, tool_input: input, tool_name: name } = json("failure")
      assert.deepStrictEqual(
        [point, name, input],
        ["PostToolUseFailure", "shell", { command: "echo oh no; exit 3" }]
      )
      assert.include(String(error), "oh no")
      assert.include(JSON.stringify(json("post")["tool_response"]), "second")
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.live("SessionStart speaks to the model, and SessionEnd runs when the agent closes", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { agent, has, json, texts } = yield* Effect.provideService(
        setUp({ SessionStart: "cat > start; echo be brief", SessionEnd: "cat > end" }, [done], ["--plan"]),
        Scope.Scope,
        scope
      )
      yield* agent.prompt("go")
      const { permission_mode: mode, source } = json("start")
      assert.deepStrictEqual([source, mode, has("end")], ["startup", "plan", false])
      assert.include((yield* texts)[0] ?? "", "be brief")
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual([json("end")["hook_event_name"], json("end")["reason"]], ["SessionEnd", "other"])
    }).pipe(Effect.provide(services))
  )

  it.live("PreCompact keeps the conversation as it is, and SessionStart runs after a compaction", () =>
    Effect.gen(function* () {
      const { agent, json, texts } = yield* setUp(
        {
          PreCompact: "cat > before; [ -e ready ] || { touch ready; echo not yet >&2; exit 2; }",
          SessionStart: "cat > start; if grep -q compact start; then echo read the notes; fi"
        },
        [done, done, done, ScriptedProvider.text("A summary."), done]
      )
      for (const prompt of ["one", "two", "three"]) yield* agent.prompt(`${prompt} ${"long ".repeat(20_000)}`)
      const kept = yield* Effect.exit(agent.compact("keep the names"))
      assert.deepStrictEqual(
        [json("before")["trigger"], json("before")["custom_instructions"]],
        ["manual", "keep the names"]
      )
      assert.strictEqual((yield* texts).length, 3, String(kept))
      yield* agent.compact()
      assert.strictEqual(json("start")["source"], "compact")
      yield* agent.prompt("four")
      assert.include((yield* texts).at(-1) ?? "", "read the notes")
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.live("Notification runs when a call needs an approval", () =>
    Effect.gen(function* () {
      const { agent, has, json } = yield* setUp(
        { Notification: "cat > .note; mv .note note" },
        [shell("true"), done],
        []
      )
      yield* Effect.forkScoped(agent.prompt("go"))
      while (!has("note")) yield* Effect.sleep("20 millis")
      assert.deepStrictEqual(
        [json("note")["message"], json("note")["notification_type"]],
        ["The tool shell needs an approval", "permission_prompt"]
      )
      yield* agent.cancel("it is enough")
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.live("continue: false ends the run, after a call or before it", () =>
    Effect.gen(function* () {
      const stop = says({ continue: false, stopReason: "out of budget" })
      for (const [point, runs] of [
        ["PostToolUse", true],
        ["PreToolUse", false]
      ] as const) {
        const { agent, has, texts } = yield* setUp({ [point]: stop }, [shell("touch ran"), done])
        yield* agent.prompt("go")
        assert.deepStrictEqual([(yield* texts).length, has("ran")], [1, runs], point)
      }
      const { agent, texts } = yield* setUp({ UserPromptSubmit: stop }, [done])
      yield* Effect.exit(agent.prompt("go"))
      assert.strictEqual((yield* texts).length, 0)
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.live("a hook gets the whole of a large call, need not read it, and may write more than counts", () =>
    Effect.gen(function* () {
      const content = "x".repeat(1_500_000)
      const write = ScriptedProvider.toolCall("write", { path: "large", content })
      const much = "head -c 3000000 /dev/zero | tr '\\0' x"
      for (const [command, isWritten] of [
        ["wc -c > size", true],
        ["exit 0", true],
        ["exec <&-; sleep 0.3", true],
        [`${much}; ${much} >&2`, true],
        // JSON that is cut cannot be read.
        [`printf '{"systemMessage":"'; ${much}; printf '"}'`, false],
        [`${much} >&2; exit 2`, false]
      ] as const) {
        const { agent, has, read } = yield* setUp({ PreToolUse: command }, [write, done])
        yield* agent.prompt("go")
        assert.strictEqual(has("large"), isWritten, command)
        if (has("size")) assert.isAbove(Number(read("size")), content.length)
      }
    }).pipe(Effect.scoped, Effect.provide(services))
  )
})
