import { assert, describe, it } from "@effect/vitest"
import { Message, type Provider, type RunOptions } from "effect-agent"
import { anthropicMessages } from "../../src/providers/internal/anthropic/protocol.ts"
import { bedrockConverse } from "../../src/providers/internal/bedrock/protocol.ts"
import { googleGenerate } from "../../src/providers/internal/gemini/protocol.ts"
import type { Question } from "../../src/providers/Protocol.ts"
import type { HostedTool, SearchMember } from "../../src/providers/Deployment.ts"
import { vendorAtBedrock } from "../../src/providers/internal/models/rule.ts"
import { common } from "../../src/providers/internal/openAiChat/compat.ts"
import { openAiChat } from "../../src/providers/internal/openAiChat/protocol.ts"
import { openAiResponses } from "../../src/providers/internal/openAiResponses/protocol.ts"
import type { Protocol } from "../../src/providers/Protocol.ts"
import { type Endpoint, questionOf, type Server } from "./asked.ts"

interface Wire {
  readonly protocol: Protocol
  readonly server: Omit<Server, "id" | "endpoint">
  /** A model that takes all options of the API. */
  readonly model: string
  /** A model that takes all hosted tools (default: `model`). */
  readonly hostModel?: string
  readonly serviceTier: string
}

const chat = {
  protocol: openAiChat("acme", common),
  server: { vendor: "openai", takesSchema: true, searchLacks: ["allowedDomains"] },
  model: "gpt-4o",
  serviceTier: "flex"
} as const

const wires: Readonly<Record<Endpoint | "plugin", Wire>> = {
  chat,
  // As OpenRouter searches.
  plugin: {
    ...chat,
    protocol: openAiChat("acme", { ...common, webSearch: "plugin" }),
    server: { ...chat.server, searchLacks: ["location"] }
  },
  responses: {
    protocol: openAiResponses("acme"),
    server: { vendor: "openai" },
    model: "gpt-4o",
    serviceTier: "flex"
  },
  messages: {
    protocol: anthropicMessages("acme"),
    server: { vendor: "anthropic" },
    model: "claude-sonnet-4-5",
    serviceTier: "standard_only"
  },
  generateContent: {
    protocol: googleGenerate("acme"),
    server: { vendor: "google" },
    model: "gemini-3-pro-preview",
    serviceTier: "flex"
  },
  converse: {
    protocol: bedrockConverse("acme"),
    server: { vendor: vendorAtBedrock },
    model: "us.anthropic.claude-opus-4-6-v1",
    hostModel: "us.amazon.nova-2-lite-v1:0",
    serviceTier: "flex"
  }
}

/** A value of each option that no API has as its default. */
const samples = ({
  serviceTier
}: Wire): Required<Omit<Question["options"], "cacheRetention" | "hostedTools" | "sessionId">> => ({
  maxTokens: 100,
  temperature: 0.5,
  topP: 0.96,
  stop: ["END"],
  toolChoice: "required",
  output: { name: "o", schema: { type: "object", properties: {}, additionalProperties: false } },
  parallelToolCalls: false,
  serviceTier,
  seed: 1,
  logprobs: 1,
  store: true,
  previousResponseId: "r1"
})

const hosted: Readonly<Record<HostedTool, RunOptions.HostedToolDefinition>> = {
  webSearch: { type: "webSearch" },
  codeExecution: { type: "codeExecution" },
  fileSearch: { type: "fileSearch", stores: ["s"] },
  computerUse: { type: "computerUse", width: 800, height: 600 }
}

const members: Required<Record<SearchMember, object>> = {
  maxUses: { maxUses: 2 },
  allowedDomains: { allowedDomains: ["a.test"] },
  blockedDomains: { blockedDomains: ["b.test"] },
  location: { location: { country: "NO" } }
}

/** On Chat Completions, only some servers search. */
const searching = { hostedTools: ["webSearch"] } as const

const closed: Provider.ToolDefinition = {
  name: "f",
  description: "F.",
  parameters: { type: "object", properties: {}, additionalProperties: false }
}
const open: Provider.ToolDefinition = { ...closed, parameters: { type: "object", properties: {} } }

describe.each(Object.entries(wires))("by %s", (_name, wire) => {
  const { hostedTools: has = [], lacks = [], strictTools } = wire.protocol
  const searchLacks = [...(wire.protocol.searchLacks ?? []), ...(wire.server.searchLacks ?? [])]
  const ask = (request: Partial<Provider.ModelRequest>, server: Partial<Server> = {}) => {
    const question = questionOf(
      { ...wire.server, ...server, id: "acme", protocol: wire.protocol },
      { model: wire.model, messages: [Message.user("Hi")], tools: [closed], options: {}, ...request }
    )
    const body = wire.protocol.encode(question)
    assert.isString(body)
    return { body, reported: question.adjusted.map(({ option }) => option) }
  }
  const plain = ask({})

  /** The option takes effect, or it leaves no trace but its report. */
  const check = (option: string, isTaken: boolean, sent: typeof plain, usual = plain) => {
    assert.strictEqual(sent.body !== usual.body, isTaken, `${option} in the body`)
    assert.strictEqual(sent.reported.includes(option), !isTaken, `${option} in adjusted`)
  }

  it.each(Object.entries(samples(wire)))("%s takes effect or is reported", (option, value) =>
    check(option, !lacks.some((lacked) => lacked === option), ask({ options: { [option]: value } }))
  )

  const host = { model: wire.hostModel ?? wire.model, tools: wire.hostModel === undefined ? [closed] : [] }

  it.each(Object.values(hosted))("$type takes effect or is reported", (tool) => {
    const isTaken = has.includes(tool.type)
    const sent = ask({ ...host, options: { hostedTools: [tool] } })
    check("hostedTools", isTaken, sent, ask(host))
  })

  it("members of a hosted tool by provider id are sent", () => {
    const own = { ...hosted.webSearch, vendor: { acme: { x: 1 }, other: { y: 2 } } }
    const { body } = ask({ ...host, options: { hostedTools: [own] } }, searching)
    assert.include(body, '"x":1')
    assert.notInclude(body, '"y":2')
  })

  it.each(Object.entries(members))("%s of a search takes effect or is reported", (member, value) => {
    const search = ask({ ...host, options: { hostedTools: [hosted.webSearch] } }, searching)
    const sent = ask({ ...host, options: { hostedTools: [{ type: "webSearch", ...value }] } }, searching)
    const isTaken = !searchLacks.some((lacked) => lacked === member)
    check(`hostedTools.webSearch.${member}`, isTaken, sent, search)
  })

  it("strict takes effect or is reported", () => {
    const strict = (tool: Provider.ToolDefinition) => ask({ tools: [{ ...tool, strict: true }] })
    check("strict", true, strict(closed))
    check("strict", strictTools === "all", strict(open), ask({ tools: [open] }))
  })
})
