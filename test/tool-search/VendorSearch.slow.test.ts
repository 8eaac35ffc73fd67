import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Loop, Message, Provider, Tool, ToolRegistry } from "effect-agent"
import { Fallback } from "effect-agent/resilience"
import { ScriptedProvider } from "effect-agent/testing"
import { ToolSearch } from "effect-agent/tool-search"
import { play, range } from "../behaviour/play.ts"
import { encoder } from "../../src/providers/internal/anthropic/request.ts"
import { adjuster, serverOf } from "../providers/asked.ts"
import { isAt } from "../../src/providers/internal/vendor.ts"
import { searchServed } from "../../src/providers/internal/support.ts"
import { asked } from "../providers/asked.ts"
import { type Body, vendors } from "./vendors.ts"

const tools = range(45).map((n) =>
  Tool.make({ name: `tool_${n}`, description: "Runs.", execute: () => Effect.succeed("It ran.") })
)
const wanted = "tool_7"

const hosts = [
  "anthropic/claude-sonnet-5",
  "anthropic/claude-opus-4-1",
  "openai/gpt-5.5",
  "openai/gpt-5.6-luna",
  "openai/gpt-5"
] as const

const converse = Effect.fnUntraced(function* (
  models: ReadonlyArray<string>,
  options: ToolSearch.Options = {},
  later: (messages: ReadonlyArray<Message.Message>) => ReadonlyArray<Message.Message> = (messages) => messages
) {
  const { bodies, layer } = yield* vendors(wanted)
  let messages: ReadonlyArray<Message.Message> = []
  const turns: Array<ReadonlyArray<Body>> = []
  for (const model of models) {
    const start = bodies.length
    const { newMessages, status } = yield* Loop.run("Go on.", { messages: later(messages) }, { model }).pipe(
      Effect.provide([layer, ToolRegistry.layer(...tools), ToolSearch.layer(options)])
    )
    assert.strictEqual(status, "completed")
    messages = [...messages, ...newMessages]
    turns.push(bodies.slice(start))
  }
  return { messages, turns }
})

const deferredIn = (body: Body | undefined): ReadonlyArray<string> =>
  (body?.["tools"] ?? []).filter((tool: Body) => tool["defer_loading"] === true).map(({ name }: Body) => name)

const typesIn = (body: Body = {}): ReadonlyArray<string> =>
  "messages" in body
    ? body["messages"].flatMap(({ content }: Body) => content.map(({ type }: Body) => type))
    : body["input"].map(({ role, type }: Body) => type ?? role)

