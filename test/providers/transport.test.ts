import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  ConfigProvider,
  Context,
  Deferred,
  Duration,
  Effect,
  Exit,
  Fiber,
  Layer,
  Option,
  Redacted,
  Stream
} from "effect"
import { NodeHttpClient } from "@effect/platform-node"
import { FetchHttpClient, HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { Message, type ModelEvent, Provider, ProviderError } from "effect-agent"
import { NodeHttp } from "effect-agent/node"
import { Credentials, OpenAiCompatible } from "effect-agent/providers"
import { inspect } from "node:util"
import { gzipSync } from "node:zlib"
import { events, refuse, serve, stream } from "./server.ts"

const key = "sk-planted-0123456789abcdef"

const request: Provider.ModelRequest = {
  model: "m-1",
  messages: [Message.user("Hi", 0)],
  tools: [],
  options: {}
}

const chunk = (delta: object, finish: string | null = null) => ({
  id: "chatcmpl-1",
  choices: [{ index: 0, delta, finish_reason: finish }]
})
const hello = [chunk({ content: "Hel" }), chunk({ content: "lo" }), chunk({}, "stop")]
const answer = events(...hello, "[DONE]")
const eventStream = { "content-type": "text/event-stream" }

const make = (baseUrl: string, options: Partial<OpenAiCompatible.Options> = {}) =>
  OpenAiCompatible.make({ id: "acme", baseUrl, apiKey: Redacted.make(key), wire: "strict", ...options }).pipe(
    Effect.provide(FetchHttpClient.layer)
  )

/** The text of one answer. */
const ask = (baseUrl: string, options?: Partial<OpenAiCompatible.Options>) =>
  Effect.flatMap(make(baseUrl, options), (provider) => textOf(provider.stream(request)))

const textOf = <E>(answered: Stream.Stream<ModelEvent.ModelEvent, E>) =>
  Stream.runFold(
    answered,
    () => "",
    (text, event) => (event._tag === "TextDelta" ? text + event.delta : text)
  )

/** Why one answer failed. */
const failureOf = (baseUrl: string, options?: Partial<OpenAiCompatible.Options>) =>
  Effect.flip(ask(baseUrl, options))

const reasonOf = (baseUrl: string, options?: Partial<OpenAiCompatible.Options>) =>
  Effect.map(failureOf(baseUrl, options), (error) => error.reason)

const kindOf = (reason: ProviderError.Reason) => [reason._tag, "kind" in reason ? reason.kind : undefined]

describe("an answer over HTTP", () => {
  it.effect("streams what the server sends", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).end(answer))
      const provider = yield* make(`${server.baseUrl}/`, { headers: { "x-team": "blue" } })
      const said = yield* Stream.runCollect(provider.stream(request))

      assert.deepStrictEqual(
        said.map((event) => event._tag),
        ["Start", "TextStart", "TextDelta", "TextDelta", "TextEnd", "Finish"]
      )
      const [seen] = server.requests
      assert.deepStrictEqual(
        [seen?.url, seen?.headers.authorization],
        ["/v1/chat/completions", `Bearer ${key}`]
      )
      assert.deepStrictEqual(
        [seen?.headers["x-team"], seen?.headers["content-type"]],
        ["blue", "application/json"]
      )
      assert.notProperty(seen?.headers, "traceparent")
      assert.strictEqual(JSON.parse(seen?.body ?? "").model, "m-1")
    })
  )

  it.effect("is the same over any client", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).end(answer))
      const silent = yield* serve((response) => stream(response).write(events(hello[0])))
      for (const client of [NodeHttp.layer, NodeHttpClient.layerUndici, NodeHttpClient.layerNodeHttp]) {
        const over = (baseUrl: string) =>
          OpenAiCompatible.make({ id: "acme", baseUrl }).pipe(
            Effect.map((provider) => provider.stream(request))
          )
        const text = Effect.flatMap(over(server.baseUrl), textOf)
        assert.strictEqual(yield* Effect.provide(text, client), "Hello")
        const first = Effect.flatMap(over(silent.baseUrl), Stream.runHead)
        yield* Effect.provide(first, client)
      }
      yield* silent.idle
    })
  )

  it.effect("is decompressed", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => {
        response.writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" })
        response.end(gzipSync(answer))
      })
      assert.strictEqual(yield* ask(server.baseUrl), "Hello")
    })
  )

  it.effect("may come whole, as JSON", () =>
    Effect.gen(function* () {
      const whole = { choices: [{ index: 0, message: { content: "Hello" }, finish_reason: "stop" }] }
      const server = yield* serve((response) => refuse(response, 200, whole))
      assert.strictEqual(yield* ask(server.baseUrl), "Hello")
    })
  )

  it.effect("ends with its last event, though the server does not", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).write(answer))
      assert.strictEqual(yield* ask(server.baseUrl), "Hello")
      yield* TestClock.adjust("100 millis")
      yield* server.idle
    })
  )

  it.effect("uses its connection again", () =>
    Effect.gen(function* () {
      const ports = new Set<number | undefined>()
      const server = yield* serve((response) => {
        ports.add(response.socket?.remotePort)
        stream(response).end(answer)
      })
      for (let count = 0; count < 5; count++) yield* ask(server.baseUrl)
      // The next request may go out before the server has ended the last one.
      assert.isAtMost(ports.size, 2)
    })
  )

  it.effect("is not read ahead of a slow reader", () =>
    Effect.gen(function* () {
      let sent = 0
      const server = yield* serve((response) => {
        stream(response)
        const part = events(chunk({ content: "x".repeat(100_000) }))
        const more = () => {
          while (sent < 400 && response.write(part)) sent++
          if (sent++ < 400) response.once("drain", more)
        }
        more()
      })
      const provider = yield* make(server.baseUrl)
      yield* Stream.runHead(
        Stream.mapEffect(provider.stream(request), () =>
          Effect.promise(() => new Promise((wake) => setTimeout(wake, 150)))
        )
      )
      // What the kernel buffers of both sockets; without pressure it would be all 40 MB.
      assert.isBelow(sent, 200)
    })
  )
})

