/** The abilities of models by their rules: requests that a model cannot serve, and output schemas. */
import type { ModelRequest, Provider } from "../../Provider.ts"
import type { Reason } from "../../ProviderError.ts"
import { ModelNotSupported } from "../../ProviderError.ts"
import * as Family from "./bedrock/family.ts"
import * as Models from "../Models.ts"
import { generation } from "./gemini/generation.ts"
import type { Endpoint, Rule } from "./models/rule.ts"
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
  { model, tools }: ModelRequest
): Reason | undefined => {
  if (rule === undefined || endpoint !== "chat") return undefined
  const isAtEndpoint = rule.endpoints?.includes(endpoint) ?? true
  if (isAtEndpoint && (tools.length === 0 || rule.tools !== "responses")) return undefined
  const verb = isAtEndpoint ? "takes tools" : "answers"
  const detail = `${model} ${verb} by the Responses API only: use OpenAi in place of OpenAiCompatible, openai/${model} in the program`
  return new ModelNotSupported({ model, detail })
}
