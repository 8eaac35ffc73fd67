/**
 * The tools that Google runs, and other options that only some models of Google take:
 * https://ai.google.dev/gemini-api/docs/tool-combination, read in November 2026.
 */
import type { ModelRequest } from "../../../Provider.ts"
import type { HostedToolDefinition } from "../../../RunOptions.ts"
import type { Changes } from "../changes.ts"
import * as Json from "../json.ts"
import type { Question } from "../question.ts"
import { generation } from "./generation.ts"

/** How a server differs from Google's own address. */
export interface Dialect {
  /**
   * Whether the server is Vertex AI, which takes names of files, has no reports of searches as parts, and counts tokens by another
   * request.
   */
  readonly isVertexAi?: boolean | undefined
}

/** The hosted tools as entries of the list of tools, for one provider. */
export const toHosted = (
  provider: string,
  tools: ReadonlyArray<HostedToolDefinition>
): ReadonlyArray<string> =>
  tools.map((tool) => Json.encode({ [names[tool.type]]: { ...fieldsOf(tool), ...tool.vendor?.[provider] } }))

const names = {
  webSearch: "googleSearch",
  codeExecution: "codeExecution",
  fileSearch: "fileSearch",
  computerUse: "computerUse"
} as const

const fieldsOf = (tool: HostedToolDefinition): Json.JsonObject => {
  if (tool.type === "computerUse") return { environment: "ENVIRONMENT_BROWSER" }
  return tool.type === "fileSearch"
    ? Json.defined({ fileSearchStoreNames: tool.stores, topK: tool.maxResults })
    : {}
}

/** The tool of the agent for the screen, in place of which Google declares a function for each action. */
export const screen = "computer"

export const hasScreen = ({ hostedTools = [] }: Question["options"]): boolean =>
  hostedTools.some(({ type }) => type === "computerUse")

/** The tools to declare. */
export const declared = ({ options, tools }: Question): Question["tools"] =>
  hasScreen(options) ? tools.filter(({ name }) => name !== screen) : tools

/** Leaves out the options that a model of Google does not take. */
export const restrict = (changes: Changes, { model, tools }: Pick<ModelRequest, "model" | "tools">): void => {
  const { logprobs, serviceTier } = changes.options
  if (serviceTier !== undefined && !tiers.includes(serviceTier))
    changes.leaveOut("serviceTier", `Gemini's API has the tiers ${tiers.join(", ")}.`)
  if (logprobs !== undefined && logprobs > maxLogprobs)
    changes.set("logprobs", maxLogprobs, "Gemini's API names no more alternatives.")
  const version = generation(model)
  changes.keepHostedTools(kindsOf(model), "The model has no such tool.")
  if (tools.length > 0 && version < 3)
    changes.keepHostedTools(
      ["computerUse"],
      "Before Gemini 3, a request cannot have both these and tools of the agent."
    )
  if (changes.options.toolChoice === "none")
    changes.keepHostedTools([], "Gemini's API can forbid only the tools of the agent.")
  for (const tool of changes.options.hostedTools ?? []) {
    if (tool.type !== "computerUse") continue
    const { height, width } = tool
    changes.report(
      "hostedTools.computerUse",
      { width, height },
      null,
      "Gemini counts from 0 to 999 on any screen."
    )
  }
}

const kindsOf = (model: string): ReadonlyArray<HostedToolDefinition["type"]> => {
  const version = generation(model)
  if (version >= 3) return ["webSearch", "codeExecution", "fileSearch", "computerUse"]
  if (model.includes("computer-use")) return ["computerUse"]
  if (version < 2) return []
  return version < 2.5 ? ["webSearch", "codeExecution"] : ["webSearch", "codeExecution", "fileSearch"]
}

const tiers: ReadonlyArray<string> = ["standard", "flex", "priority"]
const maxLogprobs = 20
