import { ManagedIdentityCredential } from "@azure/identity"
import { assert, describe, it } from "@effect/vitest"
import { Cause, ConfigProvider, Effect, Layer, Option, Redacted, Stream } from "effect"
import { TestClock } from "effect/testing"
import { FetchHttpClient } from "effect/http"
import { Message, ModelEvent, Provider, type ProviderError } from "effect-agent"
import { AzureOpenAi, Credentials } from "effect-agent/providers"
import { events, refuse, serve, stream } from "./server.ts"

const weather: Provider.ToolDefinition = {
  name: "weather",
  description: "The weather in a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
}

const request: Provider.ModelRequest = {
  model: "my-gpt-5.5",
  messages: [Message.user("Rain in Bonn?", 0)],
  tools: [weather],
  options: { maxTokens: 64 }
}

/** The first tool call of an answer, by its name and arguments. */
const callOf = (provider: Provider.Provider["Service"]) =>
  provider.stream(request).pipe(
    Stream.runFold(() => ModelEvent.emptyReply, ModelEvent.append),
    Effect.map(({ content }) =>
      content.flatMap((block) => (block.type === "toolCall" ? [[block.name, block.rawArguments]] : []))
    )
  )

const ask = (options: AzureOpenAi.Options) =>
  AzureOpenAi.make(options).pipe(Effect.flatMap(callOf), Effect.provide(FetchHttpClient.layer))

/** As Azure streams it: the filters of the prompt come in a chunk of their own, before the answer. */
const chat = events(
  {
    choices: [],
    id: "",
    model: "",
    prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }]
  },
  {
    id: "c1",
    model: "gpt-5.5-2026-04-23",
    choices: [
      {
        index: 0,
        delta: {
          role: "assistant",
          tool_calls: [
            { index: 0, id: "call_1", type: "function", function: { name: "weather", arguments: "" } }
          ]
        },
        content_filter_results: {}
      }
    ]
  },
  {
    choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '{"city":"Bonn"}' } }] } }]
  },
  { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
  { choices: [], usage: { prompt_tokens: 20, completion_tokens: 6, total_tokens: 26 } },
  "[DONE]"
)

const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "weather" }

const responses = events(
  {
    type: "response.created",
    response: { id: "r1", model: "gpt-5.5", content_filters: null, status: "in_progress" }
  },
  {
    type: "response.output_item.added",
    output_index: 0,
    item: { ...call, arguments: "", status: "in_progress" }
  },
  {
    type: "response.function_call_arguments.delta",
    output_index: 0,
    item_id: "fc_1",
    delta: '{"city":"Bonn"}'
  },
  {
    type: "response.function_call_arguments.done",
    output_index: 0,
    item_id: "fc_1",
    arguments: '{"city":"Bonn"}'
  },
  {
    type: "response.output_item.done",
    output_index: 0,
    item: { ...call, arguments: '{"city":"Bonn"}', status: "completed" }
  },
  {
    type: "response.completed",
    response: {
      id: "r1",
      model: "gpt-5.5",
      status: "completed",
      output: [{ ...call, arguments: '{"city":"Bonn"}', status: "completed" }],
      usage: { input_tokens: 20, output_tokens: 6, total_tokens: 26 }
    }
  }
)

const answered = [["weather", '{"city":"Bonn"}']]

const denied = { error: { code: "401", message: "Access denied due to invalid subscription key." } }

