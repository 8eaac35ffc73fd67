/**
 * The reason of a response that is not an answer.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { refusedPart } from "../../http/VendorErrors.ts"
import * as Wording from "../../http/Wording.ts"
import type { ProviderError, Reason } from "../../ProviderError.ts"
import { Protocol as ProtocolFault, Transport } from "../../ProviderError.ts"
import type * as Connection from "./connection.ts"
import * as Failure from "./failure.ts"
import type * as Secrets from "./secrets.ts"

/** Whether the body of a response may be an event stream. */
export const isAnswer = ({ headers, isDecoded, status }: Connection.Connection): boolean =>
  status >= 200 && status < 300 && !(headers["content-type"] ?? "").includes("html") && isDecoded

/** Reads the reason from a response that is not an answer, and closes its connection. */
export const of = Effect.fnUntraced(function* (
  connection: Connection.Connection,
  { otherwise, redact }: { readonly otherwise: string | undefined; readonly redact: Secrets.Redact },
  model: string
): Effect.fn.Return<Reason> {
  const { headers, status } = connection
  if (status >= 300 && status < 400) return redirected(status, redact(headers["location"] ?? ""))
  // Browsers hide the status and the target of a redirect.
  if (status === 0) return redirected(0, "")

  const body = redact(yield* startOf(connection))
  yield* connection.close
  if (status < 300) {
    const got = connection.isDecoded
      ? (headers["content-type"] ?? "")
      : `the encoding ${headers["content-encoding"]}`
    const detail = `Expected an event stream, got ${redact(got).slice(0, 200)}. Check the base URL, which often ends with /v1`
    const excerpt = body === "" ? {} : { body: Wording.excerpt(body) }
    return new ProtocolFault({ kind: "contentType", detail, status, ...excerpt })
  }
  const now = (yield* Clock.Clock).currentTimeMillisUnsafe()
  const advice = hasNoRoute(status, body) ? otherwise : undefined
  return Failure.ofResponse({ status, headers: redacted(headers, redact), body, model, now, advice })
})

/** Whether the server does not know the route. A server that knows it mentions the model or the part that it does not find. */
const hasNoRoute = (status: number, body: string): boolean =>
  status === 405 || (status === 404 && !/model/i.test(body) && refusedPart([], body) === undefined)

/** Whether a request failed because the server does not know its route. */
export const isNoRoute = (error: Reason | ProviderError): boolean =>
  error._tag !== "ProviderError" && error.status !== undefined && hasNoRoute(error.status, error.body ?? "")

const redirected = (status: number, location: string): Reason => {
  const target = URL.canParse(location) ? new URL(location).origin : "elsewhere"
  return new Transport({
    kind: "redirect",
    detail: `Redirected to ${target}, which is not followed`,
    ...(status === 0 ? {} : { status })
  })
}

const redacted = (headers: Connection.Connection["headers"], redact: Secrets.Redact) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, redact(value)]))

/** Reads the first 64 KiB of a body, for 2 seconds at most. Returns "" after that: the status is a reason too. */
export const startOf = (connection: Connection.Connection): Effect.Effect<string> =>
  Effect.timeoutOrElse(connection.text(64 * 1024), {
    duration: "2 seconds",
    orElse: () => Effect.succeed("")
  })
