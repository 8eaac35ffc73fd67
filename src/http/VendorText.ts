/** The texts of servers, which may be megabytes long and hold keys. */
import * as Json from "../internal/json.ts"

/**
 * The first 4,096 characters of a message. Only these are searched with patterns, which may take quadratic
 * time.
 */
export const start = (message: string): string => message.slice(0, maxMessage)

const maxMessage = 4096

/** At most `length` characters, and an ellipsis if that is not all. */
export const cut = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length)}…`

/** At most 4 kB in UTF-8. */
export const excerpt = (body: string): string => {
  const bytes = new TextEncoder().encode(body.slice(0, maxBody))
  return bytes.length <= maxBody
    ? body.slice(0, maxBody)
    : whole(new TextDecoder().decode(bytes.subarray(0, maxBody)))
}

const maxBody = 4096

const whole = (text: string): string => text.replace(/\ufffd+$/, "")

/**
 * The data of an event that reports a failure, at most 64 Ki characters, as the body of an error response.
 * Keeps JSON valid if possible, with long texts cut.
 */
export const shortened = (data: string): string => {
  if (data.length <= maxData) return data
  const json = Json.parse(data)
  const short = json === undefined ? data : JSON.stringify(json, (_, value: unknown) => brief(value))
  return short.slice(0, maxData)
}

const maxData = 64 * 1024

const brief = (value: unknown): unknown => (typeof value === "string" ? cut(value, maxMessage) : value)

// ───────────────────────── Keys in texts
//
// Keys of known vendors are recognised by their first characters, in texts that may hold a key of which this package does not know.
// A key of another form stays.

// Prefixes of keys with dashes and underscores: OpenAI, Anthropic, OpenRouter, DeepSeek, Stripe; xAI; NVIDIA;
// GitHub; GitLab; Slack; PyPI; Google.
const loose = "(?:[sp]k[-_]|rk_live_|xai-|nvapi-|github_pat_|glpat-|xox[abprs]-|pypi-|AIza|ya29\\.)"
// Prefixes of keys without them, unlike names such as npm_lifecycle_event: Groq; Cerebras; Hugging Face;
// Fireworks; GitHub; npm; Amazon.
const strict = "(?:(?:gsk_|csk-|hf_|fw_|gh[pousr]_|npm_)(?=[A-Za-z0-9]{12})|(?:AKIA|ASIA)(?=[A-Z0-9]{12}))"
const head = `(?:${loose}|${strict})`

const anywhere = new RegExp(`\\b${head}[\\w-]{12,}|\\bBearer\\s+\\S{8,}`, "g")
const keyAtStart = new RegExp(`^${head}[\\w-]{8}`)

/** Replaces a key. */
export const redacted = "[redacted]"

/** The text with everything that looks like a key, or follows `Bearer`, cut out of it. */
export const cutOut = (text: string): string => text.replace(anywhere, redacted)

/** Whether a text looks like a key from its start on. */
export const isKey = (text: string): boolean => keyAtStart.test(text)

// ───────────────────────── Headers

type Headers = Readonly<Record<string, string>>

/** Returns the headers by names in lower case, without those that may be secret. */
export const shown = (headers: Headers | undefined): Headers =>
  Object.fromEntries(
    Object.entries(headers ?? {}).flatMap(([name, value]) =>
      secret.test(name) ? [] : [[name.toLowerCase(), cutOut(value)]]
    )
  )

// Headers of rate limits speak of tokens.
const secret = /cookie|authori[sz]ation|authenticat|api[-_]?key|token(?!s)|secret|session|csrf/i
