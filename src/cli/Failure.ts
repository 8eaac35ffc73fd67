/** Failures as text for a person, with advice on the next step. */
import * as Duration from "effect/Duration"
import type { EventError, LimitExceeded } from "../internal/failureReason.ts"
import type { ProviderError } from "../ProviderError.ts"
import { companies, servers, startOf } from "./agent/Vendors.ts"

/** One line, unless the message of a provider has more. The caller joins the lines. */
export const explain = (error: EventError): string => {
  switch (error._tag) {
    case "ProviderError":
      return ofProvider(error)
    case "LimitExceeded":
      return ofLimit(error)
    case "Defect":
      return `This is a bug: ${error.message}. --verbose shows where.`
    default:
      return error.message
  }
}

/** The failure of a try that another one follows. The next one needs no advice, unless it goes to another model. */
export const beforeRetry = (error: EventError): string =>
  error._tag === "ProviderError" && error.isRetryable ? withoutStop(inShort(error)) : explain(error)

const inShort = ({ provider, reason }: ProviderError): string =>
  `${provider}: ${reason._tag}${reason.detail === "" ? "" : `: ${reason.detail}`}`

/** The message, with the advice of the program in place of that for developers. */
const ofProvider = (error: ProviderError): string => {
  const { earlier, message } = error
  const advice = adviceOn(error)
  if (advice === "") return `${withoutStop(message)}.`
  const before = earlier === undefined ? [] : [`Before: ${earlier.join(" | ")}`]
  return [`${withoutStop(inShort(error))}.`, advice, ...before].join(" ")
}

/**
 * Removes full stops and white space at the end. A regular expression for that takes quadratic time on a long
 * run of spaces.
 */
const withoutStop = (message: string): string => {
  let trimmed = message.trimEnd()
  while (trimmed.endsWith(".")) trimmed = trimmed.slice(0, -1).trimEnd()
  return trimmed
}

const adviceOn = ({ isRetryable, provider, reason, retryAfter }: ProviderError): string => {
  // The message says it.
  if (retryAfter !== undefined && Duration.toMillis(retryAfter) >= 60_000) return ""
  switch (reason._tag) {
    case "Unauthenticated":
      return `Check ${keyNameOf(provider)}.`
    case "Forbidden":
      return "The key may not use this model."
    case "QuotaExceeded":
      return "Check the account's credit."
    case "NotFound":
      return `${listing(provider)}${
        provider === "openai"
          ? "Name another model, or openai-chat/ID for a server that speaks only Chat Completions."
          : "Name another model with --model provider/id."
      }`
    case "ModelNotSupported":
      return "Name another model with --model provider/id."
    case "ContextOverflow":
      return "Send less text at once, or name a model with a larger context."
    case "StreamStalled":
      return "Try again, or name another model."
    case "Transport":
      if (reason.kind !== "refused" && reason.kind !== "dns") return "Try again."
      return servers.some(({ id }) => id === provider)
        ? `${capitalized(startOf(provider))}, or give its address with --base-url.`
        : "Check the address and the network."
    default:
      return isRetryable ? "Try again in a while." : ""
  }
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** A vendor may have turned off a model that the program knows, even the one that it chose. */
const listing = (provider: string): string =>
  companies.some(({ id }) => id === provider)
    ? `"effect-agent models ${provider}" lists those that are known, the site of ${provider} those that it has. `
    : ""

const keyNameOf = (provider: string): string =>
  companies.find(({ id }) => id === provider)?.keyNames.join(" or ") ?? "the key"

const ofLimit = (error: LimitExceeded): string => {
  switch (error.limit) {
    case "maxTurns":
      return `Stopped after ${error.max} ${error.max === 1 ? "turn" : "turns"}. To go further give a higher --max-turns.`
    case "executionTime":
      return `Stopped after ${error.max / 1000} ${error.max === 1000 ? "second" : "seconds"}, by --timeout.`
    case "maxIdenticalToolCalls":
      return `Stopped: the model made the same tool calls ${error.value} times, with the same results.`
    default:
      return `${error.message}.`
  }
}
