import { assert, describe, it } from "@effect/vitest"
import { Message, type Provider } from "effect-agent"
import { bedrockConverse } from "../../src/providers/internal/bedrock/protocol.ts"
import { vendorAtBedrock } from "../../src/providers/internal/models/rule.ts"
import { isReason } from "../../src/providers/Protocol.ts"
import { questionOf, type Server, structuredOutput } from "./asked.ts"

const server: Server = { id: "acme", endpoint: "converse", vendor: vendorAtBedrock }
const protocol = bedrockConverse("acme")
const claude = "us.anthropic.claude-opus-4-6-v1"
const nova = "us.amazon.nova-2-lite-v1:0"

const requestOf = (request: Partial<Provider.ModelRequest>): Provider.ModelRequest => ({
  model: claude,
  messages: [],
  tools: [],
  options: {},
  ...request
})

/** The body as the server reads it. */
const bodyOf = (request: Partial<Provider.ModelRequest>) => {
  const body = protocol.encode(questionOf(server, requestOf(request)))
  assert(!isReason(body), String(body))
  return JSON.parse(body)
}

const adjusted = (request: Partial<Provider.ModelRequest>) =>
  questionOf(server, requestOf(request)).adjusted.map(({ option, sent }) => [option, sent])

const failure = (...messages: ReadonlyArray<Message.ModelMessage>) => {
  const body = protocol.encode(questionOf(server, requestOf({ messages })))
  assert(isReason(body))
  return body
}

/** The messages without cache marks. */
const sent = (messages: ReadonlyArray<Message.ModelMessage>, request: Partial<Provider.ModelRequest> = {}) =>
  bodyOf({ messages, tools: [tool], ...request, options: { cacheRetention: "none" } }).messages

/** The body besides the conversation. */
const asked = (options: Provider.ModelRequest["options"], request: Partial<Provider.ModelRequest> = {}) => {
  const { messages: _, ...rest } = bodyOf({ options: { cacheRetention: "none", ...options }, ...request })
  return rest
}

