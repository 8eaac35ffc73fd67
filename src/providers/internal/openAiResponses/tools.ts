/**
 * The tools of requests for OpenAI Responses: https://platform.openai.com/docs/guides/tools, read in November 2026.
 */
import { memoize } from "effect/Function"
import type { ToolDefinition } from "../../../Provider.ts"
import type { HostedToolDefinition, ModelOptions } from "../../../RunOptions.ts"
import * as Json from "../json.ts"
import * as Members from "../members.ts"
import * as OpenAiSchema from "../openAiSchema.ts"
import { merge, type Question } from "../question.ts"
import * as ToolSearch from "./toolSearch.ts"

/** Encodes the tools of a provider, each of them once. */
export interface Encoder {
  readonly tool: (tool: ToolDefinition) => string
  /** The tools of a request: those of the agent first, then those of the vendor. */
  readonly all: (question: Question) => ReadonlyArray<string>
}

export const encoder = (provider: string): Encoder => {
  const toolOf = memoize((tool: ToolDefinition) => Members.into(provider, tool, Json.encode(toTool(tool))))
  const all: Encoder["all"] = ({ model, options: { hostedTools = [] }, tools, vendor }) => {
    // The vendor defines the tool of the agent that controls the screen.
    const own = usesScreen(hostedTools) ? tools.filter(({ name }) => name !== "computer") : tools
    const theirs = hostedTools.map((tool) => merge(toHosted(model, tool), tool.vendor?.[provider] ?? {}))
    const listed = Json.array(vendor["tools"])
    const search = ToolSearch.definitions(own, listed)
    return [...own.map(toolOf), ...[...search, ...theirs, ...listed].map(Json.encode)]
  }
  return { tool: toolOf, all }
}

const usesScreen = (hosted: ReadonlyArray<HostedToolDefinition>): boolean =>
  hosted.some(({ type }) => type === "computerUse")

const toTool = ({ allowedCallers, deferred, description, name, parameters, strict }: ToolDefinition) => ({
  type: "function",
  name,
  description,
  parameters,
  // By default the vendor changes the schema so that all members are required.
  strict: strict === true && OpenAiSchema.isClosed(parameters),
  ...(deferred === true ? { defer_loading: true } : {}),
  allowed_callers: allowedCallers
})

const toHosted = (model: string, tool: HostedToolDefinition): Json.JsonObject => {
  switch (tool.type) {
    case "webSearch": {
      const { allowedDomains, location } = tool
      return Json.defined({
        type: "web_search",
        filters: allowedDomains && { allowed_domains: allowedDomains },
        user_location: location && { type: "approximate", ...location }
      })
    }
    case "codeExecution":
      return { type: "code_interpreter", container: { type: "auto" } }
    case "fileSearch":
      return Json.defined({
        type: "file_search",
        vector_store_ids: tool.stores,
        max_num_results: tool.maxResults
      })
    case "computerUse":
      if (!isPreview(model)) return { type: "computer" }
      return {
        type: "computer_use_preview",
        display_width: tool.width,
        display_height: tool.height,
        environment: "browser"
      }
  }
}

/** Whether the model knows only the first version of the tool for the screen. */
const isPreview = (model: string): boolean => model.includes("computer-use-preview")

/** The findings of the vendor's tools that an answer has only on request. */
export const included = (tools: ReadonlyArray<HostedToolDefinition> = []): ReadonlyArray<string> =>
  tools.flatMap(({ type }) => findings[type] ?? [])

const findings: Partial<Record<HostedToolDefinition["type"], string>> = {
  webSearch: "web_search_call.action.sources",
  codeExecution: "code_interpreter_call.outputs",
  fileSearch: "file_search_call.results"
}

/** The tool that the model has to call. */
export const choice = (
  model: string,
  { hostedTools = [], toolChoice }: Pick<ModelOptions, "hostedTools" | "toolChoice">
): Json.Json | undefined => {
  if (typeof toolChoice !== "object") return toolChoice
  const { name } = toolChoice
  return name === "computer" && usesScreen(hostedTools)
    ? { type: isPreview(model) ? "computer_use_preview" : "computer" }
    : { type: "function", name }
}