describe("AzureOpenAi", () => {
  it.effect("asks the Responses API of a resource with its key, and streams a tool call", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => void stream(response).end(responses))
      const baseUrl = server.baseUrl.replace("/v1", "")
      assert.deepStrictEqual(yield* ask({ baseUrl, apiKey: "azure-key" }), answered)
      const [seen] = server.requests
      assert.strictEqual(seen?.url, "/openai/v1/responses")
      assert.strictEqual(seen?.headers["api-key"], "azure-key")
      assert.isUndefined(seen?.headers.authorization)
      assert.include(seen?.body, '"model":"my-gpt-5.5"')
    })
  )

  it.effect("asks Chat Completions, with the options of OpenAI", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => void stream(response).end(chat))
      const baseUrl = server.baseUrl.replace("/v1", "")
      assert.deepStrictEqual(yield* ask({ baseUrl, apiKey: "azure-key", api: "chat" }), answered)
      const [seen] = server.requests
      assert.strictEqual(seen?.url, "/openai/v1/chat/completions")
      assert.include(seen?.body, '"max_completion_tokens":64')
    })
  )

  it.effect.each(["", "/openai", "/openai/v1", "/openai/v1/", "?api-version=preview"])(
    "takes the address of a resource with %s at its end",
    (end) =>
      Effect.gen(function* () {
        const server = yield* serve((response) => void stream(response).end(responses))
        yield* ask({ baseUrl: `${server.baseUrl.replace("/v1", "")}${end}`, apiKey: "k" })
        const query = end.startsWith("?") ? end : ""
        assert.strictEqual(server.requests[0]?.url, `/openai/v1/responses${query}`)
      })
  )

  it.effect("sends the key of Credentials as the key of the resource", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => void stream(response).end(responses))
      yield* ask({ baseUrl: server.baseUrl, apiKey: "old" }).pipe(
        Effect.provideService(Credentials.Credentials, {
          apiKey: (id) => Effect.succeed(id === "azure" ? Option.some(Redacted.make("new")) : Option.none())
        })
      )
      assert.strictEqual(server.requests[0]?.headers["api-key"], "new")
    })
  )

  it.effect("fails with a typed error for a wrong key", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => refuse(response, 401, denied))
      const error = yield* Effect.flip(ask({ baseUrl: server.baseUrl, apiKey: "azure-secret-key" }))
      assert.strictEqual(reasonOf(error), "Unauthenticated")
      assert.notInclude(JSON.stringify(error), "azure-secret-key")
    })
  )
})

const reasonOf = (error: ProviderError.ProviderError) => error.reason._tag

/** A credential that counts its tokens, each of which holds for an hour of the clock of the test. */
const counting = () => {
  const scopes: Array<string> = []
  const credential: AzureOpenAi.TokenCredential = {
    getToken: (scope) => {
      scopes.push(scope)
      return Promise.resolve({
        token: `token-${scopes.length}`,
        expiresOnTimestamp: scopes.length * 3_600_000
      })
    }
  }
  return { credential, scopes }
}

