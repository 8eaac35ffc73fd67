/** The head of a response as events have it: its headers, and the rate limits that they report. */
import * as Duration from "effect/Duration"
import type { ModelEvent, RateLimit } from "../../ModelEvent.ts"
import * as RetryAfter from "../../http/RetryAfter.ts"
import type { Redact } from "./secrets.ts"
import * as VendorKeys from "../../http/VendorKeys.ts"

export type Head = Pick<Extract<ModelEvent, { readonly _tag: "Start" }>, "headers" | "rateLimits">
type Headers = Readonly<Record<string, string>>
type Limits = Readonly<Record<string, RateLimit>>

/** Reads the headers of a response. `now` is in milliseconds since the epoch. */
export const of = (all: Headers, redact: Redact, now: number): Head => {
  const headers = redacted(VendorKeys.shown(all), redact)
  const limits = Object.entries(headers).reduce((limits, field) => added(limits, field, now), none)
  return {
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(limits === none ? {} : { rateLimits: limits })
  }
}

const none: Limits = {}

/** Most responses have no secret, which one search shows. */
const redacted = (headers: Headers, redact: Redact): Headers => {
  const text = Object.values(headers).join("\n")
  if (redact(text) === text) return headers
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, redact(value)]))
}

/** OpenAI's form, also without a subject or with a period at the end, and Anthropic's. */
const forms = [
  /^(?:x-)?ratelimit-(?<kind>limit|remaining|reset)(?:-(?<subject>req|requests|tokens|(?:in|out)put-tokens))?(?:-\w+)?$/,
  /^anthropic-ratelimit-(?<subject>requests|tokens|(?:in|out)put-tokens)-(?<kind>limit|remaining|reset)$/
]

const names: Readonly<Record<string, string>> = {
  tokens: "tokens",
  "input-tokens": "inputTokens",
  "output-tokens": "outputTokens"
}

const added = (limits: Limits, [header, value]: readonly [string, string], now: number): Limits => {
  const { kind, subject = "" } = forms.map((form) => form.exec(header)?.groups).find((found) => found) ?? {}
  const member = kind === "reset" ? "resetAfter" : kind
  if (member === undefined) return limits
  const name = names[subject] ?? "requests"
  const known = limits[name] ?? {}
  const found = kind === "reset" ? RetryAfter.resetAt(value.trim(), now) : numberIn(value)
  if (found === undefined || member in known) return limits
  const read = kind === "reset" ? Duration.millis(Math.max(0, found)) : found
  return { ...limits, [name]: { ...known, [member]: read } }
}

const numberIn = (value: string): number | undefined =>
  /^\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : undefined
