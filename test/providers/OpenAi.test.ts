import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Message, ModelEvent, Provider } from "effect-agent"
import * as OpenAi from "../../src/providers/OpenAi.ts"
import { events, refuse, serve, stream } from "./server.ts"

const key = "sk-proj-0123456789"

const item = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "sealed" }
const call = { id: "fc_1", type: "function_call", call_id: "call_1", name: "f", arguments: '{"a":1}' }
const thinksAndCalls = events(
  { type: "response.created", response: { id: "resp_1" } },
  { type: "response.output_item.done", output_index: 0, item },
  { type: "response.output_item.done", output_index: 1, item: call },
  { type: "response.completed", response: { id: "resp_1", status: "completed" } }
)

const ask = <E>(
  layer: Layer.Layer<Provider.Provider, E, never>,
  messages: ReadonlyArray<Message.ModelMessage> = [Message.user("Hi")]
) =>
  Effect.gen(function* () {
    const provider = yield* Provider.Provider
    return yield* Stream.runCollect(provider.stream({ model: "gpt-5", messages, tools: [], options: {} }))
  }).pipe(Effect.provide(layer))

const layer = (options: OpenAi.Options) => Layer.provide(OpenAi.layer(options), FetchHttpClient.layer)

const answering = serve((response) => stream(response).end(thinksAndCalls))

