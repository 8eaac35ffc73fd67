/** The parts of a request that the Messages API takes, and its servers and models. */
import { memoize } from "effect/Function"
import type { ToolDefinition } from "../../../Provider.ts"
import type { HostedToolDefinition } from "../../../RunOptions.ts"
import type { Accepted, Api, Asked } from "../../Protocol.ts"
import { inHeader } from "../betas.ts"
import type { Changes } from "../changes.ts"
import { budget, form, media } from "../claude.ts"
import * as Json from "../json.ts"
import type { Rule } from "../models/rule.ts"
import { isClosed } from "../openAiSchema.ts"
import { usually } from "../toolSchemas.ts"
import { screen, screenOf, toolset } from "./hosted.ts"

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
