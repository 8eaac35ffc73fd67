import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Option, Stream } from "effect"
import { HttpBody, HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { NodeHttp } from "effect-agent/node"
import { AsyncLocalStorage } from "node:async_hooks"
import { createServer as createTcpServer, type Socket } from "node:net"
import type { IncomingHttpHeaders, ServerResponse } from "node:http"
import { serve } from "../providers/server.ts"

const megabyte = 1024 * 1024

/** Waits for the next of what a server sees. */
const signals = <A>() => {
  const seen: Array<A> = []
  const waiting: Array<(seen: A) => void> = []
  return {
    tell: (one: A) => {
      const wake = waiting.shift()
      if (wake === undefined) seen.push(one)
      else wake(one)
    },
    next: Effect.callback<A>((resume) => {
      const [one] = seen.splice(0, 1)
      if (one === undefined) waiting.push((told) => resume(Effect.succeed(told)))
      else resume(Effect.succeed(one))
    })
  }
}

const textOf = (url: string) => Effect.flatMap(HttpClient.get(url), ({ text }) => text)
/** undici takes a socket that has answered again after a turn of the event loop. */
const turn = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})
const decoder = new TextDecoder()

/** The reason of a request that failed. */
const reasonOf = <R>(request: Effect.Effect<unknown, unknown, R>) =>
  Effect.map(Effect.flip(request), (error) => {
    const reason: unknown = error instanceof Object && "reason" in error ? error.reason : undefined
    const cause: unknown = reason instanceof Object && "cause" in reason ? reason.cause : undefined
    return {
      tag: reason instanceof Object && "_tag" in reason ? reason._tag : undefined,
      code: cause instanceof Object && "code" in cause ? cause.code : undefined,
      cause
    }
  })

