/**
 * The tools that Google runs:
 * https://ai.google.dev/gemini-api/docs/tool-combination, read in November 2026.
 */
import { memoize } from "effect/Function"
import type { HostedToolDefinition, ModelOptions } from "../../../RunOptions.ts"
import type { Accepted, Api, Asked, Changes, Question } from "../../Protocol.ts"
import * as Json from "../json.ts"
import type { Rule } from "../models/rule.ts"
import { type Form, ofValue } from "../schemaWriter.ts"
import { among } from "../toolSchemas.ts"

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

// ───────────────────────── The API

// The parts of a request that Gemini's API and its models take. Several parts of a request are different before Gemini 3.

/**
 * The generation of a model: 2.5 for `gemini-2.5-flash`, 0 for other models. A Gemini without a number, such as
 * `gemini-flash-latest`, counts as the newest.
 */
export const generation = (model: string): number => {
  const name = nameOf(model)
  const version = /\d+(?:\.\d+)?/.exec(name)?.[0]
  return name === "" ? 0 : version === undefined ? Infinity : Number(version)
}

/** `2.5-flash` of `models/gemini-2.5-flash`. */
const nameOf = (model: string): string => /gemini-(.*)/.exec(model)?.[1] ?? ""

/** Its own form of schemas, by the docs of `responseJsonSchema` and of `FunctionDeclaration` in `@google/genai@1.30.0`. */
const form: Form = {
  takes: among(
    "type title description enum items prefixItems minItems maxItems minimum maximum anyOf properties additionalProperties required",
    /^(?:date-time|date|time)$/
  ),
  names: /^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/,
  refers: false,
  plain: "jsonSchema"
}

/** An output schema in this form. */
export const outputSchema = /* @__PURE__ */ memoize(({ schema }: NonNullable<ModelOptions["output"]>) =>
  ofValue(schema, form)
)

const accepts = (_rule: Rule | undefined, request: Asked, changes: Changes): Accepted => {
  const { model, tools } = request
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
  return request
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

export const api: Api = {
  title: "Gemini's API",
  endpoint: "generateContent",
  lacks: ["parallelToolCalls", "previousResponseId", "store"],
  hostedTools: ["webSearch", "codeExecution", "fileSearch", "computerUse"],
  searchLacks: ["allowedDomains", "blockedDomains", "location", "maxUses"],
  strictTools: "all",
  parts: (model) => (generation(model) >= 3 ? ["detail"] : []),
  toolSearch: false,
  form: () => form,
  budget: { unlimited: -1 },
  // Before Gemini 3, a request cannot have both tools and an output schema.
  answersBySchema: (rule, { model, serves, tools }) =>
    (tools.length === 0 || generation(model) >= 3) && (rule?.structuredOutput ?? serves.vendor === "google"),
  accepts
}
