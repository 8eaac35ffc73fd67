import { assert, describe, it } from "@effect/vitest"
import type { Schema } from "effect"
import { Message, type Provider, type RunOptions } from "effect-agent"
import { googleGenerate } from "../../src/providers/internal/gemini/protocol.ts"
import { encoder as googleEncoder } from "../../src/providers/internal/gemini/request.ts"
import { asked } from "./asked.ts"

type Request = Partial<Provider.ModelRequest>

const encoder = (provider: string) =>
  asked({ id: provider, endpoint: "generateContent", vendor: "google" }, googleEncoder(provider))

const countedBy = (counting: Parameters<typeof asked>[1]) =>
  asked({ id: "google", endpoint: "generateContent", vendor: "google" }, counting)

const encode = (request: Request, encodeRequest = encoder("google")) =>
  encodeRequest({ model: "gemini-2.5-flash", messages: [], tools: [], options: {}, ...request })

/** The body as Google reads it. */
const bodyOf = (request: Request) => {
  const body = encode(request)
  assert.isString(body)
  return JSON.parse(String(body))
}
const contentsOf = (messages: ReadonlyArray<Message.ModelMessage>, model = "gemini-2.5-flash") =>
  bodyOf({ messages, model }).contents
const configOf = (options: RunOptions.ModelOptions, model = "gemini-2.5-flash") =>
  bodyOf({ options, model }).generationConfig

const tool: Provider.ToolDefinition = {
  name: "look",
  description: "Looks.",
  parameters: { type: "object", properties: { at: { type: "string" } }, required: ["at"] }
}
const declared = { name: "look", description: "Looks.", parametersJsonSchema: tool.parameters }
const call = (id: string, fields: Partial<Message.ToolCall> = {}): Message.ToolCall => ({
  type: "toolCall",
  id,
  name: "look",
  rawArguments: '{"at":"sky"}',
  ...fields
})
const own = { provider: "google", model: "gemini-3-pro-preview" }
const png = Message.image("AAAA", "image/png")
const inlinePng = { inlineData: { mimeType: "image/png", data: "AAAA" } }

