/**
 * The reason of a response that is not an answer: the status decides, and the problem of its body says why.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import * as JsonDepth from "../internal/jsonDepth.ts"
import * as Reasons from "../ProviderError.ts"
import type { Reason } from "../ProviderError.ts"

export type Redact = (text: string) => string

/** Whether the body of a response is an answer. */
export const isAnswer = ({ headers, status }: HttpClientResponse): boolean =>
  status >= 200 && status < 300 && contentType(headers).startsWith("text/event-stream")

const contentType = (headers: HttpClientResponse["headers"]): string => headers["content-type"] ?? ""

export const of = Effect.fnUntraced(function* (
  response: HttpClientResponse,
  redact: Redact
): Effect.fn.Return<Reason> {
  const { headers, status } = response
  if (isRedirect(status)) return redirected(status, headers["location"] ?? "")
  const body = redact(yield* startOf(response))
  const now = (yield* Clock.Clock).currentTimeMillisUnsafe()
  const requestId = headers["x-request-id"]
  const facts = {
    detail: detailIn(body, status),
    status,
    ...(requestId === undefined ? {} : { requestId: redact(requestId) }),
    ...(body === "" ? {} : { body: body.slice(0, maxExcerpt) })
  }
  if (status < 300) {
    const detail = `Expected an event stream, got ${contentType(headers).slice(0, 200)}`
    return new Reasons.Protocol({ ...facts, kind: "contentType", detail })
  }
  return classify(status, facts, waitIn(headers["retry-after"], now))
})

type Facts = Pick<Reason, "status" | "requestId" | "body" | "detail">

const classify = (status: number, facts: Facts, retryAfter: Duration.Duration | undefined): Reason => {
  const waiting = retryAfter === undefined ? facts : { ...facts, retryAfter }
  if (status === 401) return new Reasons.Unauthenticated(facts)
  if (status === 403) return new Reasons.Forbidden(facts)
  if (status === 404) return new Reasons.NotFound(facts)
  if (status === 429) return new Reasons.RateLimited(waiting)
  if (status >= 500 || status === 408 || status === 409 || status === 425)
    return new Reasons.ServerError(waiting)
  return new Reasons.InvalidRequest(facts)
}

/** Browsers hide the status of a redirect. */
const isRedirect = (status: number): boolean => status === 0 || (status >= 300 && status < 400)

const redirected = (status: number, location: string): Reason => {
  const target = URL.canParse(location) ? new URL(location).origin : "elsewhere"
  return new Reasons.Transport({
    kind: "redirect",
    detail: `Redirected to ${target}, which is not followed`,
    ...(status === 0 ? {} : { status })
  })
}

/** The words of a problem of RFC 9457, or those of a member `error`, as servers of pi's proxy have it. */
const detailIn = (body: string, status: number): string => {
  const problem = JsonDepth.parse(body)
  const members = Predicate.isObject(problem)
    ? [problem["detail"], problem["error"], problem["title"], problem["message"]]
    : []
  const words = members.find((member) => typeof member === "string" && member !== "")
  return typeof words === "string" ? words.slice(0, maxDetail) : `HTTP ${status}`
}

const maxDetail = 1000

/** Seconds, or a date. */
const waitIn = (header: string | undefined, now: number): Duration.Duration | undefined => {
  const text = header?.trim() ?? ""
  const millis = /^\d{1,9}(\.\d+)?$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isNaN(millis) ? undefined : Duration.millis(Math.max(0, millis))
}

/** The start of a body, or `""` for one that does not come within 2 seconds. */
const startOf = (response: HttpClientResponse): Effect.Effect<string> => {
  let text = ""
  const read = response.stream.pipe(
    Stream.decodeText,
    Stream.takeUntil((piece) => (text += piece).length > maxBody),
    Stream.runDrain,
    Effect.ignore
  )
  return Effect.map(Effect.timeoutOption(read, "2 seconds"), (done) => (Option.isNone(done) ? "" : text))
}

const maxBody = 64 * 1024
/** At most 4 kB in UTF-8. */
const maxExcerpt = 1024
