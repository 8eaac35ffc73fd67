import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Duration, Effect, Fiber, Layer, Logger, Schema, Stream } from "effect"
import { AiError, LanguageModel, Model, Prompt, ResponseIdTracker, Tool as AiTool } from "effect/ai"
import { Agent, Message, ModelEvent, Provider, ProviderError, Tool } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { LanguageModelProvider } from "effect-agent/ai"
import { TestClock } from "effect/testing"
import * as Fake from "./fakeModel.ts"

const request = (changes?: Partial<Provider.ModelRequest>): Provider.ModelRequest => ({
  model: "m",
  messages: [Message.user("Hi")],
  tools: [],
  options: {},
  ...changes
})

const ask = (changes?: Partial<Provider.ModelRequest>) =>
  Effect.flatMap(Provider.Provider, (provider) => Stream.runCollect(provider.stream(request(changes))))

/** What a model of these turns says to one request, as the message it becomes. */
const reply = (parts: ReadonlyArray<Fake.Part>, options?: LanguageModelProvider.Options) =>
  ask().pipe(
    Effect.map((events) =>
      ModelEvent.toAssistant(events.reduce(ModelEvent.append, ModelEvent.emptyReply), {
        id: "a",
        timestamp: 0,
        provider: "",
        model: "",
        protocol: ""
      })
    ),
    Effect.provide(LanguageModelProvider.layer(options).pipe(Layer.provide(Fake.make(parts).layer)))
  )

const fails = (turn: Fake.Turn, changes?: Partial<Provider.ModelRequest>) =>
  ask(changes).pipe(
    Effect.flip,
    Effect.provide(LanguageModelProvider.layer().pipe(Layer.provide(Fake.make(turn).layer)))
  )