describe("googleGenerateRequest", () => {
  it("says what the user said, and the system apart (rows 28, 36)", () => {
    assert.deepStrictEqual(bodyOf({ system: "Be brief.", messages: [Message.user("Hi")] }), {
      contents: [{ role: "user", parts: [{ text: "Hi" }] }],
      systemInstruction: { parts: [{ text: "Be brief." }] }
    })
  })

  it("writes the same text for the same conversation, and each message once", () => {
    const encodeRequest = encoder("google")
    const first = Message.user("Hi")
    let reads = 0
    const second = Message.assistant([
      {
        type: "text",
        get text() {
          reads++
          return "Hello"
        }
      }
    ])
    const messages = [first, second]
    const body = encode({ messages, tools: [tool] }, encodeRequest)
    const readsOnce = reads
    assert.strictEqual(encode({ messages, tools: [tool] }, encodeRequest), body)
    assert.strictEqual(reads, readsOnce)
  })

  it("lets the roles take turns, with the user first", () => {
    const text = (role: string, ...texts: ReadonlyArray<string>) => ({
      role,
      parts: texts.map((text) => ({ text }))
    })
    assert.deepStrictEqual(
      contentsOf([
        Message.assistant("So"),
        Message.user("a"),
        Message.assistant(""),
        Message.user([Message.text(""), Message.text("b")]),
        Message.assistant("c"),
        Message.assistant("d")
      ]),
      [text("user", "Continue."), text("model", "So"), text("user", "a", "b"), text("model", "c", "d")]
    )
    assert.deepStrictEqual(contentsOf([]), [text("user", "Continue.")])
  })

  it("sends images and files, or where they are (row 5)", () => {
    const image = (url: string): Message.Image => ({ type: "image", source: { url } })
    const file = (fileId: string): Message.File => ({ type: "file", source: { fileId } })
    const at = "https://generativelanguage.googleapis.com/v1beta/files/f1"
    assert.deepStrictEqual(
      contentsOf([
        Message.user([
          png,
          image("data:image/webp;base64,BBBB"),
          image("https://x.test/a.JPG?size=2"),
          image("gs://bucket/a"),
          { type: "file", source: { data: "CCCC", mediaType: "application/pdf" } },
          file("files/f1"),
          file("f1"),
          file("https://youtu.be/abc"),
          { type: "file", source: { url: "https://x.test/a.pdf" } },
          { type: "file", source: { url: "gs://bucket/a", mediaType: "video/mp4" }, name: "a.mp4" },
          { type: "file", source: { data: "DDDD", mediaType: "audio/wav" } }
        ])
      ])[0].parts,
      [
        inlinePng,
        { inlineData: { mimeType: "image/webp", data: "BBBB" } },
        { fileData: { fileUri: "https://x.test/a.JPG?size=2", mimeType: "image/jpeg" } },
        { fileData: { fileUri: "gs://bucket/a" } },
        { inlineData: { mimeType: "application/pdf", data: "CCCC" } },
        { fileData: { fileUri: at } },
        { fileData: { fileUri: at } },
        { fileData: { fileUri: "https://youtu.be/abc" } },
        { fileData: { fileUri: "https://x.test/a.pdf", mimeType: "application/pdf" } },
        { fileData: { fileUri: "gs://bucket/a", mimeType: "video/mp4" } },
        { inlineData: { mimeType: "audio/wav", data: "DDDD" } }
      ]
    )
    assert.deepInclude(encode({ messages: [Message.user([image("data:image/svg+xml,<svg/>")])] }), {
      _tag: "UnsupportedContent"
    })
  })

  it("answers all calls in one turn, results first (rows 1, 28)", () => {
    const messages = [
      Message.user("Look"),
      Message.assistant([call("a"), call("b", { name: "no such:tool", rawArguments: "{oops" })]),
      Message.toolResult({ id: "a", name: "look" }, [Message.text("one"), png, Message.text("two")]),
      Message.toolResult({ id: "b", name: "no such:tool" }, "Not found", { isError: true }),
      Message.user("Well?")
    ]
    const calls = {
      role: "model",
      parts: [
        { functionCall: { name: "look", args: { at: "sky" } } },
        { functionCall: { name: "no_such_tool", args: {} } }
      ]
    }
    assert.deepStrictEqual(contentsOf(messages).slice(1), [
      calls,
      {
        role: "user",
        parts: [
          { functionResponse: { name: "look", response: { output: "one\ntwo" } } },
          { functionResponse: { name: "no_such_tool", response: { error: "Not found" } } },
          { text: "Image from the result of look:" },
          inlinePng,
          { text: "Well?" }
        ]
      }
    ])
  })

  it("puts images into the results of Gemini 3", () => {
    const [, , results] = contentsOf(
      [
        Message.user("Look"),
        Message.assistant([call("a")]),
        Message.toolResult({ id: "a", name: "look" }, [png, { type: "image", source: { url: "gs://b/c" } }])
      ],
      "gemini-3.5-flash"
    )
    assert.deepStrictEqual(results.parts, [
      {
        functionResponse: {
          name: "look",
          response: { output: "(see attached image)" },
          parts: [inlinePng]
        }
      },
      { text: "Image from the result of look:" },
      { fileData: { fileUri: "gs://b/c" } }
    ])
  })

  it("sends no half of a surrogate pair", () => {
    assert.notInclude(
      String(encode({ messages: [Message.user("a\ud83d"), Message.assistant("\ude00b")] })),
      "\\ud"
    )
  })
})

