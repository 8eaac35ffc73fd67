import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, References, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, Message, Tool } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { failing, ofTag, outcomes, play, range, reasonOf, resultTexts, say } from "../behaviour/play.ts"
import { serve, stream } from "../providers/server.ts"
import { looking, talking } from "./talking.ts"
import { type Said, wires } from "./wires.ts"

const done = ScriptedProvider.text("done")
const look = (id?: string | null) => ({ name: "look", args: '{"n":1}', ...(id === undefined ? {} : { id }) })
describe("an answer that", () => {
  // The other two have no word for it.
  for (const wire of wires.filter(({ name }) => /chat|anthropic/.test(name))) {
    it.live(
      `F073: says that it calls, and does not, is asked once more, and then fails the run, which keeps its words, on ${wire.name}`,
      () =>
        Effect.gen(function* () {
          const server = yield* serve((response) =>
            stream(response).end(wire.answer({ text: ["Let me look."], finish: "calls" }).join(""))
          )
          const provider = Retry.layer()(wire.layer(server.baseUrl)).pipe(
            Layer.provide(FetchHttpClient.layer)
          )
          const agent = yield* Agent.make({ model: "m", tools: [looking] }).pipe(Effect.provide(provider))
          const failure = yield* Effect.flip(agent.prompt("hi"))
          assert.include(String(failure), "ends for its tool calls, and has none")
          assert.strictEqual(server.requests.length, 2)
          const kept = (yield* agent.state.get).messages.at(-1)
          assert.strictEqual(kept && Message.textOf(kept), "Let me look.")
        })
    )
  }

  for (const wire of wires) {
    it.live(`F074: calls, and says that it stopped, has its calls run, on ${wire.name}`, () =>
      Effect.gen(function* () {
        const said: Said = { calls: [look("call_1")], finish: "stop" }
        const { agent, faults, server } = yield* talking(wire, [said], { tools: [looking] })
        const { newMessages, status } = yield* agent.prompt("hi")
        assert.deepStrictEqual([status, resultTexts(newMessages)], ["completed", ["seen"]])
        assert.deepStrictEqual([server.requests.length, faults()], [2, []])
      })
    )

    it.live(`F075: calls without an id, with none or an empty one is answered by one, on ${wire.name}`, () =>
      Effect.gen(function* () {
        for (const id of [undefined, null, ""]) {
          const calls = [look(id), look(id)]
          const { agent, asked, faults } = yield* talking(wire, [{ calls }, { calls }], { tools: [looking] })
          const { newMessages } = yield* agent.prompt("hi")
          const made = newMessages.flatMap((message) =>
            message.role === "assistant" ? Message.toolCalls(message).map((call) => call.id) : []
          )
          assert.strictEqual(new Set(made).size, 4)
          assert.isTrue(made.every((one) => one !== ""))
          assert.deepStrictEqual(
            newMessages.flatMap((message) => (message.role === "toolResult" ? [message.toolCallId] : [])),
            made
          )
          assert.deepStrictEqual(faults(), [])
          const sent = asked()[2]?.flatMap(({ by, ids }) => (by === "model" ? ids : [])) ?? []
          assert.strictEqual(new Set(sent).size, wire.name === "google-generative" ? 1 : 4)
        }
      })
    )
  }
})

