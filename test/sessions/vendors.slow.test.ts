import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { LLMock } from "@copilotkit/aimock"
import { Effect, type Layer, Redacted, Schedule, Schema, Stream } from "effect"
import type { HttpClient } from "effect/http"
import { Agent, AgentEvent, Message, type Provider, Tool, Transcript } from "effect-agent"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { Retry } from "effect-agent/resilience"

interface Vendor {
  readonly name: string
  readonly model: string
  readonly layer: (origin: string) => Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>
}

const apiKey = Redacted.make("a key of this test")

const vendors: ReadonlyArray<Vendor> = [
  {
    name: "OpenAiCompatible",
    model: "gpt-5-mini",
    layer: (origin) =>
      OpenAiCompatible.layer({ ...OpenAiCompatible.presets.openAi, baseUrl: `${origin}/v1`, apiKey })
  },
  {
    name: "OpenAi",
    model: "gpt-5-mini",
    layer: (origin) => OpenAi.layer({ baseUrl: `${origin}/v1`, apiKey })
  },
  {
    name: "Anthropic",
    model: "claude-sonnet-5",
    layer: (origin) => Anthropic.layer({ baseUrl: origin, apiKey })
  },
  {
    name: "Google",
    model: "gemini-2.5-pro",
    layer: (origin) => Google.layer({ baseUrl: origin, apiKey })
  }
]

const answer = "Rain in Oslo, sun in Rome: take one coat with you, and leave the other one here."

/**
 * A server that plays a session of three turns: two calls at once, one that needs their results, and the answer, which
 * breaks off the first time.
 */
const serve = Effect.acquireRelease(
  Effect.promise(async () => {
    const mock = new LLMock({ port: 0 })
    const cities = ["Oslo", "Rome"].map((city) => ({ name: "weather", arguments: { city } }))
    mock.on({ hasToolResult: false }, { content: "Let me look.", toolCalls: cities })
    mock.on({ toolResultContains: "22 degrees" }, { toolCalls: [{ name: "pack", arguments: { coats: 1 } }] })
    const last = { toolResultContains: "packed" }
    mock.on(
      { ...last, sequenceIndex: 0 },
      { content: answer },
      { chunkSize: 4, latency: 1, truncateAfterChunks: 12 }
    )
    mock.on(last, { content: answer })
    await mock.start()
    return mock
  }),
  (mock) => Effect.promise(() => mock.stop())
)

const weather = Tool.make({
  name: "weather",
  description: "The weather in a city",
  params: Schema.Struct({ city: Schema.String }),
  execute: ({ city }) => Effect.succeed(city === "Oslo" ? "rain, 4 degrees" : "sun, 22 degrees")
})

const pack = Tool.make({
  name: "pack",
  description: "Packs coats",
  params: Schema.Struct({ coats: Schema.Finite }),
  execute: ({ coats }) => Effect.succeed(`packed ${coats}`)
})

const patient = Retry.layer({ schedule: Schedule.spaced("5 millis"), retryTurn: true })

const told = (message: Message.Message): string => {
  const text = Message.textOf(message)
  if (message.role === "toolResult") return `${message.toolName} ${message.outcome}: ${text}`
  return message.role === "assistant" ? `${message.stopReason}: ${text}` : text
}

const retries = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  events.flatMap((event) => (event._tag === "ModelCallRetry" ? [event] : []))

describe.concurrent.each(vendors)("a session with $name", ({ layer, model }) => {
  it.live("gets through a limit, lost connections, a failure and a cut answer", () =>
    Effect.gen(function* () {
      const mock = yield* serve
      // One after another: each is what the next attempt meets.
      const faults = [{ rateLimitRate: 1 }, { disconnectRate: 1 }, { dropRate: 1 }, { disconnectRate: 1 }, {}]
      const next = Effect.sync(() => mock.setChaos(faults.shift() ?? {}))
      yield* next
      const agent = yield* Agent.make({ model, tools: [weather, pack] }).pipe(
        Effect.provide(patient(layer(mock.url)))
      )
      const events = yield* agent.stream("I go to Oslo and Rome. Do I need a coat?").pipe(
        Stream.tap(({ _tag }) => (_tag === "ModelCallRetry" ? next : Effect.void)),
        Stream.runCollect
      )

      assert.deepStrictEqual(
        retries(events).map(({ error }) => error.reason._tag),
        ["RateLimited", "Transport", "ServerError", "Transport", "StreamTruncated"]
      )
      // The server asks for a second, the schedule for less.
      assert.isAtLeast(retries(events)[0]?.delayMs ?? 0, 1000)
      assert.strictEqual(events.filter(({ _tag }) => _tag === "MessageRetracted").length, 1)
      const { messages } = events.reduce(AgentEvent.fold, AgentEvent.initial())
      assert.deepStrictEqual(messages.map(told), [
        "I go to Oslo and Rome. Do I need a coat?",
        "toolUse: Let me look.",
        "weather success: rain, 4 degrees",
        "weather success: sun, 22 degrees",
        "toolUse: ",
        "pack success: packed 1",
        `stop: ${answer}`
      ])
      assert.deepStrictEqual(Transcript.violations(messages), [])
      assert.strictEqual(mock.getRequests().length, 8)
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.live("gets through whatever comes", () =>
    Effect.gen(function* () {
      const mock = yield* serve
      mock.setChaos({ dropRate: 0.3, disconnectRate: 0.3 })
      const agent = yield* Agent.make({ model, tools: [weather, pack] }).pipe(
        Effect.provide(patient(layer(mock.url)))
      )
      const { message, newMessages, status } = yield* agent.prompt("I go to Oslo and Rome. Do I need a coat?")

      assert.strictEqual(status, "completed")
      assert.strictEqual(message === undefined ? "" : Message.textOf(message), answer)
      assert.deepStrictEqual(Transcript.violations(newMessages), [])
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )
})
