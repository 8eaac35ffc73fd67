/** The parts of a request that Chat Completions takes. */
import { ModelNotSupported, type Reason } from "../../../ProviderError.ts"
import type { ThinkingLevel } from "../../../RunOptions.ts"
import type { Accepted, Api, Asked } from "../../Protocol.ts"
import { inHeader } from "../betas.ts"
import type { Changes } from "../changes.ts"
import * as Json from "../json.ts"
import type { Rule } from "../models/rule.ts"
import { form } from "../openAiSchema.ts"
import { usually } from "../toolSchemas.ts"

const accepts = (rule: Rule | undefined, request: Asked, changes: Changes): Accepted | Reason => {
  const { level, model, tools, vendor } = request
  if (rule === undefined) return request
  const isHere = rule.endpoints?.includes("chat") ?? true
  if (!isHere || (tools.length > 0 && rule.tools === "responses")) {
    const verb = isHere ? "takes tools" : "answers"
    const detail = `${model} ${verb} by the Responses API only: use OpenAi in place of OpenAiCompatible, openai/${model} in the program`
    return new ModelNotSupported({ model, detail })
  }
  const hasTools = tools.length + Json.array(vendor["tools"]).length > 0
  return hasTools ? { tools, level: levelWithTools(rule, level, changes) } : request
}

/** The level that the model accepts with tools. */
const levelWithTools = (
  { tools }: Rule,
  level: ThinkingLevel | undefined,
  changes: Changes
): ThinkingLevel | undefined => {
  if (tools === "chatWithEffortNone") {
    const reason =
      "On Chat Completions the model takes tools only without thinking; the Responses API takes both."
    if (level !== "off") changes.report("thinkingLevel", level, "none", reason)
    return "off"
  }
  if (tools !== "chatWithoutEffort" || level === undefined || level === "off") return level
  const reason =
    "On Chat Completions the model takes tools only without an effort; the Responses API takes both."
  changes.report("thinkingLevel", level, null, reason)
  return undefined
}

export const api: Api = {
  title: "Chat Completions",
  endpoint: "chat",
  lacks: ["previousResponseId"],
  hostedTools: [],
  searchLacks: ["blockedDomains", "maxUses"],
  strictTools: "closed",
  parts: () => ["detail"],
  betas: inHeader("openai-beta"),
  toolSearch: false,
  form: usually(form),
  // Many servers of Chat Completions refuse both in one request.
  answersBySchema: (rule, { serves: { takesSchema = false, vendor }, tools }) =>
    rule?.structuredOutput ?? (takesSchema && (tools.length === 0 || vendor === "openai")),
  accepts
}
