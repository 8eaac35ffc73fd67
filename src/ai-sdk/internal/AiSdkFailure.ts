/**
 * The conversion of what a model throws, or reports in its stream, to a reason of `ProviderError`.
 *
 * It reads errors by their shapes and marks, not by their classes: an application may have several versions of `@ai-sdk/provider`.
 */
import * as Inspectable from "effect/Inspectable"
import * as Predicate from "effect/Predicate"
import * as ConnectionFailure from "../../http/ConnectionFailure.ts"
import * as VendorFailure from "../../http/VendorFailure.ts"
import * as VendorKeys from "../../http/VendorKeys.ts"
import * as Wording from "../../http/Wording.ts"
import * as Reasons from "../../ProviderError.ts"
import type { Reason } from "../../ProviderError.ts"

/** Converts an error of any shape. `now` is milliseconds since the epoch. */
export const reasonOf = (error: unknown, model: string, now: number): Reason => {
  const inner = member(error, "lastError") ?? member(error, "cause")
  const isWrapped = numberIn(error, "statusCode") === undefined && numberIn(inner, "statusCode") !== undefined
  return isWrapped ? ofError(inner, model, now) : ofError(error, model, now)
}

const ofError = (error: unknown, model: string, now: number): Reason => {
  const report = read(error)
  const { body, facts, headers } = report
  if (facts.status !== undefined && facts.status >= 400) {
    const { shouldRetry, status } = facts
    const isAdvised = headers["x-should-retry"] !== undefined || shouldRetry === undefined
    const advised = isAdvised ? headers : { ...headers, "x-should-retry": "false" }
    return VendorFailure.ofResponse({ status, headers: advised, body, model, now, words: facts.detail })
  }
  const connection = ConnectionFailure.kindIn(error)
  if (connection !== undefined) return new Reasons.Transport({ ...facts, ...connection })
  // The packages know the failures that their vendor documents, and call others an answer of a wrong shape.
  const inBand = report.name.startsWith("AI_") ? VendorFailure.inText(body, model) : undefined
  return (
    inBand ?? ofName(report, model) ?? VendorFailure.ofErrorEvent(body === "" ? facts.detail : body, model)
  )
}

/** An error, whether the model threw it or sent it in its stream, without keys that a server repeats. */
interface Report {
  readonly facts: Pick<Reason, "detail" | "status" | "body" | "shouldRetry">
  /** The name of the error's class, or `""`. */
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const read = (error: unknown): Report => {
  const body = VendorKeys.cutOut(
    textIn(error, "responseBody") ?? dataOf(error) ?? textIn(error, "text") ?? ""
  )
  const status = numberIn(error, "statusCode") ?? numberIn(error, "status")
  return {
    facts: {
      detail: VendorKeys.cutOut(messageOf(error)).slice(0, maxDetail),
      ...(status === undefined ? {} : { status }),
      ...(body === "" ? {} : { body: Wording.excerpt(body) }),
      // Only where the status alone would allow a retry.
      ...(member(error, "isRetryable") === false && (status === 429 || (status ?? 0) >= 500)
        ? { shouldRetry: false }
        : {})
    },
    name: textIn(error, "name") ?? "",
    headers: headersIn(member(error, "responseHeaders")),
    body
  }
}

const maxDetail = 1600

const headersIn = (headers: unknown): Readonly<Record<string, string>> =>
  Predicate.isObject(headers)
    ? Object.fromEntries(
        Object.entries(headers).flatMap(([name, value]) =>
          typeof value === "string" ? [[name.toLowerCase(), VendorKeys.cutOut(value)]] : []
        )
      )
    : {}

const member = (value: unknown, name: string): unknown =>
  Predicate.hasProperty(value, name) ? value[name] : undefined

const textIn = (value: unknown, name: string): string | undefined => {
  const found = member(value, name)
  return typeof found === "string" ? found : undefined
}

const numberIn = (value: unknown, name: string): number | undefined => {
  const found = member(value, name)
  return typeof found === "number" && Number.isInteger(found) ? found : undefined
}

/** The data of an error in a stream, which is the event of the vendor. */
const dataOf = (error: unknown): string | undefined => {
  const data =
    member(error, "data") ??
    member(error, "value") ??
    (error instanceof Error || !Predicate.isObject(error) ? undefined : error)
  return data === undefined ? undefined : Inspectable.toStringUnknown(data, 0)
}

const messageOf = (error: unknown): string => {
  const message = textIn(error, "message") ?? textIn(member(error, "error"), "message")
  return message ?? (typeof error === "string" ? error : Inspectable.toStringUnknown(error, 0))
}

/** The reason of an error that the packages raise themselves. */
const ofName = ({ facts, name }: Report, model: string): Reason | undefined => {
  switch (name) {
    case "AI_LoadAPIKeyError":
      return new Reasons.Unauthenticated(facts)
    case "AI_NoSuchModelError":
      return new Reasons.ModelNotSupported({ ...facts, model })
    case "AI_UnsupportedFunctionalityError":
    case "AI_NoSuchProviderReferenceError":
      return new Reasons.UnsupportedContent(facts)
    case "AI_InvalidPromptError":
    case "AI_InvalidArgumentError":
    case "AI_LoadSettingError":
      return new Reasons.InvalidRequest(facts)
    case "AI_JSONParseError":
      return new Reasons.Protocol({ ...facts, kind: "badJson" })
    case "AI_TypeValidationError":
    case "AI_InvalidResponseDataError":
      return new Reasons.Protocol({ ...facts, kind: "badShape" })
    case "AI_EmptyResponseBodyError":
    case "AI_NoContentGeneratedError":
      return new Reasons.Protocol({ ...facts, kind: "empty" })
    case "AI_APICallError":
      // A response that is no error, and no answer either; or no response.
      return facts.status === undefined
        ? new Reasons.Transport({ ...facts, kind: "reset" })
        : new Reasons.Protocol({ ...facts, kind: "badShape" })
    default:
      return undefined
  }
}
