/** The parts of a request that the Messages API takes, and its servers and models. */
import { memoize } from "effect/Function"
import type { ToolDefinition } from "../../../Provider.ts"
import type { HostedToolDefinition } from "../../../RunOptions.ts"
import type { Accepted, Api, Asked, Changes, Question } from "../../Protocol.ts"
import { budget, media, inHeader, isDeferred } from "../support.ts"
import { claude as form, isClosed, usually } from "../toolSchemas.ts"
import * as Json from "../json.ts"
import type { Rule } from "../models/rule.ts"

const accepts = (rule: Rule | undefined, request: Asked, changes: Changes): Accepted => {
  const { level, model, serves, tools } = request
  const { serviceTier, temperature } = changes.options
  const served = typeof serves.vendor === "string" ? tiers.get(serves.vendor) : undefined
  if (serviceTier !== undefined && served !== undefined && !served.includes(serviceTier))
    changes.leaveOut("serviceTier", `The vendor has the tiers ${served.join(", ")}.`)
  if (temperature !== undefined && temperature > 1)
    changes.set("temperature", 1, "The Messages API accepts no more.")
  if (screenOf(model) === undefined)
    changes.keepHostedTools(["webSearch", "codeExecution"], "The model has no such tool.")
  for (const tool of changes.options.hostedTools ?? []) reportParts(changes, model, tool)
  if (serves.vendor === "anthropic" && serves.withoutStrictTools !== true && rule?.structuredOutput !== false)
    return request
  if (tools.some(({ parameters, strict }) => strict === true && isClosed(parameters)))
    changes.report("strict", true, null, "The model takes no strict tools here.")
  return { tools: tools.map(unstrict), level }
}

/** Reports the members of a hosted tool that the vendor does not take. */
const reportParts = (changes: Changes, model: string, tool: HostedToolDefinition): void => {
  if (tool.type === "webSearch" && tool.allowedDomains !== undefined && tool.blockedDomains !== undefined) {
    const reason = "A search takes either allowedDomains or blockedDomains."
    changes.report("hostedTools.webSearch.blockedDomains", tool.blockedDomains, null, reason)
  }
  if (tool.type !== "computerUse" || screenOf(model) !== toolset) return
  const { height, width } = tool
  const reason = "The model reads the size of the screen from its images."
  changes.report("hostedTools.computerUse", { width, height }, null, reason)
  const { toolChoice } = changes.options
  if (typeof toolChoice === "object" && toolChoice.name === screen)
    changes.leaveOut("toolChoice", "The model cannot be made to act on the screen: it decides by itself.")
}

const unstrict = memoize(({ strict: _strict, ...tool }: ToolDefinition): ToolDefinition => tool)

/** https://platform.claude.com/docs/en/api/service-tiers, and `@ai-sdk/anthropic@4.0.105` for MiniMax. */
const tiers: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ["anthropic", ["auto", "standard_only"]],
  ["minimax", ["standard", "priority"]]
])

export const api: Api = {
  title: "The Messages API",
  endpoint: "messages",
  lacks: ["logprobs", "previousResponseId", "seed", "store"],
  hostedTools: ["webSearch", "codeExecution", "computerUse"],
  strictTools: "closed",
  // Other servers are known to take only what all tools have.
  parts: (_model, { vendor }) =>
    vendor === "anthropic" ? ["citations", "inputExamples", "allowedCallers"] : ["citations"],
  betas: inHeader("anthropic-beta"),
  toolSearch: true,
  form: usually(form),
  media: () => media,
  budget,
  promptChanges: { tools: "define", effort: "output_config", effortBetweenTurns: true },
  answersBySchema: (rule, { serves }) => rule?.structuredOutput ?? serves.vendor === "anthropic",
  thinkingIn: ({ thinking }) => Json.object(thinking),
  accepts
}

// ───────────────────────── Hosted tools

// The tools that Anthropic runs or defines:
// https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-reference, read in November 2026.

/** The hosted tools as entries of the list of tools, for one provider. */
export const hostedDefinitions = (
  provider: string,
  { model, options: { hostedTools = [] } }: Pick<Question, "model" | "options">
): ReadonlyArray<Json.JsonObject> =>
  hostedTools.flatMap((tool) => {
    const own = definition(model, tool)
    return own === undefined ? [] : [Json.merge(own, tool.vendor?.[provider] ?? {})]
  })

const definition = (model: string, tool: HostedToolDefinition): Json.JsonObject | undefined => {
  switch (tool.type) {
    case "webSearch": {
      const { allowedDomains, blockedDomains, location, maxUses } = tool
      // Later versions filter what they find by code, which not all models and servers run.
      return Json.defined({
        type: "web_search_20250305",
        name: "web_search",
        max_uses: maxUses,
        allowed_domains: allowedDomains,
        blocked_domains: allowedDomains === undefined ? blockedDomains : undefined,
        user_location: location && { type: "approximate", ...location }
      })
    }
    case "codeExecution":
      return { type: "code_execution_20250825", name: "code_execution" }
    case "fileSearch":
      return undefined
    case "computerUse": {
      const type = screenOf(model)
      if (type === undefined || type === toolset) return type && { type }
      return { type, name: screen, display_width_px: tool.width, display_height_px: tool.height }
    }
  }
}