describe("a call that the model got wrong", () => {
  const many = range(500).map((n) => say(`a_tool_with_a_long_name_${n}`))

  for (const name of ["nobody", "LOOK", "", "x".repeat(10_000)]) {
    const shown = name.slice(0, 10)
    it.effect(
      `F077: by the name ${JSON.stringify(shown)} is told the tools there are, in few words (row 143)`,
      () =>
        Effect.gen(function* () {
          const { events, view } = yield* play([ScriptedProvider.toolCall(name, { n: 1 }), done], {
            tools: [looking, ...many]
          })
          const [text = ""] = resultTexts(view.messages)
          assert.deepStrictEqual(outcomes(events), ["unknownTool"])
          assert.include(text, `"${shown}`)
          assert.include(text, "look, a_tool_with_a_long_name_0")
          assert.isAtMost(Buffer.byteLength(text), 2048)
          assert.strictEqual(view.status, "completed")
        })
    )

    it.effect(`F077: by the name ${JSON.stringify(shown)} again and again ends the run`, () =>
      Effect.gen(function* () {
        const { exit, requests } = yield* play(
          range(20).map(() => ScriptedProvider.toolCall(name, {})),
          { tools: [looking] }
        )
        assert.deepInclude(reasonOf(exit), { _tag: "LimitExceeded", limit: "maxIdenticalToolCalls" })
        assert.strictEqual(requests.length, 5)
      })
    )
  }

  for (const wire of wires) {
    it.live(`F077: by no name, or by one of nobody, is answered on ${wire.name}`, () =>
      Effect.gen(function* () {
        const calls = [
          { id: "call_1", name: "", args: "{}" },
          { id: "call_2", name: "nobody", args: "{}" },
          { id: "call_3", name: "look", args: '{"n":1}' }
        ]
        const { agent, faults, server } = yield* talking(wire, [{ calls }], { tools: [looking] })
        const { newMessages, status } = yield* agent.prompt("hi")
        assert.strictEqual(status, "completed")
        assert.include(resultTexts(newMessages).join("\n"), "seen")
        assert.deepStrictEqual([server.requests.length, faults()], [2, []])
      })
    )
  }

  const strict = Tool.make({
    name: "strict",
    description: "Takes much.",
    params: Schema.Struct({
      path: Schema.String,
      lines: Schema.Array(Schema.Struct({ n: Schema.Finite })),
      mode: Schema.Literals(["read", "write"])
    }),
    execute: () => Effect.die(new Error("it was run"))
  })
  const wrongs: ReadonlyArray<readonly [args: string, told: ReadonlyArray<string>]> = [
    ['{"path":"a","lines":[', ["not valid JSON"]],
    ['{"path":"a" "lines":[]}', ["not valid JSON"]],
    ["path=a", ["not valid JSON"]],
    ['["a"]', ["JSON object"]],
    ['{"lines":[],"mode":"read"}', ['"path"', "Missing"]],
    ['{"path":"a","lines":[{"n":1},{"n":"two"}],"mode":"read"}', ['["lines"][1]["n"]', "number"]],
    ['{"path":"a","lines":[],"mode":"append"}', ['"mode"', '"read"', '"write"']],
    [JSON.stringify({ path: "a", lines: range(3000).map(String), mode: "read" }), ['["lines"][0]']]
  ]
  for (const [args, words] of wrongs) {
    it.effect(`F079: by the arguments ${args.slice(0, 40)} is not run, and told precisely`, () =>
      Effect.gen(function* () {
        const wrong = ScriptedProvider.turn(Step.rawToolCall("strict", [args]), Step.finish("toolUse"))
        const { events, requests, view } = yield* play([wrong, done], { tools: [strict] })
        const [text = ""] = resultTexts(requests[1]?.messages)
        assert.deepStrictEqual(outcomes(events), ["invalidArguments"])
        assert.deepStrictEqual(ofTag(events, "ToolInvoked"), [])
        for (const word of words) assert.include(text, word)
        assert.isAtMost(Buffer.byteLength(text), 2048)
        assert.strictEqual(view.status, "completed")
      })
    )
  }
})