describe("leaving an answer", () => {
  const endless = serve((response) => {
    stream(response).write(events(chunk({ content: "Hel" })))
  })

  it.effect("closes the socket at once", () =>
    Effect.gen(function* () {
      const server = yield* endless
      const provider = yield* make(server.baseUrl)
      yield* Stream.runDrain(Stream.take(provider.stream(request), 1))
      yield* server.idle
    })
  )

  it.effect("closes the socket when it is interrupted", () =>
    Effect.gen(function* () {
      const server = yield* endless
      const provider = yield* make(server.baseUrl)
      const begun = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        Stream.runForEach(provider.stream(request), () => Deferred.succeed(begun, undefined))
      )
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      yield* server.idle
    })
  )

  it.effect("closes the socket before there is a response", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const server = yield* serve(() => Deferred.doneUnsafe(asked, Exit.void))
      const fiber = yield* Effect.forkChild(ask(server.baseUrl))
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(fiber)
      yield* server.idle
    })
  )
})

describe("silence", () => {
  /** Says something, then nothing, and gives the fiber that listens. */
  const stalled = Effect.fnUntraced(function* (first: string, options?: Partial<OpenAiCompatible.Options>) {
    const server = yield* serve((response) => stream(response).write(first))
    const provider = yield* make(server.baseUrl, options)
    const begun = yield* Deferred.make<void>()
    const fiber = yield* provider.stream(request).pipe(
      Stream.runForEach(() => Deferred.succeed(begun, undefined)),
      Effect.flip,
      Effect.forkChild
    )
    yield* Deferred.await(begun)
    yield* Effect.yieldNow
    return { fiber, server }
  })

  it.effect("of two minutes between content is a failure", () =>
    Effect.gen(function* () {
      const { fiber, server } = yield* stalled(events(chunk({ content: "Hel" })))
      yield* TestClock.adjust("119 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const { isRetryable, reason } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(kindOf(reason), ["StreamStalled", "idle"])
      assert.isTrue(isRetryable)
      yield* server.idle
    })
  )

  it.effect("is not broken by keep-alives", () =>
    Effect.gen(function* () {
      const { fiber } = yield* stalled(
        `${events(chunk({ content: "Hel" }))}: ping\n\n${events({ choices: [] })}`
      )
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual((yield* Fiber.join(fiber)).reason._tag, "StreamStalled")
    })
  )

  it.effect("is the server's, not that of a slow reader", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const server = yield* serve((response) => stream(response).end(answer))
      const provider = yield* make(server.baseUrl)
      const begun = yield* Deferred.make<void>()
      const fiber = yield* provider.stream(request).pipe(
        Stream.runForEach(() => Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(gate))),
        Effect.forkChild
      )
      yield* Deferred.await(begun)
      yield* TestClock.adjust("1 hour")
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(fiber)
    })
  )

  it.effect("before the response has its own limit (row 39)", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const server = yield* serve(() => Deferred.doneUnsafe(asked, Exit.void))
      const fiber = yield* Effect.forkChild(reasonOf(server.baseUrl))
      yield* Deferred.await(asked)
      yield* TestClock.adjust("1 minute")
      const reason = yield* Fiber.join(fiber)
      assert.deepStrictEqual(kindOf(reason), ["StreamStalled", "firstByte"])
      yield* server.idle
    })
  )

  it.effect("is as short as the limits say, whichever is shorter", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const server = yield* serve(() => Deferred.doneUnsafe(asked, Exit.void))
      const timeouts = { firstByte: "1 second", idle: "2 seconds" } as const
      const unheard = yield* Effect.forkChild(reasonOf(server.baseUrl, { timeouts }))
      yield* Deferred.await(asked)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(kindOf(yield* Fiber.join(unheard)), ["StreamStalled", "firstByte"])

      const { fiber } = yield* stalled(events(chunk({ content: "Hel" })), {
        timeouts: { firstByte: "1 hour", idle: "2 seconds" }
      })
      yield* TestClock.adjust("1999 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(kindOf((yield* Fiber.join(fiber)).reason), ["StreamStalled", "idle"])
    })
  )

  it.effect("or not, an answer may have a limit as a whole", () =>
    Effect.gen(function* () {
      const { fiber } = yield* stalled(events(chunk({ content: "Hel" })), {
        timeouts: { total: "10 seconds" }
      })
      yield* TestClock.adjust("10 seconds")
      const { reason } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(kindOf(reason), ["StreamStalled", "total"])
    })
  )

  it.effect("passes the limit of the whole answer while the reader works", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const server = yield* serve((response) => stream(response).write(events(chunk({ content: "Hel" }))))
      const provider = yield* make(server.baseUrl, { timeouts: { total: "10 seconds" } })
      const begun = yield* Deferred.make<void>()
      const fiber = yield* provider.stream(request).pipe(
        Stream.runForEach(() => Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(gate))),
        Effect.flip,
        Effect.forkChild
      )
      yield* Deferred.await(begun)
      yield* TestClock.adjust("10 seconds")
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual(kindOf((yield* Fiber.join(fiber)).reason), ["StreamStalled", "total"])
    })
  )

  it.effect("is noticed over a client whose stream does not end with its request", () =>
    Effect.gen(function* () {
      const first = new TextEncoder().encode(events(chunk({ content: "Hel" })))
      const endless = HttpClient.make((request) => {
        const web = HttpClientResponse.fromWeb(request, new Response("", { headers: eventStream }))
        const body = Stream.concat(Stream.make(first), Stream.never)
        return Effect.succeed(Object.create(web, { stream: { value: body } }))
      })
      const provider = yield* Effect.provideService(
        OpenAiCompatible.make({ id: "acme", baseUrl: "http://acme.test" }),
        HttpClient.HttpClient,
        endless
      )
      const begun = yield* Deferred.make<void>()
      const fiber = yield* provider.stream(request).pipe(
        Stream.runForEach(() => Deferred.succeed(begun, undefined)),
        Effect.flip,
        Effect.forkChild
      )
      yield* Deferred.await(begun)
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(kindOf((yield* Fiber.join(fiber)).reason), ["StreamStalled", "idle"])
    })
  )

  it.effect("after a finish reason fails nothing, and is not waited out", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).write(events(...hello)))
      const provider = yield* make(server.baseUrl)
      const begun = yield* Deferred.make<void>()
      const fiber = yield* provider.stream(request).pipe(
        Stream.tap(() => Deferred.succeed(begun, undefined)),
        textOf,
        Effect.forkChild
      )
      yield* Deferred.await(begun)
      yield* Effect.yieldNow
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(yield* Fiber.join(fiber), "Hello")
    })
  )
})

