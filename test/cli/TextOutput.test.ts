import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule, Schema, type Scope, Stream } from "effect"
import { Agent, type AgentEvent, Approval, Message, Provider, ProviderError, Tool } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Screen from "../../src/cli/terminal/Screen.ts"
import * as Output from "../../src/cli/terminal/Output.ts"

type Shown = Tool.Tool<string, any, unknown, unknown, Provider.Provider | Scope.Scope | Tool.ToolContext>

interface Setting {
  readonly answering?: Output.Answering
  readonly fallbacks?: ReadonlyArray<string>
  readonly width?: number
}

/** What a run shows, write by write, each with its stream. A person is asked about the tool `asked`. */
const shownAs = Effect.fnUntraced(function* (
  { width = 0, ...options }: Setting,
  script: ScriptedProvider.Script,
  ...tools: ReadonlyArray<Shown>
) {
  const writes: Array<string> = []
  const to = (name: string) => (text: string) => Effect.sync(() => writes.push(`${name}: ${text}`))
  const screen = {
    out: (text: string) => Effect.asVoid(to("out")(text)),
    err: (text: string) => Effect.asVoid(to("err")(text)),
    paint: Screen.paintOf(false),
    isInteractive: false,
    rows: () => 24,
    width: () => width
  }
  const { show } = Output.text(screen, { ...options, asks: ({ toolName }) => toolName === "asked" })
  const retry = Retry.layer({ schedule: Schedule.recurs(1), retryTurn: true })
  yield* Effect.gen(function* () {
    const agent = yield* Agent.make({ model: "m", tools })
    yield* Stream.runForEach(agent.stream("go"), (event) => show([event]))
  }).pipe(Effect.scoped, Effect.provide(retry(ScriptedProvider.layer(script))))
  return writes
})

const shown = (script: ScriptedProvider.Script, ...tools: ReadonlyArray<Shown>) =>
  shownAs({}, script, ...tools)

const busy = new ProviderError.Overloaded({ detail: "busy" })

/** What is shown of an answer, of whose deltas only these have come. */
const shownOf = (text: string, ...deltas: ReadonlyArray<string>) => {
  let written = ""
  const out = (text: string) => Effect.sync(() => void (written += text))
  const { show } = Output.text({
    out,
    err: out,
    paint: Screen.paintOf(false),
    isInteractive: false,
    rows: () => 24,
    width: () => 0
  })
  const base = { runId: "r", seq: 1, turn: 1, timestamp: 0 }
  const message = Message.assistant(text)
  const events: ReadonlyArray<AgentEvent.AgentEvent> = [
    { ...base, _tag: "MessageStart", messageId: message.id, role: "assistant" },
    ...deltas.map((delta) => ({
      ...base,
      _tag: "MessageDelta" as const,
      messageId: message.id,
      delta: { _tag: "TextDelta" as const, contentIndex: 0, delta }
    })),
    { ...base, _tag: "MessageEnd", message }
  ]
  return Effect.map(show(events), () => written)
}

