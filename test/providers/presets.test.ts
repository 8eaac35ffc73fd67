import { assert, describe, it } from "@effect/vitest"
import { Cause, ConfigProvider, Effect, Layer, Schema, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Message, type ModelEvent, Provider } from "effect-agent"
import { OpenAiCompatible } from "effect-agent/providers"
import { events, serve, stream } from "./server.ts"

const Body = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))

const presets = Object.values(OpenAiCompatible.presets)

const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_795_392_000,
  model: "m",
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more
})

const call = (part: object) => chunk({ tool_calls: [{ index: 0, ...part }] })
const usage = { prompt_tokens: 30, completion_tokens: 12, total_tokens: 42 }
const last = { ...chunk({}), choices: [], usage }

/** As OpenAI streams a call: its head, then its arguments in parts, then the usage in a chunk of its own. */
const openAi = [
  chunk({ role: "assistant", content: "" }),
  call({ id: "call_1", type: "function", function: { name: "weather", arguments: "" } }),
  call({ function: { arguments: '{"city":' } }),
  call({ function: { arguments: '"Bonn"}' } }),
  chunk({}, "tool_calls"),
  last,
  "[DONE]"
]

/** Where the streams of vendors differ, by the id of the vendor. */
const answers: Readonly<Record<string, ReadonlyArray<unknown>>> = {
  // Usage comes in the last chunk, without `stream_options`.
  cohere: [
    chunk({
      role: "assistant",
      content: "",
      tool_calls: [
        { index: 0, id: "weather_1", type: "function", function: { name: "weather", arguments: "" } }
      ]
    }),
    call({ function: { arguments: '{"city": "Bonn"}' } }),
    chunk({}, "tool_calls", { usage }),
    "[DONE]"
  ],
  // Each chunk repeats the sources.
  perplexity: [
    chunk({ role: "assistant", content: "It rains." }, null, {
      citations: ["https://weather.example/bonn"],
      search_results: [{ title: "Bonn", url: "https://weather.example/bonn", date: "2026-11-20" }]
    }),
    call({ id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Bonn"}' } }),
    chunk({}, "tool_calls", {
      citations: ["https://weather.example/bonn"],
      search_results: [{ title: "Bonn", url: "https://weather.example/bonn", date: "2026-11-20" }],
      usage: { ...usage, search_context_size: "low" }
    })
  ],
  // The thinking is separate, and each chunk has the name of the assistant.
  minimax: [
    chunk({
      role: "assistant",
      name: "MiniMax AI",
      content: "",
      reasoning_details: [
        {
          type: "reasoning.text",
          id: "reasoning-text-1",
          format: "MiniMax-response-v1",
          index: 0,
          text: "Bonn, then."
        }
      ]
    }),
    call({
      id: "call_function_1",
      type: "function",
      function: { name: "weather", arguments: '{"city":"Bonn"}' }
    }),
    chunk({ role: "assistant" }, "tool_calls"),
    {
      ...last,
      input_sensitive: false,
      output_sensitive: false,
      base_resp: { status_code: 0, status_msg: "" }
    },
    "[DONE]"
  ],
  // Later parts of a call have an empty id and an empty name.
  qwen: [
    chunk({ role: "assistant", content: null, reasoning_content: "Bonn, then." }),
    chunk({
      content: null,
      tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "weather", arguments: "" } }]
    }),
    call({ id: "", type: "function", function: { name: "", arguments: '{"city": "Bonn"}' } }),
    chunk({ content: "" }, "tool_calls"),
    last,
    "[DONE]"
  ],
  // The first chunk is about the prompt and has no choice.
  github: [
    {
      ...chunk({}),
      choices: [],
      model: "",
      prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }]
    },
    ...openAi
  ],
  // Thinking comes as text and as details.
  vercel: [
    chunk({
      role: "assistant",
      reasoning: "Bonn, then.",
      reasoning_details: [{ type: "reasoning.text", text: "Bonn, then.", format: "unknown", index: 0 }]
    }),
    call({ id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Bonn"}' } }),
    chunk({ provider_metadata: { gateway: { cost: "0.0004" } } }, "tool_calls"),
    last,
    "[DONE]"
  ],
  // A model of Workers AI sends a call whole, in one chunk.
  cloudflare: [
    chunk({
      role: "assistant",
      content: null,
      tool_calls: [
        {
          index: 0,
          id: "chatcmpl-tool-1",
          type: "function",
          function: { name: "weather", arguments: '{"city": "Bonn"}' }
        }
      ]
    }),
    chunk({ content: "" }, "tool_calls"),
    { ...last, usage: { ...usage, prompt_tokens_details: { cached_tokens: 0 } } },
    "[DONE]"
  ],
  // The usage holds times.
  sambanova: [
    ...openAi.slice(0, -2),
    { ...last, usage: { ...usage, time_to_first_token: 0.1, total_latency: 0.2, stop_reason: "tool_calls" } },
    "[DONE]"
  ],
  // Every chunk holds the usage so far.
  deepinfra: [
    chunk({ role: "assistant", content: "" }, null, {
      usage: { prompt_tokens: 30, completion_tokens: 1, total_tokens: 31 }
    }),
    call({ id: "call_1", type: "function", function: { name: "weather", arguments: '{"city": "Bonn"}' } }),
    chunk({}, "tool_calls", { usage: { ...usage, estimated_cost: 0.00002 } }),
    "[DONE]"
  ]
}

const weather = {
  name: "weather",
  description: "Tells the weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
} as const

const environment = ({ apiKeyName, baseUrl }: OpenAiCompatible.Preset) => ({
  ...(apiKeyName === undefined ? {} : { [apiKeyName]: "key-of-vendor" }),
  ...Object.fromEntries(Array.from(baseUrl.matchAll(/\{(\w+)\}/g), ([, name]) => [name, "id"]))
})

const ask = (preset: OpenAiCompatible.Preset, options: OpenAiCompatible.ConfigOptions, env: object) =>
  Provider.Provider.use((provider) =>
    Stream.runCollect(
      provider.stream({
        model: "m",
        messages: [Message.user("hi")],
        tools: [weather],
        options: { maxTokens: 9 }
      })
    )
  ).pipe(
    Effect.provide(
      OpenAiCompatible.layerConfig(preset, options).pipe(
        Layer.provide([ConfigProvider.layer(ConfigProvider.fromUnknown(env)), FetchHttpClient.layer])
      )
    )
  )

const callIn = (events: ReadonlyArray<ModelEvent.ModelEvent>) => ({
  names: events.flatMap((event) => (event._tag === "ToolCallStart" ? [event.name] : [])),
  arguments: events.flatMap((event) =>
    event._tag === "ToolCallEnd" ? [Schema.decodeSync(Body)(event.rawArguments)] : []
  )
})

describe("presets", () => {
  it("have names of their own, and safe addresses", () => {
    assert.strictEqual(new Set(presets.map(({ id }) => id)).size, presets.length)
    for (const { apiKeyName, baseUrl } of presets)
      assert.strictEqual(new URL(baseUrl.replaceAll(/[{}]/g, "")).protocol, apiKeyName ? "https:" : "http:")
  })

  it.effect.each(presets)(
    "$id answers with a call of a tool, with its key, and under its name (rows 23, 24, 25)",
    (preset) =>
      Effect.gen(function* () {
        const server = yield* serve((response) => {
          stream(response).end(events(...(answers[preset.id] ?? openAi)))
        })
        const answer = yield* ask(preset, { baseUrl: server.baseUrl }, environment(preset))
        assert.strictEqual(answer[0]?._tag === "Start" ? answer[0].provider : "", preset.id)
        assert.deepStrictEqual(callIn(answer), {
          names: ["weather"],
          arguments: [{ city: "Bonn" }]
        })
        const end = answer.at(-1)
        assert.strictEqual(end?._tag === "Finish" ? end.stopReason : "", "toolUse")
        assert.strictEqual(end?._tag === "Finish" ? end.usage?.output : 0, 12)

        const [seen] = server.requests
        assert.strictEqual(seen?.url, "/v1/chat/completions")
        const sent = preset.apiKeyName === undefined ? undefined : "Bearer key-of-vendor"
        assert.strictEqual(seen?.headers.authorization, sent)
        for (const [name, value] of Object.entries(preset.headers ?? {}))
          assert.strictEqual(seen?.headers[name], value)
        const body = yield* Schema.decodeEffect(Body)(seen?.body ?? "")
        assert.strictEqual(body[preset.compat?.maxTokensField ?? "max_tokens"], 9)
        assert.include(body, preset.compat?.body ?? {})
      })
  )

  it.effect.each(presets.filter(({ baseUrl }) => baseUrl.includes("{")))(
    "$id fails with a sentence if a part of its address is not set",
    (preset) =>
      Effect.gen(function* () {
        const { apiKeyName = "" } = preset
        const exit = yield* Effect.exit(ask(preset, {}, { [apiKeyName]: "key" }))
        assert.match(
          exit._tag === "Failure" ? Cause.pretty(exit.cause) : "",
          /CLOUDFLARE_ACCOUNT_ID is not set\. Set it to that part of the address, or give the layer a baseUrl/
        )
      })
  )

  it.effect("take their address from the environment, where a region has its own", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => {
        stream(response).end(events(...openAi))
      })
      const env = { DASHSCOPE_API_KEY: "key", DASHSCOPE_BASE_URL: server.baseUrl }
      yield* ask(OpenAiCompatible.presets.qwen, {}, env)
      assert.strictEqual(server.requests.length, 1)
    })
  )

  it.effect("fill parts of their address from the environment", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => {
        stream(response).end(events(...openAi))
      })
      const preset = {
        id: "acme",
        baseUrl: `${server.baseUrl}/{ACCOUNT}/ai`,
        headerNames: { "x-gateway": "GATEWAY" }
      }
      yield* ask(preset, {}, { ACCOUNT: "a1", GATEWAY: "g1" })
      const [seen] = server.requests
      assert.strictEqual(seen?.url, "/v1/a1/ai/chat/completions")
      assert.strictEqual(seen?.headers["x-gateway"], "g1")
    })
  )
})
