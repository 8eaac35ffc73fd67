/**
 * Shows a run: to a person the answer on stdout as it arrives, tool calls and errors as lines on stderr; to a program its events as JSON, one on
 * each line of stdout.
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as AgentEvent from "../../AgentEvent.ts"
import * as Message from "../../Message.ts"
import * as FailureText from "../../internal/failureText.ts"
import * as Outcome from "../agent/Outcome.ts"
import * as Inert from "./Inert.ts"
import type { Screen } from "./Screen.ts"
import { EventError } from "../../internal/failureReason.ts"

/**
 * When stdout gets the answer: as it arrives, when it is whole, or never. A program that reads stdout takes all of it for the answer,
 * so words before tool calls then go to stderr, and an answer that broke off is not written.
 */
export type Answering = "streamed" | "whole" | "never"

interface Options {
  /** Default: `"streamed"`. */
  readonly answering?: Answering
  /** The models to ask where the first one fails, in order. Default: none. */
  readonly fallbacks?: ReadonlyArray<string>
  /** Whether a person decides about a call. Default: about none. */
  readonly asks?: (call: Outcome.Call) => boolean
}

/** Shows an array of events at a time. `hide` takes away what changes below the last line, before others write. */
export const text = (
  screen: Screen["Service"],
  { answering = "streamed", asks, fallbacks = [] }: Options = {}
) => {
  const { err, out, paint } = screen
  const calls = callLines(screen, asks)
  const retries = retriesOf(fallbacks)
  // An answer ends with a line end, so that later output starts on a new line.
  let isLineOpen = false
  // The text of the deltas. A reader that comes late gets an answer without them.
  let streamed = ""

  const pieces = (event: AgentEvent.AgentEvent): ReadonlyArray<Piece> => {
    const lines = calls.lines(event)
    if (lines.length > 0) return lines.map(({ isBad, text }) => (isBad ? bad(text) : note(text)))
    // Of a sub-agent only its tool calls are shown: its answer is the result of the call that it works for.
    const next = event.path === undefined ? piece(event) : undefined
    if (next === undefined) return []
    // The answer broke off. The note about that, and the new answer, start on a new line.
    const isBroken = event._tag === "ModelCallRetry" || event._tag === "MessageRetracted"
    return isBroken && isLineOpen ? [answer("\n"), next] : [next]
  }
  const piece = (event: AgentEvent.AgentEvent): Piece | undefined => {
    switch (event._tag) {
      case "ModelCallStart":
        retries.begin()
        return undefined
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
      case "ModelCallRetry":
      case "RunRetry":
        return note(`${retries.next(event.delayMs)}: ${Inert.line(Outcome.beforeRetry(event.error))}`)
      case "HookError":
        return bad(failedHook(event))
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
  const answer = (text: string): Piece => {
    const shown = Inert.text(text)
    if (shown !== "") isLineOpen = !shown.endsWith("\n")
    return { write: out, text: shown }
  }
  const note = (line: string): Piece => ({ write: err, text: `${paint.dim(line)}\n` })
  const bad = (line: string): Piece => ({ write: err, text: `${paint.red(line)}\n` })

  const show = (events: ReadonlyArray<AgentEvent.AgentEvent>): Effect.Effect<void> => {
    const shown = joined(events.flatMap(pieces))
    const isChanged = shown.length > 0 || events.some(({ _tag }) => _tag === "ToolExecutionProgress")
    const write = Effect.forEach(shown, ({ text, write }) => write(text), { discard: true })
    return isChanged ? Effect.andThen(calls.hide, Effect.andThen(write, calls.draw)) : Effect.void
  }
  return { show, hide: calls.hide }
}

/** The part of an answer that no delta has brought. */
const missing = ({ content }: Message.Assistant, streamed: string): string => {
  const text = content.map((block) => (block.type === "text" ? block.text : "")).join("")
  return text.startsWith(streamed) ? text.slice(streamed.length) : `\n${text}`
}

/** The next request of a model call. One without a delay goes to the next model, if there is one. */
const retriesOf = (fallbacks: ReadonlyArray<string>) => {
  let failed = 0
  return {
    begin: () => {
      failed = 0
    },
    next: (delayMs: number): string => {
      if (delayMs > 0) return `Trying again in ${(delayMs / 1000).toFixed(1)} s`
      const model = fallbacks[failed++]
      return model === undefined ? "Trying again" : `Asking ${Inert.line(model)}`
    }
  }
}

const failedHook = ({ error, hook, hookName }: AgentEvent.OfTag<"HookError">): string =>
  `A ${hook} hook${Inert.line(FailureText.quoted(hookName))} failed: ${Inert.line(error)}`

const compacted = ({ tokensAfter, tokensBefore }: AgentEvent.OfTag<"Compaction">): string =>
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

// ───────────────────────── Tool calls

// Shows tool calls to a person: a line when a call begins and one when it ends, with the end of what a command has written. On a terminal
// that part stands below the last line while the command works.

/** The most lines of the output of a command. */
const maxLines = 5

/** The tool whose output a person reads. */
const commandTool = "shell"

/** A line, with its lines of output. */
interface CallLine {
  readonly text: string
  readonly isBad: boolean
}

/** Makes the lines of calls. `asks`: whether a person decides about a call. The question names the call then, and no other line does. */
const callLines = (
  { err, paint, width }: Screen["Service"],
  asks: (call: Outcome.Call) => boolean = () => false
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
  const lines = (event: AgentEvent.AgentEvent): ReadonlyArray<CallLine> => {
    switch (event._tag) {
      case "ToolExecutionStart": {
        const text = `${depthOf(event)}→ ${titleOf(event.toolName, event.params)}`
        waiting.set(event.toolCallId, { text, isBad: false })
        return asks(event) ? [] : release(event.toolCallId)
      }
      case "ApprovalRequested":
        if (asks(event)) waiting.delete(event.toolCallId)
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

const depthOf = ({ path }: AgentEvent.AgentEvent): string => "│ ".repeat(path?.length ?? 0)

const textOf = ({ content }: AgentEvent.OfTag<"ToolExecutionEnd">["result"]): string =>
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
const ended = (event: AgentEvent.OfTag<"ToolExecutionEnd">): CallLine => {
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

// ───────────────────────── Events as JSON, one on each line

/** Writes an array of events at a time. */
export const json =
  ({ out }: Screen["Service"]) =>
  (events: ReadonlyArray<AgentEvent.AgentEvent>): Effect.Effect<void> =>
    Effect.flatMap(Effect.forEach(events, jsonLine), (lines) => out(lines.join("")))

const encode = Schema.encodeEffect(Schema.toCodecJson(AgentEvent.AgentEvent))

const jsonLine = (event: AgentEvent.AgentEvent): Effect.Effect<string> =>
  isPlain(event) ? Effect.succeed(Inert.json(event)) : Effect.map(Effect.orDie(encode(event)), Inert.json)

/**
 * Events are plain JSON, except for errors and durations. This check saves the encoding of thousands of deltas.
 */
const isPlain = (event: AgentEvent.AgentEvent): boolean =>
  event._tag === "MessageDelta"
    ? event.delta._tag !== "Attempt"
    : !("error" in event || "rateLimits" in event)

// ───────────────────────── The result

const encodeError = Schema.encodeEffect(Schema.toCodecJson(EventError))

interface Played {
  readonly outcome: Outcome.Outcome
  readonly sessionId: string | undefined
}

/** The line with the outcome of a run. */
export const resultLine = Effect.fnUntraced(function* ({ outcome, sessionId }: Played, exitCode: number) {
  const { end, last, output, plan } = outcome
  const error = end?.error && (yield* Effect.orDie(encodeError(end.error)))
  const { durationMs = 0, runId, turns = 0, usage } = end ?? {}
  return Inert.json({
    type: "result",
    status: outcome.status ?? "cancelled",
    exitCode,
    text: plan ?? (last === undefined ? "" : Message.textOf(last)),
    ...(output === undefined ? {} : { output: output.value }),
    ...(sessionId === undefined ? {} : { sessionId }),
    runId,
    turns,
    durationMs,
    usage,
    ...(usage?.cost === undefined ? {} : { cost: usage.cost }),
    ...(error === undefined ? {} : { error: Object.assign({ message: end?.error?.message }, error) })
  })
})
