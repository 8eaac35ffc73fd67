import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { Message } from "effect-agent"
import type { ServerResponse } from "node:http"
import { outcomes } from "../behaviour/play.ts"
import { serve, stream } from "../providers/server.ts"
import { answer, bytes, play, recorder, told, until } from "./session.ts"
import type { Piece, Vendor } from "./vendors.ts"
import { google, vendors } from "./vendors.ts"

const hello = { text: ["Hel", "lo", ", ", "you"] }

/** Ways in which a connection ends too early, after these bytes of the body. */
const breaks: ReadonlyArray<readonly [name: string, cut: (response: ServerResponse, body: string) => void]> =
  [
    ["a reset", (response, body) => stream(response).write(body, () => response.socket?.resetAndDestroy())],
    ["a close in the middle of an event", (response, body) => stream(response).end(body.slice(0, -9))],
    [
      "a close inside of a chunk",
      (response, body) => {
        const size = (Buffer.byteLength(body) + 500).toString(16)
        const head =
          "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        response.socket?.end(`${head}${size}\r\n${body}`)
      }
    ],
    [
      "fewer bytes than announced",
      (response, body) => {
        const length = Buffer.byteLength(body) + 500
        const head = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${length}\r\n\r\n`
        response.socket?.end(`${head}${body}`)
      }
    ]
  ]

/** A call of which only so much comes. Google sends a call whole: there the arguments go on in a next piece. */
const halfCall = (vendor: Vendor): ReadonlyArray<Piece> => {
  const json = ['{"text":', '"pi']
  if (vendor !== google) {
    return until(
      vendor.answer({ calls: [{ id: "call_1", name: "echo", json: [...json, 'ng"}'] }] }),
      "arguments",
      2
    )
  }
  const partialArgs = [{ jsonPath: "$.text", stringValue: "pi", willContinue: true }]
  const call = { id: "call_1", name: "echo", partialArgs, willContinue: true }
  const parts = [{ functionCall: call }]
  return [{ kind: "call", data: { candidates: [{ index: 0, content: { role: "model", parts } }] } }]
}

describe.each(vendors)("$name", (vendor) => {
  const half = until(vendor.answer(hello), "text", 2)

  it.effect("F053: half a text and a clean end is no answer: what was said is kept, and not said again", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => answer(response, half))
      const { events, exit, last, reason, retries, text } = yield* play(vendor, server)
      assert.strictEqual(told(reason), "StreamTruncated")
      assert.deepStrictEqual([text, last?.stopReason], ["Hello", "error"])
      assert.include(JSON.stringify(exit), '"Hello"')
      assert.deepStrictEqual([server.requests.length, retries.length], [1, 0])
      assert.isFalse(events.some(({ _tag }) => _tag === "MessageRetracted"))
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F053: it is asked for again where the policy says so, and what was said is taken back", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, _, count) =>
        answer(response, count === 1 ? half : vendor.answer(hello))
      )
      const { events, messages, text } = yield* play(vendor, server, { retry: { retryTurn: true } })
      assert.deepStrictEqual([text, server.requests.length, messages.length], ["Hello, you", 2, 2])
      assert.strictEqual(events.filter(({ _tag }) => _tag === "MessageRetracted").length, 1)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F054: however the connection breaks, the answer was cut, and what was said is kept", () =>
    Effect.gen(function* () {
      for (const [name, cut] of breaks) {
        const server = yield* serve((response) =>
          cut(response, bytes(until(vendor.answer(hello), "text", 3)))
        )
        const { last, reason, text } = yield* play(vendor, server)
        assert.deepStrictEqual([told(reason), last?.stopReason], ["StreamTruncated", "error"], name)
        assert.isTrue(reason?.isRetryable)
        // A reset may take along what was on its way.
        const least = name === "a reset" ? 0 : "Hello".length
        assert.isTrue("Hello, ".startsWith(text) && text.length >= least, `${name}: ${text}`)
        assert.strictEqual(server.requests.length, 1)
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F056: a call whose arguments were cut never runs, mended or not", () =>
    Effect.gen(function* () {
      const { calls, tool } = recorder()
      const server = yield* serve((response, _, count) =>
        answer(response, count === 1 ? halfCall(vendor) : vendor.answer({ text: ["done"] }))
      )
      const { events, reason } = yield* play(vendor, server, { tools: [tool] })
      assert.strictEqual(told(reason), "StreamTruncated")
      assert.isEmpty(calls)
      assert.isEmpty(outcomes(events))
      assert.strictEqual(server.requests.length, 1)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F058: a call that the token limit cut does not run, and the model is told why", () =>
    Effect.gen(function* () {
      const { calls, tool } = recorder()
      const cut: ReadonlyArray<Piece> =
        vendor === google
          ? [...halfCall(vendor), ...vendor.answer({ finish: "length" })]
          : vendor.answer({
              calls: [{ id: "call_1", name: "echo", json: ['{"text":', '"pi'] }],
              finish: "length"
            })
      const server = yield* serve((response, _, count) =>
        answer(response, count === 1 ? cut : vendor.answer({ text: ["done"] }))
      )
      const { messages, text } = yield* play(vendor, server, { tools: [tool] })
      assert.isEmpty(calls)
      const results = messages.filter((message) => message.role === "toolResult")
      assert.strictEqual(results.length, 1)
      assert.strictEqual(results[0]?.outcome, "truncated")
      assert.match(Message.textOf(results[0] ?? Message.user("")), /token limit/)
      assert.match(server.requests[1]?.body ?? "", /token limit/)
      assert.strictEqual(text, "done")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F058: nor does one that happens to look whole when it was cut", () =>
    Effect.gen(function* () {
      const { calls, tool } = recorder()
      const cut = vendor.answer({
        calls: [{ id: "call_1", name: "echo", json: ['{"text":"ping"}'] }],
        finish: "length"
      })
      const server = yield* serve((response, _, count) =>
        answer(response, count === 1 ? cut : vendor.answer({ text: ["done"] }))
      )
      yield* play(vendor, server, { tools: [tool] })
      assert.isEmpty(calls)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
