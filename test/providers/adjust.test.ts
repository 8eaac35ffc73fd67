import { assert, describe, it } from "@effect/vitest"
import { Message, type Provider, ProviderError, type RunOptions } from "effect-agent"
import type { Models } from "effect-agent/providers"
import type { ModelOptions } from "../../src/RunOptions.ts"
import { isReason, type Protocol } from "../../src/providers/Protocol.ts"
import { adjuster, questionOf, type Server } from "./asked.ts"
import * as Images from "./images.ts"

const tool: Provider.ToolDefinition = { name: "f", description: "F.", parameters: { type: "object" } }

const servers = {
  anthropic: { id: "anthropic", endpoint: "messages", vendor: "anthropic" },
  openai: { id: "openai", endpoint: "responses", vendor: "openai", keepsPrompts: true },
  chat: { id: "openai", endpoint: "chat", vendor: "openai", keepsPrompts: true },
  google: { id: "google", endpoint: "generateContent", vendor: "google" },
  deepseek: { id: "deepseek", endpoint: "chat", vendor: "deepseek" },
  moonshot: { id: "kimi", endpoint: "chat", vendor: "moonshot" },
  zai: { id: "zai", endpoint: "chat", vendor: "zai" },
  acme: { id: "acme", endpoint: "chat" }
} as const satisfies Record<string, Server>

const asked = (
  server: keyof typeof servers,
  model: string,
  options: ModelOptions,
  tools: ReadonlyArray<Provider.ToolDefinition> = []
) => questionOf(servers[server], { model, messages: [Message.user("Hi")], tools, options })

/** Each change as `[option, asked, sent]`. */
const changes = (...args: Parameters<typeof asked>) =>
  asked(...args).adjusted.map(({ asked, option, sent }) => [option, asked, sent])

const refused = (server: keyof typeof servers, request: Partial<Provider.ModelRequest>) => {
  const reason = adjuster(servers[server])({ model: "m", messages: [], tools: [], options: {}, ...request })
  return isReason(reason) ? [reason._tag, reason.detail] : []
}

