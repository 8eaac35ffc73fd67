import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Schedule, Schema, Stream } from "effect"
import { AiError, LanguageModel, Prompt, Tool as AiTool, Toolkit } from "effect/ai"
import { Agent, Message, ProviderError, Tool } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { LanguageModelProvider, ProviderLanguageModel } from "effect-agent/ai"
import { ScriptedProvider, Step } from "effect-agent/testing"

const on = (...script: Parameters<typeof ScriptedProvider.make>[0]) =>
  Effect.map(ScriptedProvider.make(script), (provider) => ({
    requests: provider.requests,
    layer: ProviderLanguageModel.layer({ model: "m", options: { temperature: 0 } }).pipe(
      Layer.provide(provider.layer)
    )
  }))

const Add = AiTool.make("add", {
  description: "Adds.",
  parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  success: Schema.Finite
})
const Kit = Toolkit.make(Add)
const KitLive = Kit.toLayer({ add: ({ a, b }) => Effect.succeed(a + b) })

describe("ProviderLanguageModel", () => {
  it.effect("generates text, with what it cost (row 268)", () =>
    Effect.gen(function* () {
      const { layer, requests } = yield* on(
        ScriptedProvider.text(["Hel", "lo"], { usage: { input: 9, output: 3, cacheRead: 4, reasoning: 1 } })
      )
      const response = yield* LanguageModel.generateText({
        prompt: Prompt.setSystem(Prompt.make("Hi"), "Be brief.")
      }).pipe(Effect.provide(layer))
      assert.deepStrictEqual([response.text, response.finishReason], ["Hello", "stop"])
      assert.deepInclude(response.usage.inputTokens, { total: 9, uncached: 5, cacheRead: 4 })
      assert.deepInclude(response.usage.outputTokens, { total: 3, reasoning: 1, text: 2 })

      const [request] = yield* requests
      assert.deepInclude(request, { model: "m", system: "Be brief.", tools: [], options: { temperature: 0 } })
      assert.deepStrictEqual(request?.messages.map(Message.textOf), ["Hi"])
    })
  )

  it.effect("has sources and files as parts, and sends files back", () =>
    Effect.gen(function* () {
      const turn = ScriptedProvider.turn(
        Step.start,
        Step.text("Rain"),
        Step.source({
          sourceType: "url",
          url: "https://weather.test/",
          title: "Oslo",
          citedText: "It rains"
        }),
        Step.source({ sourceType: "document", id: "d", fileName: "a.pdf", mediaType: "application/pdf" }),
        Step.media({
          source: { data: "aGVsbG8=", mediaType: "image/png" },
          id: "i",
          transcript: "A cloud",
          opaque: { sig: 1 }
        }),
        Step.media({ source: { url: "https://images.test/a.png", mediaType: "image/png" } }),
        Step.media({ source: { data: "no base64", mediaType: "image/png" } }),
        Step.hostedTool({ id: "s", name: "undeclared", params: {}, result: [] }),
        Step.finish()
      )
      const { layer } = yield* on(turn, turn)
      const streamed = yield* LanguageModel.streamText({ prompt: "Hi" }).pipe(
        Stream.runCollect,
        Effect.provide(layer)
      )
      const { content } = yield* LanguageModel.generateText({ prompt: "Hi" }).pipe(Effect.provide(layer))
      for (const parts of [streamed, content]) {
        const sources = parts.flatMap((part) =>
          part.type === "source"
            ? [
                [
                  part.id,
                  part.title,
                  part.sourceType === "url" ? part.url.href : part.mediaType,
                  part.metadata
                ]
              ]
            : []
        )
        assert.deepStrictEqual(sources, [
          ["1", "Oslo", "https://weather.test/", { "effect-agent": { citedText: "It rains" } }],
          ["d", "a.pdf", "application/pdf", {}],
          ["4", "image/png", "https://images.test/a.png", {}]
        ])
        const back = Prompt.concat(Prompt.make("Hi"), Prompt.fromResponseParts(parts))
        const next = yield* on(ScriptedProvider.text("Yes"))
        yield* LanguageModel.generateText({ prompt: back }).pipe(Effect.provide(next.layer))
        const [again] = yield* next.requests
        assert.deepStrictEqual(again?.messages[1]?.content, [
          Message.text("Rain"),
          {
            type: "media",
            source: { data: "aGVsbG8=", mediaType: "image/png" },
            id: "i",
            transcript: "A cloud",
            opaque: { sig: 1 }
          }
        ])
      }
    })
  )

  it.effect("takes tools that a vendor ran, files by their address and strict tools of a prompt", () =>
    Effect.gen(function* () {
      const { layer, requests } = yield* on(ScriptedProvider.text("5"))
      const call = { id: "s", name: "search", providerExecuted: true } as const
      const prompt = Prompt.fromMessages([
        Prompt.makeMessage("user", {
          content: [
            Prompt.makePart("file", {
              mediaType: "application/pdf",
              fileName: "a.pdf",
              data: new URL("https://files.test/a.pdf")
            })
          ]
        }),
        Prompt.makeMessage("assistant", {
          content: [
            Prompt.makePart("tool-call", { ...call, params: { query: "Oslo" } }),
            Prompt.makePart("tool-result", { ...call, isFailure: true, result: "no quota" }),
            Prompt.makePart("file", { mediaType: "image/png", data: new URL("https://images.test/a.png") })
          ]
        }),
        Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: "2 + 3?" })] })
      ])
      yield* LanguageModel.generateText({
        prompt,
        toolkit: Toolkit.make(Add.annotate(AiTool.Strict, true))
      }).pipe(Effect.provide([layer, KitLive]))
      const [request] = yield* requests
      assert.deepStrictEqual(request?.messages[0]?.content, [
        {
          type: "file",
          source: { url: "https://files.test/a.pdf", mediaType: "application/pdf" },
          name: "a.pdf"
        }
      ])
      assert.deepStrictEqual(request?.messages[1]?.content, [
        { type: "hostedTool", id: "s", name: "search", params: { query: "Oslo" } },
        { type: "hostedTool", id: "s", name: "search", result: "no quota", isError: true },
        { type: "media", source: { url: "https://images.test/a.png", mediaType: "image/png" } }
      ])
      assert.deepStrictEqual(
        request?.tools.map(({ strict }) => strict),
        [true]
      )
    })
  )

  it.effect("streams text, thinking and tool calls, and has its tools run by effect/ai", () =>
    Effect.gen(function* () {
      const { layer, requests } = yield* on(
        ScriptedProvider.turn(
          Step.start,
          Step.thinking(["Hm", "m"], { opaque: { sig: 1 } }),
          Step.text("Adding"),
          Step.rawToolCall("add", [`{"a":2,`, `"b":3}`]),
          Step.finish("toolUse")
        )
      )
      const parts = yield* LanguageModel.streamText({
        prompt: "2 + 3?",
        toolkit: Kit,
        toolChoice: "required"
      }).pipe(Stream.runCollect, Effect.provide([layer, KitLive]))
      assert.deepStrictEqual(
        parts.map(({ type }) => type),
        [
          "response-metadata",
          "reasoning-start",
          "reasoning-delta",
          "reasoning-delta",
          "reasoning-end",
          "text-start",
          "text-delta",
          "text-end",
          "tool-params-start",
          "tool-params-delta",
          "tool-params-delta",
          "tool-params-end",
          "tool-call",
          "tool-result",
          "finish"
        ]
      )
      const result = parts.find((part) => part.type === "tool-result")
      assert.strictEqual(result?.result, 5)
      const [request] = yield* requests
      assert.deepStrictEqual(
        request?.tools.map(({ description, name }) => [name, description]),
        [["add", "Adds."]]
      )
      assert.strictEqual(request?.options.toolChoice, "required")

      const back = Prompt.concat(Prompt.make("2 + 3?"), Prompt.fromResponseParts(parts))
      const next = yield* on(ScriptedProvider.text("5"))
      yield* LanguageModel.generateText({ prompt: back }).pipe(Effect.provide(next.layer))
      const [again] = yield* next.requests
      assert.deepStrictEqual(
        again?.messages.map(({ role }) => role),
        ["user", "assistant", "toolResult"]
      )
      assert.deepStrictEqual(again?.messages[1]?.content, [
        { type: "thinking", text: "Hmm", opaque: { sig: 1 } },
        { type: "text", text: "Adding" },
        {
          type: "toolCall",
          id: "call-1",
          name: "add",
          rawArguments: `{"a":2,"b":3}`,
          params: { a: 2, b: 3 }
        }
      ])
      assert.deepStrictEqual(again?.messages[2]?.content, [Message.text("5")])
    })
  )

  it.effect("spells tool names that providers refuse, and calls the handler of each", () =>
    Effect.gen(function* () {
      const Files = Toolkit.make(
        AiTool.make("files.read", { success: Schema.String }),
        AiTool.make("files_read", { success: Schema.String })
      )
      const live = Files.toLayer({
        "files.read": () => Effect.succeed("dotted"),
        files_read: () => Effect.succeed("plain")
      })
      const { layer, requests } = yield* on(
        ScriptedProvider.toolCalls({ name: "files_read_2", params: {} }, { name: "files_read", params: {} }),
        ScriptedProvider.text("ok")
      )
      const ask = (prompt: Prompt.Prompt) =>
        LanguageModel.generateText({ prompt, toolkit: Files, toolChoice: { tool: "files.read" } })
      const { prompt, results } = yield* Effect.gen(function* () {
        const first = yield* ask(Prompt.make("Hi"))
        const prompt = Prompt.concat(Prompt.make("Hi"), Prompt.fromResponseParts(first.content))
        yield* ask(prompt)
        return { prompt, results: first.toolResults }
      }).pipe(Effect.provide([layer, live]))
      assert.deepStrictEqual(
        results.map(({ name, result }) => [name, result]),
        [
          ["files.read", "dotted"],
          ["files_read", "plain"]
        ]
      )
      assert.include(JSON.stringify(prompt), "files.read")
      const seen = yield* requests
      assert.deepStrictEqual(
        seen.map(({ options, tools }) => [tools.map(({ name }) => name), options.toolChoice]),
        [
          [["files_read_2", "files_read"], { name: "files_read_2" }],
          [["files_read_2", "files_read"], { name: "files_read_2" }]
        ]
      )
      assert.notInclude(JSON.stringify(seen[1]?.messages), "files.read")
      assert.include(JSON.stringify(seen[1]?.messages), "files_read_2")
    })
  )

  it.effect("asks for structured output by its schema", () =>
    Effect.gen(function* () {
      const { layer, requests } = yield* on(ScriptedProvider.text(`{"city":"Oslo"}`))
      const { value } = yield* LanguageModel.generateObject({
        prompt: "Where?",
        objectName: "place",
        schema: Schema.Struct({ city: Schema.String })
      }).pipe(Effect.provide(layer))
      assert.deepStrictEqual(value, { city: "Oslo" })
      const output = (yield* requests)[0]?.options.output
      assert.strictEqual(output?.name, "place")
      assert.deepInclude(output?.schema, { type: "object", required: ["city"] })
    })
  )

  it.effect("reads images and files in each of their forms", () =>
    Effect.gen(function* () {
      const { layer, requests } = yield* on(ScriptedProvider.text("ok"))
      const file = (mediaType: string, data: string | Uint8Array | URL) =>
        Prompt.makePart("file", { mediaType, data })
      yield* LanguageModel.generateText({
        prompt: Prompt.fromMessages([
          Prompt.makeMessage("user", {
            content: [
              file("image/png", new Uint8Array([1, 2, 3])),
              file("image/*", new URL("https://example.com/a.png")),
              file("application/pdf", "data:application/pdf;base64,AQID"),
              file("application/pdf", "file-1")
            ]
          })
        ])
      }).pipe(Effect.provide(layer))
      assert.deepStrictEqual((yield* requests)[0]?.messages[0]?.content, [
        Message.image("AQID", "image/png"),
        { type: "image", source: { url: "https://example.com/a.png" } },
        { type: "file", source: { data: "AQID", mediaType: "application/pdf" } },
        { type: "file", source: { fileId: "file-1" } }
      ])
    })
  )

  it.effect("refuses what it could not say", () =>
    Effect.gen(function* () {
      const { layer } = yield* on()
      const hosted = AiTool.providerDefined({ id: "v.s", customName: "search", providerName: "s" })()
      const tool = yield* LanguageModel.generateText({ prompt: "x", toolkit: Toolkit.make(hosted) }).pipe(
        Effect.flip,
        Effect.provide(layer)
      )
      assert.strictEqual(tool.reason._tag, "ToolConfigurationError")
    })
  )

  it.effect("fails with the reason of the provider", () =>
    Effect.gen(function* () {
      const cases: ReadonlyArray<readonly [ProviderError.Reason, AiError.AiErrorReason["_tag"]]> = [
        [new ProviderError.RateLimited({ detail: "", retryAfter: Duration.seconds(3) }), "RateLimitError"],
        [new ProviderError.RateLimited({ detail: "", shouldRetry: false }), "QuotaExhaustedError"],
        [new ProviderError.Overloaded({ detail: "", shouldRetry: false }), "InvalidResponseError"],
        [new ProviderError.QuotaExceeded({ detail: "" }), "QuotaExhaustedError"],
        [new ProviderError.Unauthenticated({ detail: "" }), "AuthenticationError"],
        [new ProviderError.Forbidden({ detail: "" }), "AuthenticationError"],
        [new ProviderError.ContentPolicy({ detail: "" }), "ContentPolicyError"],
        [new ProviderError.ContextOverflow({ detail: "" }), "InvalidRequestError"],
        [new ProviderError.Overloaded({ detail: "" }), "InternalProviderError"],
        [new ProviderError.Transport({ detail: "", kind: "reset" }), "InternalProviderError"],
        [new ProviderError.Transport({ detail: "", kind: "tls" }), "InvalidResponseError"]
      ]
      for (const [reason, expected] of cases) {
        const { layer } = yield* on(ScriptedProvider.fail(reason), ScriptedProvider.fail(reason))
        const [generated, streamed] = yield* Effect.all([
          Effect.flip(LanguageModel.generateText({ prompt: "x" })),
          Effect.flip(Stream.runDrain(LanguageModel.streamText({ prompt: "x" })))
        ]).pipe(Effect.provide(layer))
        for (const error of [generated, streamed]) {
          assert.strictEqual(error.reason._tag, expected)
          const failed = new ProviderError.ProviderError({ provider: "acme", reason })
          assert.strictEqual(error.isRetryable, failed.isRetryable)
          assert.deepStrictEqual(error.retryAfter, "retryAfter" in reason ? reason.retryAfter : undefined)
        }
      }
    })
  )

  it.effect("fails on an answer that was cut", () =>
    Effect.gen(function* () {
      const cut = ScriptedProvider.turn(Step.start, Step.text("Hel"))
      const { layer } = yield* on(cut, cut)
      const [generated, streamed] = yield* Effect.all([
        Effect.flip(LanguageModel.generateText({ prompt: "x" })),
        Effect.flip(Stream.runDrain(LanguageModel.streamText({ prompt: "x" })))
      ]).pipe(Effect.provide(layer))
      assert.include(generated.message, "StreamTruncated")
      assert.include(streamed.message, "StreamTruncated")
    })
  )

  it.effect("gives the new answer for one that was taken back, unless its parts are told already", () =>
    Effect.gen(function* () {
      const busy = new ProviderError.Overloaded({ detail: "busy" })
      const script = [
        ScriptedProvider.turn(Step.start, Step.text("Hel"), Step.fail(busy)),
        ScriptedProvider.text("Hello")
      ]
      const patient = (options: Retry.Options) =>
        ProviderLanguageModel.layer({ model: "m" }).pipe(
          Layer.provide(Retry.layer(options)(ScriptedProvider.layer(script)))
        )
      const options = { retryTurn: true, schedule: Schedule.recurs(1) }
      const { text } = yield* LanguageModel.generateText({ prompt: "x" }).pipe(
        Effect.provide(patient(options))
      )
      assert.strictEqual(text, "Hello")
      const error = yield* LanguageModel.streamText({ prompt: "x" }).pipe(
        Stream.runDrain,
        Effect.flip,
        Effect.provide(patient(options))
      )
      assert.include(error.message, "busy")
    })
  )

  it.effect("is the same provider again through LanguageModelProvider", () =>
    Effect.gen(function* () {
      const add = Tool.make({
        name: "add",
        description: "Adds.",
        params: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
        success: Schema.Finite,
        execute: ({ a, b }) => Effect.succeed(a + b)
      })
      const provider = yield* ScriptedProvider.make([
        ScriptedProvider.turn(
          Step.start,
          Step.thinking("Hmm", { opaque: { provider: "scripted", sig: "s" } }),
          Step.toolCall("add", { a: 2, b: 3 }),
          Step.finish("toolUse", { input: 5, output: 2 })
        ),
        ScriptedProvider.text("5")
      ])
      const { status, usage } = yield* Effect.gen(function* () {
        const agent = yield* Agent.make({ model: "m", tools: [add] })
        return yield* agent.prompt("2 + 3?")
      }).pipe(
        Effect.scoped,
        Effect.provide(
          LanguageModelProvider.layer().pipe(
            Layer.provide(ProviderLanguageModel.layer({ model: "m" })),
            Layer.provide(provider.layer)
          )
        )
      )
      assert.strictEqual(status, "completed")
      assert.deepStrictEqual([usage.input, usage.output], [5, 2])
      const second = (yield* provider.requests)[1]
      assert.deepStrictEqual(second?.messages[1]?.content[0], {
        type: "thinking",
        text: "Hmm",
        opaque: { provider: "scripted", sig: "s" }
      })
      assert.deepStrictEqual(second?.messages.at(-1)?.content, [Message.text("5")])
    })
  )
})
