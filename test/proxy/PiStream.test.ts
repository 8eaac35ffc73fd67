import { streamProxy } from "@earendil-works/pi-agent-core"
import { type AssistantMessage, type Context, normalizeContext } from "@earendil-works/pi-ai"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Stream } from "effect"
import { Message, type ModelEvent, Provider, ProviderError } from "effect-agent"
import { PiStream } from "effect-agent/proxy"
import { model, models, serveHandler } from "./served.ts"

const context: Context = {
  systemPrompt: "Be brief.",
  tools: [{ name: "echo", description: "Echoes", parameters: { type: "object", properties: {} } as never }],
  messages: [{ role: "user", content: "Hi", timestamp: 1 }]
}

type Events = ReadonlyArray<ModelEvent.ModelEvent>

const answering = (events: Events, error?: ProviderError.ProviderError) => {
  const asked: Array<Provider.ModelRequest> = []
  const provider = Provider.Provider.of({
    id: "acme",
    stream: (request) => {
      asked.push(request)
      const answer = Stream.fromIterable(events)
      return error === undefined ? answer : Stream.concat(answer, Stream.fail(error))
    }
  })
  return { provider, asked }
}

/** Asks with pi's client, and gives its events and its message. */
const ask = (
  proxyUrl: string,
  context: Context,
  asking: { readonly model?: typeof model; readonly signal?: AbortSignal } = {}
) =>
  Effect.promise(async () => {
    const answer = streamProxy(asking.model ?? model, normalizeContext(context), {
      proxyUrl,
      authToken: "t-1",
      reasoning: "high",
      maxTokens: 50,
      cacheRetention: "long",
      ...(asking.signal === undefined ? {} : { signal: asking.signal })
    })
    const types: Array<string> = []
    for await (const event of answer) types.push(event.type)
    return { types, message: await answer.result() }
  })

const serving = (events: Events, error?: ProviderError.ProviderError) =>
  Effect.gen(function* () {
    const { asked, provider } = answering(events, error)
    const url = yield* serveHandler(provider, PiStream.handler({ models }))
    return { asked, url }
  })

const start = { _tag: "Start", provider: "acme", model: "large", protocol: "acme-chat" } as const
const usage = { input: 10, output: 4, cacheRead: 3, cacheWrite: 2, total: 14, cost: 0.5 }
const signature = { provider: "acme", signature: "sig" }
const whole: Events = [
  start,
  { _tag: "ThinkingStart", contentIndex: 0 },
  { _tag: "ThinkingDelta", contentIndex: 0, delta: "Hmm" },
  { _tag: "ThinkingEnd", contentIndex: 0, opaque: signature },
  {
    _tag: "Source",
    contentIndex: 1,
    source: { type: "source", sourceType: "url", url: "https://a.example" }
  },
  { _tag: "TextStart", contentIndex: 2 },
  { _tag: "TextDelta", contentIndex: 2, delta: "Hä\u2028" },
  { _tag: "TextEnd", contentIndex: 2 },
  { _tag: "ToolCallStart", contentIndex: 3, id: "call_1", name: "echo" },
  { _tag: "ToolCallDelta", contentIndex: 3, delta: '{"a":' },
  { _tag: "ToolCallDelta", contentIndex: 3, delta: "1}" },
  { _tag: "ToolCallEnd", contentIndex: 3, rawArguments: '{"a":1}', opaque: "123" },
  { _tag: "Finish", stopReason: "toolUse", usage }
]

const textOf = ({ content }: AssistantMessage) =>
  content.map((block) => (block.type === "text" ? block.text : block.type)).join("|")