describe("a thinking level", () => {
  const levels = ["off", "minimal", "low", "medium", "high", "xhigh", "max"] as const
  const efforts = (server: keyof typeof servers, model: string, path: (thinking: any) => unknown) =>
    levels.map((thinkingLevel) => path(asked(server, model, { thinkingLevel }).thinking))

  it("is sent in the model's word (row 43)", () => {
    assert.deepStrictEqual(
      efforts("openai", "gpt-5.1", ({ reasoning }) => reasoning.effort),
      ["none", "low", "low", "medium", "high", "high", "high"]
    )
    assert.deepStrictEqual(
      efforts("openai", "gpt-6-luna", ({ reasoning }) => reasoning.effort),
      ["none", "low", "low", "medium", "high", "xhigh", "max"]
    )
    assert.deepStrictEqual(
      efforts("chat", "gpt-6-luna", ({ reasoning_effort }) => reasoning_effort),
      ["none", "low", "low", "medium", "high", "xhigh", "xhigh"]
    )
    assert.deepStrictEqual(
      efforts("anthropic", "claude-opus-4-6", ({ output_config }) => output_config?.effort),
      [undefined, "low", "low", "medium", "high", "high", "max"]
    )
    assert.deepStrictEqual(
      efforts("moonshot", "kimi-k3", ({ reasoning_effort }) => reasoning_effort),
      ["low", "low", "low", "high", "high", "max", "max"]
    )
  })

  it("is a budget where the model counts in tokens (row 44)", () => {
    const budget = (options: ModelOptions) => asked("anthropic", "claude-haiku-4-5", options).thinking
    const enabled = (budget_tokens: number) => ({ thinking: { type: "enabled", budget_tokens } })
    assert.deepStrictEqual(budget({ thinkingLevel: "low" }), enabled(2048))
    assert.deepStrictEqual(budget({ thinkingLevel: "max", maxTokens: 8000 }), enabled(6976))
    assert.deepStrictEqual(budget({ thinkingLevel: "low", thinkingBudgets: { low: 3000 } }), enabled(3000))
    assert.deepStrictEqual(budget({ thinkingLevel: "low", maxTokens: 1024 }), {})
    assert.deepStrictEqual(
      changes("anthropic", "claude-haiku-4-5", { thinkingLevel: "low", maxTokens: 1024 }),
      [["thinkingLevel", "low", null]]
    )
    const tokens = (model: string, options: ModelOptions) =>
      asked("google", model, options).thinking["generationConfig"]
    const config = (thinkingBudget: number, includeThoughts = true) => ({
      thinkingConfig: { includeThoughts, thinkingBudget }
    })
    assert.deepStrictEqual(tokens("gemini-2.5-pro", { thinkingLevel: "off" }), config(128, false))
    assert.deepStrictEqual(tokens("gemini-2.5-flash", { thinkingLevel: "off" }), config(0, false))
    const own = (low: number): ModelOptions => ({ thinkingLevel: "low", thinkingBudgets: { low } })
    assert.deepStrictEqual(tokens("gemini-2.5-flash-lite", own(1)), config(512))
    assert.deepStrictEqual(tokens("gemini-2.5-pro", own(99_999)), config(32_768))
    assert.deepStrictEqual(tokens("gemini-2.5-pro", own(-1)), config(-1))
  })

  it("is reported where the model has another word, or none", () => {
    assert.deepStrictEqual(changes("openai", "gpt-5.1", { thinkingLevel: "minimal" }), [
      ["thinkingLevel", "minimal", "low"]
    ])
    assert.deepStrictEqual(changes("openai", "gpt-6-astra", { thinkingLevel: "off" }), [
      ["thinkingLevel", "off", "low"]
    ])
    assert.deepStrictEqual(changes("openai", "gpt-4.1", { thinkingLevel: "high" }), [
      ["thinkingLevel", "high", null]
    ])
    assert.deepStrictEqual(changes("acme", "m-1", { thinkingLevel: "low" }), [["thinkingLevel", "low", null]])
    assert.deepStrictEqual(changes("moonshot", "kimi-k2.7-code", { thinkingLevel: "off" }), [
      ["thinkingLevel", "off", null]
    ])
    assert.deepStrictEqual(
      changes("anthropic", "claude-opus-5", { thinkingLevel: "low", thinkingBudgets: { low: 2000 } }),
      [["thinkingBudgets", 2000, null]]
    )
    for (const [server, model, thinkingLevel] of [
      ["openai", "gpt-5.2", "off"],
      ["openai", "gpt-4.1", "off"],
      ["anthropic", "claude-opus-4-6", "off"],
      ["anthropic", "claude-opus-5", "off"],
      ["anthropic", "claude-opus-5", "xhigh"],
      ["anthropic", "claude-haiku-4-5", "max"],
      ["google", "gemini-2.5-flash", "off"]
    ] as const)
      assert.deepStrictEqual(changes(server, model, { thinkingLevel }), [], model)
  })

  it("that the model cannot switch off hides its thoughts", () => {
    const { thinking } = asked("openai", "gpt-6-astra", { thinkingLevel: "off" })
    assert.deepStrictEqual(thinking, { reasoning: { effort: "low" } })
    const claude = asked("anthropic", "claude-opus-5-5", { thinkingLevel: "off" }).thinking
    assert.deepStrictEqual(claude, { thinking: { type: "adaptive" }, output_config: { effort: "low" } })
  })

  it("goes to a server that is no vendor's in its own words, and else not at all", () => {
    const own: Server = {
      ...servers.acme,
      thinking: { kind: "effort", wire: { chat: { effort: "$" } }, levels: { low: "some" } }
    }
    const request = { model: "m", messages: [], tools: [], options: { thinkingLevel: "low" } } as const
    assert.deepStrictEqual(questionOf(own, request).thinking, { effort: "some" })
    assert.deepStrictEqual(questionOf(servers.acme, request).thinking, {})
  })
})

