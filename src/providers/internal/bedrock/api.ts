/** The parts of a request that Converse takes, and the families of models behind it. */
import type { ToolDefinition } from "../../../Provider.ts"
import type { Accepted, Api, Asked } from "../../Protocol.ts"
import { budget, form as claude, media } from "../claude.ts"
import type { Changes } from "../changes.ts"
import { isClosed } from "../openAiSchema.ts"
import * as Json from "../json.ts"
import { vendorAtBedrock } from "../models/ids.ts"
import type { Rule } from "../models/rule.ts"
import { merge } from "../question.ts"
import type { Form } from "../schemaWriter.ts"
import * as Family from "./family.ts"

const accepts = (rule: Rule | undefined, request: Asked, changes: Changes): Accepted => {
  const { level, model, tools } = request
  const { output, parallelToolCalls, temperature } = changes.options
  const { isClaude } = Family.of(model)
  const vendor = vendorAtBedrock(model)
  if (parallelToolCalls === false && !isClaude)
    changes.leaveOut("parallelToolCalls", "By the Converse API only Claude takes it.")
  if (vendor !== "amazon") changes.keepHostedTools([], "By the Converse API only Nova has such a tool.")
  if (output !== undefined && !(rule?.structuredOutput ?? Family.takesSchema(model)))
    changes.leaveOut("output", "By the Converse API the model takes no output schema.")
  if (tools.some(isStrict) && !Family.takesStrict(model))
    changes.report("strict", true, null, "By the Converse API the model takes no strict tools.")
  if (vendor === "openai") sampleOpenAi(changes, model)
  else if (temperature !== undefined && temperature > 1)
    changes.set("temperature", 1, "The Converse API accepts no more.")
  if (Family.isUnbounded(model, level))
    for (const option of bounds) changes.leaveOut(option, "The model refuses it at this thinking level.")
  if (vendor === "meta") changes.leaveOut("toolChoice", "The model cannot be made to call a tool.")
  retain(changes, Family.of(model))
  return request
}

/** Whether the vendor can hold the model to the schema of a tool, as the application wants. */
export const isStrict = ({ parameters, strict }: ToolDefinition): boolean =>
  strict === true && isClosed(parameters)

const bounds = ["maxTokens", "temperature", "topP"] as const

/** The tools that Nova runs. */
export const hosted: ReadonlyMap<string, string> = new Map([
  ["webSearch", "nova_grounding"],
  ["codeExecution", "nova_code_interpreter"]
])

const sampleOpenAi = (changes: Changes, model: string): void => {
  changes.leaveOut("stop", "By the Converse API the model refuses stop sequences.")
  if (model.includes("gpt-oss")) return
  changes.leaveOut("temperature", "By the Converse API the model refuses it.")
  changes.leaveOut("topP", "By the Converse API the model refuses it.")
}

const retain = (changes: Changes, { marks }: Family.Family): void => {
  if (changes.options.cacheRetention !== "long" || marks.long) return
  const sent = marks.prompt ? "short" : null
  changes.report("cacheRetention", "long", sent, "The model does not keep prompts for an hour.")
}

/** Nova of Amazon rejects other keywords at the top. Other models by Converse are taken to be as strict as Claude. */
const nova: Form = { ...claude, top: new Set(["type", "properties", "required", "$defs"]) }

/** https://docs.aws.amazon.com/bedrock/latest/userguide/inference-api-restrictions.html, read in November 2026. */
const limits = { length: media.length, pixels: media.pixels, total: 24 * 1024 * 1024 }

const fields = "additionalModelRequestFields"

export const api: Api = {
  title: "Converse",
  endpoint: "converse",
  lacks: ["logprobs", "previousResponseId", "seed", "store"],
  hostedTools: ["webSearch", "codeExecution"],
  searchLacks: ["allowedDomains", "blockedDomains", "location", "maxUses"],
  strictTools: "closed",
  parts: () => ["citations"],
  betas: (names, { headers, vendor }) => ({
    headers,
    vendor: merge({ [fields]: { anthropic_beta: names } }, vendor)
  }),
  toolSearch: false,
  form: (model) => (vendorAtBedrock(model) === "amazon" ? nova : claude),
  media: (model) => (Family.of(model).isClaude ? { ...media, ...limits } : limits),
  budget,
  promptChanges: { tools: "name", isEverywhere: true, needsTools: true },
  adapt: Family.ruleOf,
  answersBySchema: (rule, { model }) => rule?.structuredOutput ?? Family.takesSchema(model),
  thinkingIn: (vendor) => Json.object(Json.object(vendor[fields])?.["thinking"]),
  accepts
}