describe("a response", () => {
  it.live("is read whole, in every way", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, { url }) => {
        const type = url.includes("form") ? "application/x-www-form-urlencoded" : "application/json"
        response.writeHead(200, { "content-type": type }).end(url.includes("form") ? "a=1&b=2" : '{"a":1}')
      })
      const { baseUrl } = server
      const get = (path: string) => HttpClient.get(`${baseUrl}/${path}`)
      assert.strictEqual(yield* textOf(`${baseUrl}/json`), '{"a":1}')
      assert.deepStrictEqual(yield* (yield* get("json")).json, { a: 1 })
      assert.strictEqual((yield* (yield* get("json")).arrayBuffer).byteLength, 7)
      assert.strictEqual((yield* (yield* get("form")).formData).get("b"), "2")
      assert.deepStrictEqual(
        [...(yield* (yield* get("form")).urlParamsBody)],
        [
          ["a", "1"],
          ["b", "2"]
        ]
      )
      const again = yield* get("json")
      assert.deepStrictEqual([yield* again.text, yield* again.json], ['{"a":1}', { a: 1 }])
      const streamed = Stream.decodeText((yield* get("json")).stream)
      assert.strictEqual(yield* Stream.mkString(streamed), '{"a":1}')
      assert.strictEqual(
        (yield* reasonOf(Effect.flatMap(get("form"), ({ json }) => json))).tag,
        "DecodeError"
      )
      assert.strictEqual(
        (yield* reasonOf(Effect.flatMap(get("json"), (r) => r.upgrade))).tag,
        "StatusCodeError"
      )
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("has a status, headers and cookies", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => {
        response.writeEarlyHints({ link: "</style.css>; rel=preload" })
        response.writeHead(299, { "X-Team": "blue", "set-cookie": ["a=1; Path=/", "b=2"] }).end()
      })
      const response = yield* HttpClient.get(`${server.baseUrl}/x?y=1#z`)
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
      const response = yield* HttpClient.get(server.baseUrl)
      assert.deepStrictEqual([response.status, yield* response.text], [status, ""])
      const other = yield* HttpClient.get(server.baseUrl)
      assert.strictEqual(yield* Stream.runCount(other.stream), 0)
      const head = yield* HttpClient.head(server.baseUrl)
      assert.deepStrictEqual([head.status, yield* head.text], [status, ""])
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("comes in pieces as they are sent", () =>
    Effect.gen(function* () {
      const responses = signals<ServerResponse>()
      const server = yield* serve((response) => responses.tell(response.writeHead(200)))
      const fiber = yield* Effect.forkChild(HttpClient.get(server.baseUrl))
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
        response.writeHead(200)
        const pour = () => {
          while (sent < 64 * megabyte) {
            sent += megabyte
            if (!response.write(Buffer.alloc(megabyte, "x"))) break
          }
          if (sent >= 64 * megabyte) response.end()
        }
        response.on("drain", pour)
        pour()
        // A server that nobody holds up has sent it all long before.
        setTimeout(() => Deferred.doneUnsafe(full, Effect.succeed(sent)), 300)
      })
      const response = yield* HttpClient.get(server.baseUrl)
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

describe("a request", () => {
  it.live("has its body sent: text, bytes, form data and streams", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => response.end("ok"))
      const form = new FormData()
      form.append("name", "value")
      const bodies = [
        HttpBody.text("grüße", "text/x"),
        HttpBody.uint8Array(new TextEncoder().encode("bytes"), "application/x"),
        HttpBody.empty,
        HttpBody.formData(form),
        HttpBody.stream(Stream.encodeText(Stream.make("a", "b")), "application/y"),
        HttpBody.raw("raw", { contentType: "application/z" })
      ]
      for (const body of bodies) {
        const response = yield* HttpClient.post(server.baseUrl, { body })
        assert.strictEqual(yield* response.text, "ok")
      }
      const [text, bytes, empty, formData, streamed, raw] = server.requests
      assert.deepStrictEqual(
        [text, bytes, empty, streamed, raw].map((seen) => [seen?.body, seen?.headers["content-type"]]),
        [
          ["grüße", "text/x"],
          ["bytes", "application/x"],
          ["", undefined],
          ["ab", "application/y"],
          ["raw", "application/z"]
        ]
      )
      assert.include(formData?.body, 'name="name"\r\n\r\nvalue')
      assert.strictEqual(text?.headers["content-length"], "7")
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("goes over the socket of the one before", () =>
    Effect.gen(function* () {
      const sockets = new Set<unknown>()
      const server = yield* serve((response) => {
        sockets.add(response.socket)
        response.end("ok")
      })
      for (let count = 0; count < 5; count++) {
        yield* textOf(server.baseUrl)
        yield* turn
      }
      assert.strictEqual(sockets.size, 1)
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("keeps the async context of who asks, over a socket of another", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => response.end("ok"))
      const storage = new AsyncLocalStorage<number>()
      const context = yield* Effect.context<HttpClient.HttpClient>()
      const asked = Effect.gen(function* () {
        const response = yield* HttpClient.get(server.baseUrl)
        const atHead = storage.getStore()
        yield* response.text
        return [atHead, storage.getStore()]
      })
      for (const one of [1, 2, 3]) {
        const stores = storage.run(one, () => Effect.runPromiseWith(context)(asked))
        assert.deepStrictEqual(yield* Effect.promise(() => stores), [one, one])
        yield* turn
      }
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("of many at once is answered, in the async context of who asks", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, { body }) => response.end(body))
      const storage = new AsyncLocalStorage<number>()
      const context = yield* Effect.context<HttpClient.HttpClient>()
      const asked = (one: number) =>
        Effect.gen(function* () {
          const request = HttpClientRequest.bodyText(HttpClientRequest.post(server.baseUrl), String(one))
          const response = yield* HttpClient.execute(request)
          const atHead = storage.getStore()
          const text = yield* response.text
          return [atHead, storage.getStore(), text]
        })
      const all = Array.from({ length: 200 }, (_, one) => one)
      const answers = yield* Effect.promise(() =>
        Promise.all(all.map((one) => storage.run(one, () => Effect.runPromiseWith(context)(asked(one)))))
      )
      assert.deepStrictEqual(
        answers,
        all.map((one) => [one, one, String(one)])
      )
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("of many at once that is interrupted before it is its turn is not sent", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => response.end("ok"))
      const get = Effect.forkChild(HttpClient.get(server.baseUrl), { startImmediately: true })
      const fibers = yield* Effect.replicateEffect(get, 100)
      yield* Fiber.interruptAll(fibers.slice(4))
      for (const fiber of fibers.slice(0, 4)) yield* Fiber.join(fiber)
      assert.strictEqual(yield* textOf(server.baseUrl), "ok")
      assert.strictEqual(server.requests.length, 5)
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("keeps to the options of undici", () =>
    Effect.gen(function* () {
      const seen: Array<IncomingHttpHeaders> = []
      const server = yield* serve((response, { headers }) => {
        seen.push(headers)
        response.end()
      })
      yield* Effect.provideService(textOf(server.baseUrl), NodeHttpClient.UndiciOptions, { reset: true })
      assert.strictEqual(seen[0]?.connection, "close")
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("that is interrupted before its head closes the socket", () =>
    Effect.gen(function* () {
      const asked = signals<void>()
      const server = yield* serve(() => asked.tell())
      const client = yield* HttpClient.HttpClient
      const scoped = Effect.scoped(HttpClient.withScope(client).get(server.baseUrl))
      for (const get of [client.get(server.baseUrl), scoped]) {
        const fiber = yield* Effect.forkChild(get)
        yield* asked.next
        yield* Fiber.interrupt(fiber)
        yield* server.idle
      }
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("that is interrupted before it has a socket is not sent", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => response.end("ok"))
      const fiber = yield* Effect.forkChild(HttpClient.get(server.baseUrl), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* textOf(server.baseUrl), "ok")
      assert.strictEqual(server.requests.length, 1)
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("that is given up in its body closes the socket", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => response.writeHead(200).write("piece"))
      const first = yield* Stream.runHead((yield* HttpClient.get(server.baseUrl)).stream)
      assert.strictEqual(Option.getOrUndefined(Option.map(first, (bytes) => decoder.decode(bytes))), "piece")
      yield* server.idle

      const response = yield* HttpClient.get(server.baseUrl)
      const fiber = yield* Effect.forkChild(response.text)
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      yield* server.idle

      const client = HttpClient.withScope(yield* HttpClient.HttpClient)
      yield* Effect.scoped(client.get(server.baseUrl))
      yield* server.idle
    }).pipe(Effect.provide(NodeHttp.layer))
  )
})

describe("a failure", () => {
  it.live("is told with what undici says of it", () =>
    Effect.gen(function* () {
      const closed = yield* Effect.scoped(serve(() => {}))
      const refused = yield* reasonOf(HttpClient.get(closed.baseUrl))
      assert.deepInclude(refused, { tag: "TransportError", code: "ECONNREFUSED" })

      const server = yield* serve((response, { url }) => {
        if (url.includes("body")) response.writeHead(200).write("piece", () => response.socket?.destroy())
        else if (url.includes("reset")) response.socket?.resetAndDestroy()
        else response.socket?.end()
      })
      const hungUp = yield* reasonOf(HttpClient.get(server.baseUrl))
      assert.deepInclude(hungUp, { tag: "TransportError", code: "UND_ERR_SOCKET" })
      assert.nestedPropertyVal(hungUp.cause, "socket.bytesRead", 0)
      const reset = yield* reasonOf(HttpClient.get(`${server.baseUrl}/reset`))
      assert.deepInclude(reset, { tag: "TransportError", code: "ECONNRESET" })
      for (const read of [
        (response: HttpClientResponse.HttpClientResponse) => response.text,
        (response: HttpClientResponse.HttpClientResponse) => Stream.runDrain(response.stream)
      ]) {
        const cut = yield* reasonOf(Effect.flatMap(HttpClient.get(`${server.baseUrl}/body`), read))
        assert.deepInclude(cut, { tag: "DecodeError", code: "UND_ERR_SOCKET" })
      }

      const invalid = HttpClientRequest.get(server.baseUrl, { headers: { "x-line": "a\nb" } })
      const unsent = yield* reasonOf(HttpClient.execute(invalid))
      assert.deepInclude(unsent, { tag: "TransportError", code: "UND_ERR_INVALID_ARG" })
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("comes after what had come before it", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => {
        response.writeHead(200).write("piece", () => response.socket?.destroy())
      })
      const { stream } = yield* HttpClient.get(server.baseUrl)
      const heard: Array<string> = []
      const exit = yield* Effect.exit(
        Stream.runForEach(stream, (bytes) => Effect.sync(() => heard.push(decoder.decode(bytes))))
      )
      assert.isTrue(Exit.isFailure(exit) && Cause.hasFails(exit.cause))
      assert.deepStrictEqual(heard, ["piece"])
    }).pipe(Effect.provide(NodeHttp.layer))
  )

  it.live("is what a server says that does not speak HTTP", () =>
    Effect.gen(function* () {
      const server = createTcpServer((socket) => socket.on("error", () => {}).end("SSH-2.0-OpenSSH\r\n"))
      const origin = yield* Effect.acquireRelease(
        Effect.callback<string>((resume) => {
          server.listen(0, "127.0.0.1", () => {
            const address = server.address()
            const port = typeof address === "object" ? address?.port : undefined
            resume(Effect.succeed(`http://127.0.0.1:${port}`))
          })
        }),
        () => Effect.sync(() => server.close())
      )
      const bad = yield* reasonOf(HttpClient.get(origin))
      assert.nestedPropertyVal(bad, "cause.name", "HTTPParserError")
    }).pipe(Effect.provide(NodeHttp.layer))
  )
})

describe("the layer", () => {
  it.live("closes its connections with it, and who reads is told", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => response.writeHead(200).write("piece"))
      const response = yield* Effect.provide(HttpClient.get(server.baseUrl), NodeHttp.layer)
      yield* server.idle
      assert.strictEqual((yield* reasonOf(response.text)).tag, "DecodeError")
    })
  )

  it.live("leaves a dispatcher that it was given", () =>
    Effect.gen(function* () {
      const sockets = new Set<Socket | null>()
      const server = yield* serve((response) => {
        sockets.add(response.socket)
        response.end("ok")
      })
      const dispatcher = yield* NodeHttpClient.makeDispatcher
      const ask = Effect.andThen(turn, textOf(server.baseUrl)).pipe(
        Effect.provide(NodeHttp.layerNoDispatcher, { local: true }),
        Effect.provideService(NodeHttpClient.Dispatcher, dispatcher)
      )
      assert.deepStrictEqual([yield* ask, yield* ask, sockets.size], ["ok", "ok", 1])
    })
  )
})
