/**
 * The conversion of an `AiError` to a reason of `ProviderError`.
 */
import * as AiError from "effect/ai/AiError"
import * as Duration from "effect/Duration"
import * as Inspectable from "effect/Inspectable"
import * as Predicate from "effect/Predicate"
import type { Reason } from "../ProviderError.ts"
import * as Reasons from "../ProviderError.ts"
import * as VendorKeys from "../internal/vendorKeys.ts"

/** Converts an `AiError`, without keys that a server or a proxy repeats. */
export const fromAiError = ({ reason }: AiError.AiError): Reason => {
  const facts = factsOf(reason)
  switch (reason._tag) {
    case "RateLimitError":
      return new Reasons.RateLimited(waiting(reason, facts))
    case "QuotaExhaustedError":
      return new Reasons.QuotaExceeded(facts)
    case "AuthenticationError":
      return reason.kind === "InsufficientPermissions"
        ? new Reasons.Forbidden(facts)
        : new Reasons.Unauthenticated(facts)
    case "ContentPolicyError":
      return new Reasons.ContentPolicy(facts)
    case "InternalProviderError":
      return ofServer(reason, facts)
    case "NetworkError":
      return reason.reason === "TransportError"
        ? new Reasons.Transport({ ...facts, kind: kindOf(reason) })
        : new Reasons.InvalidRequest(facts)
    case "InvalidRequestError":
    case "UnknownError":
      return ofStatus(reason, facts)
    case "ToolParameterValidationError":
      return new Reasons.Protocol({ ...facts, kind: "badJson" })
    case "InvalidResponseError":
    case "InvalidOutputError":
    case "StructuredOutputError":
      return new Reasons.Protocol({ ...facts, kind: "badShape" })
    case "InvalidUserInputError":
      return new Reasons.UnsupportedContent(facts)
    default:
      return new Reasons.InvalidRequest(facts)
  }
}

/** Converts the failure in a part of a stream, which may be any value. */
export const fromUnknown = (error: unknown): Reason =>
  AiError.isAiError(error)
    ? fromAiError(error)
    : new Reasons.ServerError({ detail: VendorKeys.cutOut(textOf(error)).slice(0, maxDetail) })

const textOf = (error: unknown): string => {
  if (Predicate.hasProperty(error, "message") && typeof error.message === "string") return error.message
  return typeof error === "string" ? error : Inspectable.toStringUnknown(error)
}

interface Facts {
  readonly detail: string
  readonly status?: number
  readonly requestId?: string
  readonly body?: string
}

type Failure = AiError.AiErrorReason

const factsOf = (reason: Failure): Facts => {
  const { body, response } = httpOf(reason) ?? {}
  const requestId = header(reason, "x-request-id") ?? header(reason, "request-id")
  return {
    detail: VendorKeys.cutOut(detailOf(reason)).slice(0, maxDetail),
    ...(response === undefined ? {} : { status: response.status }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(body === undefined ? {} : { body: excerpt(VendorKeys.cutOut(body)) })
  }
}

const maxDetail = 1600
/** Bytes. */
const maxBody = 4096

const detailOf = (reason: Failure): string => {
  const { description } = "description" in reason ? reason : { description: undefined }
  return description === undefined || description === "" ? reason.message : description
}

const httpOf = (reason: Failure) => ("http" in reason ? reason.http : undefined)

const header = (reason: Failure, name: string): string | undefined => {
  const value = httpOf(reason)?.response?.headers[name]
  return typeof value === "string" ? value : undefined
}

const excerpt = (body: string): string =>
  new TextDecoder().decode(new TextEncoder().encode(body).subarray(0, maxBody)).replace(/\ufffd+$/, "")

const waiting = (reason: Failure, facts: Facts) => {
  const named = "retryAfter" in reason ? reason.retryAfter : undefined
  const seconds = Number(header(reason, "retry-after") ?? NaN)
  const retryAfter = named ?? (seconds > 0 ? Duration.seconds(seconds) : undefined)
  return retryAfter === undefined ? facts : { ...facts, retryAfter }
}

const ofServer = (reason: Failure, facts: Facts): Reason =>
  facts.status === 529 || /overloaded|at capacity/i.test(`${facts.detail} ${facts.body ?? ""}`)
    ? new Reasons.Overloaded(waiting(reason, facts))
    : new Reasons.ServerError(waiting(reason, facts))

/** `effect/ai` has one class for most statuses, and none for a conversation that is too long. */
const ofStatus = (reason: Failure, facts: Facts): Reason => {
  const { body = "", detail, status } = facts
  if (tooLong.test(`${detail} ${body}`)) return new Reasons.ContextOverflow(facts)
  if (status === 402) return new Reasons.QuotaExceeded(facts)
  if (status === 404) return new Reasons.NotFound(facts)
  // Timeout, conflict and "too early" pass like a failure of the server.
  if (status !== undefined && (status >= 500 || status === 408 || status === 409 || status === 425)) {
    return new Reasons.ServerError(waiting(reason, facts))
  }
  return reason._tag === "UnknownError" && status === undefined
    ? new Reasons.Protocol({ ...facts, kind: "badShape" })
    : new Reasons.InvalidRequest(facts)
}

const tooLong =
  /context[ _-]?(?:window|length|size|limit)|(?:prompt|input|conversation) is too long|too many (?:input |prompt )?tokens(?!,? please wait| per (?:minute|hour|day)| processed)|input token count/i

/** Reads the kind from the text of the cause, since the class of the error has none. */
const kindOf = (reason: AiError.NetworkError): Reasons.Transport["kind"] => {
  const text = `${reason.description ?? ""} ${causes(reason.cause)}`
  return kinds.find(([pattern]) => pattern.test(text))?.[1] ?? "reset"
}

const kinds: ReadonlyArray<readonly [RegExp, Reasons.Transport["kind"]]> = [
  [/ECONNREFUSED/, "refused"],
  [/ENOTFOUND|EAI_AGAIN|getaddrinfo/, "dns"],
  [/certificate|CERT_|TLS|SSL/, "tls"]
]

const causes = (error: unknown): string =>
  error instanceof Error ? `${error.message} ${causes(error.cause)}` : String(error ?? "")