describe("PiStream", () => {
  it.live("answers pi's streamProxy (rows 236, 237, 238, 241)", () =>
    Effect.gen(function* () {
      const { asked, url } = yield* serving(whole)
      const { message, types } = yield* ask(url, context)
      assert.deepStrictEqual(types, [
        "start",
        "thinking_start",
        "thinking_delta",
        "thinking_end",
        "text_start",
        "text_delta",
        "text_end",
        "toolcall_start",
        "toolcall_delta",
        "toolcall_delta",
        "toolcall_end",
        "done"
      ])
      assert.deepInclude(message, { stopReason: "toolUse" })
      assert.deepInclude(message.usage, { input: 5, output: 4, cacheRead: 3, cacheWrite: 2, totalTokens: 14 })
      assert.strictEqual(message.usage.cost.total, 0.5)
      const [thinking, text, call] = message.content
      assert.deepInclude(thinking, { type: "thinking", thinking: "Hmm" })
      assert.deepInclude(text, { type: "text", text: "Hä\u2028" })
      assert.deepInclude(call, { id: "call_1", name: "echo", arguments: { a: 1 } })
      const [request] = asked
      assert.deepInclude(request, {
        model: "acme/large",
        system: "Be brief.",
        options: { maxTokens: 50, cacheRetention: "long", thinkingLevel: "high" }
      })
      assert.deepStrictEqual(
        request?.tools.map(({ name }) => name),
        ["echo"]
      )
    })
  )

  it.live("gets the conversation back with the data of the vendor", () =>
    Effect.gen(function* () {
      const { asked, url } = yield* serving(whole)
      const { message } = yield* ask(url, context)
      const image = { type: "image", data: "AAAA", mimeType: "image/png" } as const
      yield* ask(url, {
        ...context,
        messages: [
          ...context.messages,
          message,
          {
            role: "toolResult",
            toolCallId: "call_1",
            toolName: "echo",
            content: [{ type: "text", text: "1" }, image],
            isError: false,
            timestamp: 3
          },
          {
            role: "system",
            content: "Now be long.",
            sections: { mood: "Be kind." },
            toolsRemoved: [{ name: "echo" }],
            timestamp: 4
          }
        ]
      })
      const request = asked[1]
      assert.strictEqual(request?.system, "Be brief.\n\nNow be long.\n\nBe kind.")
      assert.deepStrictEqual(request?.tools, [])
      const [user, answer, result] = request?.messages ?? []
      assert.strictEqual(user === undefined ? "" : Message.textOf(user), "Hi")
      assert(answer?.role === "assistant")
      assert.deepInclude(answer, { provider: "acme", model: "large", stopReason: "toolUse" })
      assert.deepStrictEqual(answer.content, [
        { type: "thinking", text: "Hmm", opaque: signature },
        { type: "text", text: "Hä\u2028" },
        {
          type: "toolCall",
          id: "call_1",
          name: "echo",
          rawArguments: '{"a":1}',
          params: { a: 1 },
          opaque: "123"
        }
      ])
      assert.deepInclude(result, { role: "toolResult", toolCallId: "call_1", outcome: "success" })
    })
  )

  it.live("replaces an answer that a retry retracted", () =>
    Effect.gen(function* () {
      const { url } = yield* serving([
        start,
        { _tag: "TextDelta", contentIndex: 0, delta: "no" },
        { _tag: "ToolCallStart", contentIndex: 1, id: "c", name: "echo" },
        { _tag: "Retracted" },
        start,
        { _tag: "TextDelta", contentIndex: 5, delta: "yes" },
        { _tag: "Finish", stopReason: "stop" }
      ])
      const { message } = yield* ask(url, context)
      assert.strictEqual(message.stopReason, "stop")
      assert.strictEqual(textOf(message), "yes|")
    })
  )

  it.live("reports failures, refusals of the vendor and answers that were cut (row 239)", () =>
    Effect.gen(function* () {
      const reason = new ProviderError.Overloaded({ detail: "busy with sk-abcdefghijklmnop" })
      const error = new ProviderError.ProviderError({ provider: "acme", reason })
      const failed = yield* serving([start, { _tag: "TextDelta", contentIndex: 0, delta: "a" }], error)
      const failure = yield* ask(failed.url, context)
      assert.strictEqual(failure.types.at(-1), "error")
      assert.deepInclude(failure.message, {
        stopReason: "error",
        errorMessage: "acme: Overloaded: busy with [redacted]"
      })
      const refused = yield* serving([start, { _tag: "Finish", stopReason: "refusal", usage }])
      const refusal = yield* ask(refused.url, context)
      assert.strictEqual(refusal.message.stopReason, "error")
      assert.match(refusal.message.errorMessage ?? "", /refusal/)
      assert.strictEqual(refusal.message.usage.totalTokens, 14)
      const cut = yield* serving([start])
      assert.match((yield* ask(cut.url, context)).message.errorMessage ?? "", /before it was finished/)
    })
  )

  it.live("refuses other models", () =>
    Effect.gen(function* () {
      const { asked, url } = yield* serving(whole)
      const { message } = yield* ask(url, context, { model: { ...model, id: "dear" } })
      assert.match(message.errorMessage ?? "", /does not ask the model "dear"/)
      assert.strictEqual(asked.length, 0)
      assert.strictEqual(
        (yield* ask(url, context, { model: { ...model, provider: "other" } })).message.stopReason,
        "toolUse"
      )
    })
  )

  it.live("leaves the vendor when pi's client aborts (row 240)", () =>
    Effect.gen(function* () {
      const left = yield* Deferred.make<void>()
      const controller = new AbortController()
      const provider = Provider.Provider.of({
        id: "acme",
        stream: () =>
          Stream.onStart(
            Stream.never,
            Effect.sync(() => controller.abort())
          ).pipe(Stream.ensuring(Deferred.succeed(left, undefined)))
      })
      const url = yield* serveHandler(provider, PiStream.handler({ models }))
      const { message } = yield* ask(url, context, { signal: controller.signal })
      assert.strictEqual(message.stopReason, "aborted")
      yield* Deferred.await(left)
    })
  )
})
