import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Stream } from "effect"
import { NodeHttpClient } from "@effect/platform-node"
import { FetchHttpClient, HttpClient, type HttpClientResponse } from "effect/http"
import { Message, type Provider } from "effect-agent"
import { NodeHttp } from "effect-agent/node"
import { Auth, OpenAiCompatible, Transport } from "effect-agent/providers"
import type { ServerResponse } from "node:http"
import { createDeflate, createGzip } from "node:zlib"
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
  it.live("is closed when its reader is interrupted between the head and the body, with every client", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => stream(response).write(answer.slice(0, 20)))
      for (const layer of [FetchHttpClient.layer, ...ofNode]) {
        const reader = yield* Deferred.make<Fiber.Fiber<void, unknown>>()
        // The response has come, and is next given to its reader.
        const interrupting = Effect.flatMap(Deferred.await(reader), (fiber) =>
          Effect.uninterruptible(Effect.sync(() => fiber.interruptUnsafe()))
        )
        const asked = Effect.gen(function* () {
          const client = HttpClient.transformResponse(
            yield* HttpClient.HttpClient,
            Effect.tap(() => interrupting)
          )
          const made = OpenAiCompatible.make({ id: "acme", baseUrl: server.baseUrl })
          yield* ask(yield* Effect.provideService(made, HttpClient.HttpClient, client))
        })
        // The client stays, so that only the reader can close its connection.
        yield* Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(asked)
          yield* Deferred.succeed(reader, fiber)
          assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
          yield* server.idle
        }).pipe(Effect.provide(layer))
      }
    })
  )

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
      const provider = yield* Transport.make({
        protocol: {
          name: "broken",
          provider: "acme",
          encode: () => "{}",
          decoder: () => ({
            step: () => {
              throw bug
            },
            end: () => undefined
          })
        },
        deployment: { url: () => server.baseUrl, auth: Auth.none }
      })
      const exit = yield* Effect.exit(ask(provider))
      assert.isTrue(Exit.isFailure(exit) && Cause.squash(exit.cause) === bug)
      yield* server.idle
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