describe("a failure over HTTP", () => {
  it.effect("says how long to wait", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) =>
        refuse(
          response,
          429,
          { error: { message: "slow down" } },
          { "retry-after": "3", "x-request-id": "req-1" }
        )
      )
      const error = yield* failureOf(server.baseUrl)
      assert.deepStrictEqual(
        error.reason,
        new ProviderError.RateLimited({
          detail: "slow down",
          status: 429,
          requestId: "req-1",
          body: '{"error":{"message":"slow down"}}',
          retryAfter: Duration.seconds(3)
        })
      )
      assert.strictEqual(error.message, "acme: RateLimited: slow down")
    })
  )

  it.effect("is one when the stream just ends", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).end(events(chunk({ content: "Hel" }))))
      assert.strictEqual((yield* reasonOf(server.baseUrl))._tag, "StreamTruncated")
    })
  )

  it.effect("is one when the stream ends in the middle of an event, or the connection breaks", () =>
    Effect.gen(function* () {
      const cut = yield* serve((response) => stream(response).end(answer.slice(0, 70)))
      const broken = yield* serve((response) => {
        stream(response).write(events(chunk({ content: "Hel" })), () => response.socket?.resetAndDestroy())
      })
      for (const { baseUrl } of [cut, broken]) {
        const { isRetryable, reason } = yield* failureOf(baseUrl)
        assert.deepStrictEqual([reason._tag, isRetryable], ["StreamTruncated", true])
      }
    })
  )

  it.effect("is one when nothing comes, or no event stream", () =>
    Effect.gen(function* () {
      const empty = yield* serve((response) => stream(response).end())
      const none = yield* serve((response) => response.writeHead(204).end())
      const html = yield* serve((response) =>
        response.writeHead(200, { "content-type": "text/html" }).end("<html>Sign in</html>")
      )
      const error = yield* serve((response) =>
        refuse(response, 200, { error: { message: "no endpoint", code: 404 } })
      )
      const printed = yield* serve((response) => {
        stream(response).end(
          `${events(chunk({ content: "Hel" }))}{"error":\n{"message":"cancelled","code":499}}\n`
        )
      })
      assert.deepStrictEqual(kindOf(yield* reasonOf(empty.baseUrl)), ["Protocol", "empty"])
      assert.deepStrictEqual(kindOf(yield* reasonOf(none.baseUrl)), ["Protocol", "empty"])
      assert.deepStrictEqual(kindOf(yield* reasonOf(html.baseUrl)), ["Protocol", "contentType"])
      assert.strictEqual((yield* reasonOf(error.baseUrl))._tag, "NotFound")
      assert.strictEqual((yield* reasonOf(printed.baseUrl)).detail, "cancelled")
    })
  )

  it.effect("is one for an event of that name, whatever it holds", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).end("event: error\ndata: it broke\n\n"))
      const reason = yield* reasonOf(server.baseUrl)
      assert.deepStrictEqual([reason._tag, reason.detail], ["ServerError", "it broke"])
    })
  )

  it.effect("is one for a redirect, which is not followed", () =>
    Effect.gen(function* () {
      const other = yield* serve((response) => stream(response).end(answer))
      const server = yield* serve((response) => response.writeHead(307, { location: other.baseUrl }).end())
      assert.deepStrictEqual(kindOf(yield* reasonOf(server.baseUrl)), ["Transport", "redirect"])
      assert.strictEqual(other.requests.length, 0)
    })
  )

  it.effect("tells where a connection could not be made", () =>
    Effect.gen(function* () {
      const closed = yield* Effect.scoped(serve(() => {}))
      const plain = yield* serve(() => {})
      const reset = yield* serve((response) => response.socket?.resetAndDestroy())
      const noise = yield* serve((response) => response.socket?.end("not HTTP at all\r\n\r\n"))
      const refused = yield* reasonOf(closed.baseUrl)
      assert.deepStrictEqual(kindOf(refused), ["Transport", "refused"])
      assert.include(refused.detail, new URL(closed.baseUrl).host)
      assert.deepStrictEqual(kindOf(yield* reasonOf(plain.baseUrl.replace("http:", "https:"))), [
        "Transport",
        "tls"
      ])
      assert.deepStrictEqual(kindOf(yield* reasonOf(reset.baseUrl)), ["Transport", "reset"])
      assert.deepStrictEqual(kindOf(yield* reasonOf(noise.baseUrl)), ["Transport", "badHttp"])
      assert.deepStrictEqual(kindOf(yield* reasonOf("http://no-such-host.invalid/v1")), ["Transport", "dns"])
      assert.deepStrictEqual(kindOf(yield* reasonOf("no URL")), ["InvalidRequest", undefined])
    })
  )

  it.effect("sends a note in place of what its server does not take, and says so", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).end(answer))
      const provider = yield* make(server.baseUrl, { compat: { images: false } })
      const image = Message.image("AAAA", "image/png")
      const why = "This provider does not take images"
      assert.strictEqual(provider.refuses?.(request, image), why)
      const messages = [Message.user([image])]
      const sent = yield* Stream.runCollect(provider.stream({ ...request, messages }))
      assert.deepStrictEqual(
        sent.flatMap((event) => (event._tag === "Start" ? event.adjusted : [])),
        [{ option: "image", asked: "1 image", sent: null, reason: `${why}.` }]
      )
      assert.include(server.requests[0]?.body, `[An image (image/png) is left out here: ${why}.]`)
    })
  )

  it.effect("never shows a secret, wherever the server puts it", () =>
    Effect.gen(function* () {
      const token = "tok-planted-9876543210"
      const query = "q-planted-55555555"
      const secrets = [key, token, query]
      const echo = secrets.join(" and ")
      const padded = `${"x".repeat(4090)}${echo}`
      const servers = yield* Effect.all([
        serve((response) => refuse(response, 401, { error: { message: echo } }, { "x-request-id": key })),
        serve((response) => refuse(response, 500, padded)),
        serve((response) => stream(response).end(events({ error: { message: echo } }))),
        serve((response) => stream(response).end(`event: error\ndata: ${echo}\n\n`)),
        serve((response) => stream(response).end(events(`{"not json ${echo}`, hello[0]))),
        serve((response) => stream(response).end(echo)),
        serve((response) => response.writeHead(200, { "content-type": "text/html" }).end(echo)),
        serve((response) => response.writeHead(302, { location: `http://${token}.test/?k=${key}` }).end()),
        Effect.scoped(serve(() => {}))
      ])
      for (const server of servers) {
        const provider = yield* make(server.baseUrl, {
          baseUrl: server.baseUrl.replace("/v1", `/v1?api=${query}&path=`),
          headers: { "x-auth-token": token }
        })
        const exit = yield* Effect.exit(Stream.runDrain(provider.stream(request)))
        const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
        const shown = [
          inspect(error, { depth: 10 }),
          JSON.stringify(error),
          String(error),
          Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "",
          inspect(provider, { depth: 10 })
        ].join("\n")
        assert.include(shown, "ProviderError")
        for (const secret of secrets) assert.notInclude(shown, secret.slice(0, -4))
      }
    })
  )
})

