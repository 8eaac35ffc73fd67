/**
 * Tools with schemas that were made up, in every language. No body has a schema that its vendor rejects, and arguments that the tool
 * takes, called by the names that the vendor was given, come back as they were and decode to themselves.
 */
import { Effect, Result, type Schema } from "effect"
import type { ModelEvent, Provider } from "effect-agent"
import { ReplyWriter } from "effect-agent/providers"
import * as JsonSchema from "../../src/internal/jsonSchema.ts"
import { anthropicMessages } from "../../src/providers/internal/anthropic/protocol.ts"
import { bedrockConverse } from "../../src/providers/internal/bedrock/protocol.ts"
import { googleGenerate } from "../../src/providers/internal/gemini/protocol.ts"
import { adjuster } from "../../src/providers/internal/adjust.ts"
import type { Question } from "../../src/providers/Protocol.ts"
import { common } from "../../src/providers/internal/openAiChat/compat.ts"
import { openAiChat } from "../../src/providers/internal/openAiChat/protocol.ts"
import { openAiResponses } from "../../src/providers/internal/openAiResponses/protocol.ts"
import { restorer } from "../../src/providers/internal/toolSchemas.ts"
import { isReason, type Protocol } from "../../src/providers/Protocol.ts"
import type { Chaos, Options } from "./Chaos.ts"
import { Random } from "./Random.ts"
import * as Making from "./schemas/making.ts"
import * as Rules from "./schemas/rules.ts"

/** `count` is per language. */
export const schemas: Chaos = {
  count: 2000,
  run: (options) => Effect.sync(() => judged(options))
}

export interface Language {
  readonly name: string
  readonly model: string
  readonly protocol: Protocol
  readonly rule: Rules.Rule
  /** The schema of the first tool of a body. */
  readonly schemaIn: (body: any) => Schema.Json | undefined
}

const chatSchema: Language["schemaIn"] = (body) => body.tools[0].function.parameters
const converseSchema: Language["schemaIn"] = (body) => body.toolConfig.tools[0].toolSpec.inputSchema.json

export const languages: ReadonlyArray<Language> = [
  {
    name: "openai-chat",
    model: "gpt-5.5",
    protocol: openAiChat("openai", common),
    rule: Rules.openAi,
    schemaIn: chatSchema
  },
  {
    name: "openai-chat with Gemini behind",
    model: "google/gemini-3-pro",
    protocol: openAiChat("gateway", { ...common, schemas: "openApi" }),
    rule: Rules.openApi,
    schemaIn: chatSchema
  },
  {
    name: "openai-responses",
    model: "gpt-5.5",
    protocol: openAiResponses("openai"),
    rule: Rules.openAi,
    schemaIn: (body) => body.tools[0].parameters
  },
  {
    name: "anthropic-messages",
    model: "claude-sonnet-4-5",
    protocol: anthropicMessages("anthropic"),
    rule: Rules.anthropic,
    schemaIn: (body) => body.tools[0].input_schema
  },
  {
    name: "google-generative",
    model: "gemini-3-pro-preview",
    protocol: googleGenerate("google"),
    rule: Rules.gemini,
    schemaIn: (body) => body.tools[0].functionDeclarations[0].parametersJsonSchema
  },
  {
    name: "bedrock-converse, Claude",
    model: "anthropic.claude-sonnet-4-5-20250929-v1:0",
    protocol: bedrockConverse("amazon-bedrock"),
    rule: Rules.anthropic,
    schemaIn: converseSchema
  },
  {
    name: "bedrock-converse, Nova",
    model: "amazon.nova-2-lite-v1:0",
    protocol: bedrockConverse("amazon-bedrock"),
    rule: Rules.nova,
    schemaIn: converseSchema
  }
]

const judged = ({ count, say, seed }: Options) => {
  const violations: Array<string> = []
  let renamed = 0
  let longest = 0
  for (const language of languages) {
    for (let at = 0; at < count; at++) {
      const made = Making.tool(new Random(seed + at))
      const started = performance.now()
      const { faults, hasNames } = tried(language, made)
      longest = Math.max(longest, performance.now() - started)
      if (hasNames) renamed++
      for (const fault of faults) violations.push(`${language.name}, seed ${seed + at}: ${fault}`)
    }
    say(`${count} schemas in ${language.name}`)
  }
  const figures = {
    languages: languages.length,
    "schemas with other names": renamed,
    "longest, in milliseconds": Math.round(longest)
  }
  return { figures, violations }
}

/** The schema that a server of this language is given for a tool, and the question that it is in. */
export const sentTo = (
  { model, protocol, schemaIn }: Language,
  tool: Provider.ToolDefinition
): { readonly question: Question; readonly sent: Schema.Json | undefined } | string => {
  const server = { protocol, serves: {}, find: () => undefined }
  const question = adjuster(server)({ model, messages: [], tools: [tool], options: {} })
  const body = isReason(question) ? question : protocol.encode(question)
  return isReason(question) || isReason(body)
    ? `no body: ${String(body)}`
    : { question, sent: question.tools.length === 0 ? undefined : schemaIn(JSON.parse(body)) }
}

const tried = (language: Language, { schema, value }: Making.Made) => {
  const { model, protocol, rule } = language
  const asked = sentTo(language, { name: "t", description: "T.", parameters: schema })
  if (typeof asked === "string") return { faults: [asked], hasNames: false }
  const { question, sent } = asked
  const faults = [...rule(sent)]
  const names = namesIn(sent)
  for (const given of [value(), value()]) {
    const reply = new ReplyWriter.ReplyWriter(protocol, {
      model,
      seed: "s",
      restore: restorer(question.tools)
    })
    reply.openCall("c", "t").write(JSON.stringify(called(names, given)))
    reply.finish({ stopReason: "toolUse" })
    const params = JSON.parse(rawArguments(reply.take()))
    const decoded = JsonSchema.decode(schema, params)
    if (Result.isFailure(decoded))
      faults.push(`${JSON.stringify(given)} does not decode: ${decoded.failure.join()}`)
    else if (JSON.stringify(decoded.success) !== JSON.stringify(given))
      faults.push(`${JSON.stringify(given)} came back as ${JSON.stringify(decoded.success)}`)
  }
  return { faults, hasNames: names.size > 0 }
}

const rawArguments = (events: ReadonlyArray<ModelEvent.ModelEvent>): string =>
  events.flatMap((event) => (event._tag === "ToolCallEnd" ? [event.rawArguments] : [])).join()

/** The names that the vendor was given, by those of the tool, as descriptions say it. */
const namesIn = (schema: any, names = new Map<string, string>()): Map<string, string> => {
  if (typeof schema !== "object" || schema === null) return names
  for (const [given, inner] of Object.entries<any>(schema.properties ?? {})) {
    const said = [inner, ...(inner?.anyOf ?? [])].map((part) => part?.description ?? "").join("\n")
    const own = /The tool calls it (".*")\.$/m.exec(said)?.[1]
    if (own !== undefined) names.set(JSON.parse(own), given)
  }
  for (const inner of Object.values(schema)) namesIn(inner, names)
  return names
}

const called = (names: ReadonlyMap<string, string>, value: Schema.Json): Schema.Json => {
  if (Array.isArray(value)) return value.map((item) => called(names, item))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [names.get(name) ?? name, called(names, item)])
  )
}
