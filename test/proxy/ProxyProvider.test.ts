import { assert, describe, it } from "@effect/vitest"
import {
  Arbitrary,
  Deferred,
  Duration,
  Effect,
  Exit,
  Fiber,
  Option,
  Redacted,
  Schedule,
  Schema,
  Stream
} from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, Message, ModelEvent, Provider, ProviderError, Tool, ToolRegistry } from "effect-agent"
import { Credentials } from "effect-agent/providers"
import { ModelStream, ProxyProvider } from "effect-agent/proxy"
import { ScriptedProvider } from "effect-agent/testing"
import { serve, stream } from "../providers/server.ts"
import { proxied, request } from "./served.ts"

const Outcome = Schema.Struct({
  events: Schema.Array(ModelEvent.ModelEvent),
  error: Schema.optionalKey(ProviderError.ProviderError)
})
type Outcome = typeof Outcome.Type

const providerOf = ({ error, events }: Outcome): Provider.Provider["Service"] =>
  Provider.Provider.of({
    id: "acme",
    stream: () =>
      error === undefined
        ? Stream.fromIterable(events)
        : Stream.concat(Stream.fromIterable(events), Stream.fail(error))
  })

/** What a reader of an answer sees, as JSON. */
const seen = (answer: Stream.Stream<ModelEvent.ModelEvent, ProviderError.ProviderError>) =>
  Effect.gen(function* () {
    const events: Array<ModelEvent.ModelEvent> = []
    const exit = yield* Effect.exit(
      Stream.runForEach(answer, (event) => Effect.sync(() => events.push(event)))
    )
    const error = Exit.isSuccess(exit) ? Option.none() : Exit.findErrorOption(exit)
    return { events, error: Option.getOrUndefined(error) }
  })

const asJson = Schema.encodeUnknownSync(Schema.toCodecJson(Outcome))
const json = ({ error, events }: { readonly events: ReadonlyArray<unknown>; readonly error: unknown }) =>
  JSON.parse(JSON.stringify(asJson({ events, ...(error === undefined ? {} : { error }) })))

const once = { reconnect: Schedule.recurs(0) }
const reasonOf = (error: ProviderError.ProviderError | undefined) => error?.reason._tag

const answering = (status: number, body: string, headers: Record<string, string> = {}) =>
  Effect.gen(function* () {
    const server = yield* serve((response) => {
      response.writeHead(status, { "content-type": "application/problem+json", ...headers }).end(body)
    })
    const provider = yield* ProxyProvider.make({
      url: server.baseUrl,
      token: Redacted.make("t-secret-1"),
      ...once
    })
    const { error } = yield* seen(provider.stream(request))
    return error
  }).pipe(Effect.provide(FetchHttpClient.layer))

/** The bytes that a server sends for an answer. */
const bytesOf = (outcome: Outcome) =>
  Stream.runFold(
    ModelStream.encode(providerOf(outcome).stream(request)),
    () => Buffer.alloc(0),
    (all, bytes) => Buffer.concat([all, bytes])
  )

const answer: Outcome = {
  events: [
    {
      _tag: "Start",
      provider: "acme",
      model: "small",
      protocol: "acme-chat",
      headers: { "x-request-id": "r" }
    },
    { _tag: "ThinkingStart", contentIndex: 0 },
    { _tag: "ThinkingDelta", contentIndex: 0, delta: "héé🌍\n\r data: " },
    { _tag: "ThinkingEnd", contentIndex: 0, opaque: { signature: "abc" } },
    { _tag: "ToolCallStart", contentIndex: 1, id: "call_1", name: "echo" },
    { _tag: "ToolCallDelta", contentIndex: 1, delta: '{"text":"a\u2028"}' },
    { _tag: "ToolCallEnd", contentIndex: 1, rawArguments: '{"text":"a\u2028"}', opaque: "sig" },
    {
      _tag: "Finish",
      stopReason: "toolUse",
      usage: { input: 3, output: 2, cacheRead: 1, cacheWrite: 0, total: 5, cost: 0.1 }
    }
  ]
}

