/**
 * How much of a server's words is looked at and kept. A server may send megabytes where a sentence belongs.
 */
import * as Json from "./json.ts"

/** The first 4,096 characters of a message. Only these are searched with patterns, which may take quadratic time. */
export const start = (message: string): string => message.slice(0, maxMessage)

const maxMessage = 4096

/** At most `length` characters, and an ellipsis where that is not all. */
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
 * The data of an event in which a server tells of a failure, no longer than it takes to say so: 64 Ki characters, as of
 * the body of a refusal. JSON stays JSON where that is possible, with its long texts cut.
 */
export const shortened = (data: string): string => {
  if (data.length <= maxData) return data
  const json = Json.parseShallow(data)
  const short = json === undefined ? data : JSON.stringify(json, (_, value: unknown) => brief(value))
  return short.slice(0, maxData)
}

const maxData = 64 * 1024

const brief = (value: unknown): unknown => (typeof value === "string" ? cut(value, maxMessage) : value)
