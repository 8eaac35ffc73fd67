/** The wait that a provider requests, in all places and forms that providers use. */
import * as Duration from "effect/Duration"
import type { Json, JsonObject } from "../internal/json.ts"
import { array, isObject, object, text } from "../internal/json.ts"
import * as Wording from "./Wording.ts"

/** Maximum wait. A higher number means an error or no end. */
const maxMillis = Duration.toMillis("365 days")

type Headers = Readonly<Record<string, string | undefined>>

/**
 * The wait, `undefined` if the response contains none in a known form. Headers win over the body, and fields of
 * the body over its message. `now`, in milliseconds since the epoch, is necessary for forms that contain a
 * point in time.
 */
export const read = (
  headers: Headers,
  error: JsonObject | undefined,
  message: string,
  now?: number
): Duration.Duration | undefined => {
  const all = { ...headersIn(error), ...headers }
  const millis =
    positive(seconds(all["retry-after-ms"], 0.001)) ??
    retryAfterHeader(all["retry-after"], now) ??
    retryInfo(error) ??
    resetHeaders(all, now) ??
    member(error?.["retry_after"] ?? error?.["retryAfter"]) ??
    renewal(error, now) ??
    prose(message)
  return millis === undefined ? undefined : Duration.millis(Math.min(Math.max(0, millis), maxMillis))
}

/** "1m2.5s", "250ms", "20 seconds", "3", in milliseconds. A bare number is in seconds. */
const spell = (value: string): number | undefined => {
  const parts = [...value.slice(0, maxSpan).matchAll(/(\d+(?:\.\d+)?)\s*([a-z]*)/gi)]
  const millis = parts.map(
    ([, amount, unit]) => Number(amount) * (units.get(unit?.toLowerCase() ?? "") ?? NaN)
  )
  const sum = millis.reduce((total, part) => total + part, 0)
  return parts.length === 0 || !Number.isFinite(sum) ? undefined : sum
}

/** Maximum characters of a duration. Vendors use a dozen. */
const maxSpan = 100

const units: ReadonlyMap<string, number> = new Map([
  ["", 1000],
  ["ms", 1],
  ["milliseconds", 1],
  ["s", 1000],
  ["sec", 1000],
  ["secs", 1000],
  ["second", 1000],
  ["seconds", 1000],
  ["m", 60_000],
  ["min", 60_000],
  ["mins", 60_000],
  ["minute", 60_000],
  ["minutes", 60_000],
  ["h", 3_600_000],
  ["hr", 3_600_000],
  ["hour", 3_600_000],
  ["hours", 3_600_000],
  ["d", 86_400_000],
  ["day", 86_400_000],
  ["days", 86_400_000]
])

const positive = (value: number | undefined) => (value !== undefined && value > 0 ? value : undefined)

/** `unit` is in seconds. "1e308" is a number, and "inf" is infinite. */
const seconds = (value: string | undefined, unit = 1): number | undefined => {
  const trimmed = value?.trim() ?? ""
  if (/^(?:\+?inf(?:inity)?)$/i.test(trimmed)) return Infinity
  return /^\d+(?:\.\d+)?(?:e\+?\d+)?$/i.test(trimmed) ? Number(trimmed) * unit * 1000 : undefined
}

/** Cloudflare, Discord and others: in seconds, as in the header of that name. */
const member = (value: Json | undefined) => seconds(typeof value === "number" ? String(value) : text(value))

const retryAfterHeader = (value: string | undefined, now: number | undefined) =>
  seconds(value) ?? until(value, now)

/** An HTTP or ISO date. `Date.parse` accepts some words too, which do not count. */
const until = (value: string | undefined, now: number | undefined): number | undefined => {
  const at = value !== undefined && /\d{4}/.test(value) ? Date.parse(value) : NaN
  return Number.isNaN(at) || now === undefined ? undefined : at - now
}

/** https://cloud.google.com/apis/design/errors: `{"@type": "…RetryInfo", "retryDelay": "34.4s"}` */
const retryInfo = (error: JsonObject | undefined): number | undefined => {
  for (const detail of array(error?.["details"])) {
    const delay = isObject(detail) ? text(detail["retryDelay"]) : undefined
    if (delay !== undefined) return spell(delay)
  }
  return undefined
}

/** The time at which an exhausted limit resets. Limits with remaining requests send this header too. */
const resetHeaders = (headers: Headers, now: number | undefined): number | undefined => {
  const waits = Object.entries(headers).flatMap(([name, value]) => {
    const pair = name.replace("reset", "remaining")
    if (!isReset(name) || value === undefined || headers[pair]?.trim() !== "0") return []
    const wait = resetAt(value.trim(), now)
    return wait === undefined ? [] : [wait]
  })
  return waits.length === 0 ? undefined : waits.reduce((longest, wait) => Math.max(longest, wait))
}

/** "x-ratelimit-reset-tokens". */
const isReset = (name: string): boolean => {
  const limit = name.indexOf("ratelimit")
  return limit !== -1 && name.includes("reset", limit)
}

/** The milliseconds until a date, seconds or milliseconds since the epoch, or a duration. */
export const resetAt = (value: string, now: number | undefined): number | undefined => {
  if (!/^\d+(?:\.\d+)?$/.test(value)) return /^[\d.]+[a-z]/i.test(value) ? spell(value) : until(value, now)
  const count = Number(value)
  if (count < 1e9) return count * 1000
  return now === undefined ? undefined : (count > 1e12 ? count : count * 1000) - now
}

/** OpenRouter sends the headers of the upstream provider in the body. */
const headersIn = (error: JsonObject | undefined): Headers => {
  const headers: Json | undefined = object(error?.["metadata"])?.["headers"]
  if (!isObject(headers)) return {}
  const pairs = Object.entries(headers).flatMap(([name, value]) =>
    typeof value === "string" || typeof value === "number" ? [[name.toLowerCase(), `${value}`] as const] : []
  )
  return Object.fromEntries(pairs)
}

/** The limits of ChatGPT plans: seconds, or seconds since the epoch. Codex reads both (openai/codex, codex-api). */
const renewal = (error: JsonObject | undefined, now: number | undefined): number | undefined =>
  member(error?.["resets_in_seconds"]) ?? resetAt(String(error?.["resets_at"] ?? ""), now)

/** "Please try again in 1m2.5s." */
const prose = (message: string): number | undefined => {
  const span =
    /(?:try again|retry|available|reset)\w{0,10}\s+(?:in|after)\s+((?:\d+(?:\.\d+)?\s*[a-z]+\s*)+)/i.exec(
      Wording.start(message)
    )?.[1]
  return span === undefined ? undefined : spell(leading(span))
}

/** The amounts at the start. The rest of the sentence follows them. */
const leading = (span: string): string =>
  [...span.matchAll(/\d+(?:\.\d+)?\s*([a-z]+)/gi)]
    .filter(([, unit]) => unit !== undefined && units.has(unit.toLowerCase()))
    .map(([amount]) => amount)
    .join(" ")
