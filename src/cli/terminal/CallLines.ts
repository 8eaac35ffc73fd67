/**
 * Shows tool calls to a person: a line when a call begins and one when it ends, with the end of what a command has written. On a terminal
 * that part stands below the last line while the command works.
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import * as Inert from "./Inert.ts"
import type { Screen } from "./Screen.ts"

/** The most lines of the output of a command. */
const maxLines = 5

/** The tool whose output a person reads. */
const commandTool = "shell"

/** A line, with its lines of output. */
export interface CallLine {
  readonly text: string
  readonly isBad: boolean
}

/**
 * Makes the lines of calls. `asks`: whether a person decides about the calls of a tool. The question names the call then, and no other
 * line does.
 */
export const make = (
  { err, paint, width }: Screen["Service"],
  asks: (toolName: string) => boolean = () => false
) => {
  /** The lines of calls that have not begun, as a question may take their place. */
  const waiting = new Map<string, CallLine>()
  /** The output of commands that work, the newest last. */
  const working = new Map<string, string>()
  /** The number of lines that stand below the last one. */
  let drawn = 0

  const release = (toolCallId: string): ReadonlyArray<CallLine> => {
    const line = waiting.get(toolCallId)
    waiting.delete(toolCallId)
    return line === undefined ? [] : [line]
  }

  /** The lines of an event. */
  const lines = (event: AgentEvent): ReadonlyArray<CallLine> => {
    switch (event._tag) {
      case "ToolExecutionStart": {
        const text = `${depthOf(event)}→ ${titleOf(event.toolName, event.params)}`
        waiting.set(event.toolCallId, { text, isBad: false })
        return asks(event.toolName) ? [] : release(event.toolCallId)
      }
      case "ApprovalRequested":
        if (!asks(event.toolName)) return []
        waiting.delete(event.toolCallId)
        return []
      case "ToolInvoked":
        return release(event.toolCallId)
      case "ToolExecutionProgress":
        if (event.toolName === commandTool) working.set(event.toolCallId, textOf(event.partial))
        return []
      case "ToolBackgrounded": {
        const text = `${depthOf(event)}… ${event.toolName} continues in the background as ${event.handle}`
        return [...release(event.toolCallId), { text, isBad: false }]
      }
      case "ToolExecutionEnd":
        working.delete(event.toolCallId)
        return [...release(event.toolCallId), ended(event)]
      default:
        return []
    }
  }

  /** Removes what stands below the last line, before another line comes. */
  const hide = Effect.suspend(() => {
    const up = drawn
    drawn = 0
    return up === 0 ? Effect.void : err(`\u001b[${up}A\u001b[J`)
  })

  /** Shows the output of the command that wrote last. */
  const draw = Effect.suspend(() => {
    const output = [...working.values()].at(-1)
    const columns = width()
    if (output === undefined || columns === 0) return Effect.void
    const shown = lastOf(output, columns - indent.length - 1)
    drawn = shown.length
    return err(shown.map((line) => `${paint.dim(indent + line)}\n`).join(""))
  })

  return { lines, hide, draw }
}

const indent = "    "

const depthOf = ({ path }: AgentEvent): string => "│ ".repeat(path?.length ?? 0)

const textOf = ({ content }: OfTag<"ToolExecutionEnd">["result"]): string =>
  content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n")

/** The last lines of an output, of which a terminal shows each on one line. */
const lastOf = (output: string, columns: number): ReadonlyArray<string> =>
  output
    .trimEnd()
    .split("\n")
    .slice(-maxLines)
    .map((line) =>
      // No more of it can fit.
      within(Inert.text(lastShown(line).slice(0, columns + 1)).replaceAll("\t", "  "), columns)
    )

/** A carriage return begins a line anew, as progress bars do. */
const lastShown = (line: string): string => {
  const parts = line.split("\r").filter((part) => part !== "")
  return parts.at(-1) ?? ""
}

/** As much of a line as fits. Characters beyond ASCII may take two columns. */
const within = (line: string, columns: number): string => {
  let taken = 0
  let end = 0
  for (const char of line) {
    taken += char.length === 1 && char < "\u007f" ? 1 : 2
    if (taken > columns) return `${line.slice(0, end)}…`
    end += char.length
  }
  return line
}

/** Columns of a line of output where no terminal limits them. */
const maxColumns = 200

/**
 * The tool and its result: a short one completely, the first line of an error, the number of lines of a long one, and of a command the
 * last of them.
 */
const ended = (event: OfTag<"ToolExecutionEnd">): CallLine => {
  const { durationMs, isError, result, toolName } = event
  const output = textOf(result)
  const lines = output.trim().split("\n")
  const isLong = toolName === commandTool && lines.length > 1
  const summary =
    lines.length === 1 || (isError && !isLong) ? Inert.line(lines[0] ?? "", 160) : `${lines.length} lines`
  const time = durationMs < 1000 ? "" : ` (${(durationMs / 1000).toFixed(1)} s)`
  const depth = depthOf(event)
  const head = `${depth}${isError ? "✗" : "←"} ${Inert.line(toolName)}: ${summary}${time}`
  const rest = isLong ? lastOf(output, maxColumns).map((line) => depth + indent + line) : []
  return { text: [head, ...rest].join("\n"), isBad: isError }
}

/** The name of the tool, and the params that distinguish calls. */
export const titleOf = (name: string, params: unknown): string =>
  Inert.exactLine(`${name} ${gistOf(params)}`, 160)

// In reading order: the command or pattern, then the place.
const shownParams = ["command", "pattern", "path", "url", "query"]

const gistOf = (params: unknown): string => {
  if (!Predicate.isObject(params)) return ""
  const values = shownParams.flatMap((name) => {
    const value: unknown = Predicate.hasProperty(params, name) ? params[name] : undefined
    return typeof value === "string" ? [value] : []
  })
  if (values.length > 0) return values.join(" in ")
  const json = JSON.stringify(params)
  return json === "{}" ? "" : json
}
