import { assert, describe, it } from "@effect/vitest"
import { Message, type Provider } from "effect-agent"
import { encoder as messagesEncoder } from "../../src/providers/internal/anthropic/request.ts"
import { encoder as converseEncoder } from "../../src/providers/internal/bedrock/request.ts"
import { encoder as geminiEncoder } from "../../src/providers/internal/gemini/request.ts"
import { encoder as chatEncoder } from "../../src/providers/internal/openAiChat/request.ts"
import { common } from "../../src/providers/internal/openAiChat/compat.ts"
import { encoder as responsesEncoder } from "../../src/providers/internal/openAiResponses/request.ts"
import { isReason } from "../../src/providers/Protocol.ts"
import { asked, questionOf, type Server } from "./asked.ts"

type Api = "chat" | "responses" | "messages" | "generateContent" | "converse"

const servers: Readonly<Record<Api, Server & { readonly model: string }>> = {
  chat: { id: "openai", endpoint: "chat", vendor: "openai", model: "gpt-4.1" },
  responses: { id: "openai", endpoint: "responses", vendor: "openai", model: "gpt-5.4" },
  messages: { id: "anthropic", endpoint: "messages", vendor: "anthropic", model: "claude-sonnet-4-6" },
  generateContent: { id: "google", endpoint: "generateContent", vendor: "google", model: "gemini-3.1-pro" },
  converse: {
    id: "amazon-bedrock",
    endpoint: "converse",
    vendor: "bedrock",
    model: "anthropic.claude-sonnet-4-6-v1:0"
  }
}

const encoders = {
  chat: chatEncoder("openai", { ...common, files: true }),
  responses: responsesEncoder("openai"),
  messages: messagesEncoder("anthropic"),
  generateContent: geminiEncoder("google"),
  converse: converseEncoder("amazon-bedrock").converse
}

type Request = Partial<Provider.ModelRequest>

const bodyOf = (api: Api, request: Request): any => {
  const { model } = servers[api]
  const body = asked(servers[api], encoders[api])({ model, messages: [], tools: [], options: {}, ...request })
  if (isReason(body)) throw body
  return JSON.parse(body)
}

const adjustedOf = (api: Api, request: Request) =>
  questionOf(servers[api], { model: servers[api].model, messages: [], tools: [], options: {}, ...request })
    .adjusted.filter(({ option }) => option.includes("."))
    .map(({ asked, option, sent }) => [option, asked, sent])

const of = (id: string, members: object) => ({ vendor: JSON.parse(JSON.stringify({ [id]: members })) })

const png: Message.Image = { ...Message.image("AAAA", "image/png"), detail: "low" }
const pdf: Message.File = {
  type: "file",
  source: { data: "AAAA", mediaType: "application/pdf" },
  name: "a.pdf",
  citations: { enabled: true }
}
const tool: Provider.ToolDefinition = {
  name: "t",
  description: "d",
  parameters: { type: "object", properties: { a: { type: "string" } } },
  inputExamples: [{ a: "x" }],
  allowedCallers: ["direct", "programmatic"]
}

