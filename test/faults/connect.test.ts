import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { Tool } from "effect-agent"
import { NodeHttp } from "effect-agent/node"
import type { ServerResponse } from "node:http"
import { serve } from "../providers/server.ts"
import { answer, play, reset, told } from "./session.ts"
import { openAi, vendors } from "./vendors.ts"

const hello = { text: ["Hel", "lo"] }

const clients = [
  { client: "fetch", layer: FetchHttpClient.layer },
  { client: "NodeHttp", layer: NodeHttp.layer },
  { client: "undici", layer: NodeHttpClient.layerUndici }
]

describe.each(vendors)("$name", (vendor) => {
  it.effect("F001: nobody listens, after three tries it says where", () =>
    Effect.gen(function* () {
      const closed = yield* Effect.scoped(serve(() => {}))
      const { reason, retries } = yield* play(vendor, closed)
      assert.strictEqual(told(reason), "Transport refused")
      assert.include(reason?.detail, new URL(closed.baseUrl).host)
      assert.strictEqual(retries.length, 2)
      assert.isAtMost(
        retries.reduce((sum, { delayMs }) => sum + delayMs, 0),
        15_000
      )
      for (const { error } of retries) assert.include(error.message, error.provider)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F004: a reset before any byte, once: the answer, two requests, one turn, one retry told", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, _, count) =>
        count === 1 ? reset(response) : answer(response, vendor.answer(hello))
      )
      const { messages, retries, text } = yield* play(vendor, server)
      assert.strictEqual(text, "Hello")
      assert.strictEqual(server.requests.length, 2)
      assert.deepStrictEqual(
        messages.map(({ role }) => role),
        ["user", "assistant"]
      )
      assert.deepStrictEqual(
        retries.map(({ error }) => told(error.reason)),
        ["Transport reset"]
      )
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F005: a reset every time is given up after three tries", () =>
    Effect.gen(function* () {
      const server = yield* serve(reset)
      const { reason, retries } = yield* play(vendor, server)
      assert.strictEqual(told(reason), "Transport reset")
      assert.deepStrictEqual([server.requests.length, retries.length], [3, 2])
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})

describe.each(clients)("over $client", ({ layer }) => {
  it.effect("F006: half a head is a connection that broke, and no HTTP at all is bad HTTP", () =>
    Effect.gen(function* () {
      for (const [head, failure, requests] of [
        ["HTTP/1.1 200 OK\r\nContent-Type: text/ev", "Transport reset", 3],
        ["HTTP/1.1 200 OK\r\n", "Transport reset", 3],
        ["HTTP/1.", "Transport reset", 3],
        ["SSH-2.0-OpenSSH_9.6\r\n\0\u0001\u0002", "Transport badHttp", 1]
      ] as const) {
        const server = yield* serve((response) => response.socket?.end(head))
        const { reason } = yield* play(openAi, server)
        assert.strictEqual(told(reason), failure, JSON.stringify(head))
        assert.strictEqual(server.requests.length, requests)
      }
    }).pipe(Effect.provide(layer))
  )
})

describe.each(clients)("a kept socket, over $client", ({ layer }) => {
  /** Answers with a call, then as `second` says: on the socket of the first answer, `kept`, or on another. */
  const serveTwo = (second: (response: ServerResponse, isKept: boolean, count: number) => void) => {
    const sockets = new Set<object | null>()
    return serve((response, _, count) => {
      const isKept = sockets.has(response.socket)
      sockets.add(response.socket)
      if (count === 1) answer(response, openAi.answer({ calls: [{ id: "a", name: "wait", json: ["{}"] }] }))
      else second(response, isKept, count)
    })
  }

  /** The client has its socket back when this has run. */
  const wait = Tool.make({
    name: "wait",
    description: "Waits.",
    execute: () =>
      Effect.as(
        Effect.promise(() => new Promise((wake) => setTimeout(wake, 60))),
        "done"
      )
  })

  it.effect("F008: that died is replaced by a retry, which is announced", () =>
    Effect.gen(function* () {
      const server = yield* serveTwo((response, isKept, count) => {
        if (count === 2 && isKept) reset(response)
        else answer(response, openAi.answer(hello))
      })
      const { retries, text } = yield* play(openAi, server, { tools: [wait] })
      assert.strictEqual(text, "Hello")
      assert.deepStrictEqual(
        retries.map(({ attempt, delayMs, error }) => [told(error.reason), attempt, delayMs > 0]),
        [["Transport reset", 1, true]]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("F008: that dies each time ends the run after the tries of the policy", () =>
    Effect.gen(function* () {
      const server = yield* serveTwo(reset)
      const { reason, retries } = yield* play(openAi, server, { tools: [wait] })
      assert.strictEqual(told(reason), "Transport reset")
      // The first answer, and three tries.
      assert.strictEqual(server.requests.length, 4)
      assert.deepStrictEqual(
        retries.map(({ delayMs }) => delayMs > 0),
        [true, true]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("F008: is none where the server closes after each answer", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, _, count) => {
        response.setHeader("connection", "close")
        if (count === 2) reset(response)
        else if (count > 2) answer(response, openAi.answer(hello))
        else answer(response, openAi.answer({ calls: [{ id: "a", name: "wait", json: ["{}"] }] }))
      })
      const { retries } = yield* play(openAi, server, { tools: [wait] })
      assert.deepStrictEqual(
        retries.map(({ delayMs }) => delayMs > 0),
        [true]
      )
    }).pipe(Effect.provide(layer))
  )
})
