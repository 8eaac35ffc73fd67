/** The options that the API of a server has no field for. A provider leaves them out and reports them. */
import type { Protocol } from "../Protocol.ts"
import type { Server } from "./server.ts"
import type { Changes } from "./changes.ts"
import { isClosed } from "./openAiSchema.ts"
import type { Question } from "./question.ts"

/** Leaves out the options that the server lacks, and reports each strict tool to whose schema it does not hold the model. */
export const leaveOut = (changes: Changes, { protocol, serves }: Server, tools: Question["tools"]): void => {
  const { hostedTools, lacks = [], strictTools } = protocol
  const title = titleOf(protocol)
  for (const option of lacks) {
    // All APIs allow several calls, if they have an option for it or not.
    const isUsual = option === "parallelToolCalls" && changes.options.parallelToolCalls === true
    if (!isUsual) changes.leaveOut(option, `${title} has no such option.`)
  }
  if (hostedTools !== undefined) {
    const all = [...hostedTools, ...(serves.hostedTools ?? [])]
    const has = all.filter((type) => serves.withoutHostedTools?.includes(type) !== true)
    changes.keepHostedTools(has, `${title} has no such tool.`)
  }
  for (const { name, parameters, strict } of tools) {
    if (strict === true && strictTools === "closed" && !isClosed(parameters)) {
      const reason = `The schema of ${name} has optional members, or takes members of any name.`
      changes.report("strict", true, null, reason)
    }
  }
}

/** Reports the members of web searches that the server lacks. */
export const reportSearches = (changes: Changes, { protocol, serves }: Server): void => {
  const lacking: ReadonlyArray<string> = [...(protocol.searchLacks ?? []), ...(serves.searchLacks ?? [])]
  for (const { type, ...members } of changes.options.hostedTools ?? []) {
    for (const [member, asked] of type === "webSearch" ? Object.entries(members) : []) {
      if (lacking.includes(member))
        changes.report(
          `hostedTools.webSearch.${member}`,
          asked,
          null,
          `${titleOf(protocol)} has no such option.`
        )
    }
  }
}

/** The name of the API of a protocol in reports. */
export const titleOf = ({ name, title = `The protocol ${name}` }: Protocol): string => title
