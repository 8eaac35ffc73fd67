/**
 * The differences of the model families that Amazon Bedrock serves by Converse: in caching, in the tool results that they
 * take, and in thinking. Sources: AWS's user guide, `@ai-sdk/amazon-bedrock@5.0.101`, LibreChat-AI/agents#253.
 */
import type { ToolDefinition } from "../../../Provider.ts"
import type { ThinkingLevel } from "../../../RunOptions.ts"
import type { Accepted, Api, Asked, Changes } from "../../Protocol.ts"
import type { Rule as IdRule } from "../writing.ts"
import { budget, media } from "../support.ts"
import { claude, isClosed } from "../toolSchemas.ts"
import * as Json from "../json.ts"
import { type Rule, type Thinking, type Word, vendorAtBedrock } from "../models/rule.ts"
import type { Form } from "../schemaWriter.ts"

interface Family {
  readonly isClaude: boolean
  /** Whether tool results may contain images and a status. Other models get images after the results. */
  readonly hasRichResults: boolean
  /** The form of the ids of tool calls. */
  readonly ids: IdRule
  /** Whether the family takes cache marks: in the system prompt and in messages, and after the tools. */
  readonly marks: { readonly prompt: boolean; readonly tools: boolean; readonly long: boolean }
}

/** The family of a model by its id. An inference profile whose id names no model has no family, and gets the least. */
export const familyOf = (model: string): Family => {
  const vendor = vendorAtBedrock(model)
  const isClaude = vendor === "anthropic"
  const isNova = vendor === "amazon"
  const caches = isClaude && !uncached.test(model)
  return {
    isClaude,
    hasRichResults: isClaude || isNova,
    ids: vendor === "mistral" ? nineLetters : usual,
    marks: { prompt: caches || isNova, tools: caches, long: caches && !shortCached.test(model) }
  }
}

const usual: IdRule = { pattern: /^[a-zA-Z0-9_-]{1,64}$/, length: 32 }
const nineLetters: IdRule = { pattern: /^[a-zA-Z0-9]{9}$/, length: 9 }

/** Claude 2, 3, 3.5 Sonnet of June 2024. */
const uncached = /claude-(?:instant|v?2|3-(?:haiku|sonnet|opus)|3-5-sonnet-20240620)/
/** Models that keep prompts for five minutes only: those before Claude 4.5. */
const shortCached = /claude-(?:3|(?:opus|sonnet)-4(?:-1)?-\d{8})/

/**
 * Whether a model answers by an output schema. Others that AWS lists refuse it in some accounts (Haiku 4.5), deviate from it
 * (Sonnet 4.6), or refuse it (Opus 4.7 and later). A rule of the application can say otherwise.
 */
const takesSchema = (model: string): boolean =>
  /anthropic\.claude-(?:opus-4-[56]|sonnet-4-5)(?!\d)/.test(model)

/** Whether a model takes strict tools. */
export const takesStrict = (model: string): boolean =>
  /anthropic\.claude-(?:opus-4-[56]|sonnet-4-[56]|haiku-4-5)(?!\d)/.test(model)

// ───────────────────────── Thinking

/** The rule of a model as it applies by Converse. */
const ruleOf = (rule: Rule, model: string): Rule =>
  rule.thinking === undefined
    ? rule
    : { ...rule, thinking: thinkingOf(rule.thinking, vendorAtBedrock(model)) }

/** How a model takes a level by Converse: as at its own vendor, in `additionalModelRequestFields`. */
const thinkingOf = (thinking: Thinking, vendor: string | undefined): Thinking => {
  if (thinking.wire?.converse !== undefined) return thinking
  const { budget, levels = {}, perEndpoint: _none, wire: _wire, ...rest } = thinking
  const wire = wireOf(thinking, vendor)
  if (wire === undefined) return rest
  return {
    ...rest,
    wire: { converse: inFields(wire) },
    levels: Object.fromEntries(
      Object.entries(levels).map(([level, word]) => [level, wordOf(level, word, rest.omitted)])
    ),
    ...(budget === undefined ? {} : { budget: { ...budget, wire: {} } })
  }
}

const wireOf = ({ wire = {} }: Thinking, vendor: string | undefined): Json.JsonObject | undefined => {
  if (vendor === "anthropic") return wire.messages
  return vendor === "openai" && wire.responses !== undefined ? { reasoning: { effort: "$" } } : undefined
}

const inFields = (members: Json.JsonObject): Json.JsonObject => ({ additionalModelRequestFields: members })

/** Bedrock refuses to switch thinking off in models that do not think without a level. */
const wordOf = (level: string, word: Word, omitted: Thinking["omitted"]): Word => {
  if (!Json.isObject(word)) return word
  return level === "off" && omitted === "doesNotThink" ? null : inFields(word)
}

/** Whether Nova thinks so much that it takes no limit of tokens and no sampling. */
const isUnbounded = (model: string, level: ThinkingLevel | undefined): boolean =>
  model.includes("nova-2") && (level === "high" || level === "xhigh" || level === "max")

// ───────────────────────── The API

// The parts of a request that Converse takes, and the families of models behind it.

const accepts = (rule: Rule | undefined, request: Asked, changes: Changes): Accepted => {
  const { level, model, tools } = request
  const { output, parallelToolCalls, temperature } = changes.options
  const { isClaude } = familyOf(model)
  const vendor = vendorAtBedrock(model)
  if (parallelToolCalls === false && !isClaude)
    changes.leaveOut("parallelToolCalls", "By the Converse API only Claude takes it.")
  if (vendor !== "amazon") changes.keepHostedTools([], "By the Converse API only Nova has such a tool.")
  if (output !== undefined && !(rule?.structuredOutput ?? takesSchema(model)))
    changes.leaveOut("output", "By the Converse API the model takes no output schema.")
  if (tools.some(isStrict) && !takesStrict(model))
    changes.report("strict", true, null, "By the Converse API the model takes no strict tools.")
  if (vendor === "openai") sampleOpenAi(changes, model)
  else if (temperature !== undefined && temperature > 1)
    changes.set("temperature", 1, "The Converse API accepts no more.")
  if (isUnbounded(model, level))
    for (const option of bounds) changes.leaveOut(option, "The model refuses it at this thinking level.")
  if (vendor === "meta") changes.leaveOut("toolChoice", "The model cannot be made to call a tool.")
  retain(changes, familyOf(model))
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

const retain = (changes: Changes, { marks }: Family): void => {
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
    vendor: Json.merge({ [fields]: { anthropic_beta: names } }, vendor)
  }),
  toolSearch: false,
  form: (model) => (vendorAtBedrock(model) === "amazon" ? nova : claude),
  media: (model) => (familyOf(model).isClaude ? { ...media, ...limits } : limits),
  budget,
  promptChanges: { tools: "name", isEverywhere: true, needsTools: true },
  adapt: ruleOf,
  answersBySchema: (rule, { model }) => rule?.structuredOutput ?? takesSchema(model),
  thinkingIn: (vendor) => Json.object(Json.object(vendor[fields])?.["thinking"]),
  accepts
}
