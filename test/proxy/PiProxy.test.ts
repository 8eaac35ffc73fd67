import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schedule, Schema, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, Message, type ModelEvent, Provider, ProviderError, Tool } from "effect-agent"
import { PiProxy, PiStream } from "effect-agent/proxy"
import { ScriptedProvider } from "effect-agent/testing"
import { serve, stream } from "../providers/server.ts"
import { models, request, serveHandler } from "./served.ts"

const reconnect = Schedule.recurs(0)

/** The events of an answer that a server of pi sends as these frames, and its failure. */
const reading = (...frames: ReadonlyArray<object>) =>
  Effect.gen(function* () {
    const server = yield* serve((response) =>
      stream(response).end(frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join(""))
    )
    const provider = yield* PiProxy.make({ url: server.baseUrl, token: Redacted.make("t-1"), reconnect })
    const events: Array<ModelEvent.ModelEvent> = []
    const read = Stream.runForEach(provider.stream(request), (event) => Effect.sync(() => events.push(event)))
    const error = yield* Effect.match(read, { onFailure: ({ reason }) => reason, onSuccess: () => undefined })
    return { error, events, server }
  }).pipe(Effect.provide(FetchHttpClient.layer))

const usage = { input: 5, output: 4, cacheRead: 3, cacheWrite: 2, totalTokens: 14, cost: { total: 0.5 } }
const call = { type: "toolCall", id: "c", name: "echo", arguments: { a: 1 }, thoughtSignature: "sig" }

const fixture = [
  { type: "start" },
  { type: "thinking_start", contentIndex: 0 },
  { type: "thinking_delta", contentIndex: 0, delta: "Hmm" },
  { type: "thinking_end", contentIndex: 0, contentSignature: '{"provider":"acme"}' },
  { type: "text_start", contentIndex: 1 },
  { type: "text_delta", contentIndex: 1, delta: "Hä" },
  { type: "text_end", contentIndex: 1 },
  { type: "later", contentIndex: 1 },
  { type: "toolcall_start", contentIndex: 2, id: "c", toolName: "echo" },
  { type: "toolcall_delta", contentIndex: 2, delta: '{"a":1}' },
  { type: "toolcall_end", contentIndex: 2, toolCall: call },
  { type: "done", reason: "toolUse", usage }
]

const start = { _tag: "Start", provider: "pi", model: "small", protocol: "pi-proxy" } as const

describe("PiProxy", () => {
  it.live("reads the events of pi's proxy (row 238)", () =>
    Effect.gen(function* () {
      const { error, events, server } = yield* reading(...fixture)
      assert.isUndefined(error)
      assert.deepStrictEqual(events, [
        start,
        { _tag: "ThinkingStart", contentIndex: 0 },
        { _tag: "ThinkingDelta", contentIndex: 0, delta: "Hmm" },
        { _tag: "ThinkingEnd", contentIndex: 0, opaque: { provider: "acme" } },
        { _tag: "TextStart", contentIndex: 1 },
        { _tag: "TextDelta", contentIndex: 1, delta: "Hä" },
        { _tag: "TextEnd", contentIndex: 1 },
        { _tag: "ToolCallStart", contentIndex: 2, id: "c", name: "echo" },
        { _tag: "ToolCallDelta", contentIndex: 2, delta: '{"a":1}' },
        { _tag: "ToolCallEnd", contentIndex: 2, rawArguments: '{"a":1}', opaque: "sig" },
        {
          _tag: "Finish",
          stopReason: "toolUse",
          usage: { input: 10, output: 4, cacheRead: 3, cacheWrite: 2, total: 14, cost: 0.5 }
        }
      ])
      const [seen] = server.requests
      assert.strictEqual(seen?.url, "/v1/api/stream")
      assert.strictEqual(seen?.headers.authorization, "Bearer t-1")
      const body: unknown = JSON.parse(seen?.body ?? "")
      assert.deepNestedInclude(body, { "model.provider": "pi", "model.id": "small" })
      assert.deepNestedInclude(body, { "context.messages[0].role": "user" })
    })
  )

  it.live("fails for an answer that is cut after any event (row 240)", () =>
    Effect.gen(function* () {
      for (let length = 0; length < fixture.length; length++) {
        const { error } = yield* reading(...fixture.slice(0, length))
        assert.strictEqual(error?._tag, "StreamTruncated")
      }
    })
  )

  it.live.each([
    ["acme: RateLimited: slow down", "RateLimited"],
    ["Overloaded", "Overloaded"],
    ["prompt is too long: 3 tokens > 2", "ContextOverflow"],
    ["acme: QuotaExceeded", "QuotaExceeded"],
    ["invalid api key", "Unauthenticated"],
    ["something", "ServerError"]
  ] as const)("takes the failure %s for %s", ([errorMessage, tag]) =>
    Effect.gen(function* () {
      const { error } = yield* reading({ type: "error", reason: "error", errorMessage, usage })
      assert.strictEqual(error?._tag, tag)
      assert.strictEqual(error?.detail, errorMessage)
    })
  )

  it.live("fails for what is no event (row 238)", () =>
    Effect.gen(function* () {
      const { error } = yield* reading({ type: "text_delta", contentIndex: "0" })
      assert.deepInclude(error, { _tag: "Protocol", kind: "badShape" })
    })
  )

  it.live("runs an agent over PiStream as without it", () =>
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
      const url = yield* serveHandler(behind.provider, PiStream.handler({ models }))
      const proxy = yield* Effect.provide(PiProxy.make({ url }), FetchHttpClient.layer)
      const run = (provider: Provider.Provider["Service"]) =>
        Effect.gen(function* () {
          const agent = yield* Agent.make({ model: "small", system: "Be brief.", tools: [echo] })
          const { newMessages } = yield* agent.prompt(Message.user("Say ö", 0))
          return newMessages.map((message) => ({
            role: message.role,
            content: "content" in message ? message.content : []
          }))
        }).pipe(Effect.provideService(Provider.Provider, provider), Effect.scoped)
      assert.deepStrictEqual(yield* run(proxy), yield* run(direct.provider))
      const requests = yield* behind.requests
      assert.strictEqual(requests[1]?.system, "Be brief.")
      assert.strictEqual(requests[1]?.tools[0]?.name, "echo")
    })
  )

  it.live("fails as ProxyProvider does when the server refuses (row 239)", () =>
    Effect.gen(function* () {
      const { provider } = yield* ScriptedProvider.make([ScriptedProvider.text("Hi")])
      const url = yield* serveHandler(provider, PiStream.handler({ models }))
      const proxy = yield* Effect.provide(PiProxy.make({ url, reconnect }), FetchHttpClient.layer)
      const error = yield* Effect.flip(Stream.runDrain(proxy.stream({ ...request, model: "dear" })))
      assert.instanceOf(error, ProviderError.ProviderError)
      assert.deepInclude(error.reason, { _tag: "Forbidden", status: 403 })
    })
  )
})
