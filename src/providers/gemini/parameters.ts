/**
 * The parts of a `generateContent` request besides the conversation.
 * https://ai.google.dev/api/generate-content, read in November 2026.
 */
import { memoize } from "effect/Function"
import type { ToolDefinition } from "../../Provider.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import { toParameters } from "./schema.ts"
import { generation } from "./generation.ts"
import * as Json from "../internal/json.ts"
import type { Question } from "../internal/question.ts"

type Fields = Readonly<Record<string, unknown>>

/** The tools of the agent as one entry of the list of tools. Google's own tools are further entries. */
export const declarations = (tools: ReadonlyArray<ToolDefinition>): string =>
  `{"functionDeclarations":${listed(tools)}}`

const toDeclaration = ({ description, name, parameters }: ToolDefinition): Fields =>
  defined({ name, description, parameters: toParameters(parameters) })

const listed = Json.listOf(memoize((tool: ToolDefinition) => Json.encode(toDeclaration(tool))))

/**
 * The members of the body besides the contents and the tools. Vendor options go where the API has them: `{seed:
 * 7}` into the generation config, `{safetySettings: […]}` into the body.
 */
export const parameters = (question: Question, hasTools: boolean): Fields => {
  const { model, options, system, thinking, tools } = question
  const { contents: _contents, generationConfig, toolConfig, tools: _tools, ...vendor } = question.vendor
  // Before Gemini 3, a request cannot have both tools and an output schema.
  const inPrompt = hasTools && generation(model) < 3
  const { configured, rest } = divided(vendor)
  const config = defined({
    temperature: options.temperature,
    topP: options.topP,
    maxOutputTokens: options.maxTokens,
    stopSequences: options.stop,
    ...Json.object(thinking["generationConfig"]),
    ...(inPrompt ? {} : toOutput(options.output)),
    ...configured,
    ...Json.object(generationConfig)
  })
  const instructions = [system ?? "", inPrompt ? toInstruction(options.output) : ""].filter(
    (text) => text !== ""
  )
  return defined({
    systemInstruction:
      instructions.length === 0 ? undefined : { parts: instructions.map((text) => ({ text })) },
    generationConfig: unlessEmpty(config),
    toolConfig: toToolConfig(
      tools.length === 0 ? undefined : options.toolChoice,
      Json.object(toolConfig) ?? {}
    ),
    ...rest
  })
}

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
  output === undefined ? {} : { responseMimeType: "application/json", responseJsonSchema: output.schema }

const toInstruction = (output: ModelOptions["output"]): string =>
  output === undefined
    ? ""
    : `Give your final answer as one JSON value, with nothing around it, of this JSON Schema:\n${JSON.stringify(output.schema)}`

const toToolConfig = (choice: ModelOptions["toolChoice"], own: Json.JsonObject): Fields | undefined => {
  const calling = { ...toCalling(choice), ...Json.object(own["functionCallingConfig"]) }
  return unlessEmpty(defined({ ...own, functionCallingConfig: unlessEmpty(calling) }))
}

const toCalling = (choice: ModelOptions["toolChoice"]): Fields => {
  if (choice === undefined) return {}
  return typeof choice === "object"
    ? { mode: "ANY", allowedFunctionNames: [choice.name] }
    : { mode: modes[choice] }
}

const modes = { auto: "AUTO", none: "NONE", required: "ANY" } as const

const unlessEmpty = (fields: Fields): Fields | undefined =>
  Object.keys(fields).length === 0 ? undefined : fields

const defined = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
