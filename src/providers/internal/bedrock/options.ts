/** Leaves out the options that Converse has, but not for the family of the model, and reports them. */
import type { ToolDefinition } from "../../../Provider.ts"
import type { ThinkingLevel } from "../../../RunOptions.ts"
import type { Changes } from "../changes.ts"
import { isClosed } from "../openAiSchema.ts"
import { vendorAtBedrock } from "../models/ids.ts"
import type { Rule } from "../models/rule.ts"
import * as Family from "./family.ts"

export interface Asked {
  readonly model: string
  readonly rule: Rule | undefined
  readonly tools: ReadonlyArray<ToolDefinition>
  /** The level of thinking that is sent. */
  readonly level: ThinkingLevel | undefined
}

export const restrict = (changes: Changes, { level, model, rule, tools }: Asked): void => {
  const { output, parallelToolCalls, temperature } = changes.options
  const { isClaude } = Family.of(model)
  const vendor = vendorAtBedrock(model)
  if (parallelToolCalls === false && !isClaude)
    changes.leaveOut("parallelToolCalls", "By the Converse API only Claude takes it.")
  if (vendor !== "amazon") changes.keepHostedTools([], "By the Converse API only Nova has such a tool.")
  if (output !== undefined && !(rule?.structuredOutput ?? Family.takesSchema(model)))
    changes.leaveOut("output", "By the Converse API the model takes no output schema.")
  if (tools.some(isStrict) && !Family.takesStrict(model))
    changes.report("strict", true, null, "By the Converse API the model takes no strict tools.")
  if (vendor === "openai") sampleOpenAi(changes, model)
  else if (temperature !== undefined && temperature > 1)
    changes.set("temperature", 1, "The Converse API accepts no more.")
  if (Family.isUnbounded(model, level))
    for (const option of bounds) changes.leaveOut(option, "The model refuses it at this thinking level.")
  if (vendor === "meta") changes.leaveOut("toolChoice", "The model cannot be made to call a tool.")
  retain(changes, Family.of(model))
}

/** Whether the vendor can hold the model to the schema of a tool, as the application wants. */
export const isStrict = ({ parameters, strict }: ToolDefinition): boolean =>
  strict === true && isClosed(parameters)

const bounds = ["maxTokens", "temperature", "topP"] as const

/** The tools that Nova runs. */
export const hosted: ReadonlyMap<string, string> = new Map([
  ["webSearch", "nova_grounding"],
  ["codeExecution", "nova_code_interpreter"]
])

const sampleOpenAi = (changes: Changes, model: string): void => {
  changes.leaveOut("stop", "By the Converse API the model refuses stop sequences.")
  if (model.includes("gpt-oss")) return
  changes.leaveOut("temperature", "By the Converse API the model refuses it.")
  changes.leaveOut("topP", "By the Converse API the model refuses it.")
}

const retain = (changes: Changes, { marks }: Family.Family): void => {
  if (changes.options.cacheRetention !== "long" || marks.long) return
  const sent = marks.prompt ? "short" : null
  changes.report("cacheRetention", "long", sent, "The model does not keep prompts for an hour.")
}
