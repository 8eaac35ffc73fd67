/**
 * The conversion of a request to the options of a call.
 */
import type {
  LanguageModelV3CallOptions,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4ProviderTool,
  LanguageModelV4Prompt
} from "@ai-sdk/provider"
import * as Predicate from "effect/Predicate"
import type { ModelRequest, ToolDefinition } from "../../Provider.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import * as Metadata from "./Metadata.ts"
import * as Version3 from "./Version3.ts"

/** A tool of the vendor, as the packages make them: `openai.tools.webSearch()`. */
export interface ProviderTool {
  /** The kind of the tool. */
  readonly type: "provider"
  /** The id of the tool, such as `"openai.web_search"`. */
  readonly id: `${string}.${string}`
  /** The settings of the tool. */
  readonly args: Record<string, unknown>
}

/** Tools of the vendor, by name. */
export type ProviderTools = Readonly<Record<string, ProviderTool>>
type Schema7 = LanguageModelV4FunctionTool["inputSchema"]

/** The options that both versions have. */
type Shared = Omit<LanguageModelV3CallOptions, "prompt"> &
  Omit<LanguageModelV4CallOptions, "prompt" | "reasoning">

/** Converts a request for a model of version 4. */
export const version4 = (
  request: ModelRequest,
  prompt: LanguageModelV4Prompt,
  providerTools: ProviderTools,
  abortSignal: AbortSignal
): LanguageModelV4CallOptions => {
  const { thinkingLevel } = request.options
  return {
    prompt,
    ...shared(request, providerTools, abortSignal),
    ...(thinkingLevel === undefined ? {} : { reasoning: thinkingLevel === "off" ? "none" : thinkingLevel })
  }
}

/** Converts a request for a model of version 3, which has no thinking level. */
export const version3 = (
  request: ModelRequest,
  prompt: LanguageModelV4Prompt,
  providerTools: ProviderTools,
  abortSignal: AbortSignal
): LanguageModelV3CallOptions => ({
  prompt: Version3.promptOf(prompt),
  ...shared(request, providerTools, abortSignal)
})

const shared = (
  { options, tools }: ModelRequest,
  providerTools: ProviderTools,
  abortSignal: AbortSignal
): Shared => {
  const { headers, maxTokens, output, seed, stop, temperature, topP, vendor } = options
  return {
    abortSignal,
    ...(headers === undefined ? {} : { headers }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(seed === undefined ? {} : { seed }),
    ...(stop === undefined ? {} : { stopSequences: [...stop] }),
    ...toolsOf(tools, providerTools, options),
    ...(output === undefined
      ? {}
      : { responseFormat: { type: "json", name: output.name, schema: schemaOf(output.schema) } }),
    ...(Metadata.isMetadata(vendor) ? { providerOptions: vendor } : {})
  }
}

/** A tool of the vendor takes the place of a tool of the run that has its name. */
const toolsOf = (
  definitions: ReadonlyArray<ToolDefinition>,
  providerTools: ProviderTools,
  { toolChoice = "auto" }: ModelOptions
): Pick<Shared, "tools" | "toolChoice"> => {
  const tools: Array<LanguageModelV4FunctionTool | LanguageModelV4ProviderTool> = [
    ...definitions.filter(({ name }) => !Object.hasOwn(providerTools, name)).map(toolOf),
    ...Object.entries(providerTools).map(([name, { args, id, type }]) => ({ type, id, name, args }))
  ]
  if (tools.length === 0) return {}
  return {
    tools,
    toolChoice:
      typeof toolChoice === "string" ? { type: toolChoice } : { type: "tool", toolName: toolChoice.name }
  }
}

const toolOf = ({
  description,
  inputExamples,
  name,
  parameters,
  strict,
  vendor
}: ToolDefinition): LanguageModelV4FunctionTool => ({
  type: "function",
  name,
  description,
  inputSchema: schemaOf(parameters),
  ...(strict === undefined ? {} : { strict }),
  ...(inputExamples === undefined
    ? {}
    : { inputExamples: inputExamples.map((input) => ({ input: { ...input } })) }),
  ...Metadata.ofVendor(vendor)
})

const schemaOf = (schema: unknown): Schema7 => (isSchema(schema) ? schema : { type: "object" })

const isSchema = (schema: unknown): schema is Schema7 => Predicate.isObject(schema)
