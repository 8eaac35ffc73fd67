import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule, type Scope, Stream } from "effect"
import { Agent, type AgentEvent, Message, Provider, ProviderError, Tool } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Paint from "../../src/cli/Paint.ts"
import * as TextOutput from "../../src/cli/TextOutput.ts"

type Shown = Tool.Tool<string, any, unknown, unknown, Provider.Provider | Scope.Scope | Tool.ToolContext>

/** What a run shows, write by write, each with its stream. */
const shownAs = Effect.fnUntraced(function* (
  answering: TextOutput.Answering,
  script: ScriptedProvider.Script,
  ...tools: ReadonlyArray<Shown>
) {
  const writes: Array<string> = []
  const to = (name: string) => (text: string) => Effect.sync(() => writes.push(`${name}: ${text}`))
  const screen = {
    out: (text: string) => Effect.asVoid(to("out")(text)),
    err: (text: string) => Effect.asVoid(to("err")(text)),
    paint: Paint.make(false),
    isInteractive: false,
    rows: () => 24
  }
  const show = TextOutput.make(screen, answering)
  const retry = Retry.layer({ schedule: Schedule.recurs(1), retryTurn: true })
  yield* Effect.gen(function* () {
    const agent = yield* Agent.make({ model: "m", tools })
    yield* Stream.runForEach(agent.stream("go"), (event) => show([event]))
  }).pipe(Effect.scoped, Effect.provide(retry(ScriptedProvider.layer(script))))
  return writes
})

const shown = (script: ScriptedProvider.Script, ...tools: ReadonlyArray<Shown>) =>
  shownAs("streamed", script, ...tools)

const busy = new ProviderError.Overloaded({ detail: "busy" })

/** What is shown of an answer, of whose deltas only these have come. */
const shownOf = (text: string, ...deltas: ReadonlyArray<string>) => {
  let written = ""
  const out = (text: string) => Effect.sync(() => void (written += text))
  const show = TextOutput.make({
    out,
    err: out,
    paint: Paint.make(false),
    isInteractive: false,
    rows: () => 24
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
        "err: Trying again in 0.0 s: scripted: Overloaded: busy\n",
        "err: The answer broke off and starts again.\n",
        "out: Hello",
        "out: \n"
      ])
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
      const writes = yield* shownAs("whole", [words, broken, ScriptedProvider.text("Hello")], ping)
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
})
