/**
 * Encodes requests for Gemini's `generateContent`. https://ai.google.dev/api/generate-content, read in November
 * 2026.
 */
import { memoize } from "effect/Function"
import type * as Message from "../../../Message.ts"
import type { ToolDefinition } from "../../../Provider.ts"
import type { Reason } from "../../../ProviderError.ts"
import type { ModelOptions } from "../../../RunOptions.ts"
import { isReason, type Question } from "../../Protocol.ts"
import * as Json from "../json.ts"
import { into } from "../writing.ts"
import { type Dialect, declared, generation, hasScreen, outputSchema, screen, toHosted } from "./api.ts"
import { type Encoded, encodeMessage, encodeResult } from "./messages.ts"

type Encode = (question: Question) => string | Reason

/** Encodes bodies for one provider. Encodes each message once for each model, and each tool once. */
export const encoder = (provider: string, dialect: Dialect = {}): Encode => {
  const byModel = new Map<string, (message: Message.ModelMessage) => Encoded | Reason>()
  return (question) => {
    const { model, options, vendor } = question
    const messageOf =
      byModel.get(model) ?? memoize(encodeMessage(provider, model, dialect.isVertexAi === true))
    byModel.set(model, messageOf)
    const own = declared(question)
    const tools = [
      ...(own.length === 0 ? [] : [declarations(provider, own)]),
      ...toHosted(provider, options.hostedTools ?? []),
      ...Json.array(vendor["tools"]).map(Json.encode)
    ]
    const first = isInFirstMessage(question) ? instructions(question, tools.length > 0) : []
    const contents = encodeContents(provider, model, question.messages, messageOf, first)
    if (typeof contents !== "string") return contents
    const members = [
      "contents" in vendor ? "" : `"contents":${contents}`,
      tools.length === 0 ? "" : `"tools":[${tools.join(",")}]`,
      Json.encode(parameters(question, dialect, tools.length > 0)).slice(1, -1)
    ]
    return `{${members.filter((member) => member !== "").join(",")}}`
  }
}

/**
 * Encodes the requests that count tokens: https://ai.google.dev/api/tokens. That of Vertex AI has the members of a request for
 * an answer, without those that no token depends on.
 */
export const counter =
  (encode: Encode, { isVertexAi = false }: Dialect): Encode =>
  (question) => {
    const body = encode(question)
    if (isReason(body)) return body
    if (!isVertexAi) {
      const model = Json.encode(question.model.includes("/") ? question.model : `models/${question.model}`)
      return `{"generateContentRequest":{"model":${model},${body.slice(1)}}`
    }
    const { contents, generationConfig, systemInstruction, tools } = Json.object(Json.parse(body)) ?? {}
    return Json.encode({ contents, generationConfig, systemInstruction, tools })
  }

// ───────────────────────── Contents

const encodeContents = (
  provider: string,
  model: string,
  messages: ReadonlyArray<Message.ModelMessage>,
  messageOf: (message: Message.ModelMessage) => Encoded | Reason,
  first: ReadonlyArray<object>
): string | Reason => {
  const turns = new Turns()
  for (const part of first) turns.add("user", JSON.stringify(part))
  let attached: Array<string> = []
  let calls: Encoded["calls"] = new Map()
  for (const message of messages) {
    const call = message.role === "toolResult" ? calls.get(message.toolCallId) : undefined
    const isAction = message.role === "toolResult" && call?.name !== undefined
    const encoded = isAction ? encodeResult(provider, model, message, call) : messageOf(message)
    if (isReason(encoded)) return encoded
    if (message.role === "toolResult") {
      const id = call?.id === undefined ? "" : `"id":${Json.encode(call.id)},`
      turns.add("user", `{"functionResponse":{${id}${encoded.json}}}`)
      attached.push(encoded.attached)
    } else {
      for (const parts of attached) turns.add("user", parts)
      attached = []
      turns.add(message.role === "user" ? "user" : "model", encoded.json)
      if (message.role === "assistant") calls = encoded.calls
    }
  }
  for (const parts of attached) turns.add("user", parts)
  return turns.end()
}

/** Roles alternate, starting with the user, so consecutive messages of one role become one content. */
class Turns {
  private readonly contents: Array<string> = []
  private parts: Array<string> = []
  private role: "user" | "model" = "user"

  add(role: "user" | "model", parts: string): void {
    if (parts === "") return
    if (role !== this.role) this.close()
    this.role = role
    this.parts.push(parts)
  }

  end(): string {
    this.close()
    return `[${this.contents.join(",")}]`
  }

  private close(): void {
    if (this.parts.length > 0) this.contents.push(content(this.role, this.parts.join(",")))
    else if (this.contents.length === 0) this.contents.push(content("user", opening))
    this.parts = []
  }
}

const content = (role: string, parts: string): string => `{"role":"${role}","parts":[${parts}]}`
const opening = JSON.stringify({ text: "Continue." })

// ───────────────────────── Parameters

// The parts of a `generateContent` request besides the conversation.
// https://ai.google.dev/api/generate-content, read in November 2026.

type Fields = Json.JsonObject

/** The tools of the agent as one entry of the list of tools. Google's own tools are further entries. */
const declarations = (provider: string, tools: ReadonlyArray<ToolDefinition>): string =>
  `{"functionDeclarations":[${tools.map((tool) => into(provider, tool, declaration(tool))).join(",")}]}`

const toDeclaration = ({ description, name, parameters }: ToolDefinition): Fields =>
  Json.defined({ name, description, parametersJsonSchema: isEmpty(parameters) ? undefined : parameters })