describe("AzureOpenAi with tokens of Entra", () => {
  it.effect("keeps a token until five minutes before its end", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => void stream(response).end(responses))
      const { credential, scopes } = counting()
      const provider = yield* AzureOpenAi.make({ baseUrl: server.baseUrl, credential }).pipe(
        Effect.provide(FetchHttpClient.layer)
      )
      yield* Effect.all([callOf(provider), callOf(provider)], { concurrency: 2 })
      assert.deepStrictEqual(scopes, ["https://cognitiveservices.azure.com/.default"])
      yield* TestClock.adjust("54 minutes")
      yield* callOf(provider)
      assert.strictEqual(scopes.length, 1)
      yield* TestClock.adjust("1 minute")
      yield* callOf(provider)
      assert.strictEqual(scopes.length, 2)
      assert.deepStrictEqual(
        server.requests.map(({ headers }) => headers.authorization),
        ["Bearer token-1", "Bearer token-1", "Bearer token-1", "Bearer token-2"]
      )
    })
  )

  it.effect("requests another token after a refusal", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, { headers }) => {
        if (headers.authorization === "Bearer token-1") refuse(response, 401, denied)
        else stream(response).end(responses)
      })
      const { credential, scopes } = counting()
      const scope = "https://cognitiveservices.azure.us/.default"
      assert.deepStrictEqual(yield* ask({ baseUrl: server.baseUrl, credential, scope }), answered)
      assert.deepStrictEqual(scopes, [scope, scope])
    })
  )

  it.effect.each([
    [() => Promise.resolve(null), "Unauthenticated", /gives no token/],
    [() => Promise.reject(new Error("az login")), "Unauthenticated", /gives no token .*: az login/],
    [() => Promise.reject(Object.assign(new Error("busy"), { statusCode: 503 })), "ServerError", /busy/]
  ] as const)("fails with a typed error without a token", ([getToken, tag, words]) =>
    Effect.gen(function* () {
      const server = yield* serve((response) => void stream(response).end(responses))
      const error = yield* Effect.flip(ask({ baseUrl: server.baseUrl, credential: { getToken } }))
      assert.strictEqual(reasonOf(error), tag)
      assert.match(error.message, words)
      assert.strictEqual(server.requests.length, 0)
    })
  )

  it.live("takes a credential of @azure/identity: the managed identity of a machine", () =>
    Effect.gen(function* () {
      const identity = yield* serve((response, { headers }) => {
        if (headers["x-identity-header"] !== "header-secret") return refuse(response, 401, {})
        const seconds = Math.floor(Date.now() / 1000) + 3600
        refuse(response, 200, {
          access_token: "token-of-identity",
          expires_on: String(seconds),
          resource: "https://cognitiveservices.azure.com",
          token_type: "Bearer"
        })
      })
      const server = yield* serve((response) => void stream(response).end(responses))
      yield* environment({
        IDENTITY_ENDPOINT: `${identity.baseUrl}/msi/token`,
        IDENTITY_HEADER: "header-secret"
      })
      const credential = new ManagedIdentityCredential()
      assert.deepStrictEqual(yield* ask({ baseUrl: server.baseUrl, credential }), answered)
      assert.strictEqual(server.requests[0]?.headers.authorization, "Bearer token-of-identity")
    })
  )
})

/** Sets variables of this process until the scope closes. */
const environment = (variables: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => Object.assign(process.env, variables)),
    () =>
      Effect.sync(() => {
        for (const name of Object.keys(variables)) Reflect.deleteProperty(process.env, name)
      })
  )

describe("AzureOpenAi by the environment", () => {
  const asked = (env: object, options: AzureOpenAi.ConfigOptions = {}) =>
    Provider.Provider.use(callOf).pipe(
      Effect.provide(
        AzureOpenAi.layerConfig(options).pipe(
          Layer.provide([FetchHttpClient.layer, ConfigProvider.layer(ConfigProvider.fromUnknown(env))])
        )
      )
    )

  it.effect("reads the address and the key", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => void stream(response).end(responses))
      const address = { AZURE_OPENAI_ENDPOINT: server.baseUrl }
      assert.deepStrictEqual(yield* asked({ ...address, AZURE_OPENAI_API_KEY: "one" }), answered)
      yield* asked({ ...address, AZURE_API_KEY: "two" })
      yield* asked({ AZURE_API_KEY: "three" }, { baseUrl: server.baseUrl })
      yield* asked(address, { credential: counting().credential })
      assert.deepStrictEqual(
        server.requests.map(({ headers }) => headers["api-key"] ?? headers.authorization),
        ["one", "two", "three", "Bearer token-1"]
      )
    })
  )

  it.effect.each([
    [
      { AZURE_OPENAI_API_KEY: "k" },
      /AZURE_OPENAI_ENDPOINT is not set\. Set it to the address of the resource/
    ],
    [{ AZURE_OPENAI_ENDPOINT: "https://a.example" }, /AZURE_OPENAI_API_KEY is not set, nor is AZURE_API_KEY/]
  ] as const)("names the variable that is not set", ([env, words]) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(asked(env))
      assert.match(exit._tag === "Failure" ? Cause.pretty(exit.cause) : "", words)
    })
  )
})