describe("tool search at the vendor", () => {
  it.effect(
    "Claude searches: all tools but those to keep are deferred, and its blocks go back in order",
    () =>
      Effect.gen(function* () {
        const { messages, turns } = yield* converse(["anthropic/claude-sonnet-5"], { always: ["tool_3"] })
        const [first, second] = turns[0] ?? []
        assert.strictEqual(turns[0]?.length, 2)
        const listed: ReadonlyArray<Body> = first?.["tools"]
        assert.deepStrictEqual(listed[0], {
          type: "tool_search_tool_bm25_20251119",
          name: "tool_search_tool_bm25"
        })
        assert.strictEqual(listed[1]?.["name"], "tool_3")
        assert.deepStrictEqual(listed[1]?.["cache_control"], { type: "ephemeral" })
        assert.strictEqual(deferredIn(first).length, 44)
        assert.deepStrictEqual(second?.["tools"], listed)
        assert.deepStrictEqual(typesIn(second), [
          "text",
          "text",
          "server_tool_use",
          "tool_search_tool_result",
          "tool_use",
          "tool_result"
        ])
        const hosted = messages.flatMap((message) =>
          message.role === "assistant" ? message.content.filter((block) => block.type === "hostedTool") : []
        )
        assert.deepStrictEqual(
          hosted.map(({ name, params }) => [name, params]),
          [
            ["tool_search_tool_bm25", { query: wanted }],
            ["tool_search_tool_bm25", undefined]
          ]
        )
      })
  )

  it.effect("GPT searches: its items go back in order, and the call with its namespace", () =>
    Effect.gen(function* () {
      const { turns } = yield* converse(["openai/gpt-5.5", "openai/gpt-5.5"])
      const [first, second] = turns[0] ?? []
      assert.strictEqual(deferredIn(first).length, 45)
      assert.deepStrictEqual(first?.["tools"].at(-1), { type: "tool_search" })
      assert.deepStrictEqual(second?.["tools"], first?.["tools"])
      const sent = ["user", "tool_search_call", "tool_search_output", "function_call", "function_call_output"]
      assert.deepStrictEqual(typesIn(second), sent)
      assert.deepStrictEqual(second?.["input"][2].tools[0].name, wanted)
      assert.strictEqual(second?.["input"][3].namespace, wanted)
      // The function stays loaded.
      assert.deepStrictEqual(typesIn(turns[1]?.[1]).slice(-2), ["function_call", "function_call_output"])
      assert.strictEqual(turns[1]?.[1]?.["input"].at(-2).namespace, wanted)
    })
  )

  it.effect("other models search by the tool of this process, as all do without `vendor`", () =>
    Effect.gen(function* () {
      for (const [model, options] of [
        ["anthropic/claude-opus-4-1", {}],
        ["openai/gpt-5.4-nano", {}],
        ["anthropic/claude-sonnet-5", { vendor: false }]
      ] as const) {
        const { turns } = yield* converse([model], options)
        assert.strictEqual(turns[0]?.length, 3)
        for (const body of turns[0] ?? []) assert.deepStrictEqual(deferredIn(body), [])
        assert.deepStrictEqual(
          turns[0]?.map(({ tools }) => tools.map(({ name }: Body) => name)),
          [["tool_search"], ["tool_search", wanted], ["tool_search", wanted]]
        )
      }
    })
  )

  it.effect("the vendors take each request, whatever models a conversation has had", () =>
    Effect.gen(function* () {
      for (const one of hosts)
        for (const two of hosts) for (const three of [hosts[0], hosts[2]]) yield* converse([one, two, three])
    })
  )

  it.effect("the vendors take each request of a conversation that lost its beginning", () =>
    Effect.gen(function* () {
      const recent = (messages: ReadonlyArray<Message.Message>) =>
        messages.slice(messages.findLastIndex(({ role }) => role === "user"))
      for (const host of hosts) {
        yield* converse([host, host, host], {}, recent)
        yield* converse([host, "openai/gpt-5.5", "openai/gpt-5.5", host], {}, recent)
      }
    })
  )

  it.effect("a transcript that was stored goes on as before", () =>
    Effect.gen(function* () {
      const stored = (messages: ReadonlyArray<Message.Message>) =>
        Schema.decodeUnknownSync(Schema.Array(Message.Message))(JSON.parse(JSON.stringify(messages)))
      for (const host of hosts) {
        const fresh = yield* converse([host, host])
        const decoded = yield* converse([host, host], {}, stored)
        assert.deepStrictEqual(
          decoded.turns[1]?.map((body) => typesIn(body)),
          fresh.turns[1]?.map((body) => typesIn(body))
        )
      }
    })
  )

  it.effect("a tool that must be called is not deferred, nor one that a search of this process found", () =>
    Effect.gen(function* () {
      const script = [ScriptedProvider.text("Done.")]
      const around = Provider.decorate((inner) => Effect.succeed({ ...inner, toolSearch: () => true }))
      const { requests } = yield* play(script, {
        tools,
        around,
        options: { modelOptions: { toolChoice: { name: "tool_2" } } },
        messages: [
          Message.user("Hi"),
          Message.assistant([
            { type: "toolCall", id: "a", name: "tool_search", rawArguments: '{"query":"tool_9"}' }
          ]),
          Message.toolResult({ id: "a", name: "tool_search" }, "Loaded", { details: { tools: ["tool_9"] } })
        ],
        layer: ToolSearch.layer()
      })
      const sent = requests[0]?.tools ?? []
      assert.deepStrictEqual(
        sent.filter(({ deferred }) => deferred !== true).map(({ name }) => name),
        ["tool_9", "tool_2"]
      )
      assert.strictEqual(sent.length, 45)
    })
  )

  it.effect("a fallback defers no tools unless each of its models can search for them", () =>
    Effect.gen(function* () {
      const { layer } = yield* vendors(wanted)
      const asks = (...models: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          const [first = "", ...others] = models
          const context = yield* Layer.build(
            Fallback.layer([{ layer, model: first }, ...others.map((model) => ({ layer, model }))])
          )
          const provider = yield* Effect.provide(Provider.Provider, context)
          return provider.toolSearch?.({ model: first })
        }).pipe(Effect.scoped)
      assert.isTrue(yield* asks(hosts[0], hosts[2]))
      assert.isFalse(yield* asks(hosts[0], hosts[1]))
    })
  )
})

