/**
 * Runs for end users: their failures are in words that name no address, no key and nothing that only an operator can do.
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../../AgentEvent.ts"
import { defect, type EventError } from "../../internal/failureReason.ts"
import * as ProviderError from "../../ProviderError.ts"
import type { Entry } from "../../runs/LogEntry.ts"
import type { Service } from "../../runs/Runs.ts"

/** The words about a failure; `undefined` stands for that of an answer, of which the transcript has no more. */
export type Words = (error: EventError | undefined) => string

const busy: ReadonlySet<string> = new Set(["RateLimited", "Overloaded", "CircuitOpen"])

/** The words by default. */
export const plain: Words = (error) => {
  if (error?._tag === "InvalidInput") return error.message
  if (error?._tag === "LimitExceeded") return "The answer reached a limit of this service."
  const reason = error?._tag === "ProviderError" ? error.reason._tag : ""
  if (busy.has(reason)) return "The model is busy at the moment. Please try again later."
  if (reason === "ContextOverflow") return "The conversation is too long for the model."
  if (reason === "ContentPolicy") return "The model did not answer for reasons of its policy."
  return "Something went wrong at the server. Please try again later."
}

/** Puts the failures of runs in other words. */
export const of = (runs: Service, words: Words): Service => {
  const shown = (event: AgentEvent): AgentEvent => inWords(event, words)
  const entry = ({ event, frame, position, tag }: Entry): Entry => ({
    position,
    tag,
    frame,
    event: event === undefined ? undefined : shown(event)
  })
  return {
    ...runs,
    watch: (...of) =>
      Effect.map(runs.watch(...of), (pages) => pages && Stream.map(pages, (page) => page.map(entry))),
    events: (...of) =>
      Effect.map(
        runs.events(...of),
        Stream.map(({ event, position }) => ({ position, event: shown(event) }))
      ),
    sessions: {
      ...runs.sessions,
      get: (sessionId) =>
        Effect.map(runs.sessions.get(sessionId), (contents) => ({
          ...contents,
          view: { ...contents.view, ...messagesOf(contents.view["messages"], words) }
        }))
    }
  }
}

const inWords = (event: AgentEvent, words: Words): AgentEvent => {
  switch (event._tag) {
    case "RunError":
    case "ModelCallError":
      return { ...event, error: defect(words(event.error)) }
    case "RunEnd":
      return event.error === undefined ? event : { ...event, error: defect(words(event.error)) }
    case "RunRetry":
    case "ModelCallRetry":
      return { ...event, error: provider(event.error, words) }
    case "MessageEnd": {
      const { message } = event
      return message.role === "assistant" && message.stopReason === "error"
        ? { ...event, message: { ...message, errorMessage: words(undefined) } }
        : event
    }
    default:
      return event
  }
}

const provider = (error: ProviderError.ProviderError, words: Words) =>
  new ProviderError.ProviderError({
    provider: error.provider,
    reason: new ProviderError.ServerError({ detail: words(error) })
  })

const messagesOf = (messages: Schema.Json | undefined, words: Words): { readonly messages?: Schema.Json } =>
  Array.isArray(messages)
    ? {
        messages: messages.map((message) =>
          Predicate.isObject(message) && message["stopReason"] === "error"
            ? { ...message, errorMessage: words(undefined) }
            : message
        )
      }
    : {}
