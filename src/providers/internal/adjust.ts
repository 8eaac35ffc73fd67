/**
 * Adapts a request to the options and the content that its model accepts, and reports each change. Rejects a request that the
 * model cannot serve before it is sent.
 */
import type { ModelRequest, Provider } from "../../Provider.ts"
import type { Reason } from "../../ProviderError.ts"
import type { ModelOptions, ThinkingLevel } from "../../RunOptions.ts"
import * as Anthropic from "./anthropic/hosted.ts"
import * as Gemini from "./gemini/hosted.ts"
import * as Models from "../Models.ts"
import * as Betas from "./betas.ts"
import * as Capability from "./capability.ts"
import { ruleOf } from "./bedrock/family.ts"
import * as Converse from "./bedrock/options.ts"
import { Changes } from "./changes.ts"
import * as Json from "./json.ts"
import * as Media from "./media.ts"
import type { Rule, Thinking } from "./models/rule.ts"
import { isReason } from "../Protocol.ts"
import { type Question, vendorOf } from "./question.ts"
import * as Parts from "./parts.ts"
import * as PromptChanges from "./promptChanges.ts"
import * as Support from "./support.ts"
import * as Think from "./thinking.ts"
import * as ToolSearch from "./toolSearch.ts"
import * as ToolSchemas from "./toolSchemas.ts"

/** The properties of a provider on which the rules of its models depend. */
export interface Server
  extends Capability.Schemas,
    Support.Server,
    Anthropic.Server,
    ToolSearch.Server,
    Media.Server,
    ToolSchemas.Server {
  /** The id of the provider, which names its members of `modelOptions.vendor`. */
  readonly id: string
  /** The rule on thinking for a model without a rule. Default: none, so that a thinking level is left out. */
  readonly thinking?: Thinking | undefined
  /** Whether the server refuses `temperature` and `topP`. */
  readonly withoutSampling?: boolean | undefined
  /** Whether requests contain a cache retention. */
  readonly keepsPrompts?: boolean | undefined
  /** Whether the server takes changes of a prompt within a conversation. */
  readonly promptChanges?: boolean | undefined
}

/** Makes a function that adapts requests for one server. */
export const adjuster = (server: Server): ((request: ModelRequest) => Question | Reason) => {
  let last: { readonly model: string; readonly rule: Rule | undefined; readonly read: Media.Read } | undefined
  return (request) => {
    const { model } = request
    if (last?.model !== model) {
      const rule = find(server, model)
      last = { model, rule, read: Media.reader(server, model, rule) }
    }
    const { read, rule } = last
    const vendor = vendorOf(request.options.vendor, server.id)
    if (isReason(vendor)) return vendor
    const given = Betas.apart(server.endpoint, { vendor, headers: request.options.headers ?? {} })
    if (isReason(given)) return given
    const missing = Capability.missing(server.endpoint, rule, request)
    if (missing !== undefined) return missing
    const { adjusted, messages } = read(request.messages)
    const asked = question(server, rule, { ...request, messages }, given)
    return { ...asked, adjusted: [...adjusted, ...asked.adjusted] }
  }
}

/** Makes a function that returns why a model cannot take an image or a file. */
export const refuser = (server: Server): NonNullable<Provider["Service"]["refuses"]> => {
  const byModel = new Map<string, ReturnType<typeof Media.refusals>>()
  return ({ model }, media) => {
    const refusal = byModel.get(model) ?? Media.refusals(server, model, find(server, model))
    byModel.set(model, refusal)
    return refusal(media)
  }
}

const find = (server: Server, model: string): Rule | undefined => {
  const rule = Models.find(model, server)
  return rule === undefined || server.endpoint !== "converse" ? rule : ruleOf(rule, model)
}

// ───────────────────────── Changes