describe("sampling", () => {
  const both = { temperature: 0.5, topP: 0.9 }
  const dropped = [
    ["temperature", 0.5, null],
    ["topP", 0.9, null]
  ]

  it("is left out where the model refuses it", () => {
    assert.deepStrictEqual(changes("anthropic", "claude-opus-5", both), dropped)
    assert.deepStrictEqual(asked("anthropic", "claude-opus-5", both).options, {})
    assert.deepStrictEqual(changes("openai", "gpt-5-mini", both), dropped)
  })

  it("holds while the model does not think, where that is the rule", () => {
    assert.deepStrictEqual(changes("openai", "gpt-6-luna", both), dropped)
    assert.deepStrictEqual(changes("openai", "gpt-6-luna", { ...both, thinkingLevel: "off" }), [])
    assert.deepStrictEqual(changes("openai", "gpt-5.2", both), [])
    assert.deepStrictEqual(changes("openai", "gpt-5.2", { ...both, thinkingLevel: "low" }), dropped)
  })

  it("is one of two ways, where that is the rule", () => {
    const one = [["topP", 0.9, null]]
    assert.deepStrictEqual(changes("anthropic", "claude-opus-4-6", both), one)
    assert.deepStrictEqual(changes("anthropic", "claude-haiku-4-5", both), one)
    assert.deepStrictEqual(
      changes("anthropic", "claude-opus-4-6", { ...both, thinkingLevel: "low" }),
      dropped
    )
    const thinks = { temperature: 0.5, topP: 0.95, thinkingLevel: "low" } as const
    assert.deepStrictEqual(changes("anthropic", "claude-haiku-4-5", thinks), [["temperature", 0.5, null]])
  })

  it("is sent as it is where nothing is known", () => {
    assert.deepStrictEqual(changes("acme", "m-1", { ...both, stop: ["END"] }), [])
    assert.deepStrictEqual(changes("google", "gemini-4-argon", both), [])
  })
})

describe("limits", () => {
  it("of an answer are those of the model", () => {
    assert.deepStrictEqual(changes("anthropic", "claude-haiku-4-5", { maxTokens: 64_001 }), [
      ["maxTokens", 64_001, 64_000]
    ])
    assert.deepStrictEqual(changes("anthropic", "claude-haiku-4-5", { maxTokens: 64_000 }), [])
    assert.deepStrictEqual(changes("openai", "gpt-4o", { maxTokens: 15 }), [["maxTokens", 15, 16]])
  })

  it("leave out stop sequences where there are none", () => {
    const stop = { stop: ["END"] }
    const dropped = [["stop", ["END"], null]]
    assert.deepStrictEqual(changes("openai", "gpt-4o", stop), dropped)
    assert.deepStrictEqual(changes("chat", "gpt-5", stop), dropped)
    assert.deepStrictEqual(changes("chat", "gpt-4o", stop), [])
  })

  it("say when a prompt is not kept for long", () => {
    const long = { sessionId: "s", cacheRetention: "long" } as const
    assert.deepStrictEqual(changes("openai", "gpt-5", long), [["cacheRetention", "long", "short"]])
    assert.deepStrictEqual(changes("openai", "gpt-5.1", long), [])
  })
})

