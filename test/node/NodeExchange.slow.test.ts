import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, type Scope, Stream } from "effect"
import { HttpClient, HttpClientRequest, type HttpClientResponse } from "effect/http"
import { NodeHttp } from "effect-agent/node"
import { AsyncLocalStorage } from "node:async_hooks"
import type { ServerResponse } from "node:http"
import * as HttpConnection from "../../src/http/HttpConnection.ts"
import { serve } from "../providers/server.ts"

const megabyte = 1024 * 1024
const decoder = new TextDecoder()

const untraced = Effect.provideService(HttpClient.TracerDisabledWhen, () => true)

/** Sends a request as providers do. */
const post = (url: string, client?: HttpClient.HttpClient) =>
  Effect.flatMap(client === undefined ? HttpClient.HttpClient : Effect.succeed(client), (client) =>
    HttpConnection.scoped(client).execute(HttpClientRequest.bodyText(HttpClientRequest.post(url), "body"))
  ).pipe(untraced)

const textOf = (url: string) => Effect.flatMap(post(url), ({ text }) => text)

/** Waits for the response that a server begins. */
const begun = () => {
  const responses = Deferred.makeUnsafe<ServerResponse>()
  return {
    next: Deferred.await(responses),
    tell: (one: ServerResponse) => Deferred.doneUnsafe(responses, Exit.succeed(one))
  }
}

/** The reason of a request that failed. */
const reasonOf = <A, E, R>(request: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(request), (error) => {
    const reason: unknown = error instanceof Object && "reason" in error ? error.reason : undefined
    const cause: unknown = reason instanceof Object && "cause" in reason ? reason.cause : undefined
    return {
      tag: reason instanceof Object && "_tag" in reason ? reason._tag : undefined,
      code: cause instanceof Object && "code" in cause ? cause.code : undefined
    }
  })

