/** The parts of a request that the Responses API takes. */
import type { Api } from "../../Protocol.ts"
import { inHeader } from "../betas.ts"
import { form } from "../openAiSchema.ts"
import { usually } from "../toolSchemas.ts"

const minOutput = 16

export const api: Api = {
  title: "The Responses API",
  endpoint: "responses",
  lacks: ["seed", "stop"],
  hostedTools: ["webSearch", "codeExecution", "fileSearch", "computerUse"],
  searchLacks: ["blockedDomains", "maxUses"],
  strictTools: "closed",
  parts: () => ["detail", "allowedCallers"],
  betas: inHeader("openai-beta"),
  toolSearch: true,
  form: usually(form),
  promptChanges: { tools: "add", effort: "reasoning" },
  answersBySchema: (rule, { serves }) => rule?.structuredOutput ?? serves.vendor === "openai",
  accepts: (_rule, request, changes) => {
    const { maxTokens } = changes.options
    if (maxTokens !== undefined && maxTokens < minOutput)
      changes.set("maxTokens", minOutput, "The Responses API accepts no less.")
    return request
  }
}