describe("what Gemini said, sent back", () => {
  const answer = Message.assistant(
    [
      {
        type: "thinking",
        text: "Hm, yes",
        opaque: { provider: "google", signed: [{ from: 3, to: 7, thoughtSignature: "dGhk" }] }
      },
      {
        type: "text",
        text: "It is so",
        opaque: {
          provider: "google",
          signed: [
            { from: 3, to: 5, thoughtSignature: "c2ln" },
            { from: 8, to: 8, thoughtSignature: "ZW5k" }
          ],
          citations: []
        }
      },
      {
        type: "text",
        text: "",
        opaque: { provider: "google", part: { executableCode: { code: "1" }, thoughtSignature: "Y29k" } }
      },
      { type: "text", text: "", opaque: { provider: "google", part: { functionResponse: { name: "x" } } } },
      call("abc", { opaque: { provider: "google", id: "abc", thoughtSignature: "Y2Fs" } }),
      call("call_1", {})
    ],
    own
  )
  const results = [
    Message.toolResult({ id: "abc", name: "look" }, "A"),
    Message.toolResult({ id: "call_1", name: "look" }, "B")
  ]
  const functionCall = { name: "look", args: { at: "sky" } }
  const answers = {
    role: "user",
    parts: [
      { functionResponse: { id: "abc", name: "look", response: { output: "A" } } },
      { functionResponse: { name: "look", response: { output: "B" } } }
    ]
  }

  it("has each signature on the part that came with it, and the ids that came", () => {
    assert.deepStrictEqual(contentsOf([Message.user("q"), answer, ...results], own.model).slice(1), [
      {
        role: "model",
        parts: [
          { text: "Hm,", thought: true },
          { text: " yes", thought: true, thoughtSignature: "dGhk" },
          { text: "It " },
          { text: "is", thoughtSignature: "c2ln" },
          { text: " so" },
          { text: "", thoughtSignature: "ZW5k" },
          { executableCode: { code: "1" }, thoughtSignature: "Y29k" },
          { functionCall: { id: "abc", ...functionCall }, thoughtSignature: "Y2Fs" },
          { functionCall }
        ]
      },
      answers
    ])
  })

  it("has no signature for another model, and the word for that on the first call for Gemini 3", () => {
    const parts = (thoughtSignature?: string) => [
      { text: "It is so" },
      { executableCode: { code: "1" } },
      {
        functionCall: { id: "abc", ...functionCall },
        ...(thoughtSignature === undefined ? {} : { thoughtSignature })
      },
      { functionCall }
    ]
    const messages = [Message.user("q"), answer, ...results]
    assert.deepStrictEqual(contentsOf(messages, "gemini-2.5-pro").slice(1), [
      { role: "model", parts: parts() },
      answers
    ])
    assert.deepStrictEqual(contentsOf(messages, "gemini-3.5-flash").slice(1), [
      { role: "model", parts: parts("skip_thought_signature_validator") },
      answers
    ])
  })

  it("has the files of the model, and code and searches in their place; searches for the same model only", () => {
    const code = { executableCode: { code: "1" }, thoughtSignature: "Y29k" }
    const search = { toolCall: { id: "s1", toolType: "URL_CONTEXT" }, thoughtSignature: "c2Vh" }
    const sketch = { inlineData: { mimeType: "image/png", data: "BBBB" }, thought: true }
    const hosted = (part: Schema.Json): Message.HostedTool => ({
      type: "hostedTool",
      id: "h",
      name: "n",
      opaque: { provider: "google", part }
    })
    const made = Message.assistant(
      [
        { type: "thinking", text: "", redacted: true, opaque: { provider: "google", part: sketch } },
        {
          type: "thinking",
          text: "",
          redacted: true,
          opaque: { provider: "google", signed: [{ from: 0, to: 0, thoughtSignature: "dGhk" }] }
        },
        hosted(code),
        hosted(search),
        { type: "hostedTool", id: "h", name: "google_search", params: { queries: [] } },
        { type: "source", sourceType: "url", url: "https://a.test" },
        {
          type: "media",
          source: { data: "AAAA", mediaType: "image/png" },
          opaque: { provider: "google", thoughtSignature: "bWVk" }
        },
        { type: "media", source: { url: "gs://b/a.wav", mediaType: "audio/wav" } }
      ],
      own
    )
    const wav = { fileData: { fileUri: "gs://b/a.wav", mimeType: "audio/wav" } }
    assert.deepStrictEqual(contentsOf([Message.user("q"), made], own.model)[1].parts, [
      sketch,
      { text: "", thought: true, thoughtSignature: "dGhk" },
      code,
      search,
      { ...inlinePng, thoughtSignature: "bWVk" },
      wav
    ])
    assert.deepStrictEqual(contentsOf([Message.user("q"), made], "gemini-3.5-flash")[1].parts, [
      { executableCode: { code: "1" } },
      inlinePng,
      wav
    ])
  })

  it("is only text and calls when somebody else said it", () => {
    const foreign = Message.assistant(
      [
        { type: "thinking", text: "Secret", opaque: { provider: "anthropic", signature: "s" } },
        { type: "thinking", text: "", redacted: true, opaque: { provider: "anthropic", data: "d" } },
        { type: "text", text: "Fine", opaque: { provider: "openai", id: "msg_1" } },
        call("toolu_01", { opaque: { provider: "openai", id: "fc_1" } })
      ],
      { provider: "anthropic", model: "claude" }
    )
    const [, said, told] = contentsOf([
      Message.user("q"),
      foreign,
      Message.toolResult({ id: "toolu_01", name: "look" }, "A")
    ])
    assert.deepStrictEqual(said.parts, [{ text: "Fine" }, { functionCall }])
    assert.deepStrictEqual(told.parts, [{ functionResponse: { name: "look", response: { output: "A" } } }])
  })
})