describe("a request of a provider", () => {
  it.live("goes straight to undici, and all others through the client of Effect", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, { body }) => response.end(body))
      const dispatcher = yield* NodeHttpClient.makeDispatcher
      let whole = 0
      const counted: typeof dispatcher = Object.create(dispatcher, {
        request: {
          value: (options: Parameters<typeof dispatcher.request>[0]) => {
            whole++
            return dispatcher.request(options)
          }
        }
      })
      const layer = NodeHttp.layerNoDispatcher
      yield* Effect.gen(function* () {
        const client = yield* HttpClient.HttpClient
        const direct = (
          send: Effect.Effect<
            HttpClientResponse.HttpClientResponse,
            unknown,
            HttpClient.HttpClient | Scope.Scope
          >
        ) =>
          Effect.gen(function* () {
            const before = whole
            assert.strictEqual(yield* Effect.flatMap(Effect.orDie(send), ({ text }) => text), "body")
            return whole === before
          }).pipe(Effect.scoped)
        const request = HttpClientRequest.bodyText(HttpClientRequest.post(server.baseUrl), "body")
        assert.isTrue(yield* direct(post(server.baseUrl, client)))
        const mapped = HttpClient.mapRequest(client, HttpClientRequest.setHeader("x-team", "blue"))
        assert.isTrue(yield* direct(post(server.baseUrl, mapped)))
        assert.strictEqual(server.requests.at(-1)?.headers["x-team"], "blue")
        // A token that a decorator fetches first is a request of the application.
        const fetching = HttpClient.mapRequestEffect(client, (request) =>
          Effect.as(untraced(client.execute(request)), request)
        )
        assert.isFalse(yield* direct(post(server.baseUrl, fetching)))

        assert.isFalse(yield* direct(untraced(client.execute(request))))
        assert.isFalse(yield* direct(untraced(HttpClient.withScope(client).execute(request))))
        assert.isFalse(yield* direct(HttpConnection.scoped(client).execute(request)))
        const options = Effect.provideService(NodeHttpClient.UndiciOptions, { reset: true })
        assert.isFalse(yield* direct(options(post(server.baseUrl, client))))
        const streamed = HttpClientRequest.bodyStream(request, Stream.encodeText(Stream.make("bo", "dy")))
        assert.isFalse(yield* direct(untraced(HttpConnection.scoped(client).execute(streamed))))
      }).pipe(Effect.provide(layer), Effect.provideService(NodeHttpClient.Dispatcher, counted))
    })
  )

  it.live("keeps the async context of its sender, over a socket of another", () =>
    Effect.gen(function* () {
      const sockets = new Set<unknown>()
      const server = yield* serve((response) => {
        sockets.add(response.socket)
        response.write("begun")
        setTimeout(() => response.end("ended"), 5)
      })
      const storage = new AsyncLocalStorage<number>()
      const context = yield* Effect.context<HttpClient.HttpClient>()
      const asked = Effect.gen(function* () {
        const { stream } = yield* post(server.baseUrl)
        const seen = [storage.getStore()]
        yield* Stream.runForEach(stream, () => Effect.sync(() => seen.push(storage.getStore())))
        return [...seen, storage.getStore()]
      }).pipe(Effect.scoped)
      for (const one of [1, 2, 3]) {
        const stores = storage.run(one, () => Effect.runPromiseWith(context)(asked))
        assert.deepStrictEqual(new Set(yield* Effect.promise(() => stores)), new Set([one]))
        yield* Effect.sleep("5 millis")
      }
      assert.strictEqual(sockets.size, 1)
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("that is interrupted before it has a socket is not sent", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => response.end("ok"))
      const fiber = yield* Effect.forkChild(Effect.scoped(post(server.baseUrl)), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* textOf(server.baseUrl), "ok")
      assert.strictEqual(server.requests.length, 1)
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("that is interrupted before its head closes the socket", () =>
    Effect.gen(function* () {
      const responses = begun()
      const server = yield* serve(responses.tell)
      const fiber = yield* Effect.forkChild(Effect.scoped(post(server.baseUrl)))
      yield* responses.next
      yield* Fiber.interrupt(fiber)
      yield* server.idle
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("closes the socket with its scope, and leaves it open after the whole body", () =>
    Effect.gen(function* () {
      const sockets = new Set<unknown>()
      const server = yield* serve((response, { url }) => {
        sockets.add(response.socket)
        response.write("piece")
        if (url.includes("whole")) response.end()
      })
      for (let count = 0; count < 3; count++) {
        assert.strictEqual(yield* Effect.scoped(textOf(`${server.baseUrl}/whole`)), "piece")
        yield* Effect.sleep("5 millis")
      }
      assert.strictEqual(sockets.size, 1)
      const first = Effect.flatMap(post(server.baseUrl), ({ stream }) => Stream.runHead(stream))
      for (const read of [Effect.asVoid(first), Effect.asVoid(post(server.baseUrl))]) {
        yield* Effect.scoped(read)
        yield* server.idle
      }
    }).pipe(Effect.provide(NodeHttp.layer))
  )
})

describe("its response", () => {
  it.live("is read whole, in every way", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, { url }) => {
        const type = url.includes("form") ? "application/x-www-form-urlencoded" : "application/json"
        response.writeHead(200, { "content-type": type }).end(url.includes("form") ? "a=1&b=2" : '{"a":1}')
      })
      const ask = (path: string) => post(`${server.baseUrl}/${path}`)
      assert.deepStrictEqual(yield* (yield* ask("json")).json, { a: 1 })
      assert.strictEqual((yield* (yield* ask("json")).arrayBuffer).byteLength, 7)
      assert.strictEqual((yield* (yield* ask("form")).formData).get("b"), "2")
      const params = yield* (yield* ask("form")).urlParamsBody
      assert.deepStrictEqual(
        [...params],
        [
          ["a", "1"],
          ["b", "2"]
        ]
      )
      const again = yield* ask("json")
      assert.deepStrictEqual([yield* again.text, yield* again.json], ['{"a":1}', { a: 1 }])
      const streamed = Stream.decodeText((yield* ask("json")).stream)
      assert.strictEqual(yield* Stream.mkString(streamed), '{"a":1}')
      const upgrade = Effect.flatMap(ask("json"), (response) => response.upgrade)
      assert.strictEqual((yield* reasonOf(upgrade)).tag, "StatusCodeError")
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("has a status, headers and cookies", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => {
        response.writeEarlyHints({ link: "</style.css>; rel=preload" })
        response.writeHead(299, { "X-Team": "blue", "set-cookie": ["a=1; Path=/", "b=2"] }).end()
      })
      const response = yield* post(`${server.baseUrl}/x?y=1#z`)
      assert.strictEqual(response.status, 299)
      assert.strictEqual(response.url, `${server.baseUrl}/x?y=1`)
      assert.strictEqual(response.headers["x-team"], "blue")
      assert.strictEqual(response.headers["set-cookie"], "a=1; Path=/, b=2")
      assert.deepStrictEqual(Object.keys(response.cookies.cookies), ["a", "b"])
      assert.strictEqual(server.requests[0]?.url, "/v1/x?y=1")
      assert.include(JSON.stringify(response), '"status":299')
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live.each([204, 304, 600])("may have no body: %i", (status) =>
    Effect.gen(function* () {
      const server = yield* serve((response) => response.writeHead(status).end())
      const response = yield* post(server.baseUrl)
      assert.deepStrictEqual([response.status, yield* response.text], [status, ""])
      assert.strictEqual(yield* Stream.runCount((yield* post(server.baseUrl)).stream), 0)
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("comes in pieces as they are sent", () =>
    Effect.gen(function* () {
      const responses = begun()
      const server = yield* serve(responses.tell)
      const fiber = yield* Effect.forkChild(post(server.baseUrl))
      const response = yield* responses.next
      response.flushHeaders()
      const { stream } = yield* Fiber.join(fiber)
      const heard: Array<string> = []
      response.write("piece 1")
      yield* Stream.runForEach(stream, (bytes) =>
        Effect.sync(() => {
          heard.push(decoder.decode(bytes))
          if (heard.length < 3) response.write(`piece ${heard.length + 1}`)
          else response.end()
        })
      )
      assert.deepStrictEqual(heard, ["piece 1", "piece 2", "piece 3"])
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("that is slowly read slows the server, and comes whole all the same", () =>
    Effect.gen(function* () {
      const full = yield* Deferred.make<number>()
      let sent = 0
      const server = yield* serve((response) => {
        const pour = () => {
          while (sent < 64 * megabyte) {
            sent += megabyte
            if (!response.write(Buffer.alloc(megabyte, "x"))) break
          }
          if (sent >= 64 * megabyte) response.end()
        }
        response.on("drain", pour)
        pour()
        // A server that nothing slows has sent it all long before.
        setTimeout(() => Deferred.doneUnsafe(full, Effect.succeed(sent)), 300)
      })
      const response = yield* post(server.baseUrl)
      assert.isBelow(yield* Deferred.await(full), 16 * megabyte)
      const count = yield* Stream.runFold(
        response.stream,
        () => 0,
        (sum, bytes) => sum + bytes.length
      )
      assert.strictEqual(count, 64 * megabyte)
    }).pipe(Effect.provide(NodeHttp.layer))
  )
})

describe("its failure", () => {
  it.live("has the cause of undici", () =>
    Effect.gen(function* () {
      const closed = yield* Effect.scoped(serve(() => {}))
      assert.deepInclude(yield* reasonOf(post(closed.baseUrl)), {
        tag: "TransportError",
        code: "ECONNREFUSED"
      })

      const server = yield* serve((response, { url }) => {
        if (url.includes("body")) response.writeHead(200).write("piece", () => response.socket?.destroy())
        else response.socket?.resetAndDestroy()
      })
      assert.deepInclude(yield* reasonOf(post(server.baseUrl)), { tag: "TransportError", code: "ECONNRESET" })
      const { stream } = yield* post(`${server.baseUrl}/body`)
      const heard: Array<string> = []
      const read = Stream.runForEach(stream, (bytes) => Effect.sync(() => heard.push(decoder.decode(bytes))))
      assert.deepInclude(yield* reasonOf(read), { tag: "DecodeError", code: "UND_ERR_SOCKET" })
      assert.deepStrictEqual(heard, ["piece"])

      const invalid = HttpClient.mapRequest(
        yield* HttpClient.HttpClient,
        HttpClientRequest.setHeader("x-line", "a\nb")
      )
      const unsent = yield* reasonOf(post(server.baseUrl, invalid))
      assert.deepInclude(unsent, { tag: "TransportError", code: "UND_ERR_INVALID_ARG" })
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("reaches its reader when the layer closes", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => response.writeHead(200).write("piece"))
      const response = yield* Effect.provide(post(server.baseUrl), NodeHttp.layer)
      yield* server.idle
      assert.strictEqual((yield* reasonOf(Stream.runDrain(response.stream))).tag, "DecodeError")
    })
  )
})
