import type { LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Message, ModelEvent, type Provider } from "effect-agent"
import { AiSdk } from "effect-agent/ai-sdk"
import * as Fake from "./fakeModel.ts"

const request = (changes?: Partial<Provider.ModelRequest>): Provider.ModelRequest => ({
  model: "m",
  messages: [Message.user("Hi")],
  tools: [],
  options: {},
  ...changes
})

const ask = (options: AiSdk.Options, changes?: Partial<Provider.ModelRequest>) =>
  Stream.runCollect(AiSdk.make(options).stream(request(changes)))

/** The reply that a model of these parts gives. */
const reply = (...parts: ReadonlyArray<LanguageModelV4StreamPart>) =>
  Effect.map(ask({ model: Fake.version4(...parts).model }), (events) =>
    events.reduce(ModelEvent.append, ModelEvent.emptyReply)
  )

const png = { data: "iVBORw0KGgo=", mediaType: "image/png" }
const files = [
  Message.user([
    Message.image(png.data, png.mediaType),
    { type: "image", source: { url: "https://example.com/a.png" } },
    { type: "file", source: { fileId: "file-1" } }
  ]),
  Message.assistant([{ type: "toolCall", id: "c1", name: "look", rawArguments: "{}", params: {} }]),
  Message.toolResult({ id: "c1", name: "look" }, [
    Message.text("seen"),
    Message.image(png.data, png.mediaType)
  ])
]

describe("a request", () => {
  it.effect("has its files in the form of version 4", () =>
    Effect.gen(function* () {
      const { asked, model } = Fake.version4(Fake.finish("stop"))
      yield* ask({ model }, { messages: files, system: "Be brief." })
      const url = "https://example.com/a.png"
      assert.deepStrictEqual(asked[0]?.prompt, [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "file", mediaType: "image/png", data: { type: "data", data: png.data } },
            {
              type: "file",
              mediaType: "image/*",
              data: { type: "url", url: new URL(url), originalUrl: url }
            },
            {
              type: "file",
              mediaType: "application/pdf",
              data: { type: "reference", reference: { fake: "file-1" } }
            }
          ]
        },
        {
          role: "assistant",
          content: [{ type: "tool-call", toolCallId: "c1", toolName: "look", input: {} }]
        },
        {
          role: "tool",
          content: [
            {
              type: "tool-result",
              toolCallId: "c1",
              toolName: "look",
              output: {
                type: "content",
                value: [
                  { type: "text", text: "seen" },
                  { type: "file", mediaType: "image/png", data: { type: "data", data: png.data } }
                ]
              }
            }
          ]
        }
      ])
    })
  )

  it.effect("has its files in the form of version 3", () =>
    Effect.gen(function* () {
      const { asked, model } = Fake.version3(Fake.finish("stop"))
      yield* ask({ model }, { messages: files })
      const [user, , tool] = asked[0]?.prompt ?? []
      assert.deepStrictEqual(user?.content, [
        { type: "file", mediaType: "image/png", data: png.data },
        { type: "file", mediaType: "image/*", data: new URL("https://example.com/a.png") },
        { type: "file", mediaType: "application/pdf", data: "file-1" }
      ])
      assert.deepInclude(tool?.content[0], {
        output: {
          type: "content",
          value: [
            { type: "text", text: "seen" },
            { type: "image-data", data: png.data, mediaType: "image/png" }
          ]
        }
      })
    })
  )

  it.effect("fails without a call where the address of an image is no URL", () =>
    Effect.gen(function* () {
      const { asked, model } = Fake.version4(Fake.finish("stop"))
      const messages = [Message.user([{ type: "image", source: { url: "a.png" } }])]
      const error = yield* Effect.flip(ask({ model }, { messages }))
      assert.strictEqual(error.reason._tag, "UnsupportedContent")
      assert.strictEqual(asked.length, 0)
    })
  )

  it.effect("has the options that the specification has a place for", () =>
    Effect.gen(function* () {
      const { asked, model } = Fake.version4(Fake.finish("stop"))
      const tools = [{ name: "look", description: "Looks.", parameters: { type: "object" }, strict: true }]
      const schema = { type: "object" }
      yield* ask(
        { model, structuredOutput: true },
        {
          tools,
          options: {
            maxTokens: 9,
            temperature: 0.5,
            topP: 0.9,
            stop: ["END"],
            seed: 7,
            thinkingLevel: "off",
            toolChoice: { name: "look" },
            output: { name: "answer", schema },
            vendor: { fake: { user: "ada" } }
          }
        }
      )
      const { abortSignal, prompt: _, ...options } = asked[0] ?? {}
      assert.instanceOf(abortSignal, AbortSignal)
      assert.deepStrictEqual(options, {
        maxOutputTokens: 9,
        temperature: 0.5,
        topP: 0.9,
        stopSequences: ["END"],
        seed: 7,
        reasoning: "none",
        tools: [{ type: "function", name: "look", description: "Looks.", inputSchema: schema, strict: true }],
        toolChoice: { type: "tool", toolName: "look" },
        responseFormat: { type: "json", name: "answer", schema },
        providerOptions: { fake: { user: "ada" } }
      })
    })
  )

  it.effect("offers tools of the vendor, in place of a tool of the same name", () =>
    Effect.gen(function* () {
      const { asked, model } = Fake.version4(Fake.finish("stop"))
      const tools = ["look", "shell"].map((name) => ({
        name,
        description: "",
        parameters: { type: "object" }
      }))
      const shell = { type: "provider", id: "fake.shell", args: { version: 2 } } as const
      yield* ask({ model, providerTools: { shell } }, { tools })
      assert.deepStrictEqual(asked[0]?.tools?.slice(1), [{ ...shell, name: "shell" }])
      assert.strictEqual(asked[0]?.tools?.[0]?.name, "look")
    })
  )

  it.effect("selects the model by its name, where the option is a function", () =>
    Effect.gen(function* () {
      const model = (id: string): AiSdk.Model => {
        if (id !== "m") throw new Error("no such model")
        return Fake.version4(Fake.finish("stop")).model
      }
      const [start] = yield* ask({ model })
      assert.deepInclude(start, { _tag: "Start", provider: "ai-sdk", model: "fake-4" })
      const error = yield* Effect.flip(ask({ model }, { model: "n" }))
      assert.include(error.message, "no such model")
    })
  )
})