describe("parameters of a Gemini request", () => {
  it("go into the generation config", () => {
    assert.deepStrictEqual(configOf({ temperature: 0.5, topP: 0.9, maxTokens: 256, stop: ["END"] }), {
      temperature: 0.5,
      topP: 0.9,
      maxOutputTokens: 256,
      stopSequences: ["END"]
    })
  })

  it("choose among the tools", () => {
    const modeOf = (toolChoice: RunOptions.ModelOptions["toolChoice"], tools = [tool]) =>
      bodyOf({ tools, options: toolChoice === undefined ? {} : { toolChoice } }).toolConfig
        ?.functionCallingConfig
    assert.isUndefined(modeOf(undefined))
    assert.isUndefined(modeOf("required", []))
    assert.deepStrictEqual(modeOf("auto"), { mode: "AUTO" })
    assert.deepStrictEqual(modeOf("none"), { mode: "NONE" })
    assert.deepStrictEqual(modeOf("required"), { mode: "ANY" })
    assert.deepStrictEqual(modeOf({ name: "look" }), { mode: "ANY", allowedFunctionNames: ["look"] })
  })

  it("are passed through to where they belong, beside what is ours", () => {
    const body = bodyOf({
      messages: [Message.user("Hi")],
      tools: [tool],
      options: {
        temperature: 1,
        toolChoice: "required",
        vendor: {
          google: {
            seed: 7,
            safetySettings: [],
            tools: [{ googleSearch: {} }],
            toolConfig: {
              includeServerSideToolInvocations: true,
              functionCallingConfig: { streamFunctionCallArguments: true }
            },
            generationConfig: { temperature: 0, topK: 3 }
          }
        }
      }
    })
    assert.deepStrictEqual(body, {
      contents: [{ role: "user", parts: [{ text: "Hi" }] }],
      tools: [{ functionDeclarations: [declared] }, { googleSearch: {} }],
      generationConfig: { temperature: 0, seed: 7, topK: 3 },
      toolConfig: {
        includeServerSideToolInvocations: true,
        functionCallingConfig: { mode: "ANY", streamFunctionCallArguments: true }
      },
      safetySettings: []
    })
  })

  it("ask for an answer of a schema, in words where tools exclude it", () => {
    const output = { name: "sum", schema: { type: "object", properties: { n: { type: "number" } } } }
    const config = { responseMimeType: "application/json", responseJsonSchema: output.schema }
    assert.deepStrictEqual(configOf({ output }), config)
    const withTools = (model: string) => bodyOf({ model, system: "Add.", tools: [tool], options: { output } })
    assert.deepStrictEqual(withTools("gemini-3.5-flash").generationConfig, config)
    const { generationConfig, systemInstruction } = withTools("gemini-2.5-flash")
    assert.isUndefined(generationConfig)
    assert.strictEqual(systemInstruction.parts[0].text, "Add.")
    assert.include(systemInstruction.parts[1].text, JSON.stringify(output.schema))
  })

  it("ask Gemini 2.5 to think for so many tokens", () => {
    const budget = (model: string, options: RunOptions.ModelOptions) =>
      configOf(options, model)?.thinkingConfig
    const thinks = (thinkingBudget: number) => ({ includeThoughts: true, thinkingBudget })
    assert.isUndefined(budget("gemini-2.5-flash", {}))
    assert.deepStrictEqual(budget("gemini-2.5-flash", { thinkingLevel: "medium" }), thinks(8192))
    assert.deepStrictEqual(budget("gemini-2.5-flash", { thinkingLevel: "xhigh" }), thinks(24_576))
    assert.deepStrictEqual(budget("models/gemini-2.5-pro", { thinkingLevel: "xhigh" }), thinks(32_768))
    assert.deepStrictEqual(
      budget("gemini-2.5-flash", { thinkingLevel: "high", maxTokens: 2048 }),
      thinks(1024)
    )
    assert.deepStrictEqual(
      budget("gemini-2.5-flash-lite", { thinkingLevel: "low", maxTokens: 100 }),
      thinks(512)
    )
    const thinkingBudgets = { low: 3000, high: -1 }
    assert.deepStrictEqual(
      budget("gemini-2.5-pro", { thinkingLevel: "low", thinkingBudgets, maxTokens: 100 }),
      thinks(3000)
    )
    assert.deepStrictEqual(budget("gemini-2.5-pro", { thinkingLevel: "high", thinkingBudgets }), thinks(-1))
    const off = { includeThoughts: false, thinkingBudget: 0 }
    assert.deepStrictEqual(budget("gemini-2.5-flash", { thinkingLevel: "off" }), off)
    assert.deepStrictEqual(budget("gemini-2.5-pro", { thinkingLevel: "off" }), {
      ...off,
      thinkingBudget: 128
    })
  })

  it("ask later ones to think at a level that they know", () => {
    const levels = (model: string) =>
      (["off", "minimal", "low", "medium", "high", "xhigh"] as const).map(
        (thinkingLevel) => configOf({ thinkingLevel }, model)?.thinkingConfig?.thinkingLevel
      )
    const pro = ["low", "low", "low", "medium", "high", "high"]
    const flash = ["minimal", "minimal", "low", "medium", "high", "high"]
    assert.deepStrictEqual(levels("gemini-3-pro-preview"), ["low", "low", "low", "high", "high", "high"])
    assert.deepStrictEqual(levels("gemini-3.1-pro-preview"), pro)
    assert.deepStrictEqual(levels("projects/p/models/gemini-3-flash-preview"), flash)
    assert.deepStrictEqual(levels("gemini-3.5-flash-lite"), flash)
    assert.deepStrictEqual(levels("gemini-3.8-flash"), pro)
    assert.deepStrictEqual(levels("gemini-flash-latest"), pro)
    for (const model of ["gemini-2.0-flash", "gemma-3-27b-it", "gemini-3-pro-image-preview"]) {
      assert.isUndefined(configOf({ thinkingLevel: "high" }, model))
    }
  })
})

