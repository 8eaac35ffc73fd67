/**
 * The tools that Anthropic runs or defines:
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-reference, read in November 2026.
 */
import type { HostedToolDefinition } from "../../../RunOptions.ts"
import * as Json from "../json.ts"
import { merge, type Question } from "../question.ts"

/** The hosted tools as entries of the list of tools, for one provider. */
export const definitions = (
  provider: string,
  { model, options: { hostedTools = [] } }: Pick<Question, "model" | "options">
): ReadonlyArray<Json.JsonObject> =>
  hostedTools.flatMap((tool) => {
    const own = definition(model, tool)
    return own === undefined ? [] : [merge(own, tool.vendor?.[provider] ?? {})]
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
export const screen = "computer"

const hasScreen = ({ hostedTools = [] }: Pick<Question["options"], "hostedTools">): boolean =>
  hostedTools.some(({ type }) => type === "computerUse")

/** The tools of the agent to declare. */
export const declared = ({ options, tools }: Question): Question["tools"] =>
  hasScreen(options) ? tools.filter(({ name }) => name !== screen) : tools

// ───────────────────────── Versions

/** A set of tools, one for each action on the screen, without a name. */
export const toolset = "computer_toolset_20260801"

/** The version of the tool for the screen that a model takes, `undefined` if it takes none. */
export const screenOf = (model: string): string | undefined => {
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
    const types = definitions(provider, question).map(({ type }) => type)
    const names = [...types, ...(question.changed?.takes ?? [])].flatMap((name) => betas.get(name) ?? [])
    return names.length === 0 ? {} : { "anthropic-beta": names.join(",") }
  }
