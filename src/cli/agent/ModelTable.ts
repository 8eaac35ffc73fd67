/** The facts of the model table about the models of a provider. */
import * as Models from "../../providers/Models.ts"

/** The vendors of the model table, by the id of the provider where it differs. */
const vendors: Readonly<Record<string, string>> = {
  kimi: "moonshot",
  "openai-chat": "openai",
  "xai-chat": "xai"
}

/** The vendor of a provider in the table. */
export const vendorOf = (provider: string): string => vendors[provider] ?? provider

/** The rule of a model. A provider without rules of its own serves the models of others. */
export const ruleOf = (provider: string, model: string): Models.Rule | undefined => {
  const vendor = vendorOf(provider)
  const isGateway = !Models.rules.some((rule) => rule.vendor === vendor)
  return Models.find(model, { id: provider, vendor, isGateway })
}