/** The tool of the agent for the screen, in place of which Anthropic defines one. */
const screen = "computer"

const hasScreen = ({ hostedTools = [] }: Pick<Question["options"], "hostedTools">): boolean =>
  hostedTools.some(({ type }) => type === "computerUse")

/** The tools of the agent to declare. */
export const declared = ({ options, tools }: Question): Question["tools"] =>
  hasScreen(options) ? tools.filter(({ name }) => name !== screen) : tools

// ───────────────────────── Versions

/** A set of tools, one for each action on the screen, without a name. */
const toolset = "computer_toolset_20260801"

/** The version of the tool for the screen that a model takes, `undefined` if it takes none. */
const screenOf = (model: string): string | undefined => {
  if (withoutScreen.test(model)) return undefined
  if (firstScreen.test(model)) return "computer_20250124"
  return secondScreen.test(model) ? "computer_20251124" : toolset
}

/** Claude 3.5 and before, which are retired. */
const withoutScreen = /claude-(?:instant|v?[12]\b|3(?![-.]7))/
/** Claude 3.7, 4, Opus 4.1, Sonnet 4.5 and Haiku 4.5. */
const firstScreen = /claude-(?:3[-.]7|(?:opus|sonnet)-4(?![-.][5-9](?!\d))|(?:sonnet|haiku)-4[-.]5(?!\d))/
/** Opus 4.5 to 4.7, and Sonnet 4.6. */
const secondScreen = /claude-(?:opus-4[-.][567]|sonnet-4[-.]6)(?!\d)/

/** The tools that the vendor runs only for requests with a header, and the parts of a prompt that change with one. */
const betas: ReadonlyMap<Json.Json | undefined, string> = new Map([
  ["computer_20250124", "computer-use-2025-01-24"],
  ["computer_20251124", "computer-use-2025-11-24"],
  ["tools", "inline-tools-2026-09-15"],
  ["effort", "mid-conversation-output-config-2026-07-01"]
])

/** The headers that the hosted tools require. */
export const headers =
  (provider: string) =>
  (question: Pick<Question, "model" | "options" | "changed">): Readonly<Record<string, string>> => {
    const types = hostedDefinitions(provider, question).map(({ type }) => type)
    const names = [...types, ...(question.changed?.takes ?? [])].flatMap((name) => betas.get(name) ?? [])
    return names.length === 0 ? {} : { "anthropic-beta": names.join(",") }
  }

// ───────────────────────── The search for tools

// Tools that the model gets when it searches for them at Anthropic:
// https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool, read in November 2026.

/** The tool that searches, by words, unless the application lists one among the tools of the vendor. */
export const searchDefinitions = (
  tools: ReadonlyArray<ToolDefinition>,
  theirs: ReadonlyArray<Json.Json>
): ReadonlyArray<Json.JsonObject> =>
  tools.some(isDeferred) && !theirs.some(isSearch)
    ? [{ type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" }]
    : []

/** The names of all tools of a request, `undefined` if the model cannot search for any. */
export const namesOf = (
  tools: ReadonlyArray<ToolDefinition>,
  theirs: ReadonlyArray<Json.Json>
): ReadonlySet<string> | undefined => {
  if (!tools.some(isDeferred) && !theirs.some(isSearch)) return undefined
  const others = theirs.flatMap((tool) => Json.text(Json.object(tool)?.["name"]) ?? [])
  return new Set([...tools.map(({ name }) => name), ...others])
}

const isSearch = (tool: Json.Json): boolean => namesSearch(Json.object(tool)?.["name"])

const namesSearch = (name: Json.Json | undefined): boolean =>
  typeof name === "string" && name.startsWith("tool_search_tool_")

/** Whether a block is a search, or the result of one. */
export const isPart = ({ name, type }: Json.JsonObject): boolean =>
  type === "tool_search_tool_result" || (type === "server_tool_use" && namesSearch(name))

/** The names of the tools that the result of a search holds. */
export const found = ({ content }: Json.JsonObject): ReadonlyArray<string> =>
  referencesIn(content).flatMap((reference) => nameIn(reference) ?? [])

/** The result of a search without the tools that the request lacks, which the vendor rejects. */
export const without = (json: string, known: ReadonlySet<string>): string => {
  const { content, ...block } = Json.object(Json.parse(json)) ?? {}
  const kept = referencesIn(content).filter((reference) => known.has(nameIn(reference) ?? ""))
  return Json.encode({ ...block, content: { ...Json.object(content), tool_references: kept } })
}

const referencesIn = (content: Json.Json | undefined): ReadonlyArray<Json.Json> =>
  Json.array(Json.object(content)?.["tool_references"])

const nameIn = (reference: Json.Json): string | undefined => Json.text(Json.object(reference)?.["tool_name"])
