/**
 * The reason of a response that is not an answer: the status decides, and the problem of its body says why.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as VendorFailure from "../../http/VendorFailure.ts"
import type { Reason } from "../../ProviderError.ts"
import { Protocol, Transport } from "../../ProviderError.ts"

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
  const shown = Object.entries(headers).map(([name, value]) => [name, redact(value)] as const)
  const reason = VendorFailure.ofResponse({ status, headers: Object.fromEntries(shown), body, now })
  if (status >= 300) return reason
  const detail = `Expected an event stream, got ${contentType(headers).slice(0, 200)}`
  const { body: excerpt, requestId } = reason
  return new Protocol({
    kind: "contentType",
    detail,
    status,
    ...(requestId === undefined ? {} : { requestId }),
    ...(excerpt === undefined ? {} : { body: excerpt })
  })
})

/** Browsers hide the status of a redirect. */
const isRedirect = (status: number): boolean => status === 0 || (status >= 300 && status < 400)

const redirected = (status: number, location: string): Reason => {
  const target = URL.canParse(location) ? new URL(location).origin : "elsewhere"
  return new Transport({
    kind: "redirect",
    detail: `Redirected to ${target}, which is not followed`,
    ...(status === 0 ? {} : { status })
  })
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