describe("tools", () => {
  const required = { toolChoice: "required" } as const
  const named = { toolChoice: { name: "f" } } as const

  it("cannot be forced on a model that refuses it", () => {
    assert.deepStrictEqual(changes("anthropic", "claude-opus-5-5", required, [tool]), [
      ["toolChoice", "required", null]
    ])
    assert.deepStrictEqual(changes("zai", "glm-5.3", named, [tool]), [["toolChoice", { name: "f" }, null]])
    assert.deepStrictEqual(changes("anthropic", "claude-opus-5", required, [tool]), [])
    assert.deepStrictEqual(changes("zai", "glm-5.3", named), [])
    assert.deepStrictEqual(changes("zai", "glm-5.3", { toolChoice: "none" }, [tool]), [])
  })

  it("that are forced switch thinking off where the model does not do both", () => {
    const { adjusted, options, thinking } = asked("deepseek", "deepseek-v4-pro", required, [tool])
    assert.deepStrictEqual(thinking, { thinking: { type: "disabled" } })
    assert.strictEqual(options.toolChoice, "required")
    assert.deepStrictEqual(
      adjusted.map(({ asked, option, sent }) => [option, asked, sent]),
      [["thinkingLevel", null, "off"]]
    )
    const budget = { ...required, thinkingLevel: "high" } as const
    assert.deepStrictEqual(asked("anthropic", "claude-haiku-4-5", budget, [tool]).thinking, {})
    assert.deepStrictEqual(changes("anthropic", "claude-haiku-4-5", required, [tool]), [])
    assert.deepStrictEqual(asked("moonshot", "kimi-k2.6", named, [tool]).thinking, {
      thinking: { type: "disabled" }
    })
    assert.deepStrictEqual(changes("moonshot", "kimi-k2.6", required, [tool]), [
      ["toolChoice", "required", null]
    ])
  })

  it("go by Chat Completions only without an effort, or not at all", () => {
    const high = { thinkingLevel: "high" } as const
    assert.deepStrictEqual(asked("chat", "gpt-5.6-sol", {}, [tool]).thinking, { reasoning_effort: "none" })
    assert.deepStrictEqual(asked("chat", "gpt-5.6-sol", {}).thinking, {})
    assert.deepStrictEqual(changes("chat", "gpt-5.6-sol", high, [tool]), [["thinkingLevel", "high", "none"]])
    assert.deepStrictEqual(asked("chat", "gpt-5.4", high, [tool]).thinking, {})
    assert.deepStrictEqual(changes("chat", "gpt-5.4", high, [tool]), [["thinkingLevel", "high", null]])
    assert.deepStrictEqual(changes("openai", "gpt-5.4", high, [tool]), [])
    const [tag, detail] = refused("chat", { model: "gpt-6-astra", tools: [tool] })
    assert.strictEqual(tag, "ModelNotSupported")
    assert.match(String(detail), /Responses API.*OpenAi in place of OpenAiCompatible/)
    assert.deepStrictEqual(refused("chat", { model: "gpt-6-astra" }), [])
    assert.strictEqual(refused("chat", { model: "gpt-5-pro" })[0], "ModelNotSupported")
    assert.deepStrictEqual(asked("openai", "gpt-5-chat-latest", {}, [tool]).tools, [])
    assert.deepStrictEqual(changes("openai", "gpt-5-chat-latest", {}, [tool]), [["tools", [tool.name], null]])
  })
})

describe("sampling", () => {
  it("is left out for a server that takes none of any model", () => {
    const request = { model: "claude-haiku-4-5", messages: [Message.user("Hi")], tools: [] }
    const options = { temperature: 0.5, maxTokens: 5 }
    const server = { ...servers.anthropic, withoutSampling: true }
    const question = questionOf(server, { ...request, options })
    assert.deepStrictEqual(question.options, { maxTokens: 5 })
    assert.deepStrictEqual(
      question.adjusted.map(({ asked, option, sent }) => [option, asked, sent]),
      [["temperature", 0.5, null]]
    )
  })
})

