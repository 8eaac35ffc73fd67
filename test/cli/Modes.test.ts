import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, MutableRef, type Schema } from "effect"
import { CliOutput } from "effect/cli"
import { type Agent, Message, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { existsSync, mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as AgentSetup from "../../src/cli/agent/AgentSetup.ts"
import * as Mode from "../../src/cli/agent/Mode.ts"
import * as PlanTool from "../../src/cli/agent/PlanTool.ts"
import * as CommandLine from "../../src/cli/CommandLine.ts"
import * as Settings from "../../src/cli/settings/Settings.ts"
import * as Requests from "../../src/cli/terminal/Requests.ts"
import * as Screen from "../../src/cli/terminal/Screen.ts"

const services = Layer.mergeAll(
  NodeServices.layer,
  CliOutput.layerPresenter({ present: () => Effect.void }),
  Layer.sync(Screen.Screen, () => Screen.make({ color: false, env: {} }))
)

const commands = {
  models: () => Effect.succeed(0),
  config: () => Effect.succeed(0),
  acp: () => Effect.succeed(0),
  runs: () => Effect.succeed(0),
  mcp: () => Effect.succeed(0),
  mcpServers: () => Effect.succeed(0),
  approve: () => Effect.succeed(0),
  sessions: () => Effect.succeed(0)
}

interface Options {
  readonly flags?: ReadonlyArray<string>
  readonly asked?: Requests.Policy["asked"]
}

/** The agent of the program in a folder of its own, with a script in place of a model. */
const setUp = Effect.fnUntraced(function* (
  script: ScriptedProvider.Script,
  { asked = "wait", flags = [] }: Options = {}
) {
  const root = mkdtempSync(join(tmpdir(), "effect-agent-modes-"))
  const parsed = yield* CommandLine.parse([...flags, "--sandbox", "off", "--cwd", root], "0", commands)
  if (!("line" in parsed)) return yield* Effect.die("no run")
  const { prompt: _, ...given } = parsed.line
  const { settings } = yield* Settings.read(given, { XDG_CONFIG_HOME: "/nowhere" })
  const provider = yield* ScriptedProvider.make(script)
  const policy = Requests.policyOf(settings, root, asked)
  const project = { system: "", tools: [], contextFiles: [], leftOut: [], skills: [], problems: [] }
  const choice = { model: "scripted/m", why: "", provider: provider.layer }
  const plan = {
    settings,
    prompt: undefined,
    choice,
    output: undefined,
    project,
    hooks: undefined,
    shell: { sandbox: "off" }
  } as const
  const agent = yield* Effect.provide(AgentSetup.make(plan, undefined, policy), provider.layer)
  const offered = Effect.map(provider.requests, (requests) =>
    requests.map(({ tools }) => tools.map(({ name }) => name))
  )
  return { agent, mode: policy.mode, offered, requests: provider.requests, root }
})

const write = (path: string) => ScriptedProvider.toolCall("write", { path, content: "text" })
const shell = (command: string) => ScriptedProvider.toolCall("shell", { command })
const propose = ScriptedProvider.toolCall("propose_plan", { plan: "# The plan\n\n- write a.txt" })
const done = ScriptedProvider.text("done")

const resultsOf = (agent: Agent.Agent) =>
  agent.state
    .getUnsafe()
    .messages.flatMap((message) =>
      message.role === "toolResult" ? [[message.outcome, Message.textOf(message)] as const] : []
    )

/** Answers each question about a plan, and approves each call. */
const answering = (agent: Agent.Agent, answers: ReadonlyArray<Schema.Json | undefined>) => {
  const left = [...answers]
  const asked: Array<string> = []
  return Effect.as(
    agent.subscribe((event) => {
      if (event._tag === "ApprovalRequested") {
        asked.push(event.toolName)
        return agent.answer(event.approvalId, { decision: "approve", argumentsHash: event.argumentsHash })
      }
      if (event._tag !== "QuestionAsked") return Effect.void
      assert.isTrue(PlanTool.isPlan(event))
      asked.push(event.question)
      const answer = left.shift()
      return agent.answer(event.questionId, answer === undefined ? { declined: true } : { answer })
    }),
    asked
  )
}

const refused = `Tool execution was rejected: ${Mode.refusal}`

describe("the mode of a session", () => {
  it.effect("asks, lets edits run, refuses changes, or asks about nothing, from the next call on", () =>
    Effect.gen(function* () {
      const { agent, mode, root } = yield* setUp([
        write("a"),
        done,
        write("b"),
        shell("touch c"),
        done,
        write("d"),
        shell("touch e"),
        done,
        shell("touch f"),
        done
      ])
      const asked = yield* answering(agent, [])
      yield* agent.prompt("ask")
      assert.deepStrictEqual(asked.splice(0), ["write"])
      MutableRef.set(mode, "edits")
      yield* agent.prompt("edits")
      assert.deepStrictEqual(asked.splice(0), ["shell"])
      MutableRef.set(mode, "plan")
      yield* agent.prompt("plan")
      assert.deepStrictEqual(asked, [])
      assert.deepStrictEqual(resultsOf(agent).slice(-2), [
        ["rejected", refused],
        ["rejected", refused]
      ])
      MutableRef.set(mode, "yes")
      yield* agent.prompt("yes")
      assert.deepStrictEqual(asked, [])
      const made = ["a", "b", "c", "d", "e", "f"].filter((name) => existsSync(join(root, name)))
      assert.deepStrictEqual(made, ["a", "b", "c", "f"])
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.effect("changes while a run works", () =>
    Effect.gen(function* () {
      const { agent, mode, root } = yield* setUp(
        [
          write("a"),
          () => {
            MutableRef.set(mode, "plan")
            return write("b")
          },
          done
        ],
        { flags: ["--yes"] }
      )
      yield* agent.prompt("go")
      assert.deepStrictEqual(
        resultsOf(agent).map(([outcome]) => outcome),
        ["success", "rejected"]
      )
      assert.isFalse(existsSync(join(root, "b")))
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.effect("leaves what is denied and protected as it is", () =>
    Effect.gen(function* () {
      const { agent, mode, root } = yield* setUp(
        [
          write("a"),
          ScriptedProvider.toolCall("edit", { path: ".git/x", oldText: "a", newText: "b" }),
          write("../out"),
          done
        ],
        {
          flags: ["--deny", "write"]
        }
      )
      MutableRef.set(mode, "edits")
      yield* agent.prompt("go")
      assert.deepStrictEqual(
        resultsOf(agent).map(([outcome]) => outcome),
        ["rejected", "error", "rejected"]
      )
      assert.isFalse(existsSync(join(root, "a")))
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it("goes round by one key", () => {
    assert.deepStrictEqual((["ask", "edits", "plan", "yes"] as const).map(Mode.next), [
      "edits",
      "plan",
      "ask",
      "ask"
    ])
  })
})

describe("plan mode", () => {
  it.effect("gives the model the tools that change nothing, and the one for the plan", () =>
    Effect.gen(function* () {
      const { agent, mode, offered, requests } = yield* setUp([done, done])
      const server = { description: "A tool of a server.", execute: () => Effect.succeed("ran") }
      yield* agent.tools.register(Tool.make({ ...server, name: "mcp__a__look", effect: "pure" }))
      yield* agent.tools.register(Tool.make({ ...server, name: "mcp__a__send" }))
      yield* agent.prompt("ask")
      MutableRef.set(mode, "plan")
      yield* agent.prompt("plan")
      const [ask = [], plan = []] = yield* offered
      assert.includeMembers(ask, ["write", "edit", "shell", "tasks", "mcp__a__send"])
      assert.notInclude(ask, "propose_plan")
      assert.sameMembers(plan, [
        "read",
        "list",
        "find",
        "grep",
        "tasks",
        "ask_user",
        "read_artifact",
        "propose_plan",
        "mcp__a__look"
      ])
      const [before, after] = (yield* requests).map(({ system }) => system ?? "")
      assert.notMatch(before ?? "", /Plan mode is on/)
      assert.match(after ?? "", /^You work from a terminal[^]*Plan mode is on/)
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.effect.each([
    ["ask", PlanTool.answers.ask, "write"],
    ["edits", PlanTool.answers.edits, undefined]
  ] as const)(
    "ends by an approval of the plan, in mode %s, and the run goes on",
    ([next, answer, approved]) =>
      Effect.gen(function* () {
        const { agent, mode, offered, root } = yield* setUp([propose, write("a.txt"), done], {
          flags: ["--plan"]
        })
        const seen = yield* answering(agent, [answer])
        const { status, text } = yield* agent.prompt("go")
        assert.deepStrictEqual([status, text, MutableRef.get(mode)], ["completed", "done", next])
        assert.deepStrictEqual(seen, [
          "# The plan\n\n- write a.txt",
          ...(approved === undefined ? [] : [approved])
        ])
        assert.isTrue(existsSync(join(root, "a.txt")))
        assert.include((yield* offered)[1] ?? [], "write")
      }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.effect("stays where the person wants changes, which the model reads", () =>
    Effect.gen(function* () {
      const { agent, mode } = yield* setUp([propose, write("a.txt"), propose, done], { flags: ["--plan"] })
      yield* answering(agent, [PlanTool.answers.change("no new files"), PlanTool.answers.ask])
      yield* agent.prompt("go")
      const [changed, refusal, approved] = resultsOf(agent).map(([, text]) => text)
      assert.match(changed ?? "", /Change this: no new files/)
      assert.strictEqual(refusal, refused)
      assert.match(approved ?? "", /approves the plan/)
      assert.strictEqual(MutableRef.get(mode), "ask")
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.effect.each([
    ["declined", undefined],
    ["answered with not now", PlanTool.answers.notNow]
  ] as const)("stays where the question is %s, and the run is cancelled", ([, answer]) =>
    Effect.gen(function* () {
      const { agent, mode, requests } = yield* setUp([propose, done], { flags: ["--plan"] })
      yield* answering(agent, [answer])
      const { status } = yield* agent.prompt("go")
      assert.deepStrictEqual(
        [status, MutableRef.get(mode), (yield* requests).length],
        ["cancelled", "plan", 1]
      )
      yield* agent.prompt("something else")
      assert.strictEqual((yield* requests).length, 2)
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.effect("ends the run with the plan where no person decides", () =>
    Effect.gen(function* () {
      const calls = ScriptedProvider.toolCalls(
        { name: "tasks", params: { tasks: [] } },
        { name: "propose_plan", params: { plan: "the plan" } }
      )
      const { agent, requests } = yield* setUp([calls], { flags: ["--plan"], asked: "deny" })
      const plans: Array<string> = []
      yield* agent.subscribe((event) =>
        Effect.sync(() => plans.push(...(PlanTool.answerIn(event)?.split("\n") ?? [])))
      )
      const { status } = yield* agent.prompt("go")
      assert.deepStrictEqual([status, plans, (yield* requests).length], ["stopped", ["the plan"], 1])
    }).pipe(Effect.scoped, Effect.provide(services))
  )
})
