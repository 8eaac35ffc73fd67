import { assert, describe, it } from "@effect/vitest"
import { Message, type Provider } from "effect-agent"
import { encoder as messagesEncoder } from "../../src/providers/internal/anthropic/request.ts"
import { isReason } from "../../src/providers/Protocol.ts"
import { asked as askedOf } from "./asked.ts"

const encoder = (provider: string) =>
  askedOf({ id: provider, endpoint: "messages", vendor: "anthropic" }, messagesEncoder(provider))

type Options = Provider.ModelRequest["options"]

const encode = (request: Partial<Provider.ModelRequest>) =>
  encoder("acme")({ model: "claude-sonnet-4-5", messages: [], tools: [], options: {}, ...request })

/** The body as the server reads it. */
const bodyOf = (request: Partial<Provider.ModelRequest>) => {
  const body = encode(request)
  assert(!isReason(body))
  return JSON.parse(body)
}

/** The messages without cache marks. */
const sent = (...messages: ReadonlyArray<Message.ModelMessage>) =>
  bodyOf({ messages, options: { cacheRetention: "none" } }).messages

/** What a request says besides the conversation. */
const asked = (options: Options, request: Partial<Provider.ModelRequest> = {}) => {
  const { model: _, messages: __, stream: ___, ...rest } = bodyOf({ options, ...request })
  return rest
}

const hi = Message.user("Hi")
const tool: Provider.ToolDefinition = {
  name: "f",
  description: "F.",
  parameters: { type: "object", properties: {} }
}
const call = (id: string, rawArguments = "{}", name = "f"): Message.ToolCall => ({
  type: "toolCall",
  id,
  name,
  rawArguments
})
const result = (id: string, content: string | Message.ToolResult["content"] = "ok", isError = false) =>
  Message.toolResult({ id, name: "f" }, content, { isError })
const png = Message.image("AAAA", "image/png")
const pngPart = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }
const text = (value: string) => ({ type: "text", text: value })
const mine = { provider: "acme", model: "claude-sonnet-4-5" }
const signed: Message.Thinking = {
  type: "thinking",
  text: "Hm",
  opaque: { provider: "acme", signature: "sig" }
}
const ephemeral = { cache_control: { type: "ephemeral" } }

