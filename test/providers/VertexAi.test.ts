import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Message, ModelEvent, Provider } from "effect-agent"
import { VertexAi } from "effect-agent/providers"
import { GoogleAuth, UserRefreshClient } from "google-auth-library"
import { anthropicMessages } from "../../src/providers/internal/anthropic/protocol.ts"
import { asked } from "./asked.ts"
import { events, refuse, serve, stream } from "./server.ts"

const token = "planted-token-0123456789abcdef"
const project = "my-project"

const tool: Provider.ToolDefinition = {
  name: "look",
  description: "Looks.",
  parameters: { type: "object", properties: { at: { type: "string" } }, required: ["at"] }
}

const question = (model: string, fields: Partial<Provider.ModelRequest> = {}): Provider.ModelRequest => ({
  model,
  messages: [Message.user("Hi", 0)],
  tools: [tool],
  options: { maxTokens: 64 },
  ...fields
})

const ask = (options: VertexAi.Options, request: Provider.ModelRequest) =>
  VertexAi.make(options).pipe(
    Effect.flatMap((provider) =>
      provider.stream(request).pipe(Stream.runFold(() => ModelEvent.emptyReply, ModelEvent.append))
    ),
    Effect.provide(FetchHttpClient.layer)
  )

const gemini = events(
  {
    candidates: [{ content: { parts: [{ functionCall: { name: "look", args: { at: "sky" } } }] } }],
    responseId: "r1"
  },
  { candidates: [{ finishReason: "STOP" }], usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2 } }
)

const claude = events(
  {
    type: "message_start",
    message: { id: "m1", model: "claude-opus-5", content: [], usage: { input_tokens: 3 } }
  },
  { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "t1", name: "look" } },
  { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"at":' } },
  { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '"sky"}' } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 2 } },
  { type: "message_stop" }
)

/** The tool calls of an answer, and how it ended. */
const callsOf = ({ content, finish }: ModelEvent.Reply) => [
  finish?.stopReason,
  ...content.flatMap((block) => (block.type === "toolCall" ? [[block.name, block.rawArguments]] : []))
]