describe("adjusted", () => {
  it.effect("has the warnings of the model, by the names of the options", () =>
    Effect.gen(function* () {
      const { model } = Fake.version4(
        {
          type: "stream-start",
          warnings: [
            { type: "unsupported", feature: "stopSequences", details: "No stops." },
            { type: "compatibility", feature: "responseFormat" },
            { type: "deprecated", setting: "temperature", message: "Leave it out." },
            { type: "other", message: "The moon is full." }
          ]
        },
        { type: "response-metadata", id: "r1", modelId: "fake-4-2026" },
        Fake.finish("stop")
      )
      const options = { stop: ["END"], temperature: 0.5 }
      const [start] = yield* ask({ model }, { options })
      assert.deepStrictEqual(start, {
        _tag: "Start",
        provider: "fake.chat",
        model: "fake-4",
        protocol: "ai-sdk",
        responseId: "r1",
        responseModel: "fake-4-2026",
        adjusted: [
          { option: "stop", asked: ["END"], sent: null, reason: "No stops." },
          { option: "output", asked: null, sent: null, reason: "The model takes it in another way." },
          { option: "temperature", asked: 0.5, sent: 0.5, reason: "Leave it out." },
          { option: "request", asked: null, sent: null, reason: "The moon is full." }
        ]
      })
    })
  )

  it.effect("has the options that version 3 has no place for", () =>
    Effect.gen(function* () {
      const [start] = yield* ask(
        { model: Fake.version3(Fake.finish("stop")).model },
        { options: { thinkingLevel: "high", thinkingBudgets: { high: 9000 }, store: false } }
      )
      assert.deepStrictEqual(
        start?._tag === "Start" && start.adjusted?.map(({ option, sent }) => [option, sent]),
        [
          ["thinkingBudgets", null],
          ["store", null],
          ["thinkingLevel", null]
        ]
      )
    })
  )
})