const question = (
  server: Server,
  rule: Rule | undefined,
  request: ModelRequest,
  { headers, vendor }: Betas.Given
): Question => {
  const { headers: _, promptChanges, thinkingBudgets, thinkingLevel, vendor: __, ...asked } = request.options
  const changes = new Changes(asked)
  if (server.endpoint === "generateContent") Gemini.restrict(changes, request)
  const { model } = request
  const fit = { ...request, tools: ToolSchemas.fitted(changes, server, request) }
  Support.leaveOut(changes, server, fit.tools)
  const isClaude = server.endpoint === "messages"
  const taken = toolsTaken(changes, rule, fit.tools)
  const own = { ...request, tools: Parts.adapt(changes, server, { ...request, tools: taken }) }
  const declared = ToolSearch.declared(changes, server, rule, own)
  const tools = isClaude ? Anthropic.restrict(changes, server, { model, rule, tools: declared }) : declared
  const hosted = isClaude ? (changes.options.hostedTools ?? []) : []
  const hasTools = tools.length + Json.array(vendor["tools"]).length + hosted.length > 0
  limit(changes, server, rule)
  const level = allowTools(changes, server, rule, hasTools, thinkingLevel)
  const set = ownThinking(server, vendor)
  const isOwn = set !== undefined
  const thinking = isOwn
    ? {}
    : think(changes, server, rule, { level, asked: thinkingLevel, thinkingBudgets }, vendor)
  const thinks = isOwn
    ? set["type"] !== "disabled"
    : rule?.thinking !== undefined && Think.isOn(rule.thinking, level)
  if (server.withoutSampling === true) leaveBothOut(changes, "This version of the API refuses it.")
  else sample(changes, rule, thinks)
  if (server.endpoint === "converse") Converse.restrict(changes, { model, rule, tools, level })
  const { adjusted, options } = changes
  const made = { ...request, tools, options, headers, thinking, thinkingLevel: level, vendor, rule, adjusted }
  return promptChanges === "append" ? PromptChanges.appended(changes, server, made) : made
}

/** The thinking of Claude as the application sets it in the body. */
const ownThinking = ({ endpoint }: Server, vendor: Json.JsonObject): Json.JsonObject | undefined => {
  if (endpoint === "converse")
    return Json.object(Json.object(vendor["additionalModelRequestFields"])?.["thinking"])
  return endpoint === "messages" ? Json.object(vendor["thinking"]) : undefined
}

/** The minimum of OpenAI's Responses API. */
const minOutput = 16

const limit = (changes: Changes, { endpoint, keepsPrompts }: Server, rule: Rule | undefined): void => {
  const { cacheRetention, maxTokens, sessionId, temperature } = changes.options
  const most = rule?.maxOutput
  if (maxTokens !== undefined && most !== undefined && maxTokens > most) {
    if (rule?.isSecondHand === true)
      changes.report("maxTokens", maxTokens, maxTokens, `Elsewhere the model answers with at most ${most}.`)
    else changes.set("maxTokens", most, "The model answers with no more tokens.")
  }
  if (endpoint === "responses" && maxTokens !== undefined && maxTokens < minOutput)
    changes.set("maxTokens", minOutput, "The Responses API accepts no less.")
  if (endpoint === "messages" && temperature !== undefined && temperature > 1)
    changes.set("temperature", 1, "The Messages API accepts no more.")
  if (rule?.stop === false) changes.leaveOut("stop", "The model refuses stop sequences.")
  if (
    keepsPrompts === true &&
    cacheRetention === "long" &&
    sessionId !== undefined &&
    rule?.longCache === undefined
  )
    changes.report("cacheRetention", "long", "short", "The model is not known to keep prompts for long.")
}

// ───────────────────────── Tools

/** The tools of a request, none for a model that takes none. */
const toolsTaken = (
  changes: Changes,
  rule: Rule | undefined,
  tools: ModelRequest["tools"]
): ModelRequest["tools"] => {
  if (rule?.tools !== "none" || tools.length === 0) return tools
  changes.report(
    "tools",
    tools.map(({ name }) => name),
    null,
    "The model takes no tools."
  )
  changes.leaveOut("toolChoice", "The model takes no tools.")
  return []
}

/** Adapts the tool choice, and returns the thinking level that the model accepts with tools. */
const allowTools = (
  changes: Changes,
  { endpoint }: Server,
  rule: Rule | undefined,
  hasTools: boolean,
  level: ThinkingLevel | undefined
): ThinkingLevel | undefined => {
  if (!hasTools || rule === undefined) return level
  const onChat = endpoint === "chat" ? chatLevel(changes, rule, level) : level
  return force(changes, rule, onChat)
}

