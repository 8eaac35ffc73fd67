/**
 * The tools that Google runs:
 * https://ai.google.dev/gemini-api/docs/tool-combination, read in November 2026.
 */
import type { HostedToolDefinition } from "../../../RunOptions.ts"
import * as Json from "../json.ts"
import type { Question } from "../question.ts"

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
