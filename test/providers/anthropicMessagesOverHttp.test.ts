import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Message, ModelEvent, Provider } from "effect-agent"
import * as Anthropic from "../../src/providers/Anthropic.ts"
import { events, refuse, type Server, serve, stream } from "./server.ts"

const key = "sk-ant-api03-0123456789"

/** The events of a message that says one thing. */
const message = (id: string, block: object, delta: object, stop_reason: string, fields: object = {}) =>
  events(
    { type: "message_start", message: { id, content: [], usage: { input_tokens: 10, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: block },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason, ...fields }, usage: { output_tokens: 5 } },
    { type: "message_stop" }
  )
const hello = message("msg_1", { type: "text", text: "" }, { type: "text_delta", text: "Hello" }, "end_turn")

const request: Provider.ModelRequest = {
  model: "claude-1",
  messages: [Message.user("Hi")],
  tools: [],
  options: {}
}

/** What the provider of a layer answers. */
const ask = <E>(layer: Layer.Layer<Provider.Provider, E, never>, options: Partial<typeof request> = {}) =>
  Effect.gen(function* () {
    const provider = yield* Provider.Provider
    return yield* Stream.runCollect(provider.stream({ ...request, ...options }))
  }).pipe(Effect.provide(layer))

const layer = (options: Anthropic.Options) => Layer.provide(Anthropic.layer(options), FetchHttpClient.layer)

const greeting = serve((response) => stream(response).end(hello))

const withoutVersion = ({ baseUrl }: Server) => baseUrl.replace(/\/v1$/, "")

