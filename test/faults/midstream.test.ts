import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { ofTag } from "../behaviour/play.ts"
import { serve, stream } from "../providers/server.ts"
import { answer, bytes, ended, hear, play, recorder, told, until } from "./session.ts"
import { vendors } from "./vendors.ts"

const hello = { text: ["Hel", "lo", ", ", "you"] }
const done = { text: ["done"] }

describe.each(vendors)("$name", (vendor) => {
  it.effect(
    "F066: an error after half the text is told as one, with what was said, and the socket closed",
    () =>
      Effect.gen(function* () {
        const half = [...until(vendor.answer(hello), "text", 2), vendor.error("the model is overloaded")]
        // The server itself would go on for ever.
        const server = yield* serve((response) => stream(response).write(bytes(half)))
        const { last, reason, retries, text } = yield* ended(yield* Effect.forkChild(play(vendor, server)))
        assert.include(["Overloaded", "ServerError"], told(reason))
        assert.strictEqual(reason?.detail, "the model is overloaded")
        assert.deepStrictEqual([text, last?.stopReason], ["Hello", "error"])
        assert.deepStrictEqual([server.requests.length, retries.length], [1, 0])
        yield* TestClock.adjust("100 millis")
        yield* server.idle
      }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F067: an error before anything was said is asked again", () =>
    Effect.gen(function* () {
      const begun = vendor.answer(hello).filter(({ kind }) => kind === "begin")
      for (const first of [[], begun]) {
        const server = yield* serve((response, _, count) =>
          answer(response, count === 1 ? [...first, vendor.error("overloaded")] : vendor.answer(hello))
        )
        const { messages, retries, text } = yield* play(vendor, server)
        assert.deepStrictEqual([text, server.requests.length, messages.length], ["Hello, you", 2, 2])
        assert.include(["Overloaded", "ServerError"], told(retries[0]?.error.reason))
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F070: an end that comes twice is one answer, one run of its tools, and its usage once", () =>
    Effect.gen(function* () {
      const { calls, tool } = recorder()
      const call = vendor.answer({ calls: [{ id: "call_1", name: "echo", json: ['{"text":', '"a"}'] }] })
      const twice = [call, vendor.answer(done)].map((pieces) => [
        ...pieces,
        ...pieces.filter(({ kind }) => kind === "finish" || kind === "last")
      ])
      const server = yield* serve((response, _, count) => answer(response, twice[count - 1] ?? []))
      const { events, messages, text } = yield* play(vendor, server, { tools: [tool] })
      assert.deepStrictEqual([text, calls, server.requests.length], ["done", ["a"], 2])
      assert.deepStrictEqual(
        messages.map(({ role }) => role),
        ["user", "assistant", "toolResult", "assistant"]
      )
      assert.deepStrictEqual(
        ofTag(events, "ModelCallEnd").map(({ usage }) => [usage?.input, usage?.output]),
        [
          [10, 5],
          [10, 5]
        ]
      )
      const again = yield* serve((response) => answer(response, twice[0] ?? []))
      const tags = (yield* hear(vendor, again)).events.map(({ _tag }) => _tag)
      assert.deepStrictEqual(
        tags.filter((tag) => tag === "ToolCallEnd" || tag === "Finish"),
        ["ToolCallEnd", "Finish"]
      )
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F070: nor does a second end without the first one's sentinel change anything", () =>
    Effect.gen(function* () {
      const pieces = vendor.answer(hello)
      const ends = pieces.filter(({ kind }) => kind === "finish" || kind === "last")
      const unsaid = pieces.filter(({ data }) => data !== "[DONE]")
      const server = yield* serve((response) => answer(response, [...unsaid, ...ends, ...ends]))
      const { events, text } = yield* play(vendor, server)
      assert.strictEqual(text, "Hello, you")
      assert.deepStrictEqual(
        ofTag(events, "ModelCallEnd").map(({ usage }) => [usage?.input, usage?.output]),
        [[10, 5]]
      )
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F071: two calls with one id both run, and both are answered by ids of their own", () =>
    Effect.gen(function* () {
      const { calls, tool } = recorder()
      const pair = vendor.answer({
        calls: ["a", "b"].map((text) => ({ id: "call_1", name: "echo", json: [JSON.stringify({ text })] }))
      })
      const server = yield* serve((response, _, count) =>
        answer(response, count === 1 ? pair : vendor.answer(done))
      )
      const { messages, text } = yield* play(vendor, server, { tools: [tool] })
      assert.deepStrictEqual([text, calls.toSorted()], ["done", ["a", "b"]])
      const ids = messages.flatMap((message) => (message.role === "toolResult" ? [message.toolCallId] : []))
      assert.strictEqual(new Set(ids).size, 2)
      for (const result of ["heard a", "heard b"]) {
        assert.strictEqual(server.requests[1]?.body.split(result).length, 2, result)
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
