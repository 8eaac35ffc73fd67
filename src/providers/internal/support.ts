/** The options that the API of a server has no field for. A provider leaves them out and reports them. */
import type { Endpoint } from "./models/rule.ts"
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

/**
 * An option of web searches that a vendor runs.
 *
 * @since 0.2.0
 * @category models
 */
export type SearchMember = "maxUses" | "allowedDomains" | "blockedDomains" | "location"

/** An option of a block or of a tool. */
export type PartOption = "detail" | "citations" | "inputExamples" | "allowedCallers"

/** The options that an API lacks, and the hosted tools that it has. */
export interface Support {
  /** The name of the API in reports. */
  readonly api: string
  readonly lacks: ReadonlyArray<Option>
  readonly hostedTools: ReadonlyArray<HostedTool>
  /** The members of web searches that the API lacks (default: none). */
  readonly searchLacks?: ReadonlyArray<SearchMember>
  /** The schemas of strict tools to which the API holds the model: those without optional members, or all. */
  readonly strictTools: "closed" | "all"
  /** The options of blocks and tools that the API has, of those that only some have. */
  readonly parts: ReadonlyArray<PartOption>
  /** The header, or the member of the body, that names the betas of a request (default: none). */
  readonly betas?: string
  /** Whether the API can let a model search for tools that a request defers (default: `false`). */
  readonly toolSearch?: boolean
}

/** The APIs, by their endpoints. */
export const apis: Readonly<Record<Endpoint, Support>> = {
  chat: {
    api: "Chat Completions",
    lacks: ["previousResponseId"],
    hostedTools: [],
    searchLacks: ["blockedDomains", "maxUses"],
    strictTools: "closed",
    parts: ["detail"],
    betas: "openai-beta"
  },
  responses: {
    api: "The Responses API",
    lacks: ["seed", "stop"],
    hostedTools: ["webSearch", "codeExecution", "fileSearch", "computerUse"],
    searchLacks: ["blockedDomains", "maxUses"],
    strictTools: "closed",
    parts: ["detail", "allowedCallers"],
    betas: "openai-beta",
    toolSearch: true
  },
  messages: {
    api: "The Messages API",
    lacks: ["logprobs", "previousResponseId", "seed", "store"],
    hostedTools: ["webSearch", "codeExecution", "computerUse"],
    strictTools: "closed",
    parts: ["citations", "inputExamples", "allowedCallers"],
    betas: "anthropic-beta",
    toolSearch: true
  },
  generateContent: {
    api: "Gemini's API",
    lacks: ["parallelToolCalls", "previousResponseId", "store"],
    hostedTools: ["webSearch", "codeExecution", "fileSearch", "computerUse"],
    searchLacks: ["allowedDomains", "blockedDomains", "location", "maxUses"],
    strictTools: "all",
    parts: ["detail"]
  },
  converse: {
    api: "Converse",
    lacks: ["logprobs", "previousResponseId", "seed", "store"],
    hostedTools: ["webSearch", "codeExecution"],
    searchLacks: ["allowedDomains", "blockedDomains", "location", "maxUses"],
    strictTools: "closed",
    parts: ["citations"],
    betas: "additionalModelRequestFields"
  }
}

/** The API of a server, and how its options and hosted tools differ from those of the API. */
export interface Server {
  /** The name of the protocol in reports. */
  readonly protocol?: string | undefined
  /** The options that its protocol lacks besides. */
  readonly lacks?: ReadonlyArray<Option> | undefined
  readonly endpoint?: Endpoint | undefined
  /** The hosted tools that the server has besides. */
  readonly hostedTools?: ReadonlyArray<HostedTool> | undefined
  /** The members of web searches that the server lacks besides. */
  readonly searchLacks?: ReadonlyArray<SearchMember> | undefined
  /** The hosted tools of the API that the server lacks. */
  readonly withoutHostedTools?: ReadonlyArray<HostedTool> | undefined
}

/** Leaves out the options that the server lacks, and reports each strict tool to whose schema it does not hold the model. */
export const leaveOut = (changes: Changes, server: Server, tools: Question["tools"]): void => {
  const { endpoint, hostedTools: extra = [], lacks: own = [], protocol, withoutHostedTools = [] } = server
  without(changes, own, `The protocol ${protocol}`)
  if (endpoint === undefined) return
  const { api, hostedTools, lacks, strictTools } = apis[endpoint]
  const searchLacks: ReadonlyArray<string> = [
    ...(apis[endpoint].searchLacks ?? []),
    ...(server.searchLacks ?? [])
  ]
  without(changes, lacks, api)
  const has = [...hostedTools, ...extra].filter((type) => !withoutHostedTools.includes(type))
  changes.keepHostedTools(has, `${api} has no such tool.`)
  for (const { type, ...members } of changes.options.hostedTools ?? []) {
    for (const [member, asked] of type === "webSearch" ? Object.entries(members) : []) {
      if (searchLacks.includes(member))
        changes.report(`hostedTools.webSearch.${member}`, asked, null, `${api} has no such option.`)
    }
  }
  for (const { name, parameters, strict } of tools) {
    if (strict === true && strictTools === "closed" && !isClosed(parameters)) {
      const reason = `The schema of ${name} has optional members, or takes members of any name.`
      changes.report("strict", true, null, reason)
    }
  }
}

const without = (changes: Changes, lacks: ReadonlyArray<Option>, api: string): void => {
  for (const option of lacks) {
    // All APIs allow several calls, if they have an option for it or not.
    const isUsual = option === "parallelToolCalls" && changes.options.parallelToolCalls === true
    if (!isUsual) changes.leaveOut(option, `${api} has no such option.`)
  }
}