describe("LanguageModelProvider", () => {
  describe("a session", () => {
    const forecast = Tool.make({
      name: "forecast",
      description: "The weather in a city.",
      params: Schema.Struct({ city: Schema.String }),
      execute: ({ city }) => Effect.succeed(`4 °C in ${city}`)
    })
    const add = Tool.make({
      name: "add",
      description: "Adds.",
      params: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
      success: Schema.Finite,
      execute: ({ a, b }) => Effect.succeed(a + b)
    })

    it.effect("runs the tools a model calls, and sends it their results (row 268)", () =>
      Effect.gen(function* () {
        const model = Fake.make(
          [
            { type: "response-metadata", id: "resp_1", modelId: "m-2026" },
            ...Fake.call("c1", "forecast", { city: "Oslo" }),
            ...Fake.call("c2", "add", { a: 2, b: 3 }),
            Fake.finish("tool-calls", 10, 5)
          ],
          [...Fake.text("4 °C, and 5."), Fake.finish("stop", 20, 4)]
        )
        const result = yield* Effect.gen(function* () {
          const agent = yield* Agent.make({ model: "m", system: "Be brief.", tools: [forecast, add] })
          return yield* agent.prompt("Weather in Oslo, and 2 + 3?")
        }).pipe(
          Effect.scoped,
          Effect.provide(LanguageModelProvider.layer({ id: "bridge" }).pipe(Layer.provide(model.layer)))
        )

        assert.strictEqual(result.status, "completed")
        assert.deepStrictEqual(result.newMessages.map(Message.textOf), [
          "Weather in Oslo, and 2 + 3?",
          "",
          "4 °C in Oslo",
          "5",
          "4 °C, and 5."
        ])
        assert.deepStrictEqual([result.usage.input, result.usage.output, result.usage.total], [30, 9, 39])
        const [, called] = result.newMessages
        assert(called?.role === "assistant")
        assert.deepInclude(called, {
          provider: "bridge",
          model: "m-2026",
          protocol: "effect-ai",
          responseId: "resp_1",
          stopReason: "toolUse"
        })

        const [first, second] = model.asked
        assert.deepStrictEqual(
          first?.tools.map(({ name }) => name),
          ["forecast", "add"]
        )
        assert.deepStrictEqual(
          second?.prompt.content.map(({ role }) => role),
          ["system", "user", "assistant", "tool"]
        )
        assert.deepStrictEqual(
          second?.prompt.content.at(-1),
          Prompt.makeMessage("tool", {
            content: [
              { id: "c1", name: "forecast", result: "4 °C in Oslo" },
              { id: "c2", name: "add", result: "5" }
            ].map((fields) =>
              Prompt.makePart("tool-result", { ...fields, isFailure: false, providerExecuted: false })
            )
          })
        )
      })
    )

    it.live("repeats a call whose answer ends for tool calls and has none", () => {
      const fake = Fake.make(
        [...Fake.text("Let me"), Fake.finish("tool-calls")],
        [...Fake.text("Done"), Fake.finish("stop")]
      )
      return Effect.gen(function* () {
        const agent = yield* Agent.make({ model: "m" })
        assert.strictEqual((yield* agent.prompt("Hi")).text, "Done")
        assert.strictEqual(fake.asked.length, 2)
      }).pipe(Effect.provide(LanguageModelProvider.layer().pipe(Layer.provide(fake.layer))), Effect.scoped)
    })

    it.effect("tells the model of a call to no tool, and of arguments that do not fit", () =>
      Effect.gen(function* () {
        const model = Fake.make(
          [...Fake.call("c1", "fly", {}), ...Fake.call("c2", "add", { a: "two" }), Fake.finish("tool-calls")],
          [...Fake.text("Sorry."), Fake.finish("stop")]
        )
        const { newMessages } = yield* Effect.gen(function* () {
          const agent = yield* Agent.make({ model: "m", tools: [add] })
          return yield* agent.prompt("Hi")
        }).pipe(Effect.scoped, Effect.provide(LanguageModelProvider.layer().pipe(Layer.provide(model.layer))))
        assert.deepStrictEqual(
          newMessages.flatMap((message) => (message.role === "toolResult" ? [message.outcome] : [])),
          ["unknownTool", "invalidArguments"]
        )
      })
    )

    it.effect("asks a model that keeps responses for no more than is new", () =>
      Effect.gen(function* () {
        const model = Fake.make(
          [{ type: "response-metadata", id: "resp_1" }, ...Fake.text("Hi."), Fake.finish("stop")],
          [{ type: "response-metadata", id: "resp_2" }, ...Fake.text("Bye."), Fake.finish("stop")]
        )
        yield* Effect.gen(function* () {
          const agent = yield* Agent.make({ model: "m", system: "Be brief." })
          yield* agent.prompt("One")
          yield* agent.prompt("Two")
        }).pipe(
          Effect.scoped,
          Effect.provide(LanguageModelProvider.layer().pipe(Layer.provide(model.layer))),
          Effect.provideServiceEffect(ResponseIdTracker.ResponseIdTracker, ResponseIdTracker.make)
        )
        assert.strictEqual(model.asked[1]?.previousResponseId, "resp_1")
        assert.deepStrictEqual(
          model.asked[1]?.incrementalPrompt?.content.map(({ role }) => role),
          ["user"]
        )
      })
    )
  })

  describe("an answer", () => {
    it.effect("keeps the arguments as the model wrote them, where they say the same", () =>
      Effect.gen(function* () {
        const { content } = yield* reply([
          ...Fake.call("c1", "f", { a: 1 }, `{ "a": 1 }`),
          ...Fake.call("c2", "f", { a: 1 }, `{"a":`),
          { type: "tool-call", id: "c3", name: "f", params: { b: [2] } },
          Fake.finish("stop")
        ])
        assert.deepStrictEqual(
          content.map((block) => (block.type === "toolCall" ? [block.rawArguments, block.params] : [])),
          [
            [`{ "a": 1 }`, { a: 1 }],
            [`{"a":1}`, { a: 1 }],
            [`{"b":[2]}`, { b: [2] }]
          ]
        )
      })
    )

    it.effect("keeps blocks that interleave apart, and closes those left open", () =>
      Effect.gen(function* () {
        const { content } = yield* reply([
          { type: "text-start", id: "a" },
          { type: "text-start", id: "b" },
          { type: "text-delta", id: "a", delta: "A" },
          { type: "text-delta", id: "b", delta: "B" },
          { type: "text-delta", id: "a", delta: "a", metadata: { v: { cite: 1 } } },
          { type: "text-end", id: "b" },
          Fake.finish("stop")
        ])
        assert.deepStrictEqual(content, [
          { type: "text", text: "Aa", opaque: { provider: "effect-ai", metadata: { v: { cite: 1 } } } },
          { type: "text", text: "B" }
        ])
      })
    )

    const Search = AiTool.providerDefined({
      id: "acme.search",
      customName: "AcmeSearch",
      providerName: "search",
      parameters: Schema.Struct({ query: Schema.String }),
      success: Schema.Array(Schema.String),
      failure: Schema.String
    })
    const search = { id: "s", name: "AcmeSearch", providerExecuted: true } as const
    const own = { provider: "bridge", metadata: {} }
    const searched: ReadonlyArray<Fake.Part> = [
      { type: "tool-params-start", ...search },
      { type: "tool-params-delta", id: "s", delta: `{"query":"Oslo"}` },
      { type: "tool-params-end", id: "s" },
      { type: "tool-call", ...search, params: { query: "Oslo" }, metadata: { acme: { page: 1 } } },
      { type: "tool-result", ...search, result: ["Rain"], isFailure: false },
      { type: "source", sourceType: "url", id: "u", url: "https://example.com/", title: "Example" },
      {
        type: "source",
        sourceType: "document",
        id: "d",
        mediaType: "application/pdf",
        title: "A file",
        fileName: "a.pdf",
        metadata: { acme: { cited: "Rain" } }
      },
      { type: "file", mediaType: "image/png", data: "aGVsbG8=" },
      ...Fake.text("Found."),
      Fake.finish("stop")
    ]
    const kept: Message.Assistant["content"] = [
      {
        type: "hostedTool",
        id: "s",
        name: "AcmeSearch",
        params: { query: "Oslo" },
        opaque: { provider: "bridge", metadata: { acme: { page: 1 } } }
      },
      { type: "hostedTool", id: "s", name: "AcmeSearch", result: ["Rain"], opaque: own },
      { type: "source", sourceType: "url", id: "u", title: "Example", url: "https://example.com/" },
      {
        type: "source",
        sourceType: "document",
        id: "d",
        title: "A file",
        mediaType: "application/pdf",
        fileName: "a.pdf",
        opaque: { provider: "bridge", metadata: { acme: { cited: "Rain" } } }
      },
      { type: "media", source: { data: "aGVsbG8=", mediaType: "image/png" }, opaque: own },
      { type: "text", text: "Found." }
    ]

    it.effect("keeps the tools that the vendor ran, sources and files, and sends them back", () =>
      Effect.gen(function* () {
        const model = Fake.make(searched, [...Fake.text("Yes."), Fake.finish("stop")])
        const { newMessages } = yield* Effect.gen(function* () {
          const agent = yield* Agent.make({ model: "m" })
          const searching = yield* agent.prompt("Search")
          yield* agent.prompt("Sure?")
          return searching
        }).pipe(
          Effect.scoped,
          Effect.provide(
            LanguageModelProvider.layer({ id: "bridge", hostedTools: [Search(undefined)] }).pipe(
              Layer.provide(model.layer)
            )
          )
        )
        const [, answer] = newMessages
        assert(answer?.role === "assistant")
        assert.deepStrictEqual(answer.content, kept)
        assert.strictEqual(answer.stopReason, "stop")
        const [first, second] = model.asked
        assert.deepStrictEqual(
          first?.tools.map(({ name }) => name),
          ["AcmeSearch"]
        )
        assert.deepStrictEqual(
          second?.prompt.content[1],
          Prompt.makeMessage("assistant", {
            content: [
              Prompt.makePart("tool-call", {
                ...search,
                params: { query: "Oslo" },
                options: { acme: { page: 1 } }
              }),
              Prompt.makePart("tool-result", { ...search, isFailure: false, result: ["Rain"] }),
              Prompt.makePart("file", { mediaType: "image/png", data: new TextEncoder().encode("hello") }),
              Prompt.makePart("text", { text: "Found." })
            ]
          })
        )
      })
    )

    it.effect("keeps the failure of a tool that the vendor ran", () =>
      Effect.gen(function* () {
        const { content } = yield* reply(
          [
            { type: "tool-call", ...search, params: { query: "Oslo" } },
            { type: "tool-result", ...search, result: "no quota", isFailure: true },
            Fake.finish("stop")
          ],
          { id: "bridge", hostedTools: [Search(undefined)] }
        )
        assert.deepStrictEqual(content[1], {
          type: "hostedTool",
          id: "s",
          name: "AcmeSearch",
          result: "no quota",
          isError: true,
          opaque: own
        })
      })
    )

    it.effect("sends tools of the vendor and media to no other provider", () =>
      Effect.gen(function* () {
        const model = Fake.make([...Fake.text("Yes."), Fake.finish("stop")])
        yield* ask({ messages: [Message.user("Hi"), Message.assistant(kept), Message.user("Again")] }).pipe(
          Effect.provide(LanguageModelProvider.layer({ id: "other" }).pipe(Layer.provide(model.layer)))
        )
        assert.deepStrictEqual(
          model.asked[0]?.prompt.content[1],
          Prompt.makeMessage("assistant", { content: [Prompt.makePart("text", { text: "Found." })] })
        )
      })
    )

    it.effect("sends files with their names, and by their addresses", () =>
      Effect.gen(function* () {
        const model = Fake.make([...Fake.text("Yes."), Fake.finish("stop")])
        const url = "https://example.com/a.pdf"
        yield* ask({
          messages: [
            Message.user([
              { type: "file", source: { data: "aGVsbG8=", mediaType: "audio/wav" }, name: "a.wav" },
              { type: "file", source: { url } },
              { type: "file", source: { url, mediaType: "text/plain" } }
            ])
          ]
        }).pipe(Effect.provide(LanguageModelProvider.layer().pipe(Layer.provide(model.layer))))
        assert.deepStrictEqual(
          model.asked[0]?.prompt.content[0],
          Prompt.makeMessage("user", {
            content: [
              Prompt.makePart("file", {
                mediaType: "audio/wav",
                data: new TextEncoder().encode("hello"),
                fileName: "a.wav"
              }),
              Prompt.makePart("file", { mediaType: "application/pdf", data: new URL(url) }),
              Prompt.makePart("file", { mediaType: "text/plain", data: new URL(url) })
            ]
          })
        )
      })
    )

    it.effect("offers tools with their strict mode", () =>
      Effect.gen(function* () {
        const model = Fake.make([...Fake.text("Yes."), Fake.finish("stop")])
        const tool = { description: "", parameters: { type: "object" } }
        yield* ask({
          tools: [
            { name: "a", ...tool, strict: false },
            { name: "b", ...tool }
          ]
        }).pipe(Effect.provide(LanguageModelProvider.layer().pipe(Layer.provide(model.layer))))
        assert.deepStrictEqual(model.asked[0]?.tools.map(AiTool.getStrictMode), [false, undefined])
      })
    )

    it.effect("says why it stopped, and what it cost", () =>
      Effect.gen(function* () {
        const stops = yield* Effect.forEach(
          ["stop", "length", "content-filter", "pause", "other", "unknown"] as const,
          (reason) =>
            Effect.map(reply([...Fake.text("x"), Fake.finish(reason)]), (message) => message.stopReason)
        )
        assert.deepStrictEqual(stops, ["stop", "length", "contentFilter", "length", "stop", "stop"])

        const { usage } = yield* reply([
          ...Fake.text("x"),
          {
            type: "finish",
            reason: "stop",
            usage: {
              inputTokens: { uncached: 7, cacheRead: 90, cacheWrite: 3 },
              outputTokens: { total: 12, reasoning: 5 }
            }
          }
        ])
        assert.deepStrictEqual(usage, {
          input: 100,
          output: 12,
          cacheRead: 90,
          cacheWrite: 3,
          reasoning: 5,
          total: 112
        })
        assert.isUndefined((yield* reply([...Fake.text("x"), Fake.finish("stop")])).usage)
      })
    )

    it.effect("is over with its finish, whatever the stream does then", () =>
      Effect.gen(function* () {
        const turn = Stream.concat(
          Stream.fromIterable([...Fake.text("x"), Fake.finish("stop")]),
          Stream.never
        )
        const events = yield* ask().pipe(
          Effect.provide(LanguageModelProvider.layer().pipe(Layer.provide(Fake.make(turn).layer)))
        )
        assert.strictEqual(events.at(-1)?._tag, "Finish")
      })
    )

    it.effect("stops the model when it is left", () =>
      Effect.gen(function* () {
        const begun = yield* Deferred.make<void>()
        const left = yield* Deferred.make<void>()
        const turn = Stream.fromEffect(Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)).pipe(
          Stream.ensuring(Deferred.succeed(left, undefined))
        )
        const fiber = yield* ask().pipe(
          Effect.provide(LanguageModelProvider.layer().pipe(Layer.provide(Fake.make(turn).layer))),
          Effect.forkChild
        )
        yield* Deferred.await(begun)
        yield* Fiber.interrupt(fiber)
        yield* Deferred.await(left)
      })
    )
  })

  describe("thinking", () => {
    const thought: ReadonlyArray<Fake.Part> = [
      { type: "reasoning-start", id: "r", metadata: { vendor: { id: "rs_1" } } },
      { type: "reasoning-delta", id: "r", delta: "Hmm" },
      { type: "reasoning-end", id: "r", metadata: { vendor: { signature: "sig" } } },
      { type: "reasoning-start", id: "h", metadata: { vendor: { data: "hidden" } } },
      { type: "reasoning-end", id: "h" },
      ...Fake.text("Hi."),
      Fake.finish("stop")
    ]
    const metadata = { vendor: { id: "rs_1", signature: "sig" } }

    it.effect("keeps what the vendor wants back", () =>
      Effect.gen(function* () {
        const { content } = yield* reply(thought, { id: "bridge" })
        assert.deepStrictEqual(content.slice(0, 2), [
          { type: "thinking", text: "Hmm", opaque: { provider: "bridge", metadata } },
          {
            type: "thinking",
            text: "",
            opaque: { provider: "bridge", metadata: { vendor: { data: "hidden" } } },
            redacted: true
          }
        ])
      })
    )

    it.effect("goes back to the provider that thought, and to no other", () =>
      Effect.gen(function* () {
        const answer = yield* reply(thought, { id: "bridge" })
        const messages = [Message.user("Hi"), answer, Message.user("Go on")]
        const optionsSent = (id: string) =>
          Effect.gen(function* () {
            const model = Fake.make([...Fake.text("x"), Fake.finish("stop")])
            yield* ask({ messages }).pipe(
              Effect.provide(LanguageModelProvider.layer({ id }).pipe(Layer.provide(model.layer)))
            )
            const sent = model.asked[0]?.prompt.content[1]
            assert(sent?.role === "assistant")
            return sent.content.map((part) => [part.type, part.options])
          })
        assert.deepStrictEqual(yield* optionsSent("bridge"), [
          ["reasoning", metadata],
          ["reasoning", { vendor: { data: "hidden" } }],
          ["text", {}]
        ])
        assert.deepStrictEqual(yield* optionsSent("other"), [["text", {}]])
      })
    )
  })

  describe("a request", () => {
    const sent = (changes: Partial<Provider.ModelRequest>, options?: LanguageModelProvider.Options) =>
      Effect.gen(function* () {
        const model = Fake.make([...Fake.text("x"), Fake.finish("stop")])
        yield* ask(changes).pipe(
          Effect.provide(LanguageModelProvider.layer(options).pipe(Layer.provide(model.layer)))
        )
        const [options_] = model.asked
        assert(options_ !== undefined)
        return options_
      })

    it.effect("carries images and files as vendors take them", () =>
      Effect.gen(function* () {
        const { prompt } = yield* sent({
          system: "S",
          messages: [
            Message.user([
              Message.text("Look"),
              Message.image("AQID", "image/png"),
              { type: "image", source: { url: "https://example.com/a.png" } },
              { type: "file", source: { data: "AQID", mediaType: "application/pdf" } },
              { type: "file", source: { fileId: "file-1" } }
            ]),
            Message.assistant([{ type: "toolCall", id: "c", name: "shot", rawArguments: "{}", params: {} }]),
            Message.toolResult({ id: "c", name: "shot" }, [
              Message.text("Here"),
              Message.image("AQID", "image/png")
            ])
          ]
        })
        const [system, user, , results] = prompt.content
        assert.deepInclude(system, { role: "system", content: "S" })
        assert(user?.role === "user" && results?.role === "tool")
        const bytes = new Uint8Array([1, 2, 3])
        assert.deepStrictEqual(
          user.content.map((part) => (part.type === "file" ? [part.mediaType, part.data] : part.text)),
          [
            "Look",
            ["image/png", bytes],
            ["image/*", new URL("https://example.com/a.png")],
            ["application/pdf", bytes],
            ["application/pdf", "file-1"]
          ]
        )
        const [result] = results.content
        assert(result?.type === "tool-result")
        assert.strictEqual(result.result, "Here\n[image/png omitted]")
        assert.deepStrictEqual(
          result.modelOutput?.map(({ type }) => type),
          ["text", "file"]
        )
      })
    )

    it.effect("fails when its data is not base64", () =>
      Effect.gen(function* () {
        const error = yield* fails([], { messages: [Message.user([Message.image("ä", "image/png")])] })
        assert.strictEqual(error.reason._tag, "UnsupportedContent")
      })
    )

    it.effect("carries tools and the choice among them", () =>
      Effect.gen(function* () {
        const tools = [{ name: "f", description: "Does f.", parameters: { type: "object", properties: {} } }]
        const { toolChoice, tools: told } = yield* sent({ tools, options: { toolChoice: { name: "f" } } })
        assert.deepStrictEqual(toolChoice, { tool: "f" })
        assert.deepStrictEqual(
          told.map((tool) => [tool.name, tool.description, AiTool.getJsonSchema(tool)]),
          [["f", "Does f.", { type: "object", properties: {} }]]
        )
        assert.strictEqual((yield* sent({ tools })).toolChoice, "auto")
      })
    )

    it.effect("reaches the vendor's configuration by `configure`", () =>
      Effect.gen(function* () {
        class Config extends Context.Service<Config, { readonly temperature: number }>()("test/Config") {}
        const model = Layer.effect(
          LanguageModel.LanguageModel,
          LanguageModel.make({
            generateText: () => Effect.die("unused"),
            streamText: () =>
              Stream.unwrap(
                Effect.map(Effect.serviceOption(Config), (config) =>
                  Stream.fromIterable([...Fake.text(JSON.stringify(config)), Fake.finish("stop")])
                )
              )
          })
        )
        const events = yield* ask({ options: { temperature: 0.5 } }).pipe(
          Effect.provide(
            LanguageModelProvider.layer({
              configure: ({ options }) => Context.make(Config, { temperature: options.temperature ?? 1 })
            }).pipe(Layer.provide(model))
          )
        )
        assert.include(
          events.map((event) => (event._tag === "TextDelta" ? event.delta : "")).join(""),
          `"temperature":0.5`
        )
      })
    )

    it.effect("tells once of options that nobody takes, and fails where the answer would be another", () =>
      Effect.gen(function* () {
        const logged: Array<unknown> = []
        const logger = Logger.make(({ message }) => void logged.push(message))
        const model = Fake.make(
          [...Fake.text("x"), Fake.finish("stop")],
          [...Fake.text("x"), Fake.finish("stop")]
        )
        yield* Effect.andThen(
          ask({ options: { temperature: 0 } }),
          ask({ options: { temperature: 0 } })
        ).pipe(
          Effect.provide([
            LanguageModelProvider.layer().pipe(Layer.provide(model.layer)),
            Logger.layer([logger])
          ])
        )
        assert.strictEqual(logged.length, 1)
        assert.include(String(logged[0]), "temperature")

        const error = yield* fails([], { options: { output: { name: "o", schema: {} } } })
        assert.strictEqual(error.reason._tag, "InvalidRequest")
      })
    )

    it.effect("is answered under the name of the model in context", () =>
      Effect.gen(function* () {
        const model = Model.make("openai", "gpt-5", Fake.make([...Fake.text("x"), Fake.finish("stop")]).layer)
        const [start] = yield* ask().pipe(
          Effect.provide(LanguageModelProvider.layer().pipe(Layer.provide(model)))
        )
        assert.deepStrictEqual(start, {
          _tag: "Start",
          provider: "openai",
          model: "gpt-5",
          protocol: "effect-ai"
        })
      })
    )
  })

  describe("a failure", () => {
    const http = (status: number, body = "", headers = {}) => ({
      http: { response: { status, headers }, body }
    })

    it.effect("is told by its reason", () =>
      Effect.gen(function* () {
        const cases: ReadonlyArray<readonly [AiError.AiErrorReason, ProviderError.Reason["_tag"]]> = [
          [new AiError.RateLimitError({}), "RateLimited"],
          [new AiError.QuotaExhaustedError({}), "QuotaExceeded"],
          [new AiError.AuthenticationError({ kind: "InvalidKey" }), "Unauthenticated"],
          [new AiError.AuthenticationError({ kind: "InsufficientPermissions" }), "Forbidden"],
          [new AiError.ContentPolicyError({ description: "no" }), "ContentPolicy"],
          [new AiError.InvalidRequestError({ description: "bad" }), "InvalidRequest"],
          [new AiError.InvalidRequestError({ description: "prompt is too long: 9 > 8" }), "ContextOverflow"],
          [
            new AiError.InvalidRequestError({ description: "Too many tokens, please wait a while" }),
            "InvalidRequest"
          ],
          [new AiError.UnknownError(http(404)), "NotFound"],
          [new AiError.UnknownError(http(402)), "QuotaExceeded"],
          [new AiError.UnknownError(http(408)), "ServerError"],
          [new AiError.UnknownError({}), "Protocol"],
          [new AiError.InternalProviderError({ description: "Server error", ...http(500) }), "ServerError"],
          [new AiError.InternalProviderError({ description: "Server error", ...http(529) }), "Overloaded"],
          [new AiError.NetworkError({ reason: "TransportError", method: "POST", url: "u" }), "Transport"],
          [
            new AiError.NetworkError({ reason: "InvalidUrlError", method: "POST", url: "u" }),
            "InvalidRequest"
          ],
          [new AiError.InvalidResponseError({ description: "?" }), "Protocol"],
          [new AiError.InvalidUserInputError({ description: "?" }), "UnsupportedContent"],
          [new AiError.ToolConfigurationError({ toolName: "t", description: "?" }), "InvalidRequest"]
        ]
        for (const [reason, expected] of cases) {
          const error = yield* fails(Fake.failed(reason))
          assert.strictEqual(error.reason._tag, expected, reason._tag)
          assert.strictEqual(error.provider, "effect-ai")
        }
      })
    )

    it.effect("says how long to wait, what the server said and which request it was", () =>
      Effect.gen(function* () {
        const told = yield* fails(
          Fake.failed(new AiError.RateLimitError({ retryAfter: Duration.seconds(3) }))
        )
        assert.deepStrictEqual(told.retryAfter, Duration.seconds(3))

        const headers = { "retry-after": "7", "x-request-id": "req_1" }
        const { reason, retryAfter } = yield* fails(
          Fake.failed(new AiError.RateLimitError(http(429, "x".repeat(5000), headers)))
        )
        assert.deepStrictEqual(retryAfter, Duration.seconds(7))
        assert.deepStrictEqual([reason.status, reason.requestId, reason.body?.length], [429, "req_1", 4096])
      })
    )

    it.effect("shows no key that a server echoes", () =>
      Effect.gen(function* () {
        const error = yield* fails(
          Fake.failed(
            new AiError.AuthenticationError({
              kind: "InvalidKey",
              description: "Incorrect key sk-proj-abcdef0123456789",
              ...http(401, `{"auth":"Bearer abcdef0123456789"}`)
            })
          )
        )
        assert.notInclude(JSON.stringify(error) + error.message, "abcdef0123456789")
        assert.include(error.message, "Incorrect key [redacted]")
      })
    )

    it.effect("told in the stream comes after what was said", () =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        const turn = Stream.concat(
          Stream.fromIterable<Fake.Part>([
            ...Fake.text("Hel"),
            { type: "error", error: { message: "gone" } }
          ]),
          Stream.never
        )
        const error = yield* Effect.flatMap(Provider.Provider, (provider) =>
          provider.stream(request()).pipe(Stream.runForEach(({ _tag }) => Effect.sync(() => seen.push(_tag))))
        ).pipe(
          Effect.flip,
          Effect.provide(LanguageModelProvider.layer().pipe(Layer.provide(Fake.make(turn).layer)))
        )
        assert.deepStrictEqual(seen, ["Start", "TextStart", "TextDelta", "TextEnd"])
        assert.deepStrictEqual([error.reason._tag, error.reason.detail], ["ServerError", "gone"])
      })
    )

    it.effect("is what an answer without a finish, or with a bad one, comes to", () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* fails(Fake.text("Hel"))).reason._tag, "StreamTruncated")
        assert.strictEqual(
          (yield* fails([...Fake.text("Hel"), Fake.finish("error")])).reason._tag,
          "ServerError"
        )
        assert.strictEqual(
          (yield* fails([...Fake.text("Hel"), { type: "text-delta", id: "t", delta: "" }])).reason._tag,
          "StreamTruncated"
        )
      })
    )

    it.effect("is retried by Retry when that may help", () =>
      Effect.gen(function* () {
        const model = Fake.make(
          Fake.failed(new AiError.RateLimitError({ retryAfter: Duration.seconds(30) })),
          [...Fake.text("x"), Fake.finish("stop")]
        )
        const fiber = yield* ask().pipe(
          Effect.provide(Retry.layer()(LanguageModelProvider.layer().pipe(Layer.provide(model.layer)))),
          Effect.forkChild({ startImmediately: true })
        )
        yield* TestClock.adjust("30 seconds")
        const events = yield* Fiber.join(fiber)
        assert.deepStrictEqual([events[0]?._tag, events.at(-1)?._tag], ["Attempt", "Finish"])
      })
    )
  })
})