describe("OpenAi", () => {
  it.effect("asks, and gives back what it was answered", () =>
    Effect.gen(function* () {
      const server = yield* answering
      const asking = layer({ baseUrl: `${server.baseUrl}/`, apiKey: Redacted.make(key) })
      const hi = Message.user("Hi")
      const answered = yield* ask(asking, [hi])
      assert.deepInclude(answered.at(0), { _tag: "Start", provider: "openai", responseId: "resp_1" })
      assert.deepInclude(answered.at(-1), { _tag: "Finish", stopReason: "toolUse" })

      const reply = answered.reduce(ModelEvent.append, ModelEvent.emptyReply)
      const fields = { id: "a", timestamp: 0, provider: "", model: "", protocol: "" }
      const answer = ModelEvent.toAssistant(reply, fields)
      yield* ask(asking, [
        hi,
        answer,
        ...Message.toolCalls(answer).map((call) => Message.toolResult(call, "ok"))
      ])
      const [first, second] = server.requests
      assert.strictEqual(first?.url, "/v1/responses")
      assert.strictEqual(first?.headers.authorization, `Bearer ${key}`)
      assert.deepStrictEqual(JSON.parse(second?.body ?? "").input.slice(1), [
        item,
        call,
        { type: "function_call_output", call_id: "call_1", output: "ok" }
      ])
    })
  )

  it.effect("asks at an address with a query, or with all of it there", () =>
    Effect.gen(function* () {
      const server = yield* answering
      const origin = new URL(server.baseUrl).origin
      const paths = [
        "/openai/v1",
        "/openai?api-version=1",
        "/openai/responses?api-version=1",
        "/openai/responses/"
      ]
      for (const path of paths) yield* ask(layer({ baseUrl: origin + path, headers: { "api-key": key } }))
      assert.deepStrictEqual(
        server.requests.map(({ headers, url }) => [url, headers["api-key"], headers.authorization]),
        [
          ["/openai/v1/responses", key, undefined],
          ["/openai/responses?api-version=1", key, undefined],
          ["/openai/responses?api-version=1", key, undefined],
          ["/openai/responses", key, undefined]
        ]
      )
    })
  )

  it.effect("reads key, address and whom to charge from the environment (row 255)", () =>
    Effect.gen(function* () {
      const server = yield* answering
      const asked = (env: Record<string, string>) =>
        ask(
          OpenAi.layerConfig({ id: "mine" }).pipe(
            Layer.provide([
              FetchHttpClient.layer,
              ConfigProvider.layer(ConfigProvider.fromEnvRecord({ OPENAI_BASE_URL: server.baseUrl, ...env }))
            ])
          )
        )
      yield* asked({ OPENAI_API_KEY: key, OPENAI_ORG_ID: "org-1", OPENAI_PROJECT_ID: "proj_1" })
      const answered = yield* asked({ OPENAI_API_KEY: key, OPENAI_ORG_ID: "" })
      assert.deepInclude(answered.at(0), { provider: "mine" })
      const [first, second] = server.requests
      assert.deepInclude(first?.headers, { "openai-organization": "org-1", "openai-project": "proj_1" })
      assert.notProperty(second?.headers, "openai-organization")
      assert.notProperty(second?.headers, "openai-project")
      assert.strictEqual((yield* Effect.flip(asked({})))._tag, "ConfigError")
    })
  )

  it.effect("takes an option that is undefined for one that is not given", () =>
    Effect.gen(function* () {
      const server = yield* answering
      const options: OpenAi.ConfigOptions = {}
      Reflect.set(options, "baseUrl", undefined)
      Reflect.set(options, "id", undefined)
      const env = { OPENAI_BASE_URL: server.baseUrl, OPENAI_API_KEY: key }
      const answered = yield* ask(
        OpenAi.layerConfig(options).pipe(
          Layer.provide([FetchHttpClient.layer, ConfigProvider.layer(ConfigProvider.fromEnvRecord(env))])
        )
      )
      assert.deepInclude(answered.at(0), { provider: "openai" })
      assert.strictEqual(server.requests.length, 1)
    })
  )

  it.effect("asks another vendor by its preset, with the system prompt where that takes it (row 36)", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => refuse(response, 400, { error: { message: "captured" } }))
      const env = { XAI_API_KEY: "xai-key" }
      const provider = yield* Effect.provide(
        Provider.Provider,
        OpenAi.layerConfig({ preset: OpenAi.presets.xai, baseUrl: server.baseUrl }).pipe(
          Layer.provide([FetchHttpClient.layer, ConfigProvider.layer(ConfigProvider.fromEnvRecord(env))])
        )
      )
      assert.strictEqual(provider.id, "xai")
      const messages = [Message.user("Hi")]
      yield* Effect.flip(
        Stream.runDrain(
          provider.stream({
            model: "grok-4.5",
            system: "Be brief.",
            messages,
            tools: [],
            options: { thinkingLevel: "off" }
          })
        )
      )
      const [seen] = server.requests
      assert.strictEqual(seen?.headers.authorization, "Bearer xai-key")
      const body = JSON.parse(seen?.body ?? "{}")
      assert.notProperty(body, "instructions")
      assert.deepStrictEqual(body.input[0], { role: "system", content: "Be brief." })
      assert.deepStrictEqual(body.reasoning, { effort: "low" })
      assert.deepStrictEqual(body.include, ["reasoning.encrypted_content"])
    }).pipe(Effect.scoped)
  )

  it.effect("fails with the vendor's words", () =>
    Effect.gen(function* () {
      const message = "Invalid 'input[1].id'"
      const server = yield* serve((response) =>
        refuse(response, 400, { error: { message, type: "invalid_request_error" } })
      )
      const { reason } = yield* Effect.flip(ask(layer({ baseUrl: server.baseUrl })))
      assert.deepInclude({ ...reason }, { _tag: "InvalidRequest", detail: message, status: 400 })
    })
  )

  it.effect("says nothing that would end a call when the connection breaks", () =>
    Effect.gen(function* () {
      const cut = thinksAndCalls.slice(0, thinksAndCalls.indexOf('data: {"type":"response.completed"'))
      const server = yield* serve((response) => {
        stream(response).write(cut, () => response.destroy())
      })
      const seen: Array<string> = []
      const { reason } = yield* Effect.gen(function* () {
        const provider = yield* Provider.Provider
        const messages = [Message.user("Hi")]
        const answer = provider.stream({ model: "gpt-5", messages, tools: [], options: {} })
        return yield* Effect.flip(
          Stream.runForEach(answer, ({ _tag }) => Effect.sync(() => void seen.push(_tag)))
        )
      }).pipe(Effect.provide(layer({ baseUrl: server.baseUrl })))
      assert.strictEqual(reason._tag, "StreamTruncated")
      assert.notInclude(seen, "ToolCallEnd")
      assert.notInclude(seen, "Finish")
    })
  )
})