describe("Anthropic", () => {
  it.effect("asks at the one address, with the key as the vendor wants it (rows 23, 26)", () =>
    Effect.gen(function* () {
      const server = yield* greeting
      for (const baseUrl of [server.baseUrl, `${server.baseUrl}/`, withoutVersion(server)]) {
        const answered = yield* ask(layer({ baseUrl, apiKey: Redacted.make(key) }))
        assert.deepInclude(answered.at(0), { _tag: "Start", provider: "anthropic", responseId: "msg_1" })
      }
      for (const { headers, url } of server.requests) {
        assert.strictEqual(url, "/v1/messages")
        assert.deepInclude(headers, { "x-api-key": key, "anthropic-version": "2023-06-01" })
        assert.notProperty(headers, "authorization")
      }
    })
  )

  it.effect("names the beta that a hosted tool is in, besides those of the application", () =>
    Effect.gen(function* () {
      const server = yield* greeting
      const { baseUrl } = server
      const options = { hostedTools: [{ type: "computerUse", width: 8, height: 6 }] } as const
      const click = (model: string, headers: Record<string, string> = {}, apiKey = key) =>
        ask(layer({ baseUrl, apiKey, headers }), { model, options })
      const beta = "computer-use-2025-11-24"
      yield* click("claude-opus-4-6")
      yield* click("claude-haiku-4-5", { "Anthropic-Beta": "files-1" })
      yield* click("claude-opus-4-6", { "anthropic-beta": `files-1, ${beta}` }, "sk-ant-oat01-x")
      yield* click("claude-opus-5-5")
      assert.deepStrictEqual(
        server.requests.map(({ headers }) => headers["anthropic-beta"]),
        [beta, "files-1,computer-use-2025-01-24", `files-1,${beta},oauth-2025-04-20`, undefined]
      )
    })
  )

  it.effect("sends a token as a bearer, and more headers (row 27)", () =>
    Effect.gen(function* () {
      const server = yield* greeting
      const { baseUrl } = server
      const headers = { "Anthropic-Beta": "files-1" }
      yield* ask(layer({ baseUrl, authToken: Redacted.make("token"), headers }))
      yield* ask(layer({ baseUrl, apiKey: Redacted.make("sk-ant-oat01-x"), headers }))
      const [first, second] = server.requests
      assert.deepInclude(first?.headers, { authorization: "Bearer token", "anthropic-beta": "files-1" })
      assert.deepInclude(second?.headers, {
        authorization: "Bearer sk-ant-oat01-x",
        "anthropic-beta": "files-1,oauth-2025-04-20"
      })
    })
  )

  it.effect("reads keys, address and headers from the environment", () =>
    Effect.gen(function* () {
      const server = yield* greeting
      const asked = (env: Record<string, string>) =>
        ask(
          Anthropic.layerConfig().pipe(
            Layer.provide([
              FetchHttpClient.layer,
              ConfigProvider.layer(
                ConfigProvider.fromEnvRecord({ ANTHROPIC_BASE_URL: withoutVersion(server), ...env })
              )
            ])
          )
        )
      yield* asked({ ANTHROPIC_API_KEY: key, ANTHROPIC_AUTH_TOKEN: "" })
      yield* asked({
        ANTHROPIC_API_KEY: "",
        ANTHROPIC_AUTH_TOKEN: "token",
        ANTHROPIC_CUSTOM_HEADERS: "X-A: 1:2\nX-B:3"
      })
      const [first, second] = server.requests
      assert.strictEqual(first?.headers["x-api-key"], key)
      assert.deepInclude(second?.headers, { authorization: "Bearer token", "x-a": "1:2", "x-b": "3" })
      assert.strictEqual((yield* Effect.flip(asked({})))._tag, "ConfigError")
    })
  )

  it.effect("asks a vendor that pauses to go on, and makes one answer of it", () =>
    Effect.gen(function* () {
      const search = { type: "server_tool_use", id: "srv_1", name: "web_search", input: {} }
      const input = { type: "input_json_delta", partial_json: '{"query":"x"}' }
      const paused = message("msg_1", search, input, "pause_turn", { container: { id: "container_1" } })
      const server = yield* serve((response, _, count) => stream(response).end(count < 3 ? paused : hello))
      const answered = yield* ask(layer({ baseUrl: server.baseUrl }))

      const use = { ...search, input: { query: "x" } }
      const [, second, third] = server.requests.map(({ body }) => JSON.parse(body))
      assert.strictEqual(second.container, "container_1")
      assert.deepStrictEqual(second.messages[1], { role: "assistant", content: [use] })
      assert.deepStrictEqual(third.messages[1], { role: "assistant", content: [use, use] })

      assert.deepStrictEqual(
        answered.map((event) =>
          "contentIndex" in event ? `${event._tag} ${event.contentIndex}` : event._tag
        ),
        [
          "Start",
          "HostedToolStart 0",
          "HostedToolEnd 0",
          "HostedToolStart 1",
          "HostedToolEnd 1",
          "TextStart 2",
          "TextDelta 2",
          "TextEnd 2",
          "Finish"
        ]
      )
      const last = answered.at(-1)
      assert(last?._tag === "Finish")
      assert.deepInclude(last.usage, { input: 30, output: 15, total: 45 })
    })
  )

  it.effect("takes the message that follows a pause for the same answer, whatever its id", () =>
    Effect.gen(function* () {
      const said = (id: string, text: string, stop: string) =>
        message(id, { type: "text", text: "" }, { type: "text_delta", text }, stop)
      const server = yield* serve((response, _, count) =>
        stream(response).end(
          count === 1 ? said("msg_1", "So", "pause_turn") : said(`msg_${count}`, " far", "end_turn")
        )
      )
      const answered = yield* ask(layer({ baseUrl: server.baseUrl }))
      assert.deepStrictEqual(
        answered.flatMap((event) => (event._tag === "TextDelta" ? [event.delta] : [])),
        ["So", " far"]
      )
      assert.deepInclude(answered.at(-1), { _tag: "Finish", stopReason: "stop" })
    })
  )

  it.effect("stops asking a vendor that only ever pauses", () =>
    Effect.gen(function* () {
      const paused = message(
        "msg_1",
        { type: "text", text: "" },
        { type: "text_delta", text: "." },
        "pause_turn"
      )
      const server = yield* serve((response) => stream(response).end(paused))
      const answered = yield* ask(layer({ baseUrl: server.baseUrl }))
      assert.deepInclude(answered.at(-1), { _tag: "Finish", stopReason: "length" })
      assert.strictEqual(server.requests.length, 21)
    })
  )

  it.effect("fails with what was said, when the vendor refuses to go on", () =>
    Effect.gen(function* () {
      const paused = message(
        "msg_1",
        { type: "text", text: "" },
        { type: "text_delta", text: "So" },
        "pause_turn"
      )
      const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }
      const server = yield* serve((response, _, count) =>
        count === 1 ? void stream(response).end(paused) : refuse(response, 529, error)
      )
      let reply = ModelEvent.emptyReply
      const failure = yield* Effect.gen(function* () {
        const provider = yield* Provider.Provider
        yield* Stream.runForEach(provider.stream(request), (event) =>
          Effect.sync(() => {
            reply = ModelEvent.append(reply, event)
          })
        )
      }).pipe(Effect.provide(layer({ baseUrl: server.baseUrl })), Effect.flip)
      assert.deepInclude(failure.reason, { _tag: "Overloaded", detail: "Overloaded", status: 529 })
      assert.deepStrictEqual(reply.content, [{ type: "text", text: "So" }])
      assert.isUndefined(reply.finish)
    })
  )
})