/** Whether a function has no parameters, for which Gemini wants no schema. */
const isEmpty = (schema: Json.Json): boolean => {
  if (!Json.isObject(schema)) return true
  const { $schema: _, additionalProperties, properties, required, type: __, ...rest } = schema
  return (
    Object.keys(rest).length === 0 &&
    Object.keys(Json.object(properties) ?? {}).length === 0 &&
    !Json.isObject(additionalProperties) &&
    Json.array(required).length === 0
  )
}

const declaration = memoize((tool: ToolDefinition) => Json.encode(toDeclaration(tool)))

/**
 * The members of the body besides the contents and the tools. Vendor options go where the API has them: `{seed:
 * 7}` into the generation config, `{safetySettings: […]}` into the body.
 */
const parameters = (question: Question, dialect: Dialect, hasTools: boolean): Fields => {
  const { model, options } = question
  const { contents: _contents, generationConfig, toolConfig, tools: _tools, ...vendor } = question.vendor
  // Before Gemini 3, a request cannot have both tools and an output schema.
  const inPrompt = hasTools && generation(model) < 3
  const { configured, rest } = divided(vendor)
  const parts = isInFirstMessage(question) ? [] : instructions(question, hasTools)
  return Json.defined({
    systemInstruction: parts.length === 0 ? undefined : { parts },
    generationConfig: unlessEmpty({
      ...toConfig(question, inPrompt),
      ...configured,
      ...Json.object(generationConfig)
    }),
    toolConfig: toToolConfig(question, dialect, Json.object(toolConfig) ?? {}),
    serviceTier: options.serviceTier,
    ...rest
  })
}

const toConfig = ({ options, thinking }: Question, inPrompt: boolean): Fields => {
  const { logprobs } = options
  return Json.defined({
    temperature: options.temperature,
    topP: options.topP,
    maxOutputTokens: options.maxTokens,
    stopSequences: options.stop,
    seed: options.seed,
    responseLogprobs: logprobs === undefined ? undefined : true,
    logprobs: logprobs === 0 ? undefined : logprobs,
    ...Json.object(thinking["generationConfig"]),
    ...(inPrompt ? {} : toOutput(options.output))
  })
}

/** Whether the model takes instructions only as the beginning of the conversation. */
const isInFirstMessage = ({ rule }: Question): boolean => rule?.system === "firstMessage"

/** The system prompt, and before Gemini 3 the output schema, which a request with tools cannot have. */
const instructions = (
  { model, options, system = "" }: Question,
  hasTools: boolean
): ReadonlyArray<{ readonly text: string }> =>
  [system, hasTools && generation(model) < 3 ? toInstruction(options.output) : ""].flatMap((text) =>
    text === "" ? [] : [{ text }]
  )

const divided = (vendor: Json.JsonObject): { readonly configured: Fields; readonly rest: Fields } => {
  const entries = Object.entries(vendor)
  return {
    configured: Object.fromEntries(entries.filter(([name]) => configFields.has(name))),
    rest: Object.fromEntries(entries.filter(([name]) => !configFields.has(name)))
  }
}

/** https://ai.google.dev/api/generate-content#v1beta.GenerationConfig */
const configFields: ReadonlySet<string> = new Set([
  "audioTimestamp",
  "candidateCount",
  "enableAffectiveDialog",
  "enableEnhancedCivicAnswers",
  "frequencyPenalty",
  "imageConfig",
  "logprobs",
  "maxOutputTokens",
  "mediaResolution",
  "presencePenalty",
  "responseFormat",
  "responseJsonSchema",
  "responseLogprobs",
  "responseMimeType",
  "responseModalities",
  "responseSchema",
  "routingConfig",
  "seed",
  "speechConfig",
  "stopSequences",
  "temperature",
  "thinkingConfig",
  "topK",
  "topP"
])

const toOutput = (output: ModelOptions["output"]): Fields =>
  output === undefined
    ? {}
    : { responseMimeType: "application/json", responseJsonSchema: outputSchema(output) }

const toInstruction = (output: ModelOptions["output"]): string =>
  output === undefined
    ? ""
    : `Give your final answer as one JSON value, with nothing around it, of this JSON Schema:\n${JSON.stringify(output.schema)}`

const toToolConfig = (
  { options, tools }: Question,
  { isVertexAi }: Dialect,
  own: Json.JsonObject
): Fields | undefined => {
  const { hostedTools = [], toolChoice } = options
  const isMixed = hostedTools.some(({ type }) => type !== "computerUse") && tools.length > 0
  const isExact = isMixed || tools.some(({ strict }) => strict === true)
  const calling = {
    ...(tools.length === 0 ? {} : toCalling(toolChoice, isExact, hasScreen(options) ? screen : undefined)),
    ...Json.object(own["functionCallingConfig"])
  }
  return unlessEmpty(
    Json.defined({
      ...(isMixed && !isVertexAi ? { includeServerSideToolInvocations: true } : {}),
      ...own,
      functionCallingConfig: unlessEmpty(calling)
    })
  )
}

/** `isExact`: the model makes the arguments of its calls match their schemas, as it does anyway where it must call a tool. */
const toCalling = (
  choice: ModelOptions["toolChoice"],
  isExact: boolean,
  forScreen: string | undefined
): Fields => {
  if (typeof choice === "object")
    return { mode: "ANY", ...(choice.name === forScreen ? {} : { allowedFunctionNames: [choice.name] }) }
  if (isExact && (choice === undefined || choice === "auto")) return { mode: "VALIDATED" }
  return choice === undefined ? {} : { mode: modes[choice] }
}

const modes = { auto: "AUTO", none: "NONE", required: "ANY" } as const

const unlessEmpty = (fields: Fields): Fields | undefined =>
  Object.keys(fields).length === 0 ? undefined : fields