describe("TextOutput", () => {
  it.effect("writes what no delta has brought when the answer is whole", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* shownOf("Hello there"), "Hello there\n")
      assert.strictEqual(yield* shownOf("Hello there", "Hello"), "Hello there\n")
      assert.strictEqual(yield* shownOf("Hello there\n", "Hello", " there\n"), "Hello there\n")
      assert.strictEqual(yield* shownOf("Hello there", "there"), "there\nHello there\n")
    })
  )

  it.effect("ends the line of an answer that broke off, on its stream, before it says so", () =>
    Effect.gen(function* () {
      const broken = ScriptedProvider.turn(Step.start, Step.text("Hel"), Step.fail(busy))
      assert.deepStrictEqual(yield* shown([broken, ScriptedProvider.text("Hello")]), [
        "out: Hel",
        "out: \n",
        "err: Trying again: scripted: Overloaded: busy\n",
        "err: The answer broke off and starts again.\n",
        "out: Hello",
        "out: \n"
      ])
    })
  )

  it.effect("gives the reason of a retry, without the advice for developers or people", () =>
    Effect.gen(function* () {
      const lines = yield* Effect.forEach(
        [
          new ProviderError.RateLimited({ detail: "slow down", body: "" }),
          new ProviderError.Transport({ kind: "refused", detail: "connect ECONNREFUSED" })
        ],
        (reason) => shown([ScriptedProvider.fail(reason), ScriptedProvider.text("Hello")])
      )
      assert.deepStrictEqual(
        lines.map(([first]) => first),
        [
          "err: Trying again: scripted: RateLimited: slow down\n",
          "err: Trying again: scripted: Transport: connect ECONNREFUSED\n"
        ]
      )
    })
  )

  it.effect("writes a whole answer alone to a program that reads it", () =>
    Effect.gen(function* () {
      const ping = Tool.make({ name: "ping", description: "x", execute: () => Effect.succeed("pong") })
      const words = ScriptedProvider.turn(
        Step.start,
        Step.text("Let me look."),
        Step.toolCall("ping", {}),
        Step.finish("toolUse")
      )
      const broken = ScriptedProvider.turn(Step.start, Step.text("Hel"), Step.fail(busy))
      const writes = yield* shownAs(
        { answering: "whole" },
        [words, broken, ScriptedProvider.text("Hello")],
        ping
      )
      assert.deepStrictEqual(
        writes.filter((text) => text.startsWith("out: ")),
        ["out: Hello\n"]
      )
      assert.include(writes[0], "err: Let me look.\n")
    })
  )

  it.effect("marks the tools of a sub-agent, and leaves its text to the result of its call", () =>
    Effect.gen(function* () {
      const ping = Tool.make({ name: "ping", description: "x", execute: () => Effect.succeed("pong") })
      const helper = Agent.asTool({
        name: "helper",
        description: "x",
        agent: { model: "m", tools: [ping] }
      })
      const writes = yield* shown(
        [
          ScriptedProvider.toolCall("helper", { prompt: "Help" }),
          ScriptedProvider.toolCall("ping", {}),
          ScriptedProvider.text("inside"),
          ScriptedProvider.text("outside")
        ],
        helper
      )
      assert.deepStrictEqual(writes, [
        'err: → helper {"prompt":"Help"}\n',
        "err: │ → ping\n",
        "err: │ ← ping: pong\n",
        "err: ← helper: inside\n",
        "out: outside",
        "out: \n"
      ])
    })
  )

  it.effect("ends no line where none has begun", () =>
    Effect.gen(function* () {
      const writes = yield* shown([ScriptedProvider.fail(busy), ScriptedProvider.text("Hello")])
      assert.deepStrictEqual(writes.slice(1), ["out: Hello", "out: \n"])
    })
  )

  it.effect("shows the end of what a command has written, below the last line while it works", () =>
    Effect.gen(function* () {
      const output = Array.from({ length: 8 }, (_, n) => `line ${n}\t${"x".repeat(n)}`).join("\n")
      const shell = Tool.make({
        name: "shell",
        description: "x",
        params: Schema.Struct({ command: Schema.String }),
        execute: Effect.fnUntraced(function* () {
          const { progress } = yield* Tool.ToolContext
          yield* progress("10%\r20%\u001b[2J")
          return output
        })
      })
      const script = [ScriptedProvider.toolCall("shell", { command: "make" }), ScriptedProvider.text("Done")]
      const end = [
        "err: ← shell: 8 lines",
        ...[3, 4, 5, 6, 7].map((n) => `    line ${n}  ${"x".repeat(n)}`),
        ""
      ].join("\n")
      const elsewhere = yield* shown(script, shell)
      assert.deepStrictEqual(elsewhere.slice(0, 2), ["err: → shell make\n", end])
      const live = yield* shownAs({ width: 18 }, script, shell)
      assert.deepStrictEqual(live.slice(1, 4), ["err:     20%\\u{1b}[2J\n", "err: \u001b[1A\u001b[J", end])
    })
  )

  it.effect("names a call that continues in the background (row 151)", () =>
    Effect.gen(function* () {
      const work = Tool.make({
        name: "work",
        description: "x",
        blocking: false,
        execute: () => Effect.as(Effect.yieldNow, "worked")
      })
      const script = [
        ScriptedProvider.toolCall("work", {}),
        ScriptedProvider.text("I wait"),
        ScriptedProvider.text("Done")
      ]
      const lines = (yield* shown(script, work)).filter((line) => line.startsWith("err"))
      assert.deepStrictEqual(lines.slice(0, 2), [
        "err: → work\n",
        "err: … work continues in the background as bg_1\n"
      ])
      assert.include(lines, "err: ← work: worked\n")
    })
  )

  it.effect("names a call once, if a question names it", () =>
    Effect.gen(function* () {
      const asked = Tool.make({ name: "asked", description: "x", execute: () => Effect.succeed("yes") })
      const script = [ScriptedProvider.toolCall("asked", {}), ScriptedProvider.text("Done")]
      const policy = (decision: "allow" | "ask") =>
        Effect.provideService(Approval.Approval, {
          decide: () => Effect.succeed({ decision }),
          asked: {
            approve: () => Effect.succeed({ decision: "approve" as const }),
            answer: () => Effect.never
          }
        })
      const lines = (decision: "allow" | "ask") => policy(decision)(shown(script, asked))
      assert.deepStrictEqual((yield* lines("ask")).slice(0, 1), ["err: ← asked: yes\n"])
      assert.deepStrictEqual((yield* lines("allow")).slice(0, 2), ["err: → asked\n", "err: ← asked: yes\n"])
    })
  )

  it.effect("names the model that is asked next", () =>
    Effect.gen(function* () {
      const [first] = yield* shownAs({ fallbacks: ["b/two"] }, [
        ScriptedProvider.fail(busy),
        ScriptedProvider.text("Hello")
      ])
      assert.strictEqual(first, "err: Asking b/two: scripted: Overloaded: busy\n")
    })
  )
})