describe("anthropicMessagesRequest", () => {
  it("asks for a stream (rows 26, 29, 36)", () => {
    const request = {
      system: "Be brief.",
      messages: [hi],
      tools: [tool],
      options: { cacheRetention: "none" }
    } as const
    assert.deepStrictEqual(bodyOf(request), {
      model: "claude-sonnet-4-5",
      system: [text("Be brief.")],
      tools: [{ name: "f", description: "F.", input_schema: { type: "object", properties: {} } }],
      messages: [{ role: "user", content: [text("Hi")] }],
      stream: true,
      max_tokens: 64_000
    })
  })

  it("writes the same text for the same conversation", () => {
    const messages = [hi, Message.assistant([call("a")], mine), result("a")]
    const encoded = encoder("acme")
    const whole = { model: "claude-sonnet-4-5", messages, tools: [tool], options: {} }
    assert.strictEqual(encoded(whole), encoded({ ...whole, messages: [...messages] }))
    assert.strictEqual(encoded(whole), encode(whole))
  })

  describe("turns", () => {
    it("are the user's and the assistant's by turns, and none is empty", () => {
      const blank = Message.assistant([Message.text(" "), Message.text("")], mine)
      assert.deepStrictEqual(sent(hi, blank, Message.user([Message.text("\n"), Message.text("you")])), [
        { role: "user", content: [text("Hi"), text("you")] }
      ])
      assert.deepStrictEqual(sent(Message.user("")), [{ role: "user", content: [text("(empty message)")] }])
    })

    it("begin with the user, though the conversation is but the end of one", () => {
      const [first, second] = sent(Message.assistant("Ho", mine), hi)
      assert.strictEqual(first.role, "user")
      assert.deepStrictEqual(second, { role: "assistant", content: [text("Ho")] })
    })

    it("hold all results of the calls, first (rows 1, 31)", () => {
      const answer = Message.assistant([call("a", '{"x":1}'), call("b", "")], mine)
      assert.deepStrictEqual(sent(hi, answer, result("a"), result("b", ""), Message.user("Go on")).slice(1), [
        {
          role: "assistant",
          content: [
            { type: "tool_use", name: "f", input: { x: 1 }, id: "a" },
            { type: "tool_use", name: "f", input: {}, id: "b" }
          ]
        },
        {
          role: "user",
          content: [
            { type: "tool_result", content: [text("ok")], tool_use_id: "a" },
            { type: "tool_result", tool_use_id: "b" },
            text("Go on")
          ]
        }
      ])
    })

    it("give a failure words, and put its images behind all results", () => {
      const answer = Message.assistant([call("a"), call("b")], mine)
      const [, , { content }] = sent(hi, answer, result("a", [png], true), result("b", [png]))
      assert.deepStrictEqual(content, [
        { type: "tool_result", content: [text("(no message)")], is_error: true, tool_use_id: "a" },
        { type: "tool_result", content: [pngPart], tool_use_id: "b" },
        text("Attached image(s) from tool result:"),
        pngPart
      ])
    })

    it("do not end in a space where the answer is to be gone on with", () => {
      assert.deepStrictEqual(sent(hi, Message.assistant("So: \n", mine))[1].content, [text("So:")])
      assert.strictEqual(sent(hi, Message.assistant(" ", mine)).length, 1)
    })
  })

  describe("of other vendors", () => {
    it("have their ids made to fit, one to one and the same in each request (row 46)", () => {
      const long = `call_${"x|/é".repeat(80)}`
      const idsOf = (...ids: ReadonlyArray<string>) => {
        const [, answer, results] = sent(
          hi,
          Message.assistant(ids.map((id) => call(id))),
          ...ids.map((id) => result(id))
        )
        const made = answer.content.map((block: { id: string }) => block.id)
        assert.deepStrictEqual(
          results.content.map((block: { tool_use_id: string }) => block.tool_use_id),
          made
        )
        return made
      }
      const made = idsOf(long, `${long}2`, "toolu_1", "f:0")
      assert.strictEqual(new Set(made).size, 4)
      assert.strictEqual(made[2], "toolu_1")
      for (const id of made) assert.match(id, /^[a-zA-Z0-9_-]{1,64}$/)
      assert.deepStrictEqual(idsOf(long, `${long}2`, "toolu_1", "f:0"), made)
    })

    it("may count their calls anew in each answer", () => {
      const round = [Message.assistant([call("call_0")]), result("call_0")]
      const [, first, , second, answered] = sent(hi, ...round, ...round)
      assert.strictEqual(first.content[0].id, "call_0")
      assert.notStrictEqual(second.content[0].id, "call_0")
      assert.strictEqual(answered.content[0].tool_use_id, second.content[0].id)
    })

    it("lose their thinking, and what only they can read (row 46)", () => {
      const answer = Message.assistant(
        [
          { type: "thinking", text: "Hm", opaque: { provider: "other", signature: "sig" } },
          { type: "thinking", text: "Hm" },
          { type: "text", text: "", opaque: { provider: "other", block: { type: "server_tool_use" } } },
          { type: "text", text: "Ho", opaque: { provider: "other", citations: [{}] } }
        ],
        mine
      )
      assert.deepStrictEqual(sent(hi, answer, hi)[1].content, [text("Ho")])
    })

    it("lose their thinking when they are another model of this one", () => {
      const answer = Message.assistant([signed, Message.text("Ho")], mine)
      const contentFor = (model: string) => bodyOf({ model, messages: [hi, answer, hi] }).messages[1].content
      assert.deepStrictEqual(contentFor("claude-2"), [text("Ho")])
      assert.deepStrictEqual(contentFor("claude-sonnet-4-5"), [
        { type: "thinking", thinking: "Hm", signature: "sig" },
        text("Ho")
      ])
    })

    it("may have called what is no tool, with what is no JSON (row 34)", () => {
      const answer = Message.assistant([call("a", "{oops", "functions.read file"), call("b", "[1]", "")])
      assert.deepStrictEqual(sent(hi, answer)[1].content, [
        { type: "tool_use", name: "functions_read_file", input: {}, id: "a" },
        { type: "tool_use", name: "_", input: {}, id: "b" }
      ])
    })
  })

  it("leaves out thinking that nothing follows", () => {
    assert.deepStrictEqual(sent(hi, Message.assistant([Message.text("Ho"), signed], mine), hi)[1].content, [
      text("Ho")
    ])
    assert.strictEqual(sent(hi, Message.assistant([signed], mine), hi).length, 1)
  })

  it("sends well-formed text only", () => {
    const [{ content }] = sent(Message.user("a\ud83d b 😀"))
    assert.deepStrictEqual(content, [text("a\ufffd b 😀")])
  })

  describe("media", () => {
    const file = (data: string, mediaType: string): Message.File => ({
      type: "file",
      source: { data, mediaType }
    })

    it("are images and documents", () => {
      const pdf = file("BBBB", "application/pdf")
      const remote: Message.Image = { type: "image", source: { url: "https://a.b/c.png" } }
      const inline: Message.Image = { type: "image", source: { url: "data:image/jpg;base64,CCCC" } }
      const csv = file(Buffer.from("a;ü").toString("base64"), "text/csv")
      const uploaded: Message.File = { type: "file", source: { fileId: "file_1" } }
      const [{ content }] = sent(
        Message.user([png, remote, inline, file("AAAA", "image/png"), pdf, csv, uploaded])
      )
      assert.deepStrictEqual(content, [
        pngPart,
        { type: "image", source: { type: "url", url: "https://a.b/c.png" } },
        { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "CCCC" } },
        pngPart,
        { type: "document", source: { type: "base64", media_type: "application/pdf", data: "BBBB" } },
        { type: "document", source: { type: "text", media_type: "text/plain", data: "a;ü" } },
        { type: "document", source: { type: "file", file_id: "file_1" } }
      ])
    })

    it("are refused before anything is sent, if the vendor does not take them", () => {
      const bmp = Message.image("AAAA", "image/bmp")
      for (const message of [
        Message.user([file("A", "audio/mpeg")]),
        Message.user([bmp]),
        result("a", [bmp])
      ]) {
        const body = encode({ messages: [message] })
        assert(isReason(body))
        assert.strictEqual(body._tag, "UnsupportedContent")
      }
    })
  })

  describe("cache marks", () => {
    const round = [Message.assistant([call("a")], mine), result("a")]
    const marksOf = (options: Options) => {
      const body = bodyOf({
        system: "S",
        messages: [hi, ...round, Message.user("More")],
        tools: [tool, tool],
        options
      })
      return {
        system: body.system[0].cache_control,
        tools: body.tools.map((one: { cache_control?: unknown }) => one.cache_control),
        messages: body.messages.map(({ content }: { content: ReadonlyArray<{ cache_control?: unknown }> }) =>
          content.map((block) => block.cache_control)
        ),
        count: JSON.stringify(body).split('"cache_control"').length - 1
      }
    }
    const none = undefined

    it("stand at the system prompt, the last tool, and the last two turns of the user (row 45)", () => {
      const mark = { type: "ephemeral" }
      assert.deepStrictEqual(marksOf({}), {
        system: mark,
        tools: [none, mark],
        messages: [[mark], [none], [none, mark]],
        count: 4
      })
    })

    it("last an hour, or are left out (row 45)", () => {
      assert.deepStrictEqual(marksOf({ cacheRetention: "long" }).system, { type: "ephemeral", ttl: "1h" })
      assert.strictEqual(marksOf({ cacheRetention: "none" }).count, 0)
    })

    it("are four at most, with those in vendor options", () => {
      const tools = [1, 2].map((n) => ({ type: "web_search", name: `s${n}`, ...ephemeral }))
      const marks = marksOf({ vendor: { acme: { tools } } })
      assert.strictEqual(marks.count, 4)
      assert.deepStrictEqual(marks.messages, [[none], [none], [none, ephemeral.cache_control]])
      assert.strictEqual(marksOf({ vendor: { acme: { tools: [...tools, ...tools, ...tools] } } }).count, 6)
    })

    it("last no shorter than a mark of the application that follows, and leave the last block to one on the body", () => {
      const mark = { type: "ephemeral", ttl: "1h" }
      const marks = marksOf({ vendor: { acme: { cache_control: mark } } })
      assert.deepStrictEqual(marks, {
        system: mark,
        tools: [none, mark],
        messages: [[mark], [none], [none, none]],
        count: 4
      })
    })

    it("leave the rest of the text as it was", () => {
      const request = { model: "claude-sonnet-4-5", system: "S", messages: [hi, ...round], tools: [tool] }
      const without = String(encode({ ...request, options: { cacheRetention: "none" } }))
      const marked = String(encode({ ...request, options: {} }))
      assert.strictEqual(marked.replaceAll(',"cache_control":{"type":"ephemeral"}', ""), without)
    })
  })

  it.each([
    ["auto", { type: "auto" }],
    ["none", { type: "none" }],
    ["required", { type: "any" }],
    [{ name: "f" }, { type: "tool", name: "f" }]
  ] as const)("asks for a tool call: %j", (toolChoice, tool_choice) => {
    assert.deepStrictEqual(asked({ toolChoice }, { tools: [tool] }).tool_choice, tool_choice)
    assert.isUndefined(asked({ toolChoice }).tool_choice)
  })

  it("asks for one of two ways to sample, as far as it goes", () => {
    assert.deepInclude(asked({ temperature: 0.5, topP: 0.9, maxTokens: 256, stop: ["END"] }), {
      temperature: 0.5,
      max_tokens: 256,
      stop_sequences: ["END"]
    })
    assert.notProperty(asked({ temperature: 0.5, topP: 0.9 }), "top_p")
    assert.strictEqual(asked({ topP: 0.9 }).top_p, 0.9)
    assert.strictEqual(asked({ temperature: 1.7 }).temperature, 1)
  })

  describe("thinking", () => {
    const enabled = (budget_tokens: number) => ({ type: "enabled", budget_tokens })

    it("is a budget, and leaves tokens for the answer (row 44)", () => {
      assert.deepInclude(asked({ thinkingLevel: "high" }), {
        thinking: enabled(16384),
        max_tokens: 64_000
      })
      const own = { thinkingLevel: "low", thinkingBudgets: { low: 3000.5 } } as const
      assert.deepStrictEqual(asked(own).thinking, enabled(3000))
      assert.deepStrictEqual(asked({ ...own, thinkingBudgets: { low: 10 } }).thinking, enabled(1024))
      assert.deepInclude(asked({ thinkingLevel: "medium", maxTokens: 2048 }), {
        thinking: enabled(1024),
        max_tokens: 2048
      })
      assert.deepStrictEqual(asked({ thinkingLevel: "medium", maxTokens: 1100 }).thinking, enabled(1024))
    })

    it("has a budget for each level (row 44)", () => {
      const budgets = { minimal: 1024, low: 2048, medium: 8192, high: 16_384 } as const
      for (const thinkingLevel of ["minimal", "low", "medium", "high"] as const)
        assert.deepStrictEqual(
          asked({ thinkingLevel }).thinking,
          enabled(budgets[thinkingLevel]),
          thinkingLevel
        )
    })

    it("is not asked for when it is off, or where the vendor refuses it", () => {
      assert.notProperty(asked({ thinkingLevel: "off" }), "thinking")
      assert.notProperty(asked({ thinkingLevel: "low", maxTokens: 1024 }), "thinking")
      assert.notProperty(
        asked({ thinkingLevel: "low", toolChoice: "required" }, { tools: [tool] }),
        "thinking"
      )
    })

    it("leaves no choice of sampling", () => {
      const options = { thinkingLevel: "low", temperature: 0.5, topP: 0.9 } as const
      assert.doesNotHaveAnyKeys(asked(options), ["temperature", "top_p"])
      assert.strictEqual(asked({ ...options, topP: 0.95 }).top_p, 0.95)
      const vendor = { acme: { thinking: { type: "adaptive" } } }
      assert.deepInclude(asked({ ...options, vendor }), { thinking: { type: "adaptive" } })
      assert.notProperty(asked({ ...options, vendor }), "temperature")
    })

    it("does not begin while tools are at work, unless the turn began with it", () => {
      const thinkingIn = (...messages: ReadonlyArray<Message.ModelMessage>) =>
        asked({ thinkingLevel: "low" }, { messages, tools: [tool] }).thinking
      const thoughtless = [Message.assistant([call("a")], mine), result("a")]
      const thoughtful = [Message.assistant([signed, call("b")], mine), result("b")]
      assert.isUndefined(thinkingIn(hi, ...thoughtless))
      assert.isUndefined(thinkingIn(hi, ...thoughtless, ...thoughtful))
      assert.deepStrictEqual(thinkingIn(hi, ...thoughtful, ...thoughtless), enabled(2048))
      assert.deepStrictEqual(thinkingIn(hi, ...thoughtless, Message.assistant("Ho", mine), hi), enabled(2048))
    })
  })

  it("asks for output of a schema, as far as the vendor enforces it", () => {
    const closed = { additionalProperties: false }
    const schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      required: ["minimum"],
      properties: {
        minimum: { type: "integer", minimum: 0, description: "At least." },
        when: { type: "string", format: "date-time", minLength: 1 },
        id: { type: "string", format: "odd", allOf: [{ minLength: 1 }] },
        list: { type: "array", minItems: 2, items: { $ref: "#/$defs/Item" } },
        some: { anyOf: [{ type: "null" }, { type: "object", properties: {} }] },
        one: { oneOf: [{ type: "null" }, { type: "object", properties: {} }] },
        oneOf: { type: ["object", "null"], properties: {} },
        map: { type: "object", additionalProperties: { type: "string" } }
      },
      $defs: { Item: { type: "object", properties: {}, additionalProperties: true } }
    }
    const { format } = asked({ output: { name: "out", schema } }).output_config
    assert.deepStrictEqual(format, {
      type: "json_schema",
      schema: {
        type: "object",
        required: ["minimum"],
        properties: {
          minimum: { type: "integer", description: 'At least.\nJSON Schema: { "minimum": 0 }' },
          when: { type: "string", format: "date-time", description: 'JSON Schema: { "minLength": 1 }' },
          id: { type: "string", description: 'JSON Schema: { "format": "odd", "minLength": 1 }' },
          list: {
            type: "array",
            items: { $ref: "#/$defs/Item" },
            description: 'JSON Schema: { "minItems": 2 }'
          },
          some: { anyOf: [{ type: "null" }, { type: "object", properties: {}, ...closed }] },
          one: { anyOf: [{ type: "null" }, { type: "object", properties: {}, ...closed }] },
          oneOf: { type: ["object", "null"], properties: {}, ...closed },
          map: { type: "object", additionalProperties: { type: "string" } }
        },
        $defs: { Item: { type: "object", properties: {}, ...closed } },
        ...closed
      }
    })
  })

  describe("hosted tools", () => {
    const screen = { type: "computerUse", width: 800, height: 600 } as const
    const toolsOf = (model: string, options: Options, tools = [tool]) =>
      asked({ cacheRetention: "none", ...options }, { model, tools }).tools

    it("come before those of the agent, with their members", () => {
      const hostedTools: Options["hostedTools"] = [
        {
          type: "webSearch",
          maxUses: 2,
          allowedDomains: ["a.test"],
          location: { country: "NO" },
          vendor: { acme: { type: "web_search_20260318" }, other: { x: 1 } }
        },
        { type: "webSearch", blockedDomains: ["b.test"] },
        { type: "codeExecution" },
        { type: "fileSearch", stores: ["s"] }
      ]
      assert.deepStrictEqual(toolsOf("claude-sonnet-4-5", { hostedTools }), [
        {
          type: "web_search_20260318",
          name: "web_search",
          max_uses: 2,
          allowed_domains: ["a.test"],
          user_location: { type: "approximate", country: "NO" }
        },
        { type: "web_search_20250305", name: "web_search", blocked_domains: ["b.test"] },
        { type: "code_execution_20250825", name: "code_execution" },
        { name: "f", description: "F.", input_schema: tool.parameters }
      ])
    })

    it("have the version of the tool for the screen that the model takes, in place of the agent's", () => {
      const shown = (model: string) => {
        const [first, ...rest] = toolsOf(model, { hostedTools: [screen] }, [
          tool,
          { ...tool, name: "computer" }
        ])
        assert.deepStrictEqual(
          rest.map(({ name }: { name: string }) => name),
          ["f"]
        )
        return first
      }
      const sized = { name: "computer", display_width_px: 800, display_height_px: 600 }
      for (const model of ["claude-haiku-4-5", "claude-opus-4-1-20250805", "claude-sonnet-4@20250514"])
        assert.deepStrictEqual(shown(model), { type: "computer_20250124", ...sized }, model)
      for (const model of ["claude-opus-4-5-20251101", "claude-opus-4.7", "claude-sonnet-4-6"])
        assert.deepStrictEqual(shown(model), { type: "computer_20251124", ...sized }, model)
      for (const model of ["claude-opus-4-8", "claude-opus-5", "claude-sonnet-5-5", "claude-fable-5-1"])
        assert.deepStrictEqual(shown(model), { type: "computer_toolset_20260801" }, model)
    })

    it("count their own cache marks, of which a request may have four", () => {
      const marked = { acme: { cache_control: { type: "ephemeral" } } } as const
      const hostedTools = [{ type: "codeExecution", vendor: marked } as const]
      const body = encode({ system: "S", messages: [hi], tools: [tool], options: { hostedTools } })
      assert.strictEqual(String(body).split('"cache_control":').length - 1, 4)
      const three = [1, 2, 3].map((n) => ({ type: "webSearch", maxUses: n, vendor: marked }) as const)
      const more = encode({
        system: "S",
        messages: [hi],
        tools: [tool],
        options: { hostedTools: [...hostedTools, ...three] }
      })
      assert.strictEqual(String(more).split('"cache_control":').length - 1, 4)
    })
  })

  it("asks for one call at a time, whichever tool it is", () => {
    const choice = (toolChoice: Options["toolChoice"], parallelToolCalls?: boolean) =>
      asked(
        {
          ...(toolChoice === undefined ? {} : { toolChoice }),
          ...(parallelToolCalls === undefined ? {} : { parallelToolCalls })
        },
        { tools: [tool] }
      ).tool_choice
    const single = { disable_parallel_tool_use: true }
    assert.deepStrictEqual(choice(undefined, false), { type: "auto", ...single })
    assert.deepStrictEqual(choice("auto", false), { type: "auto", ...single })
    assert.deepStrictEqual(choice("required", false), { type: "any", ...single })
    assert.deepStrictEqual(choice({ name: "f" }, false), { type: "tool", name: "f", ...single })
    assert.deepStrictEqual(choice("none", false), { type: "none" })
    assert.isUndefined(choice(undefined, true))
    assert.isUndefined(asked({ parallelToolCalls: false }).tool_choice)
  })

  it("holds the model to the schemas of strict tools that are closed", () => {
    const schema = { type: "object", properties: { n: { type: "integer", minimum: 1 } }, required: ["n"] }
    const strict = { ...tool, strict: true, parameters: { ...schema, additionalProperties: false } }
    const inputOf = (model: string, tool: Provider.ToolDefinition) =>
      asked({ cacheRetention: "none" }, { model, tools: [tool] }).tools
    const { properties: _, ...rest } = strict.parameters
    assert.deepStrictEqual(inputOf("claude-sonnet-4-5", strict), [
      {
        name: "f",
        description: "F.",
        input_schema: {
          ...rest,
          properties: { n: { type: "integer", description: 'JSON Schema: { "minimum": 1 }' } }
        },
        strict: true
      }
    ])
    const usual = [{ name: "f", description: "F.", input_schema: strict.parameters }]
    assert.deepStrictEqual(inputOf("claude-opus-4-20250514", strict), usual)
    const open = { ...strict, parameters: schema }
    assert.deepStrictEqual(inputOf("claude-sonnet-4-5", open), [{ ...usual[0], input_schema: schema }])
  })

  describe("vendor options", () => {
    it("win over everything, and add to tools and to output", () => {
      const search = { type: "web_search_20250305", name: "web_search" }
      const options: Options = {
        maxTokens: 5,
        output: { name: "out", schema: { type: "object" } },
        vendor: { acme: { max_tokens: 6, top_k: 3, tools: [search], output_config: { effort: "low" } } }
      }
      const body = asked(options, { tools: [tool] })
      assert.deepInclude(body, { max_tokens: 6, top_k: 3 })
      assert.deepStrictEqual(
        body.tools.map((one: { name: string }) => one.name),
        ["web_search", "f"]
      )
      assert.deepStrictEqual(body.tools[0], search)
      assert.strictEqual(body.output_config.effort, "low")
      assert.strictEqual(body.output_config.format.type, "json_schema")
    })

    it("may be in words of other vendors", () => {
      const body = asked({ vendor: { acme: { seed: 7, user: "u-1", metadata: { a: "b" } } } })
      assert.deepStrictEqual(body.metadata, { user_id: "u-1" })
      assert.doesNotHaveAnyKeys(body, ["seed", "user"])
    })
  })
})
