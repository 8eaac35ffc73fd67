import { assert, describe, it } from "@effect/vitest"
import type { Schema } from "effect"
import { Message, type Provider } from "effect-agent"
import { OpenAiCompatible } from "effect-agent/providers"
import { common, type Compat, thinkingOf } from "../../src/providers/internal/openAiChat/compat.ts"
import { encoder as chatEncoder } from "../../src/providers/internal/openAiChat/request.ts"
import { asked } from "./asked.ts"

const { presets } = OpenAiCompatible

type Request = Partial<Provider.ModelRequest>

const encoder = (provider: string, compat: Compat) => {
  const server = {
    id: provider,
    endpoint: "chat",
    vendor: compat.vendor,
    isGateway: compat.gateway,
    thinking: thinkingOf(compat),
    hostedTools: compat.webSearch === "none" ? [] : (["webSearch"] as const),
    keepsPrompts: compat.cacheKey
  } as const
  return asked(server, chatEncoder(provider, compat))
}

const encode = (request: Request, compat: Partial<Compat> = {}, provider = "acme") =>
  encoder(provider, { ...common, ...compat })({
    model: "m-1",
    messages: [],
    tools: [],
    options: {},
    ...request
  })

/** The body as the server reads it. */
const bodyOf = (request: Request, compat?: Partial<Compat>, provider?: string) => {
  const body = encode(request, compat, provider)
  assert.isString(body)
  return JSON.parse(String(body))
}

const messagesOf = (
  messages: ReadonlyArray<Message.ModelMessage>,
  compat?: Partial<Compat>,
  provider?: string
) => bodyOf({ messages }, compat, provider).messages

const call = (id: string, rawArguments: string): Message.ToolCall => ({
  type: "toolCall",
  id,
  name: "f",
  rawArguments
})
const png = Message.image("AAAA", "image/png")
const pngPart = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }
const tool: Provider.ToolDefinition = {
  name: "f",
  description: "F.",
  parameters: { type: "object", properties: {} }
}