describe("content", () => {
  const sent = (server: Server, model: string, messages: Provider.ModelRequest["messages"]) =>
    questionOf(server, { model, messages, tools: [], options: {} })
  const textsOf = (messages: Provider.ModelRequest["messages"]) =>
    messages.map(({ content }) => content.map((block) => (block.type === "text" ? block.text : block.type)))

  it("that a model does not read becomes a note, and is reported (rows 6, 47)", () => {
    const messages = [
      Message.user([Message.text("Look"), Message.image("AAAA", "image/png")]),
      Message.toolResult({ id: "1", name: "shot" }, [Message.image("AAAA", "image/png")])
    ]
    const { adjusted, messages: noted } = sent(servers.deepseek, "deepseek-v4-pro", messages)
    const note = "[An image (image/png) is left out here: deepseek-v4-pro takes no images: it reads text.]"
    assert.deepStrictEqual(textsOf(noted), [[`Look\n\n${note}`], [note]])
    assert.deepStrictEqual(adjusted, [
      {
        option: "image",
        asked: "2 images",
        sent: null,
        reason: "deepseek-v4-pro takes no images: it reads text."
      }
    ])
    for (const [server, model] of [
      [servers.deepseek, "deepseek-flash"],
      [servers.acme, "m"]
    ] as const) {
      const question = sent(server, model, messages)
      assert.deepStrictEqual([question.messages, question.adjusted], [messages, []])
    }
  })

  it("that is left out is the same message each time, so that its encoding is kept", () => {
    const messages = [Message.user([Message.image("AAAA", "image/png")]), Message.user("Hi")]
    const adjust = adjuster(servers.deepseek)
    const [one, two] = [1, 2].map(() =>
      adjust({ model: "deepseek-v4-pro", messages, tools: [], options: {} })
    )
    if (one === undefined || two === undefined || isReason(one) || isReason(two)) return assert.fail()
    assert.strictEqual(one.messages[0], two.messages[0])
    assert.strictEqual(one.messages[1], messages[1])
  })

  it("that is an image is measured as the server does, and must be whole", () => {
    const reasonsFor = (server: Server, image: Message.Image) =>
      sent(server, "m", [Message.user([image])]).adjusted.map(({ reason }) => reason)
    const large = Message.image("A".repeat(5 * 1024 * 1024 + 4), "image/png")
    const limit = "it has 5242884 bytes in base64, and m takes images of at most 5242880."
    assert.deepStrictEqual(reasonsFor(servers.anthropic, large), [limit])
    assert.deepStrictEqual(reasonsFor({ id: "amazon-bedrock", endpoint: "converse" }, large), [limit])
    assert.deepStrictEqual(reasonsFor(servers.openai, large), [])
    const torn = Images.png(7, 5).slice(0, 60)
    for (const server of Object.values(servers)) {
      assert.deepStrictEqual(reasonsFor(server, Message.image(torn, "image/png")), [
        "it is not a whole png image: it is cut or damaged."
      ])
      assert.deepStrictEqual(
        reasonsFor(server, { type: "image", source: { url: `data:image/png;base64,${torn}` } }),
        ["it is not a whole png image: it is cut or damaged."]
      )
    }
    assert.deepStrictEqual(reasonsFor(servers.anthropic, Message.image(Images.png(9000, 1), "image/png")), [
      "it has 9000 × 1 pixels, and m takes images of at most 8000 a side."
    ])
  })

  it("that is an image of many may have fewer pixels at Anthropic", () => {
    const messages = Array.from({ length: 21 }, (_, index) =>
      Message.user([Message.image(Images.png(index === 3 ? 2500 : 7, 5), "image/png")])
    )
    const model = "claude-sonnet-4-5"
    const { adjusted, messages: noted } = sent(servers.anthropic, model, messages)
    assert.deepStrictEqual(
      adjusted.map(({ asked, reason }) => [asked, reason]),
      [["1 image", "it has more than 2000 pixels a side, and the request more than 20 images."]]
    )
    assert.strictEqual(noted[3]?.content[0]?.type, "text")
    assert.deepStrictEqual(sent(servers.anthropic, model, messages.slice(0, 20)).adjusted, [])
  })

  it("makes room in a request by leaving out its oldest files", () => {
    const file = (name: string): Message.File => ({
      type: "file",
      source: { data: "A".repeat(12 * 1024 * 1024), mediaType: "application/pdf" },
      name
    })
    const messages = ["a", "b", "c"].map((name) => Message.user([file(name)]))
    const { messages: noted } = sent(servers.anthropic, "claude-sonnet-4-5", messages)
    assert.deepStrictEqual(
      noted.map(({ content }) => content[0]?.type),
      ["text", "file", "file"]
    )
  })
})

describe("members of the vendor", () => {
  it("are read by the provider of their id alone", () => {
    const vendor = { openai: { seed: 1 }, anthropic: { top_k: 2 } }
    assert.deepStrictEqual(asked("openai", "gpt-4o", { vendor }).vendor, { seed: 1 })
    assert.deepStrictEqual(asked("acme", "m", { vendor }).vendor, {})
  })

  it("of another shape are refused, with the shape that is wanted", () => {
    const vendor: NonNullable<RunOptions.ModelOptions["vendor"]> = JSON.parse('{"store":true}')
    const [tag, detail] = refused("openai", { options: { vendor } })
    assert.strictEqual(tag, "InvalidRequest")
    assert.include(String(detail), 'vendor: { "openai": { "store": true } }')
  })
})