describe("ProxyProvider", () => {
  it.live("gives any list of events and any error of the server's provider", () =>
    Effect.gen(function* () {
      let current: Outcome = answer
      const inner = Provider.Provider.of({
        id: "acme",
        stream: (request) => providerOf(current).stream(request)
      })
      const proxy = yield* proxied(inner, once)
      const lossless = Effect.fnUntraced(function* (outcome: Outcome) {
        current = outcome
        const there = yield* seen(proxy.stream(request))
        // A provider that ends without `Finish` has an answer that was cut.
        const isCut = outcome.error === undefined && reasonOf(there.error) === "StreamTruncated"
        assert.deepStrictEqual(
          json({ ...there, error: isCut ? undefined : there.error }),
          json({ error: undefined, ...outcome })
        )
        return true
      })
      const result = yield* Arbitrary.checkEffect(Arbitrary.schema(Outcome), lossless, {
        seed: 3,
        runs: 60,
        size: 8
      })
      assert.strictEqual(Arbitrary.formatCheckFailure(result), undefined)
    })
  )

  it.live("gives the same prefix and StreamTruncated for an answer that is cut at any byte (row 240)", () =>
    Effect.gen(function* () {
      const events = answer.events.slice(4)
      const bytes = yield* bytesOf({ events })
      let length = 0
      const provider = yield* ProxyProvider.make({ url: "http://127.0.0.1:4111", ...once })
      const sliced = async () =>
        new Response(bytes.subarray(0, length), { headers: { "content-type": "text/event-stream" } })
      for (length = 0; length <= bytes.length; length++) {
        const read = yield* seen(provider.stream(request)).pipe(
          Effect.provideService(FetchHttpClient.Fetch, sliced)
        )
        assert.deepStrictEqual(read.events, events.slice(0, read.events.length))
        const isWhole = read.events.length === events.length
        assert.strictEqual(reasonOf(read.error), isWhole ? undefined : "StreamTruncated", `${length}`)
        assert.strictEqual(isWhole, length >= bytes.length)
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("reads an answer in pieces of one byte", () =>
    Effect.gen(function* () {
      const bytes = yield* bytesOf(answer)
      const server = yield* serve((response) => {
        const to = stream(response)
        for (const byte of bytes) to.write(Buffer.of(byte))
        to.end()
      })
      const provider = yield* ProxyProvider.make({ url: server.baseUrl, ...once })
      assert.deepStrictEqual((yield* seen(provider.stream(request))).events, answer.events)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("sends the request whole, with the token (rows 236, 237)", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).end())
      const provider = yield* ProxyProvider.make({
        url: `${server.baseUrl}/`,
        token: Redacted.make("t-1"),
        ...once
      })
      const full: Provider.ModelRequest = {
        ...request,
        system: "Be brief.",
        tools: [
          { name: "t", description: "d", parameters: { type: "object" }, strict: true, deferred: true }
        ],
        options: { temperature: 0, vendor: { acme: { user: "ada" } } }
      }
      yield* seen(provider.stream(full))
      const [{ body, headers, url } = { body: "", headers: {}, url: "" }] = server.requests
      assert.strictEqual(url, "/v1/model/stream")
      assert.strictEqual(headers.authorization, "Bearer t-1")
      assert.deepStrictEqual(JSON.parse(body), { request: full })
      const decoded = yield* ModelStream.decode(JSON.parse(body), { models: ["small"] })
      assert.deepStrictEqual(decoded, full)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("takes the token of Credentials first", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).end())
      const provider = yield* ProxyProvider.make({
        url: server.baseUrl,
        token: Redacted.make("t-1"),
        ...once
      })
      yield* seen(provider.stream(request)).pipe(
        Effect.provideService(Credentials.Credentials, {
          apiKey: (id) => Effect.succeed(id === "proxy" ? Option.some(Redacted.make("t-2")) : Option.none())
        })
      )
      assert.strictEqual(server.requests[0]?.headers.authorization, "Bearer t-2")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("leaves the server's provider when its reader leaves", () =>
    Effect.gen(function* () {
      const left = yield* Deferred.make<void>()
      const begun = yield* Deferred.make<void>()
      const inner = Provider.Provider.of({
        id: "acme",
        stream: () =>
          Stream.concat(Stream.fromIterable(answer.events.slice(0, 2)), Stream.never).pipe(
            Stream.ensuring(Deferred.succeed(left, undefined))
          )
      })
      const proxy = yield* proxied(inner)
      const reader = yield* Effect.forkChild(
        Stream.runForEach(proxy.stream(request), () => Deferred.succeed(begun, undefined))
      )
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(reader)
      yield* Deferred.await(left)
    })
  )

  it.live("leaves the server's provider before its first event too", () =>
    Effect.gen(function* () {
      const left = yield* Deferred.make<void>()
      const begun = yield* Deferred.make<void>()
      const inner = Provider.Provider.of({
        id: "acme",
        stream: () =>
          Stream.onStart(Stream.never, Deferred.succeed(begun, undefined)).pipe(
            Stream.ensuring(Deferred.succeed(left, undefined))
          )
      })
      const proxy = yield* proxied(inner)
      const reader = yield* Effect.forkChild(Stream.runDrain(proxy.stream(request)))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(reader)
      yield* Deferred.await(left)
    })
  )

  it.live.each([
    [400, "InvalidRequest"],
    [401, "Unauthenticated"],
    [403, "Forbidden"],
    [404, "NotFound"],
    [413, "ContextOverflow"],
    [429, "RateLimited"],
    [500, "ServerError"],
    [503, "ServerError"]
  ] as const)("fails for status %i with %s", ([status, tag]) =>
    Effect.gen(function* () {
      const problem = JSON.stringify({
        type: "about:blank",
        status,
        title: "Title",
        detail: "Not with t-secret-1"
      })
      const error = yield* answering(status, problem, { "retry-after": "7", "x-request-id": "r-1" })
      assert.strictEqual(reasonOf(error), tag)
      assert.deepInclude(error?.reason, { status, detail: "Not with [redacted]", requestId: "r-1" })
      const waits = tag === "RateLimited" || tag === "ServerError"
      assert.deepStrictEqual(error?.retryAfter, waits ? Duration.seconds(7) : undefined)
      assert.notInclude(JSON.stringify(error), "t-secret-1")
    })
  )

  it.live("does not follow a redirect, and takes no page for an answer", () =>
    Effect.gen(function* () {
      const redirect = yield* answering(302, "", { location: "http://127.0.0.1:9/steal" })
      assert.deepInclude(redirect?.reason, { _tag: "Transport", kind: "redirect" })
      const page = yield* answering(200, "<html>", { "content-type": "text/html" })
      assert.deepInclude(page?.reason, { _tag: "Protocol", kind: "contentType" })
    })
  )

  it.live("reconnects before the first event alone, and says so", () =>
    Effect.gen(function* () {
      const bytes = yield* bytesOf(answer)
      const server = yield* serve((response, _, count) => {
        if (count === 1) response.socket?.resetAndDestroy()
        else if (count === 2) response.writeHead(503).end()
        else if (count === 3) stream(response).end(": ping\n\n")
        else if (count === 4) stream(response).end(bytes)
        else stream(response).end(bytes.subarray(0, bytes.length - 10))
      })
      const reconnect = Schedule.recurs(5)
      const provider = yield* ProxyProvider.make({ url: server.baseUrl, reconnect })
      const whole = yield* seen(provider.stream(request))
      assert.deepStrictEqual(
        whole.events
          .slice(0, 3)
          .map((event) => (event._tag === "Attempt" ? reasonOf(event.error) : event._tag)),
        ["Transport", "ServerError", "StreamTruncated"]
      )
      assert.deepStrictEqual(whole.events.slice(3), answer.events)
      const cut = yield* seen(provider.stream(request))
      assert.strictEqual(reasonOf(cut.error), "StreamTruncated")
      assert.strictEqual(server.requests.length, 5)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("sends no request again that the server or its provider has refused", () =>
    Effect.gen(function* () {
      const error = new ProviderError.ProviderError({
        provider: "acme",
        reason: new ProviderError.Transport({ kind: "reset", detail: "of the vendor" })
      })
      const bytes = yield* bytesOf({ events: [], error })
      const server = yield* serve((response, _, count) => {
        if (count === 1) stream(response).end(bytes)
        else response.writeHead(429).end()
      })
      const provider = yield* ProxyProvider.make({ url: server.baseUrl, reconnect: Schedule.recurs(5) })
      assert.deepStrictEqual((yield* seen(provider.stream(request))).error, error)
      assert.strictEqual(reasonOf((yield* seen(provider.stream(request))).error), "RateLimited")
      assert.strictEqual(server.requests.length, 2)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("fails when the server stays silent, and keeps an answer that is complete", () =>
    Effect.gen(function* () {
      const bytes = yield* bytesOf(answer)
      const server = yield* serve((response, _, count) => {
        if (count === 1) stream(response).write(bytes.subarray(0, 300))
        if (count === 2) stream(response).write(bytes)
      })
      const timeouts = { idle: "60 millis", firstByte: "200 millis" } as const
      const provider = yield* ProxyProvider.make({ url: server.baseUrl, timeouts, ...once })
      const silent = yield* seen(provider.stream(request))
      assert.deepInclude(silent.error?.reason, { _tag: "StreamStalled", kind: "idle" })
      assert.deepStrictEqual(yield* seen(provider.stream(request)), {
        events: answer.events.slice(),
        error: undefined
      })
      const none = yield* seen(provider.stream(request))
      assert.deepInclude(none.error?.reason, { _tag: "StreamStalled", kind: "firstByte" })
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("skips events, members and reasons of later versions", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) =>
        stream(response).end(
          'event: Later\ndata: {"_tag":"Later","a":1}\n\n' +
            'event: TextStart\ndata: {"_tag":"TextStart","contentIndex":0,"later":1}\n\n' +
            'event: error\ndata: {"_tag":"ProviderError","provider":"acme","reason":{"_tag":"Later","detail":"Why"}}\n\n'
        )
      )
      const provider = yield* ProxyProvider.make({ url: server.baseUrl, ...once })
      const { error, events } = yield* seen(provider.stream(request))
      assert.deepStrictEqual(events, [{ _tag: "TextStart", contentIndex: 0 }])
      assert.deepInclude(error?.reason, { _tag: "ServerError", detail: "Why" })
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live.each([
    ["half a value", "{"],
    ["a list", "[]"],
    ["an event without its members", '{"_tag":"TextEnd"}'],
    ["a deep value", `{"_tag":"Source","source":${"[".repeat(5000)}`]
  ] as const)("fails for data that is no event: %s", ([, data]) =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).end(`event: TextEnd\ndata: ${data}\n\n`))
      const provider = yield* ProxyProvider.make({ url: server.baseUrl, ...once })
      const { error } = yield* seen(provider.stream(request))
      assert.deepInclude(error?.reason, { _tag: "Protocol", kind: "badShape" })
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("fails for an address or a token that no client can send", () =>
    Effect.gen(function* () {
      const noUrl = yield* ProxyProvider.make({ url: "localhost:4111", ...once })
      const noToken = yield* ProxyProvider.make({
        url: "http://127.0.0.1:9",
        token: Redacted.make("a\nb"),
        ...once
      })
      for (const provider of [noUrl, noToken]) {
        assert.strictEqual(reasonOf((yield* seen(provider.stream(request))).error), "InvalidRequest")
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("gives a run the transcript that it has without a proxy", () =>
    Effect.gen(function* () {
      const echo = Tool.make({
        name: "echo",
        description: "Returns its text",
        params: Schema.Struct({ text: Schema.String }),
        execute: ({ text }) => Effect.succeed(text)
      })
      const script = [ScriptedProvider.toolCall("echo", { text: "ö" }), ScriptedProvider.text("Done.")]
      const direct = yield* ScriptedProvider.make(script)
      const behind = yield* ScriptedProvider.make(script)
      const proxy = yield* proxied(behind.provider)
      const run = (provider: Provider.Provider["Service"]) =>
        Effect.gen(function* () {
          const agent = yield* Agent.make({ model: "small" })
          const { newMessages } = yield* agent.prompt(Message.user("Say ö", 0))
          return newMessages.map((message) => ({ ...message, id: "", timestamp: 0 }))
        }).pipe(
          Effect.provideService(Provider.Provider, provider),
          Effect.provide(ToolRegistry.layer(echo)),
          Effect.scoped
        )
      assert.deepStrictEqual(yield* run(proxy), yield* run(direct.provider))
    })
  )
})
