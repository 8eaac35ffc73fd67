/** Shows a run to a person: the answer on stdout as it arrives, tool calls and errors as lines on stderr. */
import * as Effect from "effect/Effect"
import type { AgentEvent, OfTag } from "../AgentEvent.ts"
import * as FailureText from "../internal/failureText.ts"
import * as Message from "../Message.ts"
import * as Inert from "./Inert.ts"
import type { Screen } from "./Screen.ts"
import * as ToolTitle from "./ToolTitle.ts"

/**
 * When stdout gets the answer: as it arrives, when it is whole, or never. A program that reads stdout takes all of it for the answer,
 * so words before tool calls then go to stderr, and an answer that broke off is not written.
 */
export type Answering = "streamed" | "whole" | "never"

/** Shows an array of events at a time. */
export const make = ({ err, out, paint }: Screen["Service"], answering: Answering = "streamed") => {
  // An answer ends with a line end, so that later output starts on a new line.
  let isLineOpen = false
  // The text of the deltas. A reader that comes late gets an answer without them.
  let streamed = ""

  const pieces = (event: AgentEvent): ReadonlyArray<Piece> => {
    const next = piece(event)
    if (next === undefined) return []
    // The answer broke off. The note about that, and the new answer, start on a new line.
    const isBroken = event._tag === "ModelCallRetry" || event._tag === "MessageRetracted"
    return isBroken && isLineOpen ? [answer("\n"), next] : [next]
  }
  const piece = (event: AgentEvent): Piece | undefined => {
    if (event.path !== undefined) return pieceInside(event)
    switch (event._tag) {
      case "MessageStart":
        streamed = ""
        return undefined
      case "MessageDelta":
        if (answering !== "streamed" || event.delta._tag !== "TextDelta") return undefined
        streamed += event.delta.delta
        return answer(event.delta.delta)
      case "MessageEnd":
        if (event.message.role !== "assistant") return undefined
        if (answering === "whole") return whole(event.message)
        return answering === "streamed" ? ending(missing(event.message, streamed)) : undefined
      case "MessageRetracted":
        streamed = ""
        return note("The answer broke off and starts again.")
      case "HandedOff":
        return note(`${Inert.line(event.to)} continues the conversation.`)
      case "ToolExecutionStart":
      case "ToolExecutionEnd":
        return call(event)
      case "ModelCallRetry":
      case "RunRetry":
        return note(
          `Trying again in ${(event.delayMs / 1000).toFixed(1)} s: ${Inert.line(event.error.message)}`
        )
      case "HookError":
        return bad(
          `A ${event.hook} hook${Inert.line(FailureText.quoted(event.hookName))} failed: ${Inert.line(event.error)}`
        )
      case "Compaction":
        if (event.error !== undefined) return bad(Inert.line(event.error.message))
        return event.status === "start" ? undefined : note(compacted(event))
      case "ContextTransformed":
        return event.dropped === 0 || event.reason === "compaction"
          ? undefined
          : note(`${event.dropped} older messages are left out (${event.reason}).`)
      default:
        return undefined
    }
  }
  const ending = (rest: string): Piece | undefined =>
    rest === "" && !isLineOpen ? undefined : answer(rest.endsWith("\n") ? rest : `${rest}\n`)
  const whole = (message: Message.Assistant): Piece | undefined => {
    const text = Message.textOf(message)
    if (text === "") return undefined
    return Message.toolCalls(message).length > 0
      ? note(Inert.text(text.trimEnd()))
      : answer(text.endsWith("\n") ? text : `${text}\n`)
  }
  /** Of a sub-agent: its tool calls, and no text. Its answer is the result of the call that it works for. */
  const pieceInside = (event: AgentEvent): Piece | undefined =>
    event._tag === "ToolExecutionStart" || event._tag === "ToolExecutionEnd" ? call(event) : undefined
  const call = (event: OfTag<"ToolExecutionStart" | "ToolExecutionEnd">): Piece => {
    const depth = "│ ".repeat(event.path?.length ?? 0)
    if (event._tag === "ToolExecutionStart")
      return note(`${depth}→ ${ToolTitle.of(event.toolName, event.params)}`)
    return event.isError ? bad(`${depth}✗ ${ended(event)}`) : note(`${depth}← ${ended(event)}`)
  }
  const answer = (text: string): Piece => {
    const shown = Inert.text(text)
    if (shown !== "") isLineOpen = !shown.endsWith("\n")
    return { write: out, text: shown }
  }
  const note = (line: string): Piece => ({ write: err, text: `${paint.dim(line)}\n` })
  const bad = (line: string): Piece => ({ write: err, text: `${paint.red(line)}\n` })

  return (events: ReadonlyArray<AgentEvent>): Effect.Effect<void> =>
    Effect.forEach(joined(events.flatMap(pieces)), ({ text, write }) => write(text), { discard: true })
}

/** The part of an answer that no delta has brought. */
const missing = ({ content }: Message.Assistant, streamed: string): string => {
  const text = content.map((block) => (block.type === "text" ? block.text : "")).join("")
  return text.startsWith(streamed) ? text.slice(streamed.length) : `\n${text}`
}

const compacted = ({ tokensAfter, tokensBefore }: OfTag<"Compaction">): string =>
  `The conversation was compacted, from ${tokensBefore ?? "?"} to ${tokensAfter ?? "?"} tokens.`

interface Piece {
  readonly write: (text: string) => Effect.Effect<void>
  readonly text: string
}

/** Joins consecutive texts for one stream, so that deltas of one array need one write. */
const joined = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Piece> => {
  const writes: Array<Piece> = []
  for (const next of pieces) {
    const last = writes.at(-1)
    if (last?.write === next.write) writes[writes.length - 1] = { ...last, text: last.text + next.text }
    else writes.push(next)
  }
  return writes
}

/**
 * The tool and its result: a short one completely, the number of lines of a long one, the first line of an
 * error.
 */
const ended = ({ durationMs, isError, result, toolName }: OfTag<"ToolExecutionEnd">): string => {
  const text = result.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n")
  const lines = text.trim().split("\n")
  const summary = lines.length === 1 || isError ? Inert.line(lines[0] ?? "", 160) : `${lines.length} lines`
  const time = durationMs < 1000 ? "" : ` (${(durationMs / 1000).toFixed(1)} s)`
  return `${Inert.line(toolName)}: ${summary}${time}`
}
