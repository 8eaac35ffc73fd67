import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Stream } from "effect"
import { NodeHttpClient } from "@effect/platform-node"
import { FetchHttpClient, HttpClient, type HttpClientResponse } from "effect/http"
import { Message, type Provider } from "effect-agent"
import { NodeHttp } from "effect-agent/node"
import { OpenAiCompatible } from "effect-agent/providers"
import type { ServerResponse } from "node:http"
import { createDeflate, createGzip } from "node:zlib"
import { common } from "../../src/providers/openAiChat/compat.ts"
import { openAiChat } from "../../src/providers/openAiChat/protocol.ts"
import * as transport from "../../src/providers/internal/transport.ts"
import { events, serve, stream } from "./server.ts"

const request: Provider.ModelRequest = {
  model: "m-1",
  messages: [Message.user("Hi", 0)],
  tools: [],
  options: {}
}
const answer = events({ choices: [{ index: 0, delta: { content: "Hi" }, finish_reason: "stop" }] }, "[DONE]")

const make = (baseUrl: string) =>
  Effect.provide(OpenAiCompatible.make({ id: "acme", baseUrl }), FetchHttpClient.layer)

const ask = (provider: Provider.Provider["Service"]) => Stream.runDrain(provider.stream(request))

const reset = (response: ServerResponse) => response.socket?.resetAndDestroy()

/** Asks, and lets the client have its socket back. */
const askAndKeep = (provider: Provider.Provider["Service"]) =>
  Effect.andThen(
    ask(provider),
    Effect.promise(() => new Promise((wake) => setTimeout(wake, 60)))
  )

describe("a kept connection", () => {
  it.effect("that died is replaced at once", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, _, count) => {
        if (count === 2) reset(response)
        else stream(response).end(answer)
      })
      const provider = yield* make(server.baseUrl)
      yield* askAndKeep(provider)
      yield* ask(provider)
      assert.strictEqual(server.requests.length, 3)
    })
  )

  it.effect("is what a reset is laid to once: a server that goes on with them has failed", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, _, count) => {
        if (count > 1) reset(response)
        else stream(response).end(answer)
      })
      const provider = yield* make(server.baseUrl)
      yield* askAndKeep(provider)
      for (const requests of [3, 4]) {
        const { reason } = yield* Effect.flip(ask(provider))
        assert.deepStrictEqual([reason._tag, "kind" in reason && reason.kind], ["Transport", "reset"])
        assert.strictEqual(server.requests.length, requests)
      }
    })
  )

  it.effect("is none before the first answer", () =>
    Effect.gen(function* () {
      const server = yield* serve(reset)
      yield* Effect.flip(Effect.flatMap(make(server.baseUrl), ask))
      assert.strictEqual(server.requests.length, 1)
    })
  )
})

const ofNode = [NodeHttp.layer, NodeHttpClient.layerUndici, NodeHttpClient.layerNodeHttp]

describe("a client of Node", () => {
  it.live.each([NodeHttp.layer, NodeHttpClient.layerUndici])("asks over one connection again", (client) =>
    Effect.gen(function* () {
      const sockets = new Set<unknown>()
      const server = yield* serve((response) => {
        sockets.add(response.socket)
        stream(response).end(answer)
      })
      const provider = yield* OpenAiCompatible.make({ id: "acme", baseUrl: server.baseUrl })
      for (let count = 0; count < 3; count++) yield* Effect.delay(ask(provider), "20 millis")
      assert.strictEqual(sockets.size, 1)
    }).pipe(Effect.provide(client))
  )

  it.live("says when the connection breaks", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => {
        stream(response).write(answer.slice(0, 20), () => reset(response))
      })
      const made = OpenAiCompatible.make({ id: "acme", baseUrl: server.baseUrl })
      for (const client of ofNode) {
        const { reason } = yield* Effect.provide(Effect.flip(Effect.flatMap(made, ask)), client)
        assert.strictEqual(reason._tag, "StreamTruncated")
      }
    })
  )

  it.effect("may have its responses changed", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).end(answer))
      const shouting = (response: HttpClientResponse.HttpClientResponse) => {
        const text = Stream.map(Stream.decodeText(response.stream), (said) => said.replace("Hi", "HI"))
        const changed: HttpClientResponse.HttpClientResponse = Object.create(response, {
          stream: { value: Stream.encodeText(text) }
        })
        return changed
      }
      const said = Effect.gen(function* () {
        const client = HttpClient.transformResponse(yield* HttpClient.HttpClient, Effect.map(shouting))
        const made = OpenAiCompatible.make({ id: "acme", baseUrl: server.baseUrl })
        const provider = yield* Effect.provideService(made, HttpClient.HttpClient, client)
        return yield* Stream.runCollect(provider.stream(request))
      })
      for (const client of ofNode) {
        assert.include(JSON.stringify(yield* Effect.provide(said, client)), '"delta":"HI"')
      }
    })
  )
})

describe("a connection", () => {
  it.live("may be compressed, whichever client reads it", () =>
    Effect.gen(function* () {
      for (const [encoding, compress] of Object.entries({ gzip: createGzip, deflate: createDeflate })) {
        // Flushed, and never ended: the answer is to be read, and its connection closed, all the same.
        const server = yield* serve((response) => {
          response.writeHead(200, { "content-type": "text/event-stream", "content-encoding": encoding })
          const packer = compress()
          packer.pipe(response)
          packer.write(answer)
          packer.flush()
        })
        for (const client of [FetchHttpClient.layer, ...ofNode]) {
          const provider = OpenAiCompatible.make({ id: "acme", baseUrl: server.baseUrl })
          const said = Effect.flatMap(provider, ({ stream }) => Stream.runCollect(stream(request)))
          assert.include(JSON.stringify(yield* Effect.provide(said, client)), '"delta":"Hi"')
        }
        yield* server.idle
      }
    })
  )

  it.live("over which the words of a refusal do not come is not waited for long", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => {
        response.writeHead(400, { "content-type": "application/json" }).write('{"error":')
      })
      const refused = Effect.flip(Effect.flatMap(make(server.baseUrl), ask))
      const { reason } = yield* Effect.timeout(refused, "4 seconds")
      assert.deepStrictEqual([reason._tag, reason.status], ["InvalidRequest", 400])
      yield* server.idle
    })
  )

  it.effect("is closed, and its reader told, when a protocol throws", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).write(answer))
      const bug = new Error("a bug")
      const provider = yield* transport.make({
        id: "acme",
        protocol: {
          ...openAiChat("acme", common),
          step: () => {
            throw bug
          }
        },
        serves: { endpoint: "chat" },
        url: () => server.baseUrl,
        authorize: () => ({})
      })
      const exit = yield* Effect.exit(ask(provider))
      assert.isTrue(Exit.isFailure(exit) && Cause.squash(exit.cause) === bug)
      yield* server.idle
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