describe("options of blocks", () => {
  const seen = [Message.user([Message.text("?"), png])]

  it("sends the detail of an image where the API has it (row 5)", () => {
    assert.deepStrictEqual(bodyOf("chat", { messages: seen }).messages[0].content[1], {
      type: "image_url",
      image_url: { url: "data:image/png;base64,AAAA", detail: "low" }
    })
    assert.strictEqual(bodyOf("responses", { messages: seen }).input[0].content[1].detail, "low")
    assert.deepStrictEqual(bodyOf("generateContent", { messages: seen }).contents[0].parts[1], {
      inlineData: { mimeType: "image/png", data: "AAAA" },
      mediaResolution: { level: "MEDIA_RESOLUTION_LOW" }
    })
    for (const api of ["chat", "responses", "generateContent"] as const)
      assert.deepStrictEqual(adjustedOf(api, { messages: seen }), [])
  })

  it("reports a detail that the API has no place for, but not the usual one", () => {
    for (const api of ["messages", "converse"] as const) {
      assert.notInclude(JSON.stringify(bodyOf(api, { messages: seen })), "low")
      assert.deepStrictEqual(adjustedOf(api, { messages: seen }), [["image.detail", "low", null]])
      const usual = [Message.user([Message.text("?"), { ...png, detail: "auto" }])]
      assert.deepStrictEqual(adjustedOf(api, { messages: usual }), [])
    }
    const old = { messages: seen, model: "gemini-2.5-pro" }
    assert.notInclude(JSON.stringify(bodyOf("generateContent", old)), "mediaResolution")
    assert.deepStrictEqual(adjustedOf("generateContent", old), [["image.detail", "low", null]])
  })

  it("sends the detail of an image in a result", () => {
    const call: Message.ToolCall = { type: "toolCall", id: "c", name: "t", rawArguments: "{}" }
    const messages = [Message.user("?"), Message.assistant([call]), Message.toolResult(call, [png])]
    assert.strictEqual(bodyOf("responses", { messages }).input[2].output[0].detail, "low")
    assert.strictEqual(bodyOf("chat", { messages }).messages[3].content[1].image_url.detail, "low")
  })

  it("asks Anthropic and Bedrock to cite a document, and reports it elsewhere", () => {
    const messages = [Message.user([pdf, Message.text("?")])]
    assert.deepStrictEqual(bodyOf("messages", { messages }).messages[0].content[0].citations, {
      enabled: true
    })
    assert.deepStrictEqual(bodyOf("converse", { messages }).messages[0].content[0].document, {
      name: "a",
      format: "pdf",
      source: { bytes: "AAAA" },
      citations: { enabled: true }
    })
    for (const api of ["responses", "generateContent"] as const)
      assert.deepStrictEqual(adjustedOf(api, { messages }), [["file.citations", { enabled: true }, null]])
  })
})

describe("options of tools", () => {
  const request = { messages: [Message.user("?")], tools: [tool] }

  it("sends examples of arguments to Anthropic, and as part of the description to others", () => {
    assert.deepStrictEqual(bodyOf("messages", request).tools[0].input_examples, [{ a: "x" }])
    const described = 'd\n\nExamples of its arguments:\n{"a":"x"}'
    assert.strictEqual(bodyOf("chat", request).tools[0].function.description, described)
    assert.strictEqual(bodyOf("responses", request).tools[0].description, described)
    assert.strictEqual(
      bodyOf("generateContent", request).tools[0].functionDeclarations[0].description,
      described
    )
    assert.strictEqual(bodyOf("converse", request).toolConfig.tools[0].toolSpec.description, described)
  })

  it("opens a tool to programs in the words of the vendor", () => {
    assert.deepStrictEqual(bodyOf("responses", request).tools[0].allowed_callers, ["direct", "programmatic"])
    assert.deepStrictEqual(bodyOf("messages", request).tools[0].allowed_callers, [
      "direct",
      "code_execution_20260120"
    ])
    const hosted = { ...request, options: { hostedTools: [{ type: "codeExecution" as const }] } }
    const tools = bodyOf("messages", hosted).tools
    assert.deepStrictEqual(tools[1].allowed_callers, ["direct", tools[0].type])
    for (const api of ["chat", "generateContent", "converse"] as const)
      assert.deepStrictEqual(adjustedOf(api, request), [
        ["tool.allowedCallers", ["direct", "programmatic"], null]
      ])
  })

  it("sends other servers of the Messages API only what all tools have", () => {
    const server = { ...servers.messages, id: "minimax", vendor: "minimax" as const }
    const question = questionOf(server, { model: "MiniMax-M2", options: {}, ...request })
    assert.hasAllKeys(question.tools[0], ["description", "name", "parameters"])
  })

  it("keep the object of a tool from request to request, by which its encoding is kept", () => {
    const [first, second] = [1, 2].map(
      () => questionOf(servers.chat, { ...request, model: "gpt-4.1", options: {} }).tools[0]
    )
    assert.strictEqual(first, second)
  })
})

