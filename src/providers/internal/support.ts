/** The options that the API of a server has no field for. A provider leaves them out and reports them. */
import type { Endpoint } from "../models/rule.ts"
import type { Changes } from "./changes.ts"
import { isClosed } from "./openAiSchema.ts"
import type { Question } from "./question.ts"

type Option = keyof Question["options"]

/**
 * The kind of a tool that a vendor runs.
 *
 * @since 0.2.0
 * @category models
 */
export type HostedTool = NonNullable<Question["options"]["hostedTools"]>[number]["type"]

/** The options that an API lacks, and the hosted tools that it has. */
interface Support {
  /** The name of the API in reports. */
  readonly api: string
  readonly lacks: ReadonlyArray<Option>
  readonly hostedTools: ReadonlyArray<HostedTool>
  /** Whether the API holds the model to the schema of a strict tool. */
  readonly strictTools: boolean
}

const apis: Readonly<Record<Endpoint, Support>> = {
  chat: {
    api: "Chat Completions",
    lacks: ["previousResponseId"],
    hostedTools: [],
    strictTools: true
  },
  responses: {
    api: "The Responses API",
    lacks: ["seed", "stop"],
    hostedTools: ["webSearch", "codeExecution", "fileSearch", "computerUse"],
    strictTools: true
  },
  messages: {
    api: "The Messages API",
    lacks: ["logprobs", "previousResponseId", "seed", "store"],
    hostedTools: ["webSearch", "codeExecution", "computerUse"],
    strictTools: true
  },
  generateContent: {
    api: "Gemini's API",
    lacks: ["parallelToolCalls", "previousResponseId", "store"],
    hostedTools: ["webSearch", "codeExecution", "fileSearch", "computerUse"],
    strictTools: false
  },
  converse: {
    api: "Converse",
    lacks: ["logprobs", "parallelToolCalls", "previousResponseId", "seed", "store"],
    hostedTools: [],
    strictTools: true
  }
}

/** Reports each strict tool to whose schema the API does not hold the model. */
export const reportStrict = (
  changes: Changes,
  endpoint: Endpoint | undefined,
  tools: Question["tools"]
): void => {
  if (endpoint === undefined) return
  const { api, strictTools } = apis[endpoint]
  for (const { name, parameters, strict } of tools) {
    if (strict !== true || (strictTools && isClosed(parameters))) continue
    const reason = strictTools
      ? `The schema of ${name} has optional members, or takes members of any name.`
      : `${api} has no strict tools.`
    changes.report("strict", true, null, reason)
  }
}

/** Leaves out the options that the API lacks. `extra`: hosted tools that this server has besides. */
export const leaveOut = (
  changes: Changes,
  endpoint: Endpoint | undefined,
  extra: ReadonlyArray<HostedTool> = []
): void => {
  if (endpoint === undefined) return
  const { api, hostedTools, lacks } = apis[endpoint]
  for (const option of lacks) changes.leaveOut(option, `${api} has no such option.`)
  changes.keepHostedTools([...hostedTools, ...extra], `${api} has no such tool.`)
}
