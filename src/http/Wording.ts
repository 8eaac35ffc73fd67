/** Bounds the text of a server, which may be megabytes long. */
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
