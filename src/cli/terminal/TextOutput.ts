/** Shows a run to a person: the answer on stdout as it arrives, tool calls and errors as lines on stderr. */
import * as Effect from "effect/Effect"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import * as FailureText from "../../internal/failureText.ts"
import * as Message from "../../Message.ts"
import * as CallLines from "./CallLines.ts"
import * as Failure from "../Failure.ts"
import * as Inert from "./Inert.ts"
import type { Screen } from "./Screen.ts"

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
  /** Whether a person decides about the calls of a tool. Default: about none. */
  readonly asks?: (toolName: string) => boolean
}

/** Shows an array of events at a time. `hide` takes away what changes below the last line, before others write. */
export const make = (
  screen: Screen["Service"],
  { answering = "streamed", asks, fallbacks = [] }: Options = {}
) => {
  const { err, out, paint } = screen
  const calls = CallLines.make(screen, asks)
  const retries = retriesOf(fallbacks)
  // An answer ends with a line end, so that later output starts on a new line.
  let isLineOpen = false
  // The text of the deltas. A reader that comes late gets an answer without them.
  let streamed = ""

  const pieces = (event: AgentEvent): ReadonlyArray<Piece> => {
    const lines = calls.lines(event)
    if (lines.length > 0) return lines.map(({ isBad, text }) => (isBad ? bad(text) : note(text)))
    // Of a sub-agent only its tool calls are shown: its answer is the result of the call that it works for.
    const next = event.path === undefined ? piece(event) : undefined
    if (next === undefined) return []
    // The answer broke off. The note about that, and the new answer, start on a new line.
    const isBroken = event._tag === "ModelCallRetry" || event._tag === "MessageRetracted"
    return isBroken && isLineOpen ? [answer("\n"), next] : [next]
  }
  const piece = (event: AgentEvent): Piece | undefined => {
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
        return note(`${retries.next(event.delayMs)}: ${Inert.line(Failure.beforeRetry(event.error))}`)
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

  const show = (events: ReadonlyArray<AgentEvent>): Effect.Effect<void> => {
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

const failedHook = ({ error, hook, hookName }: OfTag<"HookError">): string =>
  `A ${hook} hook${Inert.line(FailureText.quoted(hookName))} failed: ${Inert.line(error)}`

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