describe("a protocol of an application", () => {
  const rule: Models.Rule = {
    pattern: "^fast",
    maxOutput: 50,
    thinking: {
      kind: "effort",
      wire: { acme: { think: "$" } },
      levels: { low: "some", high: "much" }
    }
  }
  const protocol: Protocol = {
    name: "acme-lines",
    provider: "acme",
    title: "Acme's API",
    endpoint: "acme",
    strictTools: "closed",
    hostedTools: ["webSearch"],
    searchLacks: ["maxUses"],
    betas: (names, { headers, vendor }) => ({ headers, vendor: { ...vendor, flags: names } }),
    media: () => ({ length: 2 }),
    accepts: (_rule, request, changes) => {
      const { temperature = 0 } = changes.options
      if (temperature > 1) changes.set("temperature", 1, "Acme's API accepts no more.")
      return request.tools.length > 1
        ? new ProviderError.ModelNotSupported({ model: request.model, detail: "Acme's API takes one tool" })
        : request
    },
    encode: () => "",
    decoder: () => ({ step: () => true, end: () => undefined })
  }
  const server: Server = { id: "acme", protocol, own: [rule] }
  const request = (options: ModelOptions, tools: ReadonlyArray<Provider.ToolDefinition> = []) => ({
    model: "fast-1",
    messages: [Message.user("Hi")],
    tools,
    options
  })

  it("gets thinking, limits and strict tools as those of the package do", () => {
    const options: ModelOptions = {
      thinkingLevel: "max",
      maxTokens: 100,
      temperature: 1.5,
      hostedTools: [{ type: "webSearch", maxUses: 2 }, { type: "codeExecution" }],
      vendor: { acme: { betas: ["b1"] } }
    }
    const { adjusted, thinking, vendor } = questionOf(server, request(options, [{ ...tool, strict: true }]))
    assert.deepStrictEqual([thinking, vendor], [{ think: "much" }, { flags: ["b1"] }])
    assert.deepStrictEqual(
      adjusted.map(({ option, reason, sent }) => [option, sent, reason]),
      [
        ["hostedTools", null, "Acme's API has no such tool."],
        ["strict", null, "The schema of f has optional members, or takes members of any name."],
        ["temperature", 1, "Acme's API accepts no more."],
        ["hostedTools.webSearch.maxUses", null, "Acme's API has no such option."],
        ["maxTokens", 50, "The model answers with no more tokens."],
        ["thinkingLevel", "much", "The model does not know this level."]
      ]
    )
  })

  it("can refuse a request, and images of a size", () => {
    const refused = adjuster(server)(request({}, [tool, { ...tool, name: "g" }]))
    assert.strictEqual(isReason(refused) && refused._tag, "ModelNotSupported")
    const image = { ...request({}), messages: [Message.user([Message.image("AAAA", "image/png")])] }
    assert.strictEqual(questionOf(server, image).messages[0]?.content[0]?.type, "text")
  })
})