describe("members for a vendor", () => {
  const call = (id: string): Message.ToolCall => ({
    type: "toolCall",
    id: "c",
    name: "t",
    rawArguments: "{}",
    ...of(id, { x_call: 1 })
  })
  const conversation = (id: string) => [
    Message.user([
      { ...Message.text("one"), ...of(id, { x_text: 1 }) },
      { ...Message.image("AAAA", "image/png"), ...of(id, { x_image: 1 }) }
    ]),
    { ...Message.assistant([{ ...Message.text("two"), ...of(id, { x_said: 1 }) }, call(id)]) },
    {
      ...Message.toolResult(call(id), [{ ...Message.text("three"), ...of(id, { x_out: 1 }) }]),
      ...of(id, { x_result: 1 })
    },
    { ...Message.user("four"), ...of(id, { x_message: 1 }) }
  ]
  const tools = (id: string): ReadonlyArray<Provider.ToolDefinition> => [
    { name: "t", description: "d", parameters: { type: "object" }, ...of(id, { x_tool: 1 }) }
  ]
  const apis: ReadonlyArray<Api> = ["chat", "responses", "messages", "generateContent", "converse"]
  const names = ["x_text", "x_image", "x_said", "x_call", "x_out", "x_result", "x_message", "x_tool"]

  it("go into the object that stands for the block, the message or the tool", () => {
    for (const api of apis) {
      const { id } = servers[api]
      const body = JSON.stringify(bodyOf(api, { messages: conversation(id), tools: tools(id) }))
      // Gemini's results of functions have no blocks.
      const missing = names.filter((name) => !body.includes(`"${name}":1`))
      assert.deepStrictEqual(missing, api === "generateContent" ? ["x_out"] : [], api)
    }
    const { messages, tools: sent } = bodyOf("messages", {
      messages: conversation("anthropic"),
      tools: tools("anthropic")
    })
    assert.deepStrictEqual(messages[0].content[0], { type: "text", text: "one", x_text: 1 })
    assert.deepInclude(messages[2].content[0], { type: "tool_result", tool_use_id: "c", x_result: 1 })
    assert.deepInclude(messages[2].content[1], { type: "text", text: "four", x_message: 1 })
    assert.deepInclude(sent[0], { name: "t", x_tool: 1 })
  })

  it("go to no other provider, and leave a body without them as it was", () => {
    const plain = (value: object) =>
      JSON.parse(JSON.stringify(value, (name, member) => (name === "vendor" ? undefined : member)))
    for (const api of apis) {
      const messages = conversation("another")
      assert.deepStrictEqual(
        bodyOf(api, { messages, tools: tools("another") }),
        bodyOf(api, { messages: messages.map(plain), tools: tools("another").map(plain) }),
        api
      )
    }
  })

  it("are merged with nested objects of the provider", () => {
    const messages = [
      Message.user([
        { ...Message.image("AAAA", "image/png"), ...of("openai", { image_url: { detail: "high" } }) }
      ])
    ]
    assert.deepStrictEqual(bodyOf("chat", { messages }).messages[0].content[0].image_url, {
      url: "data:image/png;base64,AAAA",
      detail: "high"
    })
    const document = { ...pdf, ...of("amazon-bedrock", { document: { context: "a lease" } }) }
    const sent = bodyOf("converse", { messages: [Message.user([document, Message.text("?")])] })
    assert.deepInclude(sent.messages[0].content[0].document, { name: "a", context: "a lease" })
  })

  const ephemeral = { cache_control: { type: "ephemeral" } }
  const marks = (body: object) => JSON.stringify(body).split('"cache_control":').length - 1

  it("mark a block for the cache, and count among the four marks that Anthropic takes", () => {
    const marked = (text: string) => ({ ...Message.text(text), ...of("anthropic", ephemeral) })
    const messages = [Message.user([marked("a"), marked("b"), marked("c"), Message.text("d")])]
    const body = bodyOf("messages", { messages, system: "S", tools: tools("none") })
    assert.strictEqual(marks(body), 4)
    assert.deepStrictEqual(body.messages[0].content[3].cache_control, { type: "ephemeral" })
    assert.notProperty(body.tools[0], "cache_control")
  })

  it("mark the last block of a message once", () => {
    const messages = [
      { ...Message.user("Hi"), ...of("anthropic", { cache_control: { type: "ephemeral", ttl: "1h" } }) }
    ]
    const text = asked(
      servers.messages,
      encoders.messages
    )({
      model: servers.messages.model,
      messages,
      tools: [],
      options: {}
    })
    assert.strictEqual(String(text).split('"cache_control":').length, 2)
  })

  it("set a cache point behind a block of Bedrock", () => {
    const cachePoint = of("amazon-bedrock", { cachePoint: { type: "default" } })
    const messages = [
      Message.user([
        { ...Message.text("a"), ...cachePoint },
        { ...Message.text("b"), ...cachePoint }
      ])
    ]
    const body = bodyOf("converse", {
      messages,
      tools: tools("none").map((one) => ({ ...one, vendor: cachePoint.vendor }))
    })
    const point = { cachePoint: { type: "default" } }
    assert.deepStrictEqual(body.messages[0].content, [{ text: "a" }, point, { text: "b" }, point])
    assert.deepStrictEqual(body.toolConfig.tools[1], point)
  })
})