describe("keys", () => {
  /** Takes only this key. */
  const lock = (right: string) =>
    serve((response, { headers }) =>
      headers.authorization === `Bearer ${right}`
        ? stream(response).end(answer)
        : refuse(response, 401, { error: { message: "Invalid key" } })
    )
  const sent = (server: {
    readonly requests: ReadonlyArray<{ readonly headers: { readonly authorization?: string | undefined } }>
  }) => server.requests.map(({ headers }) => headers.authorization)

  it.effect("are asked for by the vendor's name, each time (row 40)", () =>
    Effect.gen(function* () {
      const server = yield* lock("key-from-vault")
      const asked: Array<string> = []
      const keys = Credentials.layer((provider) => {
        asked.push(provider)
        return Effect.succeedSome(Redacted.make("key-from-vault"))
      })
      assert.strictEqual(yield* ask(server.baseUrl).pipe(Effect.provide(keys)), "Hello")
      assert.strictEqual(yield* ask(server.baseUrl).pipe(Effect.provide(keys)), "Hello")
      assert.deepStrictEqual(asked, ["acme", "acme"])
    })
  )

  it.effect("are asked for once more when one is refused, and only then sent again", () =>
    Effect.gen(function* () {
      const server = yield* lock("key-2-rotated")
      const rotating = (...keys: ReadonlyArray<string>) => {
        let next = 0
        return Credentials.layer(() => Effect.sync(() => Option.some(Redacted.make(keys[next++] ?? ""))))
      }
      const rotated = rotating("key-1-expired", "key-2-rotated")
      assert.strictEqual(yield* ask(server.baseUrl).pipe(Effect.provide(rotated)), "Hello")
      assert.deepStrictEqual(sent(server), ["Bearer key-1-expired", "Bearer key-2-rotated"])

      const same = rotating("key-1-expired", "key-1-expired", "key-2-rotated")
      const reason = yield* reasonOf(server.baseUrl).pipe(Effect.provide(same))
      assert.strictEqual(reason._tag, "Unauthenticated")
      assert.strictEqual(server.requests.length, 3)
    })
  )

  it.effect("are not asked for again where there was none to begin with", () =>
    Effect.gen(function* () {
      const server = yield* lock("key-that-comes-late")
      let asked = 0
      const late = Credentials.layer(() =>
        Effect.sync(() => (asked++ === 0 ? Option.none() : Option.some(Redacted.make("key-that-comes-late"))))
      )
      const reason = yield* reasonOf(server.baseUrl).pipe(Effect.provide(late))
      assert.strictEqual(reason._tag, "Unauthenticated")
      assert.deepStrictEqual([asked, server.requests.length], [1, 1])
    })
  )

  it.effect("may be given where the provider is made (row 40)", () =>
    Effect.gen(function* () {
      const server = yield* lock("key-of-the-layer")
      const layer = OpenAiCompatible.layer({ id: "acme", baseUrl: server.baseUrl }).pipe(
        Layer.provide(Credentials.layer(() => Effect.succeedSome(Redacted.make("key-of-the-layer")))),
        Layer.provide(FetchHttpClient.layer)
      )
      const services = yield* Layer.build(layer)
      const provider = Context.get(services, Provider.Provider)
      assert.strictEqual(yield* textOf(provider.stream(request)), "Hello")
    })
  )

  it.effect("are not needed, and are sent without the space around them", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).end(answer))
      const provider = yield* OpenAiCompatible.make({ id: "local", baseUrl: server.baseUrl }).pipe(
        Effect.provide(FetchHttpClient.layer)
      )
      assert.strictEqual(yield* textOf(provider.stream(request)), "Hello")
      yield* ask(server.baseUrl, { apiKey: Redacted.make(" key-from-a-file\n") })
      assert.deepStrictEqual(sent(server), [undefined, "Bearer key-from-a-file"])
    })
  )

  it.effect("come from the environment", () =>
    Effect.gen(function* () {
      const server = yield* lock("key-of-openai")
      const env = ConfigProvider.layer(
        ConfigProvider.fromEnvRecord({
          OPENAI_API_KEY: "key-of-openai",
          OPENAI_BASE_URL: server.baseUrl,
          OPENAI_ORG_ID: "org-1",
          OPENAI_PROJECT_ID: ""
        })
      )
      const layer = OpenAiCompatible.layerConfig(OpenAiCompatible.presets.openAi).pipe(
        Layer.provide(FetchHttpClient.layer)
      )
      const provider = Context.get(yield* Layer.build(layer).pipe(Effect.provide(env)), Provider.Provider)
      assert.strictEqual(provider.id, "openai")
      assert.strictEqual(yield* textOf(provider.stream(request)), "Hello")
      assert.strictEqual(server.requests[0]?.headers["openai-organization"], "org-1")
      assert.notProperty(server.requests[0]?.headers, "openai-project")

      const unset = ConfigProvider.fromEnvRecord({ OPENAI_API_KEY: "key-of-openai", OPENAI_BASE_URL: "" })
      yield* Layer.build(layer).pipe(Effect.provide(ConfigProvider.layer(unset)))
      const none = ConfigProvider.layer(ConfigProvider.fromEnvRecord({}))
      const missing = yield* Effect.flip(Layer.build(layer).pipe(Effect.provide(none)))
      assert.include(missing.message, "OPENAI_API_KEY")
      const local = OpenAiCompatible.layerConfig(OpenAiCompatible.presets.ollama, { baseUrl: server.baseUrl })
      yield* Layer.build(local.pipe(Layer.provide(FetchHttpClient.layer))).pipe(Effect.provide(none))
    })
  )
})