describe("an option that an API lacks", () => {
  it("is left out and reported", () => {
    const options = { seed: 1, logprobs: 2, store: true, previousResponseId: "r1", parallelToolCalls: false }
    const left = (server: keyof typeof servers) => changes(server, "m", options).map(([option]) => option)
    assert.deepStrictEqual(left("chat"), ["previousResponseId"])
    assert.deepStrictEqual(left("openai"), ["seed"])
    assert.deepStrictEqual(left("anthropic"), ["logprobs", "previousResponseId", "seed", "store"])
    assert.deepStrictEqual(left("google"), ["parallelToolCalls", "previousResponseId", "store"])
    assert.deepStrictEqual(changes("google", "m", { parallelToolCalls: true }), [])
  })

  it("may be one that a protocol of an application names", () => {
    const server = { id: "acme", protocol: "acme-chat", lacks: ["seed", "parallelToolCalls"] } as const
    const request = { model: "m", messages: [], tools: [] }
    const question = questionOf(server, {
      ...request,
      options: { seed: 1, topP: 0.5, parallelToolCalls: true }
    })
    assert.deepStrictEqual(question.options, { topP: 0.5, parallelToolCalls: true })
    assert.deepStrictEqual(question.adjusted, [
      { option: "seed", asked: 1, sent: null, reason: "The protocol acme-chat has no such option." }
    ])
  })

  it("may be a hosted tool, which the server may have all the same", () => {
    const hostedTools = [{ type: "webSearch" }, { type: "fileSearch", stores: ["s"] }] as const
    assert.deepStrictEqual(changes("anthropic", "m", { hostedTools }), [["hostedTools", "fileSearch", null]])
    assert.deepStrictEqual(changes("acme", "m", { hostedTools }), [
      ["hostedTools", "webSearch", null],
      ["hostedTools", "fileSearch", null]
    ])
    const question = questionOf(
      { id: "acme", endpoint: "chat", hostedTools: ["webSearch"] },
      { model: "m", messages: [], tools: [], options: { hostedTools } }
    )
    assert.deepStrictEqual(question.options.hostedTools, [{ type: "webSearch" }])
  })

  it("may be one that only some models of Anthropic take, or take in part", () => {
    const claude = (
      model: string,
      options: ModelOptions,
      tools: ReadonlyArray<Provider.ToolDefinition> = []
    ) => changes("anthropic", model, options, tools)
    assert.deepStrictEqual(claude("claude-opus-5", { serviceTier: "auto" }), [])
    assert.deepStrictEqual(claude("claude-opus-5", { serviceTier: "flex" }), [["serviceTier", "flex", null]])
    const screen = { type: "computerUse", width: 800, height: 600 } as const
    const hostedTools = [screen]
    const size = ["hostedTools.computerUse", { width: 800, height: 600 }, null]
    assert.deepStrictEqual(claude("claude-opus-4-6", { hostedTools }), [])
    assert.deepStrictEqual(claude("claude-opus-5", { hostedTools }), [size])
    assert.deepStrictEqual(claude("claude-3-5-haiku-latest", { hostedTools }), [
      ["hostedTools", "computerUse", null]
    ])
    const toolChoice = { name: "computer" }
    assert.deepStrictEqual(claude("claude-opus-5", { hostedTools, toolChoice }), [
      size,
      ["toolChoice", toolChoice, null]
    ])
    const domains = { allowedDomains: ["a.test"], blockedDomains: ["b.test"] }
    assert.deepStrictEqual(claude("claude-opus-5", { hostedTools: [{ type: "webSearch", ...domains }] }), [
      ["hostedTools.webSearch.blockedDomains", ["b.test"], null]
    ])
    const required = { toolChoice: "required", hostedTools: [{ type: "webSearch" }] } as const
    assert.deepStrictEqual(claude("claude-opus-5-5", required), [["toolChoice", "required", null]])
    const parameters = { type: "object", properties: {}, additionalProperties: false }
    const strict = [{ ...tool, parameters, strict: true }]
    assert.deepStrictEqual(claude("claude-opus-5", {}, strict), [])
    assert.deepStrictEqual(claude("claude-opus-4-20250514", {}, strict), [["strict", true, null]])
  })

  it("may be one that only some models of Google take, or take in part", () => {
    const google = (
      model: string,
      options: ModelOptions,
      tools: ReadonlyArray<Provider.ToolDefinition> = []
    ) => changes("google", model, options, tools)
    assert.deepStrictEqual(google("gemini-3-pro", { logprobs: 30, serviceTier: "auto" }), [
      ["serviceTier", "auto", null],
      ["logprobs", 30, 20]
    ])
    const screen = { type: "computerUse", width: 800, height: 600 } as const
    const search = { type: "webSearch", maxUses: 2 } as const
    const files = { type: "fileSearch", stores: ["s"] } as const
    const hostedTools = [screen, search, files]
    const part = ["hostedTools.webSearch.maxUses", 2, null]
    const coordinates = ["hostedTools.computerUse", { width: 800, height: 600 }, null]
    assert.deepStrictEqual(google("gemini-3-pro", { hostedTools }, [tool]), [coordinates, part])
    const left = (...types: ReadonlyArray<string>) => types.map((type) => ["hostedTools", type, null])
    assert.deepStrictEqual(google("gemini-2.0-flash", { hostedTools }), [
      ...left("computerUse", "fileSearch"),
      part
    ])
    const all = left("computerUse", "webSearch", "fileSearch")
    assert.deepStrictEqual(google("gemma-3", { hostedTools }), all)
    const withTools = [...left("computerUse"), ...left("webSearch", "fileSearch")]
    assert.deepStrictEqual(google("gemini-2.5-pro", { hostedTools }, [tool]), withTools)
    const onScreen = [...left("webSearch", "fileSearch"), coordinates]
    assert.deepStrictEqual(google("gemini-2.5-computer-use-preview", { hostedTools }, [tool]), onScreen)
    assert.deepStrictEqual(google("gemini-3-pro", { hostedTools, toolChoice: "none" }), all)
  })
})