describe("deferred tools in a request", () => {
  const definition = { name: "f", description: "F.", parameters: { type: "object", properties: {} } }
  const other = { name: "g", description: "G.", parameters: { type: "object", properties: {} } }
  const questionOf = (model: string, toolChoice?: { readonly name: string }) => {
    const adjust = adjuster({ id: "openai", endpoint: "responses", vendor: "openai", toolSearch: true })
    const question = adjust({
      model,
      messages: [],
      tools: [
        { ...definition, deferred: true },
        { ...other, deferred: true }
      ],
      options: toolChoice === undefined ? {} : { toolChoice }
    })
    assert("tools" in question)
    return question
  }

  it("are given to a model that cannot search, and this is reported", () => {
    const { adjusted, tools } = questionOf("gpt-5")
    assert.deepStrictEqual(tools, [definition, other])
    assert.deepStrictEqual(
      adjusted.map(({ asked, option, sent }) => [option, asked, sent]),
      [["deferred", true, null]]
    )
  })

  it("are not deferred if the model must call them", () => {
    const { adjusted, tools } = questionOf("gpt-5.5", { name: "g" })
    assert.deepStrictEqual(tools, [{ ...definition, deferred: true }, other])
    assert.deepStrictEqual(adjusted, [])
  })

  const encode = asked(
    { id: "acme", endpoint: "messages", vendor: "anthropic", toolSearch: true },
    encoder("acme")
  )
  const bodyOf = (request: Partial<Provider.ModelRequest>) => {
    const tools = [definition, { ...other, deferred: true }]
    const body = encode({ model: "claude-sonnet-5", messages: [], tools, options: {}, ...request })
    assert.isString(body)
    return JSON.parse(String(body))
  }
  const use = { type: "server_tool_use", id: "s1", name: "tool_search_tool_bm25" }
  const result = { type: "tool_search_tool_result", tool_use_id: "s1" }
  const referring = (...names: ReadonlyArray<string>) => ({
    type: "tool_search_tool_search_result",
    tool_references: names.map((tool_name) => ({ type: "tool_reference", tool_name }))
  })
  const answered = (content: Schema.Json): ReadonlyArray<Message.ModelMessage> => [
    Message.user("Hi"),
    Message.assistant(
      [
        { type: "thinking", text: "Hm", opaque: { provider: "acme", signature: "x" } },
        {
          type: "hostedTool",
          id: "s1",
          name: "tool_search_tool_bm25",
          params: { query: "g" },
          opaque: { provider: "acme", block: use }
        },
        {
          type: "hostedTool",
          id: "s1",
          name: "tool_search_tool_bm25",
          result: content,
          opaque: { provider: "acme", block: result }
        }
      ],
      { provider: "acme", model: "claude-sonnet-5" }
    ),
    Message.user("Go on")
  ]
  const blocksIn = (body: Body) => body["messages"].flatMap(({ content }: Body) => content)

  it("stand after the mark of the cache, and leave the search that the application lists alone", () => {
    const regex = { type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" }
    const { tools } = bodyOf({ options: { vendor: { acme: { tools: [regex] } } } })
    const schema = { type: "object", properties: {} }
    assert.deepStrictEqual(tools, [
      regex,
      { name: "f", description: "F.", input_schema: schema, cache_control: { type: "ephemeral" } },
      { name: "g", description: "G.", input_schema: schema, defer_loading: true }
    ])
  })

  it("go back with a search as it was, but without tools that are gone", () => {
    const sent = (content: Schema.Json) => blocksIn(bodyOf({ messages: answered(content) })).slice(2, 4)
    const asked = { ...use, input: { query: "g" } }
    const failed = { type: "tool_search_tool_result_error", error_code: "unavailable" }
    assert.deepStrictEqual(sent(referring("g", "f")), [asked, { ...result, content: referring("g", "f") }])
    assert.deepStrictEqual(sent(referring("gone", "g")), [asked, { ...result, content: referring("g") }])
    assert.deepStrictEqual(sent(failed), [asked, { ...result, content: failed }])
  })

  it("go back without searches, and thinking before them, in a request that defers none", () => {
    const body = bodyOf({ messages: answered(referring("g")), tools: [definition, other] })
    assert.deepStrictEqual(
      blocksIn(body).map(({ text, type }: Body) => text ?? type),
      ["Hi", "Go on"]
    )
    assert.notInclude(JSON.stringify(body.tools), "defer_loading")
  })

  it("are served by the models and at the addresses that are known to search", () => {
    const at = (endpoint: "chat" | "responses" | "messages" | undefined, vendor: string, toolSearch = true) =>
      searchServed(serverOf({ id: vendor, ...(endpoint && { endpoint }), vendor, toolSearch }))
    assert.isTrue(at("responses", "openai")({ model: "gpt-5.4-mini" }))
    assert.isFalse(at("responses", "openai")({ model: "gpt-5.4-nano" }))
    assert.isFalse(at("responses", "openai", false)({ model: "gpt-5.4-mini" }))
    assert.isFalse(at("chat", "openai")({ model: "gpt-5.4-mini" }))
    assert.isTrue(at("messages", "anthropic")({ model: "claude-haiku-4-5" }))
    assert.isFalse(at("messages", "minimax")({ model: "MiniMax-M3" }))
    assert.isTrue(at(undefined, "acme")({ model: "any" }))
    assert.isTrue(isAt("api.openai.com", "https://eu.api.openai.com/v1?a=b"))
    assert.isFalse(isAt("api.openai.com", "https://api.openai.com.evil.test/v1"))
    assert.isFalse(isAt("api.openai.com", "nowhere"))
  })
})
