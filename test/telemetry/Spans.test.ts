import { assert, describe, it } from "@effect/vitest"
import { type Duration, Effect, Latch, Option, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  type AgentEvent,
  Hook,
  Loop,
  Message,
  Provider,
  ProviderError,
  Tool,
  ToolRegistry
} from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { named, record } from "./recorder.ts"

const busy = new ProviderError.RateLimited({ detail: "at capacity", retryAfter: "2 seconds" })

const start = (fields: {
  readonly model: string
  readonly responseModel?: string
  readonly responseId: string
}) => Step.event({ _tag: "Start", provider: "openai", protocol: "x", ...fields })

const weather = Tool.make({
  name: "weather",
  description: "Reads the weather.",
  params: Schema.Struct({ city: Schema.String }),
  execute: ({ city }) => (city === "Oslo" ? Effect.succeed("4 °C") : Effect.fail("no such city"))
})

/** A tool whose execution is a run of its own. */
const delegate = Tool.make({
  name: "delegate",
  description: "Asks a sub-agent.",
  execute: () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({ model: "small", agent: { name: "helper" } })
      const { message } = yield* agent.prompt("Help")
      return message && Message.textOf(message)
    }).pipe(
      Effect.scoped,
      Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Helped")])),
      Effect.orDie
    )
})

const prompt = (
  script: ScriptedProvider.Script,
  options: Partial<Agent.AgentOptions<ReadonlyArray<Tool.Runnable>, ReadonlyArray<Hook.Runnable>>> = {}
) =>
  Effect.gen(function* () {
    const agent = yield* Agent.make({ model: "m", ...options })
    return yield* agent.prompt("Hi")
  }).pipe(Effect.scoped, Effect.provide(ScriptedProvider.layer(script, { id: "openai" })))

const phases = (...begun: ReadonlyArray<readonly [phase: AgentEvent.Phase, turn: number]>) =>
  begun.map(
    ([phase, turn]) =>
      ["effect_agent.phase", { "effect_agent.run.phase": phase, "effect_agent.turn": turn }] as const
  )

/** Lets virtual time pass until the program ends. */
const passing = <A, E, R>(program: Effect.Effect<A, E, R>, step: Duration.Input = "1 second") =>
  Effect.raceFirst(program, Effect.forever(Effect.andThen(TestClock.adjust(step), Effect.yieldNow)))

