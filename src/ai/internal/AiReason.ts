/**
 * The conversion of an `AiError` to a reason of `ProviderError`.
 */
import * as AiError from "effect/ai/AiError"
import * as Duration from "effect/Duration"
import * as Inspectable from "effect/Inspectable"
import * as Predicate from "effect/Predicate"
import * as HttpConnection from "../../http/HttpConnection.ts"
import * as VendorFailure from "../../http/VendorFailure.ts"
import * as VendorText from "../../http/VendorText.ts"
import * as Reasons from "../../ProviderError.ts"

/** Converts an `AiError`, without keys that a server or a proxy repeats. `now` is milliseconds since the epoch. */
export const fromAiError = ({ reason }: AiError.AiError, now?: number): Reasons.Reason => {
  const facts = factsOf(reason)
  switch (reason._tag) {
    case "QuotaExhaustedError":
      return new Reasons.QuotaExceeded(facts)
    case "ContentPolicyError":
      return new Reasons.ContentPolicy(facts)
    case "NetworkError":
      return reason.reason === "TransportError"
        ? new Reasons.Transport({
            ...facts,
            ...(HttpConnection.kindIn(reason.cause, reason.description) ?? { kind: "reset" })
          })
        : new Reasons.InvalidRequest(facts)
    case "ToolParameterValidationError":
      return new Reasons.Protocol({ ...facts, kind: "badJson" })
    case "InvalidResponseError":
    case "InvalidOutputError":
    case "StructuredOutputError":
      return new Reasons.Protocol({ ...facts, kind: "badShape" })
    case "InvalidUserInputError":
      return new Reasons.UnsupportedContent(facts)
    default:
      return ofStatus(reason, facts, now)
  }
}

/** Converts the failure in a part of a stream, which may be any value. */
export const fromUnknown = (error: unknown): Reasons.Reason => {
  if (AiError.isAiError(error)) return fromAiError(error)
  const event = eventOf(error)
  const reason = event === undefined ? undefined : VendorFailure.ofErrorEvent(VendorText.cutOut(event))
  const isKnown = reason !== undefined && reason._tag !== "ServerError"
  // The runtime has codes of its own.
  return isKnown && !(error instanceof Error && reason._tag === "InvalidRequest")
    ? reason
    : VendorFailure.ofWords(VendorText.cutOut(textOf(error)))
}

/** The event of the vendor that an error stands for, `undefined` for words. An `Error` may have its codes, beside other members. */
const eventOf = (error: unknown): string | undefined => {
  if (!(error instanceof Error))
    return typeof error === "object" ? Inspectable.toStringUnknown(error, 0) : undefined
  const codes = ["code", "type", "status"].flatMap((name) =>
    Predicate.hasProperty(error, name) ? [[name, error[name]]] : []
  )
  const { message } = error
  return codes.length === 0
    ? undefined
    : Inspectable.toStringUnknown({ ...Object.fromEntries(codes), message }, 0)
}

const textOf = (error: unknown): string => {
  if (Predicate.hasProperty(error, "message") && typeof error.message === "string") return error.message
  return typeof error === "string" ? error : Inspectable.toStringUnknown(error, 0)
}

type Facts = Pick<Reasons.Reason, "detail" | "status" | "requestId" | "body">
type Failure = AiError.AiErrorReason

const factsOf = (reason: Failure): Facts => {
  const { body, response } = httpOf(reason) ?? {}
  const headers = response?.headers ?? {}
  const requestId = headers["x-request-id"] ?? headers["request-id"]
  return {
    detail: VendorText.cutOut(detailOf(reason)).slice(0, maxDetail),
    ...(response === undefined ? {} : { status: response.status }),
    ...(typeof requestId === "string" ? { requestId } : {}),
    ...(body === undefined ? {} : { body: VendorText.excerpt(VendorText.cutOut(body)) })
  }
}

const maxDetail = 1600

const detailOf = (reason: Failure): string => {
  const { description } = "description" in reason ? reason : { description: undefined }
  return description === undefined || description === "" ? reason.message : description
}

const httpOf = (reason: Failure) => ("http" in reason ? reason.http : undefined)

/** `effect/ai` has one class for most statuses, and none for a conversation that is too long. */
const ofStatus = (reason: Failure, facts: Facts, now: number | undefined): Reasons.Reason => {
  const status = facts.status ?? statuses.get(reason._tag)
  if (status === undefined) {
    return reason._tag === "UnknownError"
      ? new Reasons.Protocol({ ...facts, kind: "badShape" })
      : new Reasons.InvalidRequest(facts)
  }
  const { body, response } = httpOf(reason) ?? {}
  const wait = "retryAfter" in reason ? reason.retryAfter : undefined
  const named = wait === undefined ? {} : { "retry-after-ms": String(Duration.toMillis(wait)) }
  const refusal = {
    headers: { ...named, ...response?.headers },
    body: VendorText.cutOut(body ?? ""),
    words: facts.detail,
    now
  }
  const isForbidden = reason._tag === "AuthenticationError" && reason.kind === "InsufficientPermissions"
  return VendorFailure.ofResponse({ ...refusal, status: isForbidden ? 403 : status })
}

/** The statuses that errors without a response stand for. */
const statuses: ReadonlyMap<string, number> = new Map([
  ["RateLimitError", 429],
  ["AuthenticationError", 401],
  ["InvalidRequestError", 400],
  ["InternalProviderError", 500]
])
