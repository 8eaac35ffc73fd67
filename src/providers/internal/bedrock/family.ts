/**
 * The differences of the model families that Amazon Bedrock serves by Converse: in caching, in the tool results that they
 * take, and in thinking. Sources: AWS's user guide, `@ai-sdk/amazon-bedrock@5.0.101`, LibreChat-AI/agents#253.
 */
import type { ThinkingLevel } from "../../../RunOptions.ts"
import type { Rule as IdRule } from "../callId.ts"
import * as Json from "../json.ts"
import { vendorAtBedrock } from "../models/ids.ts"
import type { Rule, Thinking, Word } from "../models/rule.ts"

export interface Family {
  readonly isClaude: boolean
  /** Whether tool results may contain images and a status. Other models get images after the results. */
  readonly hasRichResults: boolean
  /** The form of the ids of tool calls. */
  readonly ids: IdRule
  /** Whether the family takes cache marks: in the system prompt and in messages, and after the tools. */
  readonly marks: { readonly prompt: boolean; readonly tools: boolean; readonly long: boolean }
}

/** The family of a model by its id. An inference profile whose id names no model has no family, and gets the least. */
export const of = (model: string): Family => {
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
export const takesSchema = (model: string): boolean =>
  /anthropic\.claude-(?:opus-4-[56]|sonnet-4-5)(?!\d)/.test(model)

/** Whether a model takes strict tools. */
export const takesStrict = (model: string): boolean =>
  /anthropic\.claude-(?:opus-4-[56]|sonnet-4-[56]|haiku-4-5)(?!\d)/.test(model)

// ───────────────────────── Thinking

/** The rule of a model as it applies by Converse. */
export const ruleOf = (rule: Rule, model: string): Rule =>
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
export const isUnbounded = (model: string, level: ThinkingLevel | undefined): boolean =>
  model.includes("nova-2") && (level === "high" || level === "xhigh" || level === "max")