describe("tools of a Gemini request", () => {
  const toolsOf = (options: RunOptions.ModelOptions, tools = [tool], model = "gemini-3-pro-preview") => {
    const { toolConfig, tools: sent } = bodyOf({ model, tools, options })
    return { sent, toolConfig }
  }

  it("have the JSON Schema that Gemini takes, or none without parameters (row 29)", () => {
    const parameters = {
      $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
      type: "object",
      properties: { node: { $ref: "#/$defs/node" }, at: { type: ["string", "null"], enum: ["sky", null] } }
    }
    const node = (next: Schema.Json) => ({ type: "object", properties: { next } })
    const { sent } = toolsOf({}, [
      { ...tool, parameters },
      { ...tool, name: "stop", parameters: { type: "object", properties: {}, additionalProperties: false } }
    ])
    assert.deepStrictEqual(sent[0].functionDeclarations, [
      {
        ...declared,
        parametersJsonSchema: {
          type: "object",
          properties: {
            node: node(node(node({ type: "object" }))),
            at: { type: ["string", "null"], enum: ["sky"] }
          }
        }
      },
      { name: "stop", description: "Looks." }
    ])
  })

  it("are beside those that Google runs, whose calls then come as parts", () => {
    const hostedTools: RunOptions.ModelOptions["hostedTools"] = [
      { type: "webSearch", vendor: { google: { excludeDomains: ["x.example"] } } },
      { type: "codeExecution" },
      { type: "fileSearch", stores: ["fileSearchStores/a"], maxResults: 3 }
    ]
    const hosted = [
      { googleSearch: { excludeDomains: ["x.example"] } },
      { codeExecution: {} },
      { fileSearch: { fileSearchStoreNames: ["fileSearchStores/a"], topK: 3 } }
    ]
    assert.deepStrictEqual(toolsOf({ hostedTools }), {
      sent: [{ functionDeclarations: [declared] }, ...hosted],
      toolConfig: { includeServerSideToolInvocations: true, functionCallingConfig: { mode: "VALIDATED" } }
    })
    const own = { hostedTools, vendor: { google: { tools: [{ urlContext: {} }] } } }
    assert.deepStrictEqual(toolsOf(own, []), {
      sent: [...hosted, { urlContext: {} }],
      toolConfig: undefined
    })
  })

  it("have in place of the one for a screen the functions of Google, which the answers and results name", () => {
    const hostedTools: RunOptions.ModelOptions["hostedTools"] = [{ type: "computerUse", width: 9, height: 9 }]
    const computer = { ...tool, name: "computer" }
    const { sent, toolConfig } = toolsOf({ hostedTools, toolChoice: { name: "computer" } }, [tool, computer])
    assert.deepStrictEqual(sent, [
      { functionDeclarations: [declared] },
      { computerUse: { environment: "ENVIRONMENT_BROWSER" } }
    ])
    assert.deepStrictEqual(toolConfig, { functionCallingConfig: { mode: "ANY" } })

    const click = call("c1", {
      name: "computer",
      rawArguments: '{"action":"click_at","x":5,"y":7}',
      opaque: { provider: "google", id: "g1", action: "click_at" }
    })
    const result = (text: string) => Message.toolResult(click, [{ type: "text", text }, png])
    const model = "gemini-2.5-computer-use-preview"
    const parts = (text: string) =>
      contentsOf([Message.assistant([click], { provider: "google", model }), result(text)], model).flatMap(
        (content: { parts: ReadonlyArray<unknown> }) => content.parts
      )
    const response = { url: "https://a.example" }
    assert.deepStrictEqual(parts(JSON.stringify(response)).slice(1), [
      { functionCall: { id: "g1", name: "click_at", args: { x: 5, y: 7 } } },
      { functionResponse: { id: "g1", name: "click_at", response, parts: [inlinePng] } }
    ])
    assert.deepStrictEqual(parts("Done").at(-1).functionResponse.response, { output: "Done" })
  })

  it("that are strict hold the model to their schemas", () => {
    const modeOf = (options: RunOptions.ModelOptions) =>
      toolsOf(options, [{ ...tool, strict: true }]).toolConfig.functionCallingConfig.mode
    assert.strictEqual(modeOf({}), "VALIDATED")
    assert.strictEqual(modeOf({ toolChoice: "required" }), "ANY")
    assert.strictEqual(modeOf({ toolChoice: "none" }), "NONE")
  })
})

