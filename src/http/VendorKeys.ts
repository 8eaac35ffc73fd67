/**
 * Recognises keys of known vendors by their first characters, in texts that may hold a key of which this package does not
 * know. A key of another form stays.
 */

// Prefixes of keys with dashes and underscores: OpenAI, Anthropic, OpenRouter, DeepSeek, Stripe; xAI; NVIDIA;
// GitHub; GitLab; Slack; PyPI; Google.
const loose = "(?:[sp]k[-_]|rk_live_|xai-|nvapi-|github_pat_|glpat-|xox[abprs]-|pypi-|AIza|ya29\\.)"
// Prefixes of keys without them, unlike names such as npm_lifecycle_event: Groq; Cerebras; Hugging Face;
// Fireworks; GitHub; npm; Amazon.
const strict = "(?:(?:gsk_|csk-|hf_|fw_|gh[pousr]_|npm_)(?=[A-Za-z0-9]{12})|(?:AKIA|ASIA)(?=[A-Z0-9]{12}))"
const head = `(?:${loose}|${strict})`

const anywhere = new RegExp(`\\b${head}[\\w-]{12,}|\\bBearer\\s+\\S{8,}`, "g")
const whole = new RegExp(`^${head}[\\w-]{8}`)

/** Replaces a key. */
export const redacted = "[redacted]"

/** The text with everything that looks like a key, or follows `Bearer`, cut out of it. */
export const cutOut = (text: string): string => text.replace(anywhere, redacted)

/** Whether a text looks like a key from its start on. */
export const is = (text: string): boolean => whole.test(text)

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
