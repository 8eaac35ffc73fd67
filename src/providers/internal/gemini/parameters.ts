/**
 * The parts of a `generateContent` request besides the conversation.
 * https://ai.google.dev/api/generate-content, read in November 2026.
 */
import { memoize } from "effect/Function"
import type { ToolDefinition } from "../../../Provider.ts"
import type { ModelOptions } from "../../../RunOptions.ts"
import { generation, outputSchema } from "./api.ts"
import { type Dialect, hasScreen, screen } from "./hosted.ts"
import * as Json from "../json.ts"
import * as Members from "../members.ts"
import type { Question } from "../question.ts"

type Fields = Json.JsonObject

/** The tools of the agent as one entry of the list of tools. Google's own tools are further entries. */
export const declarations = (provider: string, tools: ReadonlyArray<ToolDefinition>): string =>
  `{"functionDeclarations":[${tools.map((tool) => Members.into(provider, tool, declaration(tool))).join(",")}]}`

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
export const parameters = (question: Question, dialect: Dialect, hasTools: boolean): Fields => {
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
export const isInFirstMessage = ({ rule }: Question): boolean => rule?.system === "firstMessage"

/** The system prompt, and before Gemini 3 the output schema, which a request with tools cannot have. */
export const instructions = (
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
