/** The abilities of models by their rules: requests that a model cannot serve, and output schemas. */
import type { ModelRequest, Provider } from "../../Provider.ts"
import type { Reason } from "../../ProviderError.ts"
import { ModelNotSupported, UnsupportedContent } from "../../ProviderError.ts"
import * as Family from "../bedrock/family.ts"
import * as Models from "../Models.ts"
import { generation } from "../gemini/generation.ts"
import type { Endpoint, Rule } from "../models/rule.ts"
import * as ToolSearch from "./toolSearch.ts"

/** A server, and whether it promises to answer by an output schema, which only Chat Completions leaves open. */
export interface Schemas extends Models.Served {
  readonly endpoint?: Endpoint | undefined
  readonly takesSchema?: boolean | undefined
}

/** The abilities of a provider. */
export const of = (
  server: Schemas & ToolSearch.Server
): Pick<Provider["Service"], "structuredOutput" | "toolSearch"> => ({
  structuredOutput: structuredOutput(server),
  toolSearch: ToolSearch.served(server)
})

const ownVendors: ReadonlySet<Models.Vendor | undefined> = new Set(["anthropic", "openai", "google"])

/** Makes a function that returns whether the model of a request answers by an output schema. */
export const structuredOutput =
  (server: Schemas) =>
  ({ model, tools }: Pick<ModelRequest, "model" | "tools">): boolean => {
    const { endpoint, takesSchema = false, vendor } = server
    const hasTools = tools.length > 0
    // Before Gemini 3, a request cannot have both tools and an output schema.
    if (endpoint === "generateContent" && hasTools && generation(model) < 3) return false
    const known = Models.find(model, server)?.structuredOutput
    if (endpoint === "converse") return known ?? Family.takesSchema(model)
    if (endpoint === undefined) return known ?? takesSchema
    // Many servers of Chat Completions refuse both in one request.
    if (endpoint === "chat") return known ?? (takesSchema && (!hasTools || vendor === "openai"))
    return known ?? ownVendors.has(vendor)
  }

/** Why the model cannot serve the request, `undefined` if it can. */
export const missing = (
  endpoint: Endpoint | undefined,
  rule: Rule | undefined,
  { messages, model, tools }: ModelRequest
): Reason | undefined => {
  if (rule === undefined) return undefined
  const isAtEndpoint = endpoint === undefined || (rule.endpoints?.includes(endpoint) ?? true)
  if (endpoint === "chat" && (!isAtEndpoint || (tools.length > 0 && rule.tools === "responses"))) {
    const verb = isAtEndpoint ? "takes tools" : "answers"
    return unsupported(
      model,
      `${model} ${verb} by the Responses API only: use OpenAi in place of OpenAiCompatible, openai/${model} in the program`
    )
  }
  return rule.input === undefined || rule.isSecondHand === true
    ? undefined
    : unreadable(model, rule.input, messages)
}

const unsupported = (model: string, detail: string): Reason => new ModelNotSupported({ model, detail })

const unreadable = (
  model: string,
  input: NonNullable<Rule["input"]>,
  messages: ModelRequest["messages"]
): Reason | undefined => {
  if (input.includes("image") && input.includes("pdf")) return undefined
  for (const { content } of messages) {
    for (const block of content) {
      if (block.type === "image" && !input.includes("image"))
        return new UnsupportedContent({ detail: `${model} takes no images: it reads ${input.join(", ")}` })
      const isPdf =
        block.type === "file" && "data" in block.source && block.source.mediaType === "application/pdf"
      if (isPdf && !input.includes("pdf"))
        return new UnsupportedContent({ detail: `${model} takes no PDF: it reads ${input.join(", ")}` })
    }
  }
  return undefined
}
