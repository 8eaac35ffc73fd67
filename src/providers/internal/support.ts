/** The options that the API of a server has no field for. A provider leaves them out and reports them. */
import type { Endpoint } from "../models/rule.ts"
import type { Changes } from "./changes.ts"
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
}

const apis: Readonly<Record<Endpoint, Support>> = {
  chat: {
    api: "Chat Completions",
    lacks: ["previousResponseId"],
    hostedTools: []
  },
  responses: {
    api: "The Responses API",
    lacks: ["seed", "stop"],
    hostedTools: ["webSearch", "codeExecution", "fileSearch", "computerUse"]
  },
  messages: {
    api: "The Messages API",
    lacks: ["logprobs", "previousResponseId", "seed", "store"],
    hostedTools: ["webSearch", "codeExecution", "computerUse"]
  },
  generateContent: {
    api: "Gemini's API",
    lacks: ["parallelToolCalls", "previousResponseId", "store"],
    hostedTools: ["webSearch", "codeExecution", "fileSearch", "computerUse"]
  },
  converse: {
    api: "Converse",
    lacks: ["logprobs", "parallelToolCalls", "previousResponseId", "seed", "store"],
    hostedTools: []
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