describe("VertexAi", () => {
  it.live("asks Gemini at the address of its publisher, and streams a tool call", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => void stream(response).end(gemini))
      const reply = yield* ask(
        { project, location: "europe-west4", accessToken: token, baseUrl: server.baseUrl },
        question("gemini-3.5-flash", {
          messages: [
            Message.user([{ type: "file", source: { data: "AA", mediaType: "text/csv" }, name: "a.csv" }])
          ]
        })
      )
      assert.deepStrictEqual(callsOf(reply), ["toolUse", ["look", '{"at":"sky"}']])
      const [seen] = server.requests
      assert.strictEqual(
        seen?.url,
        "/v1/projects/my-project/locations/europe-west4/publishers/google/models/gemini-3.5-flash:streamGenerateContent?alt=sse"
      )
      assert.strictEqual(seen?.headers.authorization, `Bearer ${token}`)
      const { name, description, parameters } = tool
      assert.deepStrictEqual(JSON.parse(seen?.body ?? ""), {
        contents: [
          {
            role: "user",
            parts: [{ inlineData: { mimeType: "text/csv", data: "AA", displayName: "a.csv" } }]
          }
        ],
        tools: [{ functionDeclarations: [{ name, description, parametersJsonSchema: parameters }] }],
        generationConfig: { maxOutputTokens: 64 }
      })
    })
  )

  it.live("asks Claude with the version in the body and no model, and streams a tool call", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => void stream(response).end(claude))
      const reply = yield* ask(
        { project, accessToken: Redacted.make(token), baseUrl: server.baseUrl },
        question("claude-opus-4-5@20251101")
      )
      assert.deepStrictEqual(callsOf(reply), ["toolUse", ["look", '{"at":"sky"}']])
      const [seen] = server.requests
      assert.strictEqual(
        seen?.url,
        "/v1/projects/my-project/locations/global/publishers/anthropic/models/claude-opus-4-5@20251101:streamRawPredict"
      )
      const body = JSON.parse(seen?.body ?? "")
      assert.strictEqual(body.anthropic_version, "vertex-2023-10-16")
      assert.isTrue(body.stream)
      assert.notProperty(body, "model")
      assert.notProperty(seen?.headers ?? {}, "anthropic-version")
      const { name, description, parameters } = tool
      assert.deepInclude(body.tools[0], { name, description, input_schema: parameters })
    })
  )

  it.live("offers Claude the tools that the server has, and reports the others", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => void stream(response).end(claude))
      const closed = { type: "object", properties: {}, additionalProperties: false }
      const reply = yield* ask(
        { project, accessToken: token, baseUrl: server.baseUrl },
        question("claude-opus-4-5@20251101", {
          tools: [{ ...tool, parameters: closed, strict: true }],
          options: {
            parallelToolCalls: false,
            hostedTools: [
              { type: "webSearch" },
              { type: "codeExecution" },
              { type: "computerUse", width: 8, height: 6 }
            ]
          }
        })
      )
      const [seen] = server.requests
      assert.strictEqual(seen?.headers["anthropic-beta"], "computer-use-2025-11-24")
      const { tool_choice, tools } = JSON.parse(seen?.body ?? "")
      assert.deepStrictEqual(tool_choice, { type: "auto", disable_parallel_tool_use: true })
      assert.deepStrictEqual(
        tools.map(({ name, strict, type }: Record<string, unknown>) => [type, name, strict]),
        [
          ["web_search_20250305", "web_search", undefined],
          ["computer_20251124", "computer", undefined],
          [undefined, tool.name, undefined]
        ]
      )
      assert.isDefined(reply)
    })
  )

  it.live("sends an API key in express mode, without a project", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => void stream(response).end(gemini))
      yield* ask({ apiKey: token, baseUrl: server.baseUrl.replace("/v1", "") }, question("gemini-3.5-flash"))
      const [seen] = server.requests
      assert.strictEqual(
        seen?.url,
        "/v1/publishers/google/models/gemini-3.5-flash:streamGenerateContent?alt=sse"
      )
      assert.strictEqual(seen?.headers["x-goog-api-key"], token)
      assert.notProperty(seen?.headers ?? {}, "authorization")
    })
  )

  it.effect("finds the server of each location", () =>
    Effect.gen(function* () {
      const addresses = yield* Effect.forEach([undefined, "us-central1", "eu"], (location) =>
        Effect.map(VertexAi.make({ project, location, accessToken: token }), ({ server }) => server?.address)
      )
      assert.deepStrictEqual(addresses, [
        "aiplatform.googleapis.com",
        "us-central1-aiplatform.googleapis.com",
        "aiplatform.eu.rep.googleapis.com"
      ])
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("has output schemas of Gemini only", () =>
    Effect.gen(function* () {
      const { structuredOutput } = yield* VertexAi.make({ project })
      const has = (model: string) => structuredOutput?.({ model, tools: [tool] })
      assert.isTrue(has("gemini-3.5-flash"))
      assert.isFalse(has("gemini-2.5-flash"))
      assert.isFalse(has("claude-opus-5"))
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it("counts the tokens of Claude without what only an answer needs", () => {
    const { counting } = anthropicMessages("google-vertex-anthropic", { version: "vertex-2023-10-16" })
    assert.isDefined(counting)
    const server = { id: "google-vertex-anthropic", endpoint: "messages", vendor: "anthropic" } as const
    const encode = counting === undefined ? () => "" : counting.encode
    const { messages, model, tools, ...others } = JSON.parse(
      String(asked(server, encode)(question("claude-opus-4-5@20251101")))
    )
    assert.strictEqual(model, "claude-opus-4-5@20251101")
    assert.lengthOf(messages, 1)
    assert.lengthOf(tools, 1)
    assert.deepStrictEqual(others, {})
    assert.strictEqual(counting?.read({ input_tokens: 9 }), 9)
  })

  it.live("counts tokens at the route of each publisher", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, { url }) =>
        refuse(response, 200, url.includes("anthropic") ? { input_tokens: 9 } : { totalTokens: 7 })
      )
      const layer = VertexAi.layer({ project, accessToken: token, baseUrl: server.baseUrl })
      const counts = yield* Effect.forEach(["gemini-3.5-flash", "claude-opus-5"], (model) =>
        Provider.countTokens(question(model))
      ).pipe(Effect.provide(layer), Effect.provide(FetchHttpClient.layer))
      assert.deepStrictEqual(
        counts.map(({ inputTokens }) => inputTokens),
        [7, 9]
      )
      assert.deepStrictEqual(
        server.requests.map(({ url }) =>
          url.replace("/v1/projects/my-project/locations/global/publishers", "")
        ),
        ["/google/models/gemini-3.5-flash:countTokens", "/anthropic/models/count-tokens:rawPredict"]
      )
    })
  )

  it.live("reads the project and the location from the environment", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => void stream(response).end(gemini))
      const layer = (env: Record<string, string>) =>
        VertexAi.layerConfig({ accessToken: token, baseUrl: server.baseUrl }).pipe(
          Layer.provide([FetchHttpClient.layer, ConfigProvider.layer(ConfigProvider.fromUnknown(env))])
        )
      const send = Provider.Provider.pipe(
        Effect.flatMap((provider) => Stream.runDrain(provider.stream(question("gemini-3.5-flash"))))
      )
      const env = { GOOGLE_CLOUD_PROJECT: "theirs", GOOGLE_CLOUD_LOCATION: "us" }
      yield* Effect.provide(send, layer(env))
      assert.include(server.requests[0]?.url, "/v1/projects/theirs/locations/us/publishers/google/")
      const failure = yield* Effect.flip(Effect.provide(send, layer({})))
      assert.strictEqual(failure._tag, "ConfigError")
    })
  )
})

