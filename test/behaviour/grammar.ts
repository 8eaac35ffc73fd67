/**
 * The grammar of events that the docs of `AgentEvent` publish, and whether events follow it.
 */
import type { AgentEvent } from "effect-agent"
import { readFileSync } from "node:fs"
import { join } from "node:path"

const source = readFileSync(join(import.meta.dirname, "../../src/AgentEvent.ts"), "utf8")

/** The rules by their names. A line that begins with a bar continues the rule before it. */
export const rules: ReadonlyMap<string, string> = new Map(
  (/```text\n([^]*?)```/.exec(source)?.[1] ?? "")
    .replaceAll(/^ \* ?/gm, "")
    .split(/\n(?=\S)/)
    .flatMap((line) => {
      const [, name, right] = /^(\w+)\s+([^]*)$/.exec(line.trim()) ?? []
      return name === undefined || right === undefined ? [] : [[name, right.replaceAll(/\s+/g, " ")] as const]
    })
)

/** A rule as a regular expression over tags that each end with a comma. */
const patternOf = (rule: string): string =>
  rule
    .replaceAll(/\w+/g, (name) => {
      const right = rules.get(name)
      return right === undefined || name === "Tool" ? `(?:${name},)` : `(?:${patternOf(right)})`
    })
    .replaceAll(" ", "")

/** The events that a rule names, those of its parts too. */
const tagsOf = (rule: string): ReadonlyArray<string> =>
  [...rule.matchAll(/\w+/g)].flatMap(([name]) => {
    const right = rules.get(name)
    return right === undefined ? [name] : tagsOf(right)
  })

const ofRun = new Set(tagsOf("Run"))
const ofTool = new Set(tagsOf("Tool"))
const run = new RegExp(`^${patternOf(rules.get("Run") ?? "")}$`)
const tool = new RegExp(`^${patternOf(rules.get("Tool") ?? "")}$`)

/** Where events do not follow the grammar, in words. Empty when all do. */
export const broken = (events: ReadonlyArray<AgentEvent.AgentEvent>): ReadonlyArray<string> => {
  const calls: Array<string> = []
  // A later turn may have a call of the same id.
  const open = new Map<string, number>()
  let whole = ""
  for (const event of events) {
    if ("toolCallId" in event && ofTool.has(event._tag)) {
      if (event._tag === "ToolExecutionStart") open.set(event.toolCallId, calls.push("") - 1)
      const index = open.get(event.toolCallId) ?? calls.push("") - 1
      calls[index] += `${event._tag},`
    }
    // The calls of a turn interleave: the start stands for the call.
    if (event._tag === "ToolExecutionStart") whole += "Tool,"
    else if (ofRun.has(event._tag) && !ofTool.has(event._tag)) whole += `${event._tag},`
  }
  const wrong = [...(run.test(whole) ? [] : [whole]), ...calls.filter((call) => !tool.test(call))]
  return wrong.map((tags) => `not by the grammar: ${tags}`)
}