describe("spans", () => {
  it.effect("of a call in the background ends at its end, with the handle (row 151)", () =>
    Effect.gen(function* () {
      const end = yield* Latch.make(false)
      const work = Tool.make({
        name: "work",
        description: "Works.",
        blocking: false,
        execute: () => Effect.as(end.await, "worked")
      })
      const afterTurn = Hook.afterModel(({ turn }) => (turn === 2 ? end.open : Effect.void))
      const script = [
        ScriptedProvider.toolCall("work", {}),
        ScriptedProvider.text("I wait."),
        ScriptedProvider.text("Done.")
      ]
      const { spans } = yield* record(prompt(script, { tools: [work], hooks: [afterTurn] }))
      const span = named(spans, "execute_tool work")
      assert.deepStrictEqual(
        [span.status, span.attributes["effect_agent.tool.background"], span.within.length],
        ["ok", "bg_1", 1]
      )
      assert.isAbove(
        spans.findIndex(({ name }) => name.startsWith("invoke_agent")),
        -1
      )
    })
  )

  it.effect("of a whole run: two turns, a retry, tools of which one fails, and a sub-agent (row 231)", () =>
    Effect.gen(function* () {
      const script = [
        ScriptedProvider.fail(busy),
        ScriptedProvider.turn(
          start({ model: "gpt-5", responseModel: "gpt-5-2026", responseId: "resp_1" }),
          Step.toolCall("weather", { city: "Oslo" }, { id: "c1" }),
          Step.toolCall("weather", { city: "Nowhere" }, { id: "c2" }),
          Step.toolCall("delegate", {}, { id: "c3" }),
          Step.finish("toolUse", { input: 100, output: 20, cacheRead: 60, cacheWrite: 10, reasoning: 5 })
        ),
        ScriptedProvider.turn(
          start({ model: "gpt-5", responseId: "resp_2" }),
          Step.text("4 °C"),
          Step.finish("stop", { input: 150, output: 3 })
        )
      ]
      const provider = Retry.layer()(ScriptedProvider.layer(script, { id: "openai" }))
      const run = Effect.gen(function* () {
        const agent = yield* Agent.make({
          model: "gpt-5",
          agent: { name: "forecaster", id: "agent-1", description: "Knows the weather." },
          tools: [weather, delegate],
          modelOptions: { sessionId: "s-1", maxTokens: 1000, temperature: 0.5, topP: 0.9, stop: ["END"] }
        })
        return yield* agent.prompt("Weather?")
      }).pipe(Effect.scoped, Effect.provide(provider), Effect.withSpan("request"))
      const { spans } = yield* record(passing(run))

      const agent = { "gen_ai.agent.id": "agent-1", "gen_ai.agent.name": "forecaster" }
      const common = { ...agent, "gen_ai.conversation.id": "s-1", "effect_agent.run.id": "run 1" }
      const request = {
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.request.max_tokens": 1000,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.stop_sequences": ["END"]
      }
      const usage = (input: number, output: number, cacheRead = 0, cacheWrite = 0) => ({
        "gen_ai.usage.input_tokens": input,
        "gen_ai.usage.output_tokens": output,
        "gen_ai.usage.cache_read.input_tokens": cacheRead,
        "gen_ai.usage.cache_creation.input_tokens": cacheWrite
      })
      const call = (id: string, name: string, description: string) => ({
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": description,
        "gen_ai.tool.call.id": id,
        "effect_agent.turn": 1,
        ...common
      })
      const inRun = ["invoke_agent forecaster", "request"]

      assert.deepStrictEqual(spans, [
        { name: "request", kind: "internal", within: [], status: "ok", attributes: {}, events: [] },
        {
          name: "invoke_agent forecaster",
          kind: "internal",
          within: ["request"],
          status: "ok",
          attributes: {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.description": "Knows the weather.",
            ...request,
            ...common,
            "effect_agent.run.status": "completed",
            "effect_agent.run.turns": 2,
            "gen_ai.response.finish_reasons": ["stop"],
            ...usage(250, 23, 60, 10),
            "gen_ai.usage.reasoning.output_tokens": 5
          },
          events: phases(
            ["model", 1],
            ["recovering", 1],
            ["model", 1],
            ["tools", 1],
            ["model", 2],
            ["finalizing", 2]
          )
        },
        {
          name: "chat gpt-5",
          kind: "client",
          within: inRun,
          status: "ok",
          attributes: {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.stream": true,
            "effect_agent.turn": 1,
            ...request,
            ...common,
            "gen_ai.response.id": "resp_1",
            "gen_ai.response.model": "gpt-5-2026",
            "gen_ai.response.time_to_first_chunk": 2,
            "gen_ai.response.finish_reasons": ["tool_call"],
            ...usage(100, 20, 60, 10),
            "gen_ai.usage.reasoning.output_tokens": 5
          },
          events: [
            [
              "effect_agent.retry",
              { "effect_agent.retry.attempt": 1, "effect_agent.retry.delay": 2, "error.type": "RateLimited" }
            ]
          ]
        },
        {
          name: "execute_tool weather",
          kind: "internal",
          within: inRun,
          status: "ok",
          attributes: {
            ...call("c1", "weather", "Reads the weather."),
            "effect_agent.tool.outcome": "success"
          },
          events: []
        },
        {
          name: "execute_tool weather",
          kind: "internal",
          within: inRun,
          status: "error: Tool weather failed: error",
          attributes: {
            ...call("c2", "weather", "Reads the weather."),
            "effect_agent.tool.outcome": "error",
            "error.type": "error"
          },
          events: []
        },
        {
          name: "execute_tool delegate",
          kind: "internal",
          within: inRun,
          status: "ok",
          attributes: {
            ...call("c3", "delegate", "Asks a sub-agent."),
            "effect_agent.tool.outcome": "success"
          },
          events: []
        },
        {
          name: "invoke_agent helper",
          kind: "internal",
          within: ["execute_tool delegate", ...inRun],
          status: "ok",
          attributes: {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": "scripted",
            "gen_ai.request.model": "small",
            "gen_ai.agent.name": "helper",
            "effect_agent.run.id": "run 2",
            "effect_agent.run.status": "completed",
            "effect_agent.run.turns": 1,
            "gen_ai.response.finish_reasons": ["stop"],
            ...usage(0, 0)
          },
          events: phases(["model", 1], ["finalizing", 1])
        },
        {
          name: "chat small",
          kind: "client",
          within: ["invoke_agent helper", "execute_tool delegate", ...inRun],
          status: "ok",
          attributes: {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "scripted",
            "gen_ai.request.model": "small",
            "gen_ai.request.stream": true,
            "effect_agent.turn": 1,
            "gen_ai.agent.name": "helper",
            "effect_agent.run.id": "run 2",
            "gen_ai.response.model": "small",
            "gen_ai.response.time_to_first_chunk": 0,
            "gen_ai.response.finish_reasons": ["stop"]
          },
          events: []
        },
        {
          name: "chat gpt-5",
          kind: "client",
          within: inRun,
          status: "ok",
          attributes: {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.stream": true,
            "effect_agent.turn": 2,
            ...request,
            ...common,
            "gen_ai.response.id": "resp_2",
            "gen_ai.response.model": "gpt-5",
            "gen_ai.response.time_to_first_chunk": 0,
            "gen_ai.response.finish_reasons": ["stop"],
            ...usage(150, 3)
          },
          events: []
        }
      ])
    })
  )

  it.effect("have no name of an agent without one, and the output type of a request with a schema", () =>
    Effect.gen(function* () {
      const output = { name: "answer", schema: { type: "object" } }
      const { spans } = yield* record(
        Loop.run("Hi", { messages: [] }, { model: "m", modelOptions: { output } }).pipe(
          Effect.provide([ScriptedProvider.layer([ScriptedProvider.text("{}")]), ToolRegistry.layer()])
        )
      )
      const [run, chat] = spans
      assert.deepStrictEqual([run?.name, chat?.name], ["invoke_agent", "chat m"])
      for (const span of [run, chat]) {
        assert.deepInclude(span?.attributes, { "gen_ai.output.type": "json" })
        assert.notProperty(span?.attributes, "gen_ai.agent.name")
      }
    })
  )

  it.effect("have the time to the first chunk in seconds", () =>
    Effect.gen(function* () {
      const slow = ScriptedProvider.turn(
        Step.sleep("2500 millis"),
        Step.text("Hi"),
        Step.sleep("4 seconds"),
        Step.finish()
      )
      const { spans } = yield* record(passing(prompt([slow]), "500 millis"))
      const { attributes } = named(spans, "chat m")
      assert.strictEqual(attributes["gen_ai.response.time_to_first_chunk"], 2.5)
    })
  )

  it.effect("have the server of a provider, and the provider by its conventional name", () =>
    Effect.gen(function* () {
      const { provider } = yield* ScriptedProvider.make([ScriptedProvider.text("Hi")], { id: "google" })
      const known = { ...provider, server: { address: "api.example.com", port: 8443 } }
      const { spans } = yield* record(
        Effect.gen(function* () {
          const agent = yield* Agent.make({ model: "m" })
          yield* agent.prompt("Hi")
        }).pipe(Effect.scoped, Effect.provideService(Provider.Provider, known))
      )
      const name = { "gen_ai.provider.name": "gcp.gemini" }
      assert.deepInclude(named(spans, "invoke_agent").attributes, name)
      assert.deepInclude(named(spans, "chat m").attributes, {
        ...name,
        "server.address": "api.example.com",
        "server.port": 8443
      })
    })
  )

  it.effect("of a call that is repeated for a hook: one for each execution", () =>
    Effect.gen(function* () {
      let times = 0
      const again = Hook.afterTool(() => Effect.sync(() => (times++ === 0 ? { retry: true } : {})))
      const script = [ScriptedProvider.toolCall("weather", { city: "Oslo" }), ScriptedProvider.text("ok")]
      const { spans } = yield* record(prompt(script, { tools: [weather], hooks: [again] }))
      assert.strictEqual(spans.filter(({ name }) => name === "execute_tool weather").length, 2)
    })
  )
})