describe("an answer", () => {
  it.effect("may interleave its blocks, and keeps the metadata of each", () =>
    Effect.gen(function* () {
      const { content } = yield* reply(
        { type: "reasoning-start", id: "1", providerMetadata: { fake: { id: "r" } } },
        { type: "text-start", id: "1" },
        { type: "reasoning-delta", id: "1", delta: "Hm." },
        { type: "text-delta", id: "1", delta: "Yes" },
        { type: "reasoning-end", id: "1", providerMetadata: { fake: { signature: "s" } } },
        { type: "text-end", id: "1", providerMetadata: { fake: { phase: "final" } } },
        { type: "reasoning-start", id: "2", providerMetadata: { fake: { redactedData: "x" } } },
        { type: "reasoning-end", id: "2" },
        Fake.finish("stop")
      )
      const opaque = (metadata: object) => ({
        opaque: { provider: "fake.chat", metadata: { fake: metadata } }
      })
      assert.deepStrictEqual<unknown>(content, [
        { type: "thinking", text: "Hm.", ...opaque({ id: "r", signature: "s" }) },
        { type: "text", text: "Yes", ...opaque({ phase: "final" }) },
        { type: "thinking", text: "", redacted: true, ...opaque({ redactedData: "x" }) }
      ])
    })
  )

  it.effect("has the arguments of a call in pieces, at once, as a text, or repaired", () =>
    Effect.gen(function* () {
      const call = (toolCallId: string, input: string) =>
        ({ type: "tool-call", toolCallId, toolName: "t", input }) as const
      const { content, finish } = yield* reply(
        { type: "tool-input-start", id: "1", toolName: "t" },
        { type: "tool-input-delta", id: "1", delta: '{"a"' },
        { type: "tool-input-delta", id: "1", delta: ":1}" },
        { type: "tool-input-end", id: "1" },
        call("1", '{"a":1}'),
        call("2", '{"a":2}'),
        { type: "tool-input-start", id: "3", toolName: "t", inputEncoding: "text" },
        { type: "tool-input-delta", id: "3", delta: "patch" },
        call("3", '"patch"'),
        { type: "tool-input-start", id: "4", toolName: "t" },
        { type: "tool-input-delta", id: "4", delta: "{broken" },
        call("4", "{}"),
        Fake.finish("tool-calls")
      )
      assert.deepStrictEqual(
        content.map((block) => block.type === "toolCall" && [block.id, block.rawArguments]),
        [
          ["1", '{"a":1}'],
          ["2", '{"a":2}'],
          ["3", '"patch"'],
          ["4", "{}"]
        ]
      )
      assert.strictEqual(finish?.stopReason, "toolUse")
    })
  )

  it.effect("ends for a reason of ours", () =>
    Effect.gen(function* () {
      const call = { type: "tool-call", toolCallId: "1", toolName: "t", input: "{}" } as const
      const stops = yield* Effect.forEach(
        [
          reply(Fake.finish("stop", "end_turn")),
          reply(call, Fake.finish("stop")),
          reply(call, Fake.finish("length")),
          reply(Fake.finish("content-filter", "SAFETY")),
          reply(Fake.finish("content-filter", "refusal")),
          reply(Fake.finish("stop", "pause_turn")),
          reply(Fake.finish("other", "compaction"))
        ],
        Effect.map(({ finish }) => finish?.stopReason)
      )
      assert.deepStrictEqual(stops, [
        "stop",
        "toolUse",
        "length",
        "contentFilter",
        "refusal",
        "length",
        "stop"
      ])
    })
  )

  it.effect("fails without proof that it is complete", () =>
    Effect.gen(function* () {
      const text = { type: "text-delta", id: "1", delta: "Hel" } as const
      const tags = yield* Effect.forEach(
        [
          reply(text),
          reply(text, Fake.finish("interrupted")),
          reply(text, Fake.finish("other")),
          reply(text, Fake.finish("error", "failed")),
          reply(text, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } })
        ],
        (reply) => Effect.map(Effect.flip(reply), ({ reason }) => reason._tag)
      )
      assert.deepStrictEqual(tags, [
        "StreamTruncated",
        "StreamTruncated",
        "StreamTruncated",
        "ServerError",
        "Overloaded"
      ])
    })
  )
})