describe("a tool that", () => {
  class Trap extends Error {
    override get message(): string {
      throw new Error("in the getter")
    }
    override toString(): string {
      throw new Error("in toString")
    }
  }
  const planted = { authorization: "Bearer sk-planted", apiKey: "sk-planted", stack: "at planted.ts:1" }
  const thrown: ReadonlyArray<unknown> = [
    "a string",
    "",
    null,
    undefined,
    7n,
    Symbol("s"),
    () => "f",
    Object.freeze({ code: 1, ...planted }),
    Object.create(null),
    Object.freeze(new Error("frozen")),
    Object.assign(new Error("with more"), planted),
    new Trap(),
    new Proxy(
      {},
      {
        get: () => {
          throw new Error("in a proxy")
        }
      }
    )
  ]
  const ways: Readonly<Record<string, (value: unknown) => Tool.Runnable>> = {
    "throws in a plain function": (value) =>
      Tool.fromPromise({
        name: "bad",
        description: "",
        execute: () => {
          throw value
        }
      }),
    rejects: (value) =>
      Tool.fromPromise({ name: "bad", description: "", execute: () => Promise.reject(value) }),
    fails: (value) => failing("bad", value),
    dies: (value) => Tool.make({ name: "bad", description: "", execute: () => Effect.die(value) }),
    "throws before there is an effect": (value) =>
      Tool.make({
        name: "bad",
        description: "",
        execute: () => {
          throw value
        }
      })
  }

  for (const [way, make] of Object.entries(ways)) {
    it.effect(`F081: ${way} is an error for the model, whatever is thrown, and the run goes on`, () =>
      Effect.gen(function* () {
        const logged: Array<unknown> = []
        const logger = Logger.make<unknown, void>((entry) => {
          logged.push(entry.message)
          // As a logger does that writes: some of these it cannot.
          logged.push(Logger.formatStructured.log(entry))
        })
        for (const value of thrown) {
          const { events, view } = yield* play([ScriptedProvider.toolCall("bad", {}), done], {
            tools: [make(value)],
            layer: Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "All"))
          })
          const [text = "-"] = resultTexts(view.messages)
          assert.deepStrictEqual(outcomes(events), ["error"])
          assert.notMatch(text, /planted|\n\s+at /)
          assert.strictEqual(view.status, "completed")
        }
        assert.isAtLeast(logged.length, thrown.length)
      })
    )
  }

  it.effect("F082: returns what is no JSON is encoded or told as an error, and the run goes on", () =>
    Effect.gen(function* () {
      const circle: { self?: unknown } = {}
      circle.self = [circle]
      const returned: Readonly<Record<string, readonly [value: unknown, outcome: string, text: string]>> = {
        cyclic: [circle, "error", "not JSON"],
        function: [() => 1, "error", "not JSON"],
        symbol: [Symbol("s"), "error", "not JSON"],
        bigint: [10n, "error", "not JSON"],
        bigint_inside: [{ n: 10n }, "error", "not JSON"],
        throwing: [
          {
            toJSON: () => {
              throw new Error("no")
            }
          },
          "error",
          "not JSON"
        ],
        undefined: [undefined, "success", ""],
        undefined_inside: [{ a: undefined, b: [undefined] }, "success", '{"b":[null]}'],
        nan: [Number.NaN, "error", "not JSON"]
      }
      for (const [name, [value, outcome, words]] of Object.entries(returned)) {
        for (const tool of [
          say(name, value),
          Tool.fromPromise({ name, description: "", execute: () => value })
        ]) {
          const { events, view } = yield* play([ScriptedProvider.toolCall(name, {}), done], { tools: [tool] })
          assert.deepStrictEqual(outcomes(events), [outcome], name)
          assert.include(resultTexts(view.messages)[0], words)
          assert.strictEqual(view.status, "completed")
          assert.doesNotThrow(() => JSON.stringify(events))
        }
      }
    })
  )

  it.effect("F082: returns what its own schema does not know is told as what it is, or as an error", () =>
    Effect.gen(function* () {
      const circle: Array<unknown> = []
      circle.push(circle)
      const values: ReadonlyArray<readonly [value: any, outcome: string]> = [
        [{ at: new Date(0) }, "success"],
        [{ at: "no date" }, "success"],
        [circle, "error"],
        [10n, "error"]
      ]
      for (const [value, outcome] of values) {
        const tool = Tool.make({
          name: "when",
          description: "",
          success: Schema.Struct({ at: Schema.Date }),
          execute: () => Effect.succeed(value)
        })
        const { events, view } = yield* play([ScriptedProvider.toolCall("when", {}), done], { tools: [tool] })
        assert.deepStrictEqual([outcomes(events), view.status], [[outcome], "completed"])
      }
    })
  )
})