describe("tokens of VertexAi", () => {
  /** The account of a user, whose tokens come from a server here. */
  const authOf = (oauth2TokenUrl: string) =>
    new GoogleAuth({
      authClient: new UserRefreshClient({
        clientId: "c",
        clientSecret: "s",
        refreshToken: "r",
        endpoints: { oauth2TokenUrl }
      })
    })

  const tokens = serve((response, _seen, count) =>
    refuse(response, 200, { access_token: `${token}-${count}`, expires_in: 3600, token_type: "Bearer" })
  )
  const error = {
    code: 401,
    message: "Request had invalid authentication credentials.",
    status: "UNAUTHENTICATED"
  }

  it.live("come from GoogleAuth, are used again, and are renewed when Vertex AI refuses one", () =>
    Effect.gen(function* () {
      const issuer = yield* tokens
      const server = yield* serve((response, { headers, url }) => {
        if (headers.authorization === `Bearer ${token}-1`) refuse(response, 401, { error })
        else stream(response).end(url.includes("anthropic") ? claude : gemini)
      })
      const auth = authOf(issuer.baseUrl)
      const options = { project, auth, baseUrl: server.baseUrl }
      yield* ask(options, question("gemini-3.5-flash"))
      yield* ask(options, question("claude-opus-5"))
      assert.deepStrictEqual(
        server.requests.map(({ headers }) => headers.authorization),
        [1, 2, 2].map((count) => `Bearer ${token}-${count}`)
      )
      assert.lengthOf(issuer.requests, 2)
    })
  )

  it.live("that are refused twice fail the call, without the token in the error", () =>
    Effect.gen(function* () {
      const issuer = yield* tokens
      const message = `No: ${token}-2`
      const server = yield* serve((response) => refuse(response, 401, { error: { ...error, message } }))
      const options = { project, auth: authOf(issuer.baseUrl), baseUrl: server.baseUrl }
      const failure = yield* Effect.flip(ask(options, question("gemini-3.5-flash")))
      assert.deepInclude(failure.reason, { _tag: "Unauthenticated", detail: "No: [redacted]" })
      assert.lengthOf(server.requests, 2)
    })
  )

  const failing = (options: VertexAi.Options) =>
    Effect.map(Effect.flip(ask({ project, ...options }, question("claude-opus-5"))), (failure) => [
      failure.provider,
      failure.reason._tag,
      failure.message
    ])

  it.live("that are missing fail the call with a reason", () =>
    Effect.gen(function* () {
      const refused = yield* serve((response) => refuse(response, 400, { error: "invalid_grant" }))
      const broken = { getAccessToken: () => Promise.reject(Object.assign(new Error("no"), { status: 503 })) }
      const found = yield* Effect.all([
        failing({}),
        failing({ auth: { getAccessToken: async () => undefined } }),
        failing({ auth: authOf(refused.baseUrl) }),
        failing({ auth: broken })
      ])
      assert.deepStrictEqual(
        found.map(([provider, tag]) => [provider, tag]),
        ["Unauthenticated", "Unauthenticated", "Unauthenticated", "ServerError"].map((tag) => [
          "google-vertex-anthropic",
          tag
        ])
      )
      assert.include(found[0]?.[2], "Set auth of VertexAi.layer")
      assert.include(found[2]?.[2], "invalid_grant")
    })
  )
})