describe("openAiChatRequest", () => {
  it("asks for a stream with its usage (rows 24, 35, 43)", () => {
    assert.deepStrictEqual(bodyOf({ system: "Be brief.", messages: [Message.user("Hi")] }), {
      model: "m-1",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hi" }
      ],
      stream: true,
      stream_options: { include_usage: true }
    })
  })

  it("writes the same text for the same conversation", () => {
    const request = { messages: [Message.user("Hi"), Message.assistant("Ho")], tools: [tool] }
    const encoded = encoder("acme", common)
    const whole = { model: "m-1", options: {}, ...request }
    assert.strictEqual(encoded(whole), encoded({ ...whole, messages: [...whole.messages] }))
    assert.strictEqual(encoded(whole), encode(request))
  })

  it("writes a conversation that grows, shrinks or branches as if it was new", () => {
    const calls = Message.assistant([call("a", "{}"), call("b", "{}")])
    const shown = Message.toolResult({ id: "a", name: "f" }, [png])
    const told = Message.toolResult({ id: "b", name: "f" }, "done")
    const start = [Message.user("Look"), calls, shown, told]
    const compat = { ...common, assistantAfterTools: true }
    const known = encoder("acme", compat)
    const growing: Array<Message.ModelMessage> = []
    const check = (messages: ReadonlyArray<Message.ModelMessage>) => {
      const request = { model: "m-1", messages, tools: [], options: {} }
      assert.strictEqual(known(request), encoder("acme", compat)(request))
    }
    for (const message of [...start, Message.user("And now?"), Message.assistant("Well"), calls, told]) {
      growing.push(message)
      check(growing)
    }
    check(start)
    check([...start, Message.assistant("Fine")])
    check([...start, Message.user("Fine"), Message.assistant("Well")])
    check([...start.slice(0, 3), Message.toolResult({ id: "b", name: "f" }, "failed"), Message.user("Fine")])
    check([])
  })

  it("sends images and files as parts", () => {
    const pdf: Message.File = { type: "file", source: { data: "BBBB", mediaType: "application/pdf" } }
    const mp3: Message.File = { type: "file", source: { data: "CCCC", mediaType: "audio/mpeg" } }
    const content = [
      Message.text("What?"),
      Message.text(""),
      png,
      pdf,
      mp3,
      { type: "file", source: { fileId: "file-1" } }
    ] as const
    assert.deepStrictEqual(messagesOf([Message.user(content)])[0].content, [
      { type: "text", text: "What?" },
      pngPart,
      { type: "file", file: { filename: "file.pdf", file_data: "data:application/pdf;base64,BBBB" } },
      { type: "input_audio", input_audio: { data: "CCCC", format: "mp3" } },
      { type: "file", file: { file_id: "file-1" } }
    ])
  })

  it("says nothing with an empty text, never with an empty list", () => {
    for (const content of [[], [""], ["", ""]]) {
      const [message] = messagesOf([Message.user(content.map((text) => Message.text(text)))])
      assert.deepStrictEqual(message, { role: "user", content: "" })
    }
  })

  it("says so when a provider takes no images, and sends nothing", () => {
    for (const message of [Message.user([png]), Message.toolResult({ id: "a", name: "f" }, [png])]) {
      const body = encode({ messages: [message] }, { images: false })
      assert.strictEqual(typeof body === "string" ? body : body._tag, "UnsupportedContent")
    }
  })

  it("spells the name of a call as vendors spell names, whatever the model wrote", () => {
    for (const [name, spelt] of [
      ["functions.read", "functions_read"],
      [" read", "_read"],
      ["", "_"],
      ["x".repeat(70), "x".repeat(64)]
    ] as const) {
      const answer = Message.assistant([{ ...call("a", "{}"), name }])
      const result = Message.toolResult({ id: "a", name }, "There is no such tool")
      const [said, told] = messagesOf([answer, result], { toolName: true })
      assert.deepStrictEqual([said.tool_calls[0].function.name, told.name], [spelt, spelt])
    }
  })

  it("pairs calls with results, and tells an error by its text (rows 1, 11, 31, 32)", () => {
    const answer = Message.assistant([Message.text("Let me see."), call("a", '{"x":1}'), call("b", "")])
    const results = [
      Message.toolResult({ id: "a", name: "f" }, "one"),
      Message.toolResult({ id: "b", name: "f" }, "broken", { isError: true })
    ]
    assert.deepStrictEqual(messagesOf([answer, ...results]), [
      {
        role: "assistant",
        content: "Let me see.",
        tool_calls: [
          { id: "a", type: "function", function: { name: "f", arguments: '{"x":1}' } },
          { id: "b", type: "function", function: { name: "f", arguments: "{}" } }
        ]
      },
      { role: "tool", tool_call_id: "a", content: "one" },
      { role: "tool", tool_call_id: "b", content: "broken" }
    ])
  })

  it("sends an object for a call that holds none (rows 33, 34)", () => {
    const answer = Message.assistant(
      ["{cut", "[1]", '"x"', "null"].map((raw, index) => call(`c${index}`, raw))
    )
    const [sent] = messagesOf([answer])
    assert.strictEqual(sent.content, null)
    assert.isTrue(
      sent.tool_calls.every((one: { function: { arguments: string } }) => one.function.arguments === "{}")
    )
  })

  it("leaves out an answer that says nothing", () => {
    const thought = Message.assistant([{ type: "thinking", text: "hm" }])
    assert.deepStrictEqual(
      messagesOf([Message.user("a"), Message.assistant(""), thought, Message.user("b")]).length,
      2
    )
  })

  it("sends images of results after all results, as the user's (row 12)", () => {
    const results = [
      Message.toolResult({ id: "a", name: "f" }, [png]),
      Message.toolResult({ id: "b", name: "f" }, [Message.text("two"), png])
    ]
    const sent = messagesOf([
      Message.assistant([call("a", "{}"), call("b", "{}")]),
      ...results,
      Message.user("And?")
    ])
    assert.deepStrictEqual(sent.slice(1), [
      { role: "tool", tool_call_id: "a", content: "(see attached image)" },
      { role: "tool", tool_call_id: "b", content: "two" },
      {
        role: "user",
        content: [{ type: "text", text: "Attached image(s) from tool result:" }, pngPart, pngPart]
      },
      { role: "user", content: "And?" }
    ])
  })

  it("gives opaque content back to its own provider only (row 7)", () => {
    const details = [{ type: "reasoning.encrypted", data: "x" }]
    const extra = { google: { thought_signature: "sig" } }
    const answer = Message.assistant(
      [
        { type: "thinking", text: "hm", opaque: { provider: "acme", reasoningDetails: details } },
        { ...call("a", "{}"), opaque: { provider: "acme", extraContent: extra } }
      ],
      { provider: "acme" }
    )
    const [own] = messagesOf([answer])
    assert.deepStrictEqual([own.reasoning_details, own.tool_calls[0].extra_content], [details, extra])
    assert.notInclude(JSON.stringify(messagesOf([answer], {}, "other")), "sig")
    assert.notInclude(JSON.stringify(messagesOf([answer], {}, "other")), "reasoning")
  })

  it("gives thinking back with each answer where a vendor asks for it, and nothing of another provider", () => {
    const thinking = { type: "thinking", text: "hm" } as const
    const compat = presets.deepSeek.compat
    const withCall = Message.assistant([thinking, call("a", "{}")], { provider: "deepseek" })
    const without = Message.assistant([thinking, Message.text("Hi")], { provider: "deepseek" })
    const foreign = Message.assistant([thinking, call("a", "{}")], { provider: "other" })
    const sent = messagesOf([withCall, without, foreign], compat, "deepseek")
    assert.deepStrictEqual(
      sent.map((message: { reasoning_content?: string }) => message.reasoning_content),
      ["hm", "hm", ""]
    )
    assert.isUndefined(messagesOf([{ ...withCall, provider: "acme" }])[0].reasoning_content)
  })

  it("makes ids fit where a vendor is strict, the same for call and result (rows 42, 46)", () => {
    const id = `call_${"x|/:é".repeat(60)}`
    const conversation = [Message.assistant([call(id, "{}")]), Message.toolResult({ id, name: "f" }, "ok")]
    for (const { compat } of [presets.openAi, presets.mistral]) {
      const [answer, result] = messagesOf(conversation, compat)
      assert.match(answer.tool_calls[0].id, compat?.callIds?.pattern ?? /^$/)
      assert.strictEqual(result.tool_call_id, answer.tool_calls[0].id)
      assert.deepStrictEqual(messagesOf(conversation, compat), [answer, result])
    }
    assert.strictEqual(messagesOf(conversation)[1].tool_call_id, id)
  })

  it("puts an answer between results and the user where a vendor wants one (row 42)", () => {
    const conversation = [
      Message.assistant([call("a", "{}")]),
      Message.toolResult({ id: "a", name: "f" }, [png]),
      Message.user("And?")
    ]
    const roles = (compat?: Partial<Compat>) =>
      messagesOf(conversation, compat).map((message: { role: string }) => message.role)
    assert.deepStrictEqual(roles(), ["assistant", "tool", "user", "user"])
    assert.deepStrictEqual(roles(presets.mistral.compat), ["assistant", "tool", "assistant", "user", "user"])
  })

  it("makes half surrogates whole, and nothing else", () => {
    const content = "a\ud83db 🌍 \\ud83d \\\\ud83d"
    assert.strictEqual(messagesOf([Message.user(content)])[0].content, "a\ufffdb 🌍 \\ud83d \\\\ud83d")
    assert.strictEqual(messagesOf([Message.user("\udc00\ud83d")])[0].content, "\ufffd\ufffd")
    const asked = (rawArguments: string) =>
      messagesOf([
        Message.assistant([{ type: "toolCall", id: "a", name: "f", rawArguments }]),
        Message.toolResult({ id: "a", name: "f" }, "ok")
      ])[0].tool_calls[0].function.arguments
    assert.strictEqual(asked('{"a":"\\ud83d", "b":"\\ud83c\\udf0d"}'), '{"a":"\\ufffd","b":"🌍"}')
    assert.strictEqual(asked('{ "a": 1e3 }'), '{ "a": 1e3 }')
  })

  it("asks for what the options say, by the vendor's names (rows 24, 36, 42, 173)", () => {
    const options: Provider.ModelRequest["options"] = {
      maxTokens: 100,
      temperature: 0,
      topP: 0.9,
      stop: ["END"],
      thinkingLevel: "xhigh",
      sessionId: "s-1",
      cacheRetention: "long",
      vendor: { acme: { seed: 7 }, other: { seed: 8 } }
    }
    const { messages: _, model: __, stream: ___, stream_options: ____, ...common } = bodyOf({ options })
    assert.deepStrictEqual(common, {
      max_tokens: 100,
      temperature: 0,
      top_p: 0.9,
      stop: ["END"],
      reasoning_effort: "xhigh",
      seed: 7
    })
    const openAi = bodyOf({ options, system: "S" }, presets.openAi.compat)
    assert.strictEqual(openAi.max_completion_tokens, 100)
    assert.strictEqual(openAi.messages[0].role, "developer")
    assert.strictEqual(openAi.prompt_cache_key, "s-1")
    const keyOf = (sessionId: string) =>
      bodyOf({ options: { sessionId } }, presets.openAi.compat).prompt_cache_key
    assert.isAtMost(keyOf("s".repeat(100)).length, 64)
    assert.strictEqual(keyOf("s".repeat(100)), keyOf("s".repeat(100)))
    assert.notStrictEqual(keyOf("s".repeat(100)), keyOf("s".repeat(101)))
    assert.strictEqual(bodyOf({ options }, presets.ollama.compat).reasoning_effort, "high")
  })

  it("asks for thinking in each vendor's way (rows 42, 43)", () => {
    const ask = (
      thinkingLevel: "off" | "high",
      thinking: Compat["thinking"],
      thinkingBudgets?: Record<string, number>
    ) => {
      const options = { thinkingLevel, ...(thinkingBudgets === undefined ? {} : { thinkingBudgets }) }
      const {
        messages: _,
        model: __,
        stream: ___,
        stream_options: ____,
        ...rest
      } = bodyOf({ options }, { thinking })
      return rest
    }
    assert.deepStrictEqual(ask("high", "effort"), { reasoning_effort: "high" })
    assert.deepStrictEqual(ask("off", "effort"), {})
    assert.deepStrictEqual(ask("high", "reasoning"), { reasoning: { effort: "high" } })
    assert.deepStrictEqual(ask("high", "reasoning", { high: 2048 }), { reasoning: { max_tokens: 2048 } })
    assert.deepStrictEqual(ask("off", "reasoning"), { reasoning: { enabled: false } })
    assert.deepStrictEqual(ask("high", "switch"), { thinking: { type: "enabled" } })
    assert.deepStrictEqual(ask("off", "flag"), { enable_thinking: false })
    assert.deepStrictEqual(ask("high", "none"), {})
  })

  it("offers tools and a choice of them, which makes no sense without (row 29)", () => {
    const named = { toolChoice: { name: "f" } }
    assert.deepStrictEqual(bodyOf({ tools: [tool], options: named }).tools, [
      { type: "function", function: tool }
    ])
    assert.deepStrictEqual(bodyOf({ tools: [tool], options: named }).tool_choice, {
      type: "function",
      function: { name: "f" }
    })
    assert.strictEqual(bodyOf({ tools: [tool], options: { toolChoice: "required" } }).tool_choice, "required")
    assert.notProperty(bodyOf({ options: named }), "tool_choice")
    assert.notProperty(bodyOf({ options: named }), "tools")
  })

  it("asks for JSON of a schema, strictly where that is allowed", () => {
    const schema = {
      type: "object",
      properties: { a: { type: "string" } },
      required: ["a"],
      additionalProperties: false
    }
    const format = (of: typeof schema, compat?: Partial<Compat>) =>
      bodyOf({ options: { output: { name: "answer", schema: of } } }, compat).response_format
    assert.deepStrictEqual(format(schema), {
      type: "json_schema",
      json_schema: { name: "answer", schema, strict: true }
    })
    assert.isFalse(format({ ...schema, required: [] }).json_schema.strict)
    assert.deepStrictEqual(format(schema, { output: "json_object" }), { type: "json_object" })
  })

  it("knows an object among other types, which may be open too", () => {
    const strict = (schema: Schema.Json) =>
      bodyOf({ options: { output: { name: "answer", schema } } }).response_format.json_schema.strict
    const properties = { a: { type: "string" } }
    const within = (b: Schema.Json) => ({
      type: "object",
      properties: { b },
      required: ["b"],
      additionalProperties: false
    })
    const closed = { properties, required: ["a"], additionalProperties: false }
    assert.isTrue(strict(within({ type: ["object", "null"], ...closed })))
    assert.isFalse(strict(within({ type: ["object", "null"], properties })))
  })

  it("says `anyOf` for `oneOf`, which OpenAI refuses, and leaves what is but named so", () => {
    const schema = (keyword: "anyOf" | "oneOf"): Schema.Json => ({
      type: "object",
      properties: {
        oneOf: { [keyword]: [{ type: "string" }, { type: "null" }] },
        kind: { enum: [{ oneOf: [] }], default: { oneOf: 1 } },
        list: { type: "array", items: { [keyword]: [{ type: "array", items: { [keyword]: [true] } }] } },
        again: { $ref: "#/$defs/oneOf" },
        both: { type: "string", anyOf: [{ maxLength: 2 }], [keyword]: [{ maxLength: 2 }] }
      },
      $defs: { oneOf: { not: { [keyword]: [{ const: 1 }] } } }
    })
    const asked = (parameters: Schema.Json) => {
      const output = { name: "answer", schema: parameters }
      const body = bodyOf({ tools: [{ ...tool, parameters }], options: { output } })
      return [body.tools[0].function.parameters, body.response_format.json_schema.schema]
    }
    const expected = {
      type: "object",
      properties: {
        oneOf: { anyOf: [{ type: "string" }, { type: "null" }] },
        kind: { type: "object", enum: [{ oneOf: [] }], default: { oneOf: 1 } },
        list: { type: "array", items: { anyOf: [{ type: "array", items: { anyOf: [{}] } }] } },
        again: { $ref: "#/$defs/oneOf" },
        both: { type: "string", anyOf: [{ type: "string", maxLength: 2 }] }
      },
      $defs: { oneOf: { not: { anyOf: [{ type: "integer", const: 1 }] } } }
    }
    assert.deepStrictEqual(asked(schema("oneOf")), [expected, expected])
    assert.deepStrictEqual(asked(schema("anyOf")), [expected, expected])
  })

  it("offers the vendor's own tools beside those of the agent (row 150)", () => {
    const search = { type: "web_search" }
    const both = bodyOf({ tools: [tool], options: { vendor: { acme: { tools: [search] } } } }).tools
    assert.deepStrictEqual(both, [{ type: "function", function: tool }, search])
    assert.deepStrictEqual(bodyOf({ options: { vendor: { acme: { tools: [search] } } } }).tools, [search])
  })

  it("lets the vendor's own fields win", () => {
    const body = encode({ tools: [tool], options: { maxTokens: 1, vendor: { acme: { max_tokens: 2 } } } })
    assert.strictEqual(String(body).match(/"tools"/g)?.length, 1)
    assert.strictEqual(JSON.parse(String(body)).max_tokens, 2)
  })

  it("has the options of the API (row 49)", () => {
    const options = {
      parallelToolCalls: false,
      seed: 7,
      serviceTier: "flex",
      store: true,
      logprobs: 3
    }
    assert.deepInclude(bodyOf({ tools: [tool], options }), {
      parallel_tool_calls: false,
      seed: 7,
      service_tier: "flex",
      store: true,
      logprobs: true,
      top_logprobs: 3
    })
    assert.notProperty(bodyOf({ options }), "parallel_tool_calls")
    assert.notProperty(bodyOf({ options: { logprobs: 0 } }), "top_logprobs")
  })

  it("makes a tool strict whose schema allows that", () => {
    const strict = (parameters: Schema.Json) =>
      bodyOf({ tools: [{ ...tool, parameters, strict: true }] }).tools[0].function.strict
    assert.isUndefined(strict(tool.parameters))
    const properties = { a: { type: "string" } }
    assert.isTrue(strict({ type: "object", properties, required: ["a"], additionalProperties: false }))
    assert.isUndefined(strict({ type: "object", properties, additionalProperties: false }))
  })

  it("asks a server that searches the web to do so, in its own words", () => {
    const options = {
      hostedTools: [{ type: "webSearch", allowedDomains: ["a.example"], location: { country: "NO" } }]
    } as const
    assert.deepStrictEqual(bodyOf({ options }, { webSearch: "options" }).web_search_options, {
      user_location: { type: "approximate", approximate: { country: "NO" } }
    })
    assert.deepStrictEqual(bodyOf({ options }, { webSearch: "plugin" }).plugins, [
      { id: "web", include_domains: ["a.example"] }
    ])
    assert.notProperty(bodyOf({ options }), "web_search_options")
  })

  it("names a file, and gives its address to a gateway alone", () => {
    const file = {
      type: "file",
      source: { data: "AAAA", mediaType: "application/pdf" },
      name: "bill.pdf"
    } as const
    assert.deepStrictEqual(messagesOf([Message.user([file])])[0].content, [
      { type: "file", file: { filename: "bill.pdf", file_data: "data:application/pdf;base64,AAAA" } }
    ])
    const remote = { type: "file", source: { url: "https://a.example/b.pdf" } } as const
    assert.deepStrictEqual(messagesOf([Message.user([remote])], { gateway: true })[0].content, [
      { type: "file", file: { filename: "file", file_data: "https://a.example/b.pdf" } }
    ])
    assert.strictEqual(Object(encode({ messages: [Message.user([remote])] }))._tag, "UnsupportedContent")
  })
})