/** The level that Chat Completions accepts with tools. */
const chatLevel = (
  changes: Changes,
  { tools }: Rule,
  level: ThinkingLevel | undefined
): ThinkingLevel | undefined => {
  const isAsked = level !== undefined && level !== "off"
  if (tools === "chatWithEffortNone") {
    if (level !== "off")
      changes.report(
        "thinkingLevel",
        level,
        "none",
        "On Chat Completions the model takes tools only without thinking; the Responses API takes both."
      )
    return "off"
  }
  if (tools !== "chatWithoutEffort" || !isAsked) return level
  const reason =
    "On Chat Completions the model takes tools only without an effort; the Responses API takes both."
  changes.report("thinkingLevel", level, null, reason)
  return undefined
}

/** A forced tool call wins over thinking if the model does not support both. */
const force = (changes: Changes, rule: Rule, level: ThinkingLevel | undefined): ThinkingLevel | undefined => {
  const { toolChoice } = changes.options
  const { forcedTools = "taken", thinking } = rule
  if (forcedTools === "taken" || (typeof toolChoice !== "object" && toolChoice !== "required")) return level
  const isRefused =
    forcedTools === "refused" || (forcedTools === "namedWhileOff" && typeof toolChoice !== "object")
  if (isRefused) {
    changes.leaveOut("toolChoice", "The model cannot be made to call a tool: it decides by itself.")
    return level
  }
  if (thinking === undefined || !Think.isOn(thinking, level)) return level
  if (Think.isOn(thinking, "off")) {
    changes.leaveOut(
      "toolChoice",
      "The model cannot be made to call a tool while it thinks, and it always does."
    )
    return level
  }
  changes.report(
    "thinkingLevel",
    level,
    "off",
    "The model can be made to call a tool only while it does not think."
  )
  return "off"
}

// ───────────────────────── Thinking and sampling

interface Asked {
  readonly thinkingBudgets: ModelOptions["thinkingBudgets"] | undefined
  /** The level that the model accepts with the tools. */
  readonly level: ThinkingLevel | undefined
  /** The level of the application. */
  readonly asked: ThinkingLevel | undefined
}

const think = (
  changes: Changes,
  { endpoint, thinking: usual }: Server,
  rule: Rule | undefined,
  { asked, level, thinkingBudgets }: Asked,
  vendor: Json.JsonObject
): Json.JsonObject => {
  // A protocol without rules of its own reads the level from the question.
  if (level === undefined || endpoint === undefined) return {}
  const thinking = rule?.thinking ?? usual
  if (thinking === undefined) {
    if (asked === level)
      changes.report(
        "thinkingLevel",
        asked,
        null,
        "No rule describes the thinking of the model: add one with Models.layer."
      )
    return {}
  }
  const own = thinkingBudgets?.[level]
  const maxTokens = Json.number(vendor["max_tokens"]) ?? changes.options.maxTokens
  const { members, word } = Think.send(thinking, endpoint, level, { own, maxTokens })
  if (own !== undefined && thinking.budget === undefined)
    changes.report("thinkingBudgets", own, null, "The model takes no budget of thinking.")
  const isSilentOff = level === "off" && word === null && !Think.isOn(thinking, "off")
  if (asked === level && word !== undefined && !isSilentOff)
    changes.report("thinkingLevel", asked, word, reasonOf(thinking, level, word))
  return members
}

const reasonOf = (thinking: Thinking, level: ThinkingLevel, word: string | number | null): string => {
  if (thinking.kind === "none") return "The model has no thinking level."
  if (level === "off") return "The model cannot stop thinking."
  if (word === null && thinking.kind === "budget") return "maxTokens leaves no room for thinking."
  return word === null ? "The model takes no thinking level here." : "The model does not know this level."
}

const sample = (changes: Changes, rule: Rule | undefined, thinks: boolean): void => {
  const { sampling = "any" } = rule ?? {}
  if (sampling === "any" || sampling === "ignored") return
  if (sampling === "refused") return leaveBothOut(changes, "The model refuses it.")
  if (thinks) {
    const { topP = 0 } = changes.options
    if (sampling !== "one") return leaveBothOut(changes, whileOff)
    changes.leaveOut("temperature", whileOff)
    if (topP < 0.95) changes.leaveOut("topP", "While the model thinks it accepts no topP below 0.95.")
  } else if (sampling !== "whileOff" && changes.options.temperature !== undefined)
    changes.leaveOut("topP", "The model accepts either temperature or topP.")
}

const whileOff = "The model accepts it only while it does not think."

const leaveBothOut = (changes: Changes, reason: string): void => {
  changes.leaveOut("temperature", reason)
  changes.leaveOut("topP", reason)
}
