/**
 * Adapts a request to the options and the content that its model accepts, and reports each change. Rejects a request that the
 * model cannot serve before it is sent.
 */
import type { ModelRequest, Provider } from "../../Provider.ts"
import type { Reason } from "../../ProviderError.ts"
import type { ModelOptions, ThinkingLevel } from "../../RunOptions.ts"
import { type Given, isReason } from "../Protocol.ts"
import {
  adaptParts,
  betasApart,
  declaredTools,
  leaveOutLacking,
  reportSearches,
  searchServed,
  type Server
} from "./support.ts"
import { Changes, type Question, vendorOf } from "./question.ts"
import * as Json from "./json.ts"
import { type Read, reader, refusals } from "./media.ts"
import type { Rule, Thinking } from "./models/rule.ts"
import { appended } from "./promptChanges.ts"
import * as Think from "./support.ts"
import * as ToolSchemas from "./toolSchemas.ts"

/** Makes a function that adapts requests for one server. */
export const adjuster = (server: Server): ((request: ModelRequest) => Question | Reason) => {
  const { betas, provider } = server.protocol
  let last: { readonly model: string; readonly rule: Rule | undefined; readonly read: Read } | undefined
  return (request) => {
    const { model } = request
    if (last?.model !== model) {
      const rule = find(server, model)
      last = { model, rule, read: reader(server, model, rule) }
    }
    const { read, rule } = last
    const vendor = vendorOf(request.options.vendor, provider)
    if (isReason(vendor)) return vendor
    const given = betasApart(betas, { vendor, headers: request.options.headers ?? {} })
    if (isReason(given)) return given
    const { adjusted, messages } = read(request.messages)
    const asked = question(server, rule, { ...request, messages }, given)
    return isReason(asked) ? asked : { ...asked, adjusted: [...adjusted, ...asked.adjusted] }
  }
}

/** The abilities of the provider of a server, by the rules of its models. */
export const abilities = (
  server: Server
): Required<Pick<Provider["Service"], "refuses" | "structuredOutput" | "toolSearch">> => {
  const byModel = new Map<string, ReturnType<typeof refusals>>()
  return {
    refuses: ({ model }, media) => {
      const refusal = byModel.get(model) ?? refusals(server, model, find(server, model))
      byModel.set(model, refusal)
      return refusal(media)
    },
    structuredOutput: ({ model, tools }) => answersBySchema(server, model, tools),
    toolSearch: searchServed(server)
  }
}

const answersBySchema = (
  { find, protocol, serves }: Server,
  model: string,
  tools: Question["tools"]
): boolean => {
  const rule = find(model)
  const asked = { model, tools, level: undefined, vendor: {}, serves }
  return protocol.answersBySchema?.(rule, asked) ?? rule?.structuredOutput ?? serves.takesSchema ?? false
}

const find = ({ find, protocol }: Server, model: string): Rule | undefined => {
  const rule = find(model)
  return rule === undefined || protocol.adapt === undefined ? rule : protocol.adapt(rule, model)
}

// ───────────────────────── Changes

const question = (
  server: Server,
  rule: Rule | undefined,
  request: ModelRequest,
  { headers, vendor }: Given
): Question | Reason => {
  const { protocol, serves } = server
  const { headers: _, promptChanges, thinkingBudgets, thinkingLevel, vendor: __, ...asked } = request.options
  const changes = new Changes(asked)
  const { model } = request
  const fit = { ...request, tools: ToolSchemas.fitted(changes, protocol, request) }
  leaveOutLacking(changes, server, fit.tools)
  const taken = toolsTaken(changes, rule, fit.tools)
  const own = { ...request, tools: adaptParts(changes, server, { ...request, tools: taken }) }
  const offered = {
    model,
    vendor,
    serves,
    tools: declaredTools(changes, server, rule, own),
    level: thinkingLevel
  }
  const accepted = protocol.accepts?.(rule, offered, changes) ?? offered
  if (isReason(accepted)) return accepted
  reportSearches(changes, server)
  const { tools } = accepted
  const { hostedTools = [] } = changes.options
  const hasTools = tools.length + Json.array(vendor["tools"]).length + hostedTools.length > 0
  limit(changes, server, rule)
  const level = hasTools && rule !== undefined ? force(changes, rule, accepted.level) : accepted.level
  const set = protocol.thinkingIn?.(vendor)
  const isOwn = set !== undefined
  const thinking = isOwn
    ? {}
    : think(changes, server, rule, { level, asked: thinkingLevel, thinkingBudgets }, vendor)
  const thinks = isOwn
    ? set["type"] !== "disabled"
    : rule?.thinking !== undefined && Think.thinks(rule.thinking, level)
  if (serves.withoutSampling === true) leaveBothOut(changes, "This version of the API refuses it.")
  else sample(changes, rule, thinks)
  const { adjusted, options } = changes
  const made = { ...request, tools, options, headers, thinking, thinkingLevel: level, vendor, rule, adjusted }
  return promptChanges === "append" ? appended(changes, server, made) : made
}

const limit = (changes: Changes, { serves }: Server, rule: Rule | undefined): void => {
  const { cacheRetention, maxTokens, sessionId } = changes.options
  const most = rule?.maxOutput
  if (maxTokens !== undefined && most !== undefined && maxTokens > most) {
    if (rule?.isSecondHand === true)
      changes.report("maxTokens", maxTokens, maxTokens, `Elsewhere the model answers with at most ${most}.`)
    else changes.set("maxTokens", most, "The model answers with no more tokens.")
  }
  if (rule?.stop === false) changes.leaveOut("stop", "The model refuses stop sequences.")
  if (
    serves.keepsPrompts === true &&
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
  if (thinking === undefined || !Think.thinks(thinking, level)) return level
  if (Think.thinks(thinking, "off")) {
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
  { protocol: { budget, endpoint }, serves }: Server,
  rule: Rule | undefined,
  { asked, level, thinkingBudgets }: Asked,
  vendor: Json.JsonObject
): Json.JsonObject => {
  // A protocol without rules of its own reads the level from the question.
  if (level === undefined || endpoint === undefined) return {}
  const thinking = rule?.thinking ?? serves.thinking
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
  const { members, word } = Think.sendThinking(thinking, { endpoint, budget }, level, { own, maxTokens })
  if (own !== undefined && thinking.budget === undefined)
    changes.report("thinkingBudgets", own, null, "The model takes no budget of thinking.")
  const isSilentOff = level === "off" && word === null && !Think.thinks(thinking, "off")
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
