/**
 * Whatever was thrown or failed with, in words for models and events: never a stack, never what is secret by its name.
 */
import * as Cause from "effect/Cause"
import * as Predicate from "effect/Predicate"

export const of = (failure: unknown): string => {
  try {
    return messageOf(failure).replaceAll(/\n[^\S\n]+at [^\n]*:\d+:\d+\)?/g, "")
  } catch {
    return "It failed with something that cannot be read"
  }
}

/** A cause for a log: the start of its text, if that is so long that it would fill the log. */
export const forLog = (cause: Cause.Cause<unknown>): Cause.Cause<unknown> | string => {
  const text = Cause.pretty(cause)
  return text.length > 10_000 ? `${text.slice(0, 10_000)} … (${text.length} characters)` : cause
}

const messageOf = (failure: unknown): string => {
  if (failure instanceof Error) return failure.message === "" ? failure.name : failure.message
  if (typeof failure === "string") return failure
  if (typeof failure === "function") return "a function"
  if (Predicate.hasProperty(failure, "message") && typeof failure.message === "string") return failure.message
  if (typeof failure === "bigint") return String(failure)
  return JSON.stringify(failure, unlessSecret) ?? String(failure)
}

const unlessSecret = (key: string, value: unknown): unknown => (secret.test(key) ? undefined : value)

const secret = /^stack$|authorization|cookie|passw|secret|credential|api[-_]?key|token$/i

/** The name of a hook, in quotes and behind a space. Empty for a hook without a name. */
export const quoted = (name: string | undefined): string =>
  name === undefined ? "" : ` ${JSON.stringify(name)}`

/** As much of it as stands in a sentence. */
export const firstLine = (failure: unknown): string => of(failure).split("\n", 1).join("").slice(0, 500)