const hi = Message.user("Hi")
const tool: Provider.ToolDefinition = {
  name: "f",
  description: "F.",
  parameters: { type: "object", properties: {}, additionalProperties: false }
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
const pngPart = { image: { format: "png", source: { bytes: "AAAA" } } }
const file = (mediaType: string, name?: string): Message.File => ({
  type: "file",
  source: { data: "AAAA", mediaType },
  ...(name === undefined ? {} : { name })
})
const mine = { provider: "acme", model: claude }
const signed: Message.Thinking = {
  type: "thinking",
  text: "Hm",
  opaque: { provider: "acme", signature: "sig" }
}
const mark = { cachePoint: { type: "default" } }

describe("conversations by Converse", () => {
  it("have a system prompt, tools and limits", () => {
    assert.deepStrictEqual(
      bodyOf({
        system: "Be brief.",
        messages: [hi],
        tools: [tool],
        options: { cacheRetention: "none", maxTokens: 100, temperature: 0.5, stop: ["END"] }
      }),
      {
        messages: [{ role: "user", content: [{ text: "Hi" }] }],
        system: [{ text: "Be brief." }],
        toolConfig: {
          tools: [{ toolSpec: { name: "f", description: "F.", inputSchema: { json: tool.parameters } } }]
        },
        inferenceConfig: { maxTokens: 100, temperature: 0.5, stopSequences: ["END"] },
        additionalModelResponseFieldPaths: ["/delta/stop_details"]
      }
    )
  })

  it("join turns of one role, put results first, and leave empty texts out", () => {
    assert.deepStrictEqual(
      sent([
        hi,
        Message.user("there"),
        Message.assistant([Message.text(" "), call("a"), call("b", "nonsense")], mine),
        result("a"),
        result("b", [], true),
        Message.user([Message.text(""), Message.text("And?")])
      ]),
      [
        { role: "user", content: [{ text: "Hi" }, { text: "there" }] },
        {
          role: "assistant",
          content: [
            { toolUse: { toolUseId: "a", name: "f", input: {} } },
            { toolUse: { toolUseId: "b", name: "f", input: {} } }
          ]
        },
        {
          role: "user",
          content: [
            { toolResult: { toolUseId: "a", content: [{ text: "ok" }] } },
            { toolResult: { toolUseId: "b", content: [{ text: "(no message)" }], status: "error" } },
            { text: "And?" }
          ]
        }
      ]
    )
  })

  it("begin with the user, and end without white space", () => {
    assert.deepStrictEqual(sent([Message.assistant("So: \n")]), [
      { role: "user", content: [{ text: "(Earlier messages are left out.)" }] },
      { role: "assistant", content: [{ text: "So:" }] }
    ])
  })

  it("return thinking unchanged to the model that thought it", () => {
    const hidden: Message.Thinking = {
      type: "thinking",
      text: "",
      redacted: true,
      opaque: { provider: "acme", redactedContent: "aGlk" }
    }
    const bare: Message.Thinking = { type: "thinking", text: "unsigned" }
    const content = [signed, hidden, bare, Message.text("Yes.")]
    assert.deepStrictEqual(sent([hi, Message.assistant(content, mine), hi])[1].content, [
      { reasoningContent: { reasoningText: { text: "Hm", signature: "sig" } } },
      { reasoningContent: { redactedContent: "aGlk" } },
      { text: "Yes." }
    ])
    const other = Message.assistant(content, { ...mine, model: "us.anthropic.claude-sonnet-4-5" })
    assert.deepStrictEqual(sent([hi, other, hi])[1].content, [{ text: "Yes." }])
  })

  it("give ids and names the form that Bedrock accepts", () => {
    const messages = [hi, Message.assistant([call("call|1/é", "{}", "a b.c")]), result("call|1/é")]
    const [, answer, results] = sent(messages)
    const { name, toolUseId } = answer.content[0].toolUse
    assert.match(toolUseId, /^[a-zA-Z0-9_-]{1,64}$/)
    assert.strictEqual(name, "a_b_c")
    assert.strictEqual(results.content[0].toolResult.toolUseId, toolUseId)
    const [, mistral] = sent(messages, { model: "mistral.mistral-large-2407-v1:0" })
    assert.match(mistral.content[0].toolUse.toolUseId, /^[a-zA-Z0-9]{9}$/)
  })

  it("say calls and results in words where the request has no tools", () => {
    const messages = [
      hi,
      Message.assistant([call("a", '{"x":1}')]),
      result("a", [Message.text("42"), png]),
      Message.user("Sum up.")
    ]
    for (const request of [
      { messages, options: { cacheRetention: "none" as const } },
      { messages, tools: [tool], options: { toolChoice: "none" as const, cacheRetention: "none" as const } }
    ]) {
      const body = bodyOf(request)
      assert.isUndefined(body.toolConfig)
      assert.deepStrictEqual(body.messages.slice(1), [
        { role: "assistant", content: [{ text: '[Called the tool f with {"x":1}]' }] },
        {
          role: "user",
          content: [
            { text: "[Result of the tool f]\n42" },
            { text: "Attached image(s) from tool result:" },
            pngPart,
            { text: "Sum up." }
          ]
        }
      ])
    }
  })
})

describe("files by Converse", () => {
  it("are images, documents with clean names of their own, and videos", () => {
    const user = Message.user([
      png,
      file("application/pdf", "../Q3 report_v2.final.pdf"),
      file("application/pdf", "../Q3 report_v2.final.pdf"),
      file("application/json"),
      file("video/mp4"),
      { type: "file", source: { url: "s3://bucket/a.docx" }, name: "a.docx" }
    ])
    const source = { bytes: "AAAA" }
    assert.deepStrictEqual(sent([user])[0].content, [
      { text: "(The documents are attached.)" },
      pngPart,
      { document: { name: "---Q3 report-v2-final", format: "pdf", source } },
      { document: { name: "---Q3 report-v2-final 2", format: "pdf", source } },
      { document: { name: "document", format: "txt", source } },
      { video: { format: "mp4", source } },
      { document: { name: "a", format: "docx", source: { s3Location: { uri: "s3://bucket/a.docx" } } } }
    ])
  })

  it("are refused as addresses on the web, as ids, and of other types", () => {
    const web = Message.user([{ type: "image", source: { url: "https://example.com/a.png" } }])
    const uploaded = Message.user([{ type: "file", source: { fileId: "f" } }])
    for (const message of [web, uploaded, Message.user([file("application/zip")])])
      assert.strictEqual(failure(message)._tag, "UnsupportedContent")
  })

  it("in results stay there for Claude and Nova, and come after them for other models and for errors", () => {
    const messages = (isError: boolean) => [
      hi,
      Message.assistant([call("a")]),
      result("a", [Message.text("See"), png], isError)
    ]
    const rich = [{ toolResult: { toolUseId: "a", content: [{ text: "See" }, pngPart] } }]
    const after = [{ text: "Attached image(s) from tool result:" }, pngPart]
    assert.deepStrictEqual(sent(messages(false))[2].content, rich)
    assert.deepStrictEqual(sent(messages(true))[2].content, [
      { toolResult: { toolUseId: "a", content: [{ text: "See" }], status: "error" } },
      ...after
    ])
    assert.deepStrictEqual(sent(messages(true), { model: "us.meta.llama4-scout" })[2].content, [
      { toolResult: { toolUseId: "a", content: [{ text: "See" }] } },
      ...after
    ])
  })
})

describe("tools that the vendor ran, by Converse", () => {
  const use = { toolUseId: "t1", name: "nova_grounding", type: "server_tool_use" }
  const found = { toolUseId: "t1", type: "nova_grounding_result", status: "success" }
  const hosted = { type: "hostedTool", id: "t1", name: "nova_grounding" } as const
  const searched: Message.HostedTool = {
    ...hosted,
    params: { query: "oslo" },
    opaque: { provider: "acme", toolUse: use }
  }
  const answered: Message.HostedTool = {
    ...hosted,
    result: [{ json: { hits: 2 } }],
    opaque: { provider: "acme", toolResult: found }
  }
  const answer = (content: Message.Assistant["content"], model = nova) =>
    sent([hi, Message.assistant([...content, Message.text("Cold.")], { provider: "acme", model }), hi], {
      model: nova
    })[1].content

  it("go back as they came, with their results", () => {
    assert.deepStrictEqual(answer([searched, answered]), [
      { toolUse: { ...use, input: { query: "oslo" } } },
      { toolResult: { ...found, content: [{ json: { hits: 2 } }] } },
      { text: "Cold." }
    ])
  })

  it("stay out without a result, and for another model", () => {
    assert.deepStrictEqual(answer([searched]), [{ text: "Cold." }])
    assert.deepStrictEqual(answer([searched, answered], "us.amazon.nova-premier-v1:0"), [{ text: "Cold." }])
  })
})

describe("cache marks of Converse", () => {
  const messages = [hi, Message.assistant("Hello"), Message.user("More")]
  const marked = (model: string, options: Provider.ModelRequest["options"] = {}) => {
    const {
      messages: turns,
      system,
      toolConfig
    } = bodyOf({
      model,
      system: "S",
      messages,
      tools: [tool],
      options
    })
    return [
      ...turns.map((turn: { content: ReadonlyArray<object> }) => turn.content),
      system,
      toolConfig.tools
    ].map((blocks) => blocks.filter((block: object) => "cachePoint" in block).length)
  }

  it("are four for Claude, none after the tools of Nova, and none elsewhere or if not wanted", () => {
    assert.deepStrictEqual(marked(claude), [1, 0, 1, 1, 1])
    assert.deepStrictEqual(marked(nova), [1, 0, 1, 1, 0])
    for (const model of [
      "openai.gpt-oss-120b-1:0",
      "anthropic.claude-3-haiku-20240307-v1:0",
      "arn:aws:x/abc"
    ])
      assert.deepStrictEqual(marked(model), [0, 0, 0, 0, 0])
    assert.deepStrictEqual(marked(claude, { cacheRetention: "none" }), [0, 0, 0, 0, 0])
  })

  it("leave room for those of the application", () => {
    const vendor = { acme: { toolConfig: { tools: [{ toolSpec: { name: "g" } }, mark, mark] } } }
    assert.deepStrictEqual(marked(claude, { vendor }), [0, 0, 1, 1, 2])
  })

  it("keep prompts for an hour where the model does", () => {
    const long = { cacheRetention: "long" } as const
    const { system } = bodyOf({ system: "S", messages, options: long })
    assert.deepStrictEqual(system[1], { cachePoint: { type: "default", ttl: "1h" } })
    assert.deepStrictEqual(adjusted({ options: long }), [])
    assert.deepStrictEqual(adjusted({ model: nova, options: long }), [["cacheRetention", "short"]])
    assert.deepStrictEqual(adjusted({ model: "anthropic.claude-sonnet-4-20250514-v1:0", options: long }), [
      ["cacheRetention", "short"]
    ])
  })

  it("follow no document", () => {
    const [turn] = bodyOf({
      messages: [Message.user([Message.text("Read"), file("text/csv", "a.csv")])]
    }).messages
    assert.deepStrictEqual(turn.content.slice(0, 2), [{ text: "Read" }, mark])
  })

  it("leave the prefix of a conversation as it was", () => {
    const turns = (count: number) =>
      sent([hi, Message.assistant("Hello"), Message.user([file("text/csv", "a.csv")]), hi].slice(0, count))
    assert.deepStrictEqual(turns(3).slice(0, 2), turns(4).slice(0, 2))
  })
})

describe("options by Converse", () => {
  it.each([
    [
      "high",
      claude,
      { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "high" } }
    ],
    [
      "low",
      "anthropic.claude-sonnet-4-5-20250929-v1:0",
      { thinking: { type: "enabled", budget_tokens: 2048 } }
    ],
    ["off", "us.anthropic.claude-sonnet-5-v1", { thinking: { type: "disabled" } }],
    ["off", "us.anthropic.claude-opus-4-7-v1", undefined],
    ["medium", nova, { reasoningConfig: { type: "enabled", maxReasoningEffort: "medium" } }],
    ["high", "openai.gpt-oss-120b-1:0", { reasoning_effort: "high" }],
    ["high", "openai.gpt-5.6-v1:0", { reasoning: { effort: "high" } }],
    ["high", "us.meta.llama4-scout-17b-instruct-v1:0", undefined]
  ] as const)("think %s on %s", (thinkingLevel, model, fields) => {
    assert.deepStrictEqual(asked({ thinkingLevel }, { model }).additionalModelRequestFields, fields)
  })

  it("start no budget in a turn that began without thinking", () => {
    const messages = [hi, Message.assistant([call("a")]), result("a")]
    const request = { model: "anthropic.claude-sonnet-4-5-20250929-v1:0", messages, tools: [tool] }
    assert.isUndefined(asked({ thinkingLevel: "high" }, request).additionalModelRequestFields)
  })

  it("force tools, one at a time", () => {
    const choice = (options: Provider.ModelRequest["options"], model = claude) => {
      const { additionalModelRequestFields, toolConfig } = asked(options, { model, tools: [tool] })
      return [toolConfig.toolChoice, additionalModelRequestFields?.tool_choice]
    }
    assert.deepStrictEqual(choice({ toolChoice: "auto" }), [undefined, undefined])
    assert.deepStrictEqual(choice({ toolChoice: "required" }), [{ any: {} }, undefined])
    assert.deepStrictEqual(choice({ toolChoice: { name: "f" } }), [{ tool: { name: "f" } }, undefined])
    const alone = { type: "tool", name: "f", disable_parallel_tool_use: true }
    assert.deepStrictEqual(choice({ toolChoice: { name: "f" }, parallelToolCalls: false }), [
      undefined,
      alone
    ])
  })

  it("are left out and reported where the model or the API does not take them", () => {
    assert.deepStrictEqual(
      adjusted({
        model: nova,
        tools: [{ ...tool, strict: true }],
        options: {
          seed: 1,
          store: true,
          logprobs: 0,
          previousResponseId: "r",
          parallelToolCalls: false,
          temperature: 1.5,
          hostedTools: [{ type: "fileSearch", stores: ["s"] }],
          output: { name: "o", schema: { type: "object" } }
        }
      }),
      [
        ["logprobs", null],
        ["previousResponseId", null],
        ["seed", null],
        ["store", null],
        ["hostedTools", null],
        ["strict", null],
        ["parallelToolCalls", null],
        ["output", null],
        ["temperature", 1]
      ]
    )
    assert.deepStrictEqual(
      adjusted({ model: nova, options: { thinkingLevel: "high", maxTokens: 9, topP: 0.5 } }),
      [
        ["maxTokens", null],
        ["topP", null]
      ]
    )
    assert.deepStrictEqual(
      adjusted({ model: "openai.gpt-5.6-v1:0", options: { stop: ["x"], temperature: 0.1 } }).map(
        ([name]) => name
      ),
      ["stop", "temperature"]
    )
  })

  it("leave out the tools of Nova for other models", () => {
    const webSearch = { options: { hostedTools: [{ type: "webSearch" }] } } as const
    assert.deepStrictEqual(adjusted(webSearch), [["hostedTools", null]])
    assert.deepStrictEqual(adjusted({ ...webSearch, model: nova }), [])
  })

  it("name a tier, tools that Nova runs, and an output schema", () => {
    assert.deepStrictEqual(asked({ serviceTier: "flex" }).serviceTier, { type: "flex" })
    const { toolConfig } = asked({ hostedTools: [{ type: "webSearch" }] }, { model: nova })
    assert.deepStrictEqual(toolConfig.tools, [{ systemTool: { name: "nova_grounding" } }])
    const schema = { type: "object", properties: { a: { type: "number", minimum: 1 } }, required: ["a"] }
    const { outputConfig } = asked({ output: { name: "my answer", schema } })
    const { jsonSchema } = outputConfig.textFormat.structure
    assert.strictEqual(outputConfig.textFormat.type, "json_schema")
    assert.strictEqual(jsonSchema.name, "my_answer")
    assert.strictEqual(JSON.parse(jsonSchema.schema).additionalProperties, false)
  })

  it("reduce the schemas of tools for Nova, and make them strict where wanted", () => {
    const tools = [{ ...tool, strict: true }]
    assert.deepStrictEqual(asked({}, { model: nova, tools }).toolConfig.tools[0].toolSpec.inputSchema.json, {
      type: "object",
      properties: {}
    })
    assert.isTrue(asked({}, { tools }).toolConfig.tools[0].toolSpec.strict)
  })

  it("take members of the body from the application", () => {
    const guardrailConfig = { guardrailIdentifier: "g", guardrailVersion: "1" }
    const fields = { anthropic_beta: ["x"], thinking: { type: "disabled" } }
    const own = {
      guardrailConfig,
      requestMetadata: { team: "a" },
      additionalModelRequestFields: fields,
      tools: [{ systemTool: { name: "s" } }]
    }
    const body = asked({ thinkingLevel: "high", vendor: { acme: own } }, { tools: [tool] })
    assert.deepStrictEqual(body.guardrailConfig, guardrailConfig)
    assert.deepStrictEqual(body.requestMetadata, { team: "a" })
    assert.deepStrictEqual(body.additionalModelRequestFields, fields)
    assert.deepStrictEqual(body.toolConfig.tools[1], { systemTool: { name: "s" } })
  })

  it("count tokens of the same conversation, without marks", () => {
    const question = questionOf(
      server,
      requestOf({ system: "S", messages: [hi], options: { maxTokens: 9, thinkingLevel: "low" } })
    )
    const body = protocol.counting?.encode(question)
    assert(typeof body === "string")
    assert.deepStrictEqual(JSON.parse(body), {
      input: {
        converse: {
          messages: [{ role: "user", content: [{ text: "Hi" }] }],
          system: [{ text: "S" }],
          additionalModelRequestFields: {
            thinking: { type: "adaptive", display: "summarized" },
            output_config: { effort: "low" }
          }
        }
      }
    })
  })
})

describe("output schemas by Converse", () => {
  it.each([
    [claude, true],
    ["anthropic.claude-sonnet-4-5-20250929-v1:0", true],
    ["us.anthropic.claude-opus-4-7-v1", false],
    ["us.anthropic.claude-opus-5-v1", false],
    ["anthropic.claude-opus-4-1-20250805-v1:0", false],
    [nova, false],
    ["openai.gpt-oss-120b-1:0", false]
  ])("%s: %s", (model, takes) => {
    assert.strictEqual(structuredOutput(server)({ model, tools: [] }), takes)
  })

  it("are what a rule of the application says", () => {
    const own = [{ vendor: "acme", pattern: "nova", structuredOutput: true }]
    assert.isTrue(structuredOutput({ ...server, own })({ model: nova, tools: [] }))
  })
})