describe("further options of a Gemini request", () => {
  it("are where the API has them", () => {
    const options = { seed: 7, logprobs: 2, serviceTier: "flex" }
    const { generationConfig, serviceTier } = bodyOf({ options })
    assert.deepStrictEqual(generationConfig, { seed: 7, responseLogprobs: true, logprobs: 2 })
    assert.strictEqual(serviceTier, "flex")
    assert.deepStrictEqual(configOf({ logprobs: 0 }), { responseLogprobs: true })
  })

  it("are in the request that counts tokens, in the form of each server", () => {
    const question = {
      messages: [Message.user("Hi")],
      tools: [tool],
      system: "Be brief.",
      model: "gemini-3-pro"
    }
    const counted = (isVertexAi: boolean) => {
      const { counting } = googleGenerate("google", { isVertexAi })
      return counting === undefined ? {} : JSON.parse(String(encode(question, countedBy(counting.encode))))
    }
    const parts = {
      contents: [{ role: "user", parts: [{ text: "Hi" }] }],
      tools: [{ functionDeclarations: [declared] }],
      systemInstruction: { parts: [{ text: "Be brief." }] }
    }
    assert.deepStrictEqual(counted(false), {
      generateContentRequest: { model: "models/gemini-3-pro", ...parts }
    })
    assert.deepStrictEqual(counted(true), parts)
    assert.strictEqual(googleGenerate("google").counting?.read({ totalTokens: 12 }), 12)
    assert.isUndefined(googleGenerate("google").counting?.read({}))
  })
})