describe("Effect's default tracer", () => {
  it.effect("has the spans of a run only inside a span of the application", () =>
    Effect.gen(function* () {
      const seen: Array<string | undefined> = []
      const look = Tool.make({
        name: "look",
        description: "Looks at its span.",
        execute: () =>
          Effect.map(Effect.option(Effect.currentSpan), (span) => {
            seen.push(Option.getOrUndefined(span)?.name)
            return "ok"
          })
      })
      const run = prompt([ScriptedProvider.toolCall("look", {}), ScriptedProvider.text("ok")], {
        tools: [look]
      })
      yield* run
      yield* Effect.withSpan(run, "request")
      assert.deepStrictEqual(seen, [undefined, "execute_tool look"])
    })
  )
})

describe("the span of a tool call", () => {
  const slow = Tool.make({
    name: "slow",
    description: "Waits.",
    timeout: "3 seconds",
    execute: () => Effect.never
  })
  const failing = Tool.make({
    name: "failing",
    description: "Returns an error.",
    execute: () => Effect.succeed(Tool.failure("No luck"))
  })
  const dying = Tool.make({
    name: "dying",
    description: "Dies.",
    execute: () => Effect.die(new Error("Boom"))
  })
  const tools = [weather, slow, failing, dying]
  const guard = Hook.beforeTool(({ call }) =>
    Effect.succeed(
      call.id === "blocked"
        ? { block: true, reason: "No" }
        : call.id === "skipped"
          ? { skip: true, result: "Cached" }
          : {}
    )
  )
  const approval = Hook.approveTool(({ call }) => Effect.succeed({ approved: call.id !== "rejected" }))

  /** Name, params and id of a call; then the outcome, the status and the type of its error. */
  const cases: ReadonlyArray<
    readonly [name: string, params: Schema.Json, id: string, outcome: string, status: string, type?: string]
  > = [
    ["weather", { city: "Oslo" }, "1", "success", "ok"],
    ["weather", { city: "X" }, "1", "error", "error: Tool weather failed: error", "error"],
    ["failing", {}, "1", "error", "error: Tool failing failed: error", "error"],
    ["dying", {}, "1", "error", "error: Tool dying failed: error", "error"],
    ["slow", {}, "1", "timeout", "timeout: Tool slow failed: timeout", "timeout"],
    ["absent", {}, "1", "unknownTool", "unknownTool: Tool absent failed: unknownTool", "unknownTool"],
    [
      "weather",
      {},
      "1",
      "invalidArguments",
      "invalidArguments: Tool weather failed: invalidArguments",
      "invalidArguments"
    ],
    ["weather", { city: "Oslo" }, "blocked", "blocked", "blocked: Tool weather failed: blocked", "blocked"],
    [
      "weather",
      { city: "Oslo" },
      "rejected",
      "rejected",
      "rejected: Tool weather failed: rejected",
      "rejected"
    ],
    ["weather", { city: "Oslo" }, "skipped", "skipped", "ok"]
  ]
  it.effect.each(cases)("%s %j %s is %s", ([name, params, id, outcome, status, type]) =>
    Effect.gen(function* () {
      const script = [ScriptedProvider.toolCalls({ name, params, id }), ScriptedProvider.text("ok")]
      const { spans } = yield* record(passing(prompt(script, { tools, hooks: [guard, approval] })))
      const span = named(spans, `execute_tool ${name}`)
      assert.strictEqual(span.status, status)
      assert.strictEqual(span.attributes["effect_agent.tool.outcome"], outcome)
      assert.strictEqual(span.attributes["error.type"], type)
      assert.deepStrictEqual(span.within, ["invoke_agent"])
    })
  )

  it.effect("is interrupted when the run is cancelled, and not an error", () =>
    Effect.gen(function* () {
      const script = [ScriptedProvider.toolCall("slow", {})]
      const { spans } = yield* record(
        Effect.gen(function* () {
          const agent = yield* Agent.make({ model: "m", tools })
          const begun = yield* Latch.make()
          yield* agent.subscribe((event) => (event._tag === "ToolInvoked" ? begun.open : Effect.void))
          const run = yield* agent.start("Hi")
          yield* begun.await
          yield* run.cancel("enough")
          yield* run.result
        }).pipe(Effect.scoped, Effect.provide(ScriptedProvider.layer(script)))
      )
      for (const name of ["execute_tool slow", "invoke_agent"]) {
        const { attributes, status } = named(spans, name)
        assert.deepStrictEqual([status, attributes["error.type"]], ["interrupted", "cancelled"], name)
      }
      assert.strictEqual(named(spans, "invoke_agent").attributes["effect_agent.run.status"], "cancelled")
      assert.strictEqual(named(spans, "execute_tool slow").attributes["effect_agent.tool.outcome"], "aborted")
    })
  )
})

