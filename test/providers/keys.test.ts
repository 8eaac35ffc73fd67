import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Cause, ConfigProvider, Effect, Layer, Option, Redacted, Schedule, Stream } from "effect"
import { FetchHttpClient, type HttpClient } from "effect/http"
import { Agent, type AgentEvent, Message, Provider, ProviderError, Run } from "effect-agent"
import { NodeHttp } from "effect-agent/node"
import { Anthropic, Credentials, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { Fallback, Retry } from "effect-agent/resilience"
import { inspect } from "node:util"
import { refuse, type Seen, serve, type Server } from "./server.ts"

type ProviderLayer = Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>

/** Each with the name by which it asks for its key. */
const vendors: ReadonlyArray<{
  readonly name: string
  readonly id: string
  readonly layer: (options: {
    readonly baseUrl: string
    readonly apiKey?: Redacted.Redacted | string
  }) => ProviderLayer
}> = [
  { name: "OpenAi", id: "openai", layer: OpenAi.layer },
  {
    name: "OpenAiCompatible",
    id: "local",
    layer: (options) => OpenAiCompatible.layer({ id: "local", ...options })
  },
  { name: "Anthropic", id: "anthropic", layer: Anthropic.layer },
  { name: "Google", id: "google", layer: Google.layer }
]

const keyOfA = "sk-first-0123456789abcdef"
const keyOfB = "sk-second-fedcba9876543210"
const a = { apiKey: Redacted.make(keyOfA) }
const b = { apiKey: Redacted.make(keyOfB) }

/** Another vendor than this one. */
const otherLayer = (baseUrl: string, id: string, apiKey?: Redacted.Redacted): ProviderLayer =>
  OpenAiCompatible.layer({ id, baseUrl, ...(apiKey === undefined ? {} : { apiKey }) })

/** OpenAI's own server, by Chat Completions. */
const chat = (options: { readonly baseUrl: string; readonly apiKey?: Redacted.Redacted }) =>
  OpenAiCompatible.layer({ ...OpenAiCompatible.presets.openAi, ...options })

const fast = { schedule: Schedule.recurs(1) }

const ask = (model: string) =>
  Effect.flatMap(Provider.Provider, (provider) =>
    Stream.runDrain(provider.stream({ model, messages: [Message.user("hi")], tools: [], options: {} }))
  )

/** Everything a server saw of a request. */
const textOf = ({ body, headers, url }: Seen): string => JSON.stringify({ body, headers, url })

const holding = (server: Server, key: string): number =>
  server.requests.filter((seen) => textOf(seen).includes(key)).length

/** Each saw its own key with every request, and the other's never. */
const assertApart = (first: Server, second: Server, counts: readonly [number, number]) => {
  assert.deepStrictEqual([first.requests.length, second.requests.length], [...counts])
  assert.deepStrictEqual([holding(first, keyOfA), holding(second, keyOfB)], [...counts])
  assert.deepStrictEqual([holding(first, keyOfB), holding(second, keyOfA)], [0, 0])
}

const busy = serve((response) => refuse(response, 503, { error: { message: "busy" } }))
const denying = serve((response) => refuse(response, 401, { error: { message: "no such key" } }))

/** A key for each vendor, from one place. */
const vault = (keys: Readonly<Record<string, string>>) =>
  Credentials.layer((id) =>
    Effect.succeed(Option.map(Option.fromUndefinedOr(keys[id]), (key) => Redacted.make(key)))
  )

describe.each(vendors)("the key of $name", ({ id, layer }) => {
  it.live("may be plain text, which nothing shows", () =>
    Effect.gen(function* () {
      const reply = { error: { message: `no such key: ${keyOfA}` } }
      const server = yield* serve((response) => refuse(response, 401, reply))
      const { baseUrl } = server
      const plain = layer({ baseUrl, apiKey: `  ${keyOfA}\n` })
      yield* Effect.exit(ask("m").pipe(Effect.provide(layer({ baseUrl, ...a }))))
      const { reason, shown } = yield* shownOf(plain, FetchHttpClient.layer)
      const provider = yield* Effect.provide(Provider.Provider, plain)

      assert.strictEqual(reason._tag === "ProviderError" && reason.reason._tag, "Unauthenticated")
      assert.strictEqual(holding(server, keyOfA), 2)
      const [redacted, text] = server.requests.map(({ headers }) =>
        Object.fromEntries(Object.entries(headers).filter(([, value]) => String(value).includes(keyOfA)))
      )
      assert.deepStrictEqual(text, redacted)
      for (const seen of [shown, inspect([plain, provider], { depth: 20, showHidden: true })])
        assert.notInclude(seen, keyOfA)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("stays with it when another is asked in its place, however often", () =>
    Effect.gen(function* () {
      const [first, second] = yield* Effect.all([busy, busy])
      const inside = Retry.layer(fast)(layer({ baseUrl: first.baseUrl, ...a }))
      const both = Fallback.layer([inside, otherLayer(second.baseUrl, "second", b.apiKey)])
      yield* Effect.exit(ask("m").pipe(Effect.provide(Retry.layer(fast)(both))))
      assertApart(first, second, [4, 2])
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("goes where the router sends the model", () =>
    Effect.gen(function* () {
      const [first, second] = yield* Effect.all([busy, busy])
      const provider = Provider.router({
        first: yield* Effect.provide(Provider.Provider, layer({ baseUrl: first.baseUrl, ...a })),
        second: yield* Effect.provide(Provider.Provider, otherLayer(second.baseUrl, "second", b.apiKey))
      })
      for (const model of ["first/m", "second/m", "first/n", "third/m", "m"]) {
        yield* Effect.exit(ask(model).pipe(Effect.provideService(Provider.Provider, provider)))
      }
      assertApart(first, second, [2, 1])
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("comes from the vault under its own name, also after it was refused", () =>
    Effect.gen(function* () {
      const [first, second] = yield* Effect.all([denying, denying])
      const both = Fallback.layer([layer({ baseUrl: first.baseUrl }), otherLayer(second.baseUrl, "second")])
      yield* Effect.exit(
        ask("m").pipe(Effect.provide(both), Effect.provide(vault({ [id]: keyOfA, second: keyOfB })))
      )
      assertApart(first, second, [1, 1])
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("goes beside a query that the address has", () =>
    Effect.gen(function* () {
      const server = yield* busy
      for (const baseUrl of [server.baseUrl, `${server.baseUrl}/?api-version=1&x=2`]) {
        yield* Effect.exit(ask("m").pipe(Effect.provide(layer({ baseUrl, ...a }))))
      }
      const [plain = "", queried = ""] = server.requests.map(({ url }) => url)
      assert.strictEqual(queried, `${plain}${plain.includes("?") ? "&" : "?"}api-version=1&x=2`)
      assert.strictEqual(holding(server, keyOfA), 2)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("is not lent to a vendor that has none", () =>
    Effect.gen(function* () {
      const [first, second] = yield* Effect.all([busy, busy])
      const both = Fallback.layer([layer({ baseUrl: first.baseUrl }), otherLayer(second.baseUrl, "second")])
      yield* Effect.exit(ask("m").pipe(Effect.provide(both), Effect.provide(vault({ [id]: keyOfA }))))
      assert.deepStrictEqual([holding(first, keyOfA), second.requests.length], [1, 1])
      assert.strictEqual(holding(second, keyOfA), 0)
      const names = second.requests.flatMap(({ headers }) => Object.keys(headers))
      assert.deepStrictEqual(
        names.filter((name) => /auth|key/.test(name)),
        []
      )
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live.each([
    { client: "fetch", http: FetchHttpClient.layer },
    { client: "NodeHttp", http: NodeHttp.layer },
    { client: "undici", http: NodeHttpClient.layerUndici },
    { client: "node:http", http: NodeHttpClient.layerNodeHttp }
  ])("does not follow a redirect, with $client", ({ http }) =>
    Effect.gen(function* () {
      const second = yield* busy
      const statuses = [301, 302, 303, 307, 308]
      const first = yield* serve((response, seen, count) => {
        const { origin } = new URL(second.baseUrl)
        response.writeHead(statuses[count - 1] ?? 307, { location: `${origin}${seen.url}` }).end()
      })
      for (const _ of statuses) {
        const error = yield* Effect.flip(
          ask("m").pipe(Effect.provide(layer({ baseUrl: first.baseUrl, ...a })))
        )
        assert.deepInclude({ ...error.reason }, { _tag: "Transport", kind: "redirect" })
        assert.notInclude(JSON.stringify(error), keyOfA)
      }
      assertApart(first, second, [5, 0])
    }).pipe(Effect.provide(http))
  )
})

const clients = [
  { client: "fetch", http: FetchHttpClient.layer },
  { client: "NodeHttp", http: NodeHttp.layer },
  { client: "undici", http: NodeHttpClient.layerUndici },
  { client: "node:http", http: NodeHttpClient.layerNodeHttp }
]

/** All that is shown of what a run of an agent says and fails with. */
const shownOf = (layer: ProviderLayer, http: Layer.Layer<HttpClient.HttpClient>) =>
  Effect.gen(function* () {
    const agent = yield* Agent.make({ model: "m" })
    const events: Array<AgentEvent.AgentEvent> = []
    const hear = (event: AgentEvent.AgentEvent) => Effect.sync(() => events.push(event))
    const exit = yield* Effect.exit(Stream.runForEach(agent.stream("hi"), hear))
    assert(exit._tag === "Failure")
    const error = Cause.squash(exit.cause)
    assert.instanceOf(error, Run.RunFailed)
    const texts = [String(error), JSON.stringify([error, events]), inspect([error, events], { depth: 20 })]
    return { reason: error.reason, shown: [...texts, Cause.pretty(exit.cause)].join("\n") }
  }).pipe(Effect.scoped, Effect.provide(layer), Effect.provide(http))

describe.each(clients)("with $client", ({ http }) => {
  const secret = "sk-live-AAAA\nBBBBCCCCDDDD"
  const odd: ReadonlyArray<
    readonly [string, { apiKey?: Redacted.Redacted; headers?: Record<string, string> }]
  > = [
    ["a line end in a key", { apiKey: Redacted.make(secret) }],
    ["two line ends in a key", { apiKey: Redacted.make("sk-live-AAAA\r\nBBBBCCCCDDDD") }],
    ["a tab behind a line end in a key", { apiKey: Redacted.make("sk-live-AAAA\n\tBBBBCCCCDDDD") }],
    ["a character in a key that is no byte", { apiKey: Redacted.make("sk-live-AAAA€BBBBCCCCDDDD") }],
    ["a NUL in a key", { apiKey: Redacted.make("sk-live-AAAA\0BBBBCCCCDDDD") }],
    ["a line end in a header", { headers: { "x-api-key": secret } }],
    ["a name that is none", { headers: { "x api key": "sk-live-AAAABBBBCCCCDDDD" } }]
  ]

  it.live.each(odd)("%s is a typed failure that does not tell it, and nothing is sent", ([, options]) =>
    Effect.gen(function* () {
      const server = yield* busy
      const layer = OpenAiCompatible.layer({ id: "local", baseUrl: server.baseUrl, ...options })
      const { reason, shown } = yield* shownOf(layer, http)
      assert(reason._tag === "ProviderError")
      assert.strictEqual(reason.reason._tag, "InvalidRequest")
      assert.include(reason.reason.detail, "header")
      for (const piece of ["AAAA", "BBBB", "DDDD"]) assert.notInclude(shown, piece)
      assert.strictEqual(server.requests.length, 0)
    })
  )

  it.live("a key may hold any byte that a header may", () =>
    Effect.gen(function* () {
      const server = yield* busy
      const apiKey = Redacted.make("sk-\t ~é\xff!")
      yield* Effect.exit(
        ask("m").pipe(
          Effect.provide(OpenAiCompatible.layer({ id: "local", baseUrl: server.baseUrl, apiKey }))
        )
      )
      assert.strictEqual(server.requests.length, 1)
    }).pipe(Effect.provide(http))
  )

  it.live.each(["usr:hunter2", "tok1234", ":pw", "me:x", "ab:p%40s", "longer-user:longer-password"])(
    "%s in an address is not told",
    (credentials) =>
      Effect.gen(function* () {
        const [user = "", password = ""] = credentials.split(":").map(decodeURIComponent)
        const basic = btoa(`${user}:${password}`)
        const message = `<${user}> <${password}> ${credentials}@ Basic ${basic}`
        const server = yield* serve((response) => refuse(response, 401, { error: { message } }))
        const baseUrl = server.baseUrl.replace("//", `//${credentials}@`)
        const { shown } = yield* shownOf(OpenAiCompatible.layer({ id: "local", baseUrl }), http)
        // No part of a word: "me" and "x" are in many.
        for (const part of [user, password, basic].filter((part) => part !== "")) {
          assert.notInclude(shown.split(/[^\w@-]+/), part)
          assert.notInclude(shown, `${part}@`)
        }
      })
  )
})

describe("keys", () => {
  it.live("of Anthropic's subscriptions may be plain text, as a key and as a token", () =>
    Effect.gen(function* () {
      const server = yield* busy
      const { baseUrl } = server
      for (const key of [
        { apiKey: "sk-ant-oat01-x" },
        { authToken: "tok-x " },
        { authToken: "t", apiKey: "k" }
      ])
        yield* Effect.exit(ask("m").pipe(Effect.provide(Anthropic.layer({ baseUrl, ...key }))))
      assert.deepStrictEqual(
        server.requests.map(({ headers }) => [headers.authorization, headers["x-api-key"]]),
        [
          ["Bearer sk-ant-oat01-x", undefined],
          ["Bearer tok-x", undefined],
          ["Bearer t", undefined]
        ]
      )
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("are asked for anew with each attempt, each vendor's by its own name (row 40)", () =>
    Effect.gen(function* () {
      const [first, second] = yield* Effect.all([busy, busy])
      const asked: Array<string> = []
      const rotating = Credentials.layer((id) =>
        Effect.sync(() =>
          Option.some(Redacted.make(`${id === "anthropic" ? keyOfA : keyOfB}-${asked.push(id)}`))
        )
      )
      const both = Fallback.layer([
        Retry.layer(fast)(Anthropic.layer({ baseUrl: first.baseUrl })),
        Retry.layer(fast)(chat({ baseUrl: second.baseUrl }))
      ])
      yield* Effect.exit(ask("m").pipe(Effect.provide(both), Effect.provide(rotating)))

      assert.deepStrictEqual(asked, ["anthropic", "anthropic", "openai", "openai"])
      assertApart(first, second, [2, 2])
      assert.deepStrictEqual(
        first.requests.map(({ headers }) => headers["x-api-key"]),
        [`${keyOfA}-1`, `${keyOfA}-2`]
      )
      assert.deepStrictEqual(
        second.requests.map(({ headers }) => headers.authorization),
        [`Bearer ${keyOfB}-3`, `Bearer ${keyOfB}-4`]
      )
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("that cannot be had mean that nothing is sent", () =>
    Effect.gen(function* () {
      const server = yield* busy
      const locked = new ProviderError.ProviderError({
        provider: "openai",
        reason: new ProviderError.Unauthenticated({ detail: "the vault is locked" })
      })
      const error = yield* Effect.flip(
        ask("m").pipe(
          Effect.provide(chat({ baseUrl: server.baseUrl, ...a })),
          Effect.provide(Credentials.layer(() => Effect.fail(locked)))
        )
      )
      assert.strictEqual(error, locked)
      assert.strictEqual(server.requests.length, 0)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  const unset = "Set one of them to the key, or give the layer an apiKey"
  it.effect.each([
    {
      layer: OpenAi.layerConfig(),
      empty: "OPENAI_API_KEY",
      said: "OPENAI_API_KEY is not set. Set it to the key, or give the layer an apiKey"
    },
    {
      layer: Anthropic.layerConfig(),
      empty: "ANTHROPIC_API_KEY",
      said: `ANTHROPIC_API_KEY is not set, nor is ANTHROPIC_AUTH_TOKEN. ${unset}`
    },
    {
      layer: Google.layerConfig(),
      empty: "GOOGLE_API_KEY",
      said: `GEMINI_API_KEY is not set, nor is GOOGLE_API_KEY or GOOGLE_GENERATIVE_AI_API_KEY. ${unset}`
    }
  ])("that are missing are named: $said", ({ empty, layer, said }) =>
    Effect.gen(function* () {
      for (const env of [{}, { [empty]: "" }]) {
        const environment = ConfigProvider.layer(ConfigProvider.fromEnvRecord(env))
        const error = yield* Effect.flip(
          Layer.build(layer).pipe(Effect.scoped, Effect.provide([environment, FetchHttpClient.layer]))
        )
        assert.strictEqual(error._tag, "ConfigError")
        assert.strictEqual(error.cause._tag, "SourceError")
        assert.strictEqual(error.cause.message, said)
        assert.notInclude(error.cause.stack ?? "", "    at ")
      }
    })
  )

  it.effect("that cannot be read fail with what the source of the configuration says", () =>
    Effect.gen(function* () {
      const broken = new ConfigProvider.SourceError({ message: "the vault is locked" })
      const vault = ConfigProvider.layer(ConfigProvider.make(() => Effect.fail(broken)))
      for (const layer of [OpenAi.layerConfig(), Anthropic.layerConfig(), Google.layerConfig()]) {
        const error = yield* Effect.flip(
          Layer.build(layer).pipe(Effect.scoped, Effect.provide([vault, FetchHttpClient.layer]))
        )
        assert.strictEqual(error.cause, broken)
      }
    })
  )
})