describe("the span of a failure", () => {
  it.effect("of a model call and its run has the reason as its type", () =>
    Effect.gen(function* () {
      const { spans } = yield* record(prompt([ScriptedProvider.fail(busy)]))
      const chat = named(spans, "chat m")
      assert.match(chat.status, /^ProviderError: .*at capacity/)
      assert.strictEqual(chat.attributes["error.type"], "RateLimited")
      const run = named(spans, "invoke_agent")
      assert.match(run.status, /^RunFailed: .*at capacity/)
      assert.deepInclude(run.attributes, { "error.type": "RateLimited", "effect_agent.run.status": "failed" })
    })
  )

  it.effect("of an answer whose provider names a failure as its end", () =>
    Effect.gen(function* () {
      const broken = ScriptedProvider.turn(Step.text("Hm"), Step.finish("error"))
      const { spans } = yield* record(prompt([broken]))
      const { attributes, status } = named(spans, "chat m")
      assert.strictEqual(status, "ServerError: The provider ended its answer with an error")
      assert.deepInclude(attributes, {
        "error.type": "ServerError",
        "gen_ai.response.finish_reasons": ["error"]
      })
    })
  )

  it.effect("of a limit, and of a defect", () =>
    Effect.gen(function* () {
      const limited = yield* record(prompt([], { limits: { maxTurns: 0 } }))
      assert.strictEqual(named(limited.spans, "invoke_agent").attributes["error.type"], "LimitExceeded")
      const died = yield* record(prompt([ScriptedProvider.die(new TypeError("Boom"))]))
      for (const name of ["chat m", "invoke_agent"]) {
        const { attributes, status } = named(died.spans, name)
        assert.deepStrictEqual([attributes["error.type"], status], ["TypeError", "TypeError: Boom"])
      }
    })
  )

  it.effect("of a model call that is cut off is interrupted", () =>
    Effect.gen(function* () {
      const script = [ScriptedProvider.turn(Step.text("Well"), Step.never)]
      const { spans } = yield* record(
        Effect.gen(function* () {
          const agent = yield* Agent.make({ model: "m" })
          yield* agent.stream("Hi").pipe(
            Stream.takeUntil(({ _tag }) => _tag === "MessageDelta"),
            Stream.runDrain
          )
        }).pipe(Effect.scoped, Effect.provide(ScriptedProvider.layer(script)))
      )
      const { attributes, status } = named(spans, "chat m")
      assert.deepStrictEqual([status, attributes["error.type"]], ["interrupted", "cancelled"])
    })
  )

  it.effect("a sub-agent has its spans within that of its call, by the name of the tool", () =>
    Effect.gen(function* () {
      const helper = Agent.asTool({ name: "helper", description: "Helps.", agent: { model: "small" } })
      const program = Effect.gen(function* () {
        const agent = yield* Agent.make({ model: "m", agent: { name: "boss" }, tools: [helper] })
        yield* agent.prompt("Hi")
      }).pipe(
        Effect.scoped,
        Effect.provide(
          ScriptedProvider.layer([
            ScriptedProvider.toolCall("helper", { prompt: "Help" }),
            ScriptedProvider.text("Helped"),
            ScriptedProvider.text("Done")
          ])
        )
      )
      const { spans } = yield* record(program)
      const inside = spans.find(({ name }) => name === "invoke_agent helper")
      assert.deepStrictEqual(inside?.within, ["execute_tool helper", "invoke_agent boss"])
      const within = ["invoke_agent helper", "execute_tool helper", "invoke_agent boss"]
      assert.deepStrictEqual(spans.find(({ name }) => name === "chat small")?.within, within)
    })
  )
})
