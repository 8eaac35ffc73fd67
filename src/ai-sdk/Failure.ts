/**
 * The conversion of what a model throws, or reports in its stream, to a reason of `ProviderError`.
 *
 * It reads errors by their shapes and marks, not by their classes: an application may have several versions of `@ai-sdk/provider`.
 */
import * as Duration from "effect/Duration"
import * as Inspectable from "effect/Inspectable"
import * as Predicate from "effect/Predicate"
import { parse } from "../internal/jsonDepth.ts"
import * as VendorKeys from "../internal/vendorKeys.ts"
import * as Reasons from "../ProviderError.ts"
import type { Reason } from "../ProviderError.ts"

/** Converts an error of any shape. `now` is milliseconds since the epoch. */
export const reasonOf = (error: unknown, model: string, now: number): Reason => {
  const report = read(error, now)
  if (report.status !== undefined && report.status >= 400) return ofStatus(report, report.status)
  return ofNetwork(error, report) ?? ofName(report, model) ?? ofStatus(report, meant(report))
}

interface Facts {
  readonly detail: string
  readonly status?: number
  readonly requestId?: string
  readonly body?: string
  readonly shouldRetry?: false
}

/** An error, whether the model threw it or sent it in its stream. */
interface Report {
  readonly facts: Facts
  readonly status: number | undefined
  /** The name of the error's class, or `""`. */
  readonly name: string
  /** The codes, types and words to search. */
  readonly text: string
  readonly retryAfter: Duration.Duration | undefined
}

const read = (error: unknown, now: number): Report => {
  const headers = member(error, "responseHeaders")
  const header = (name: string) => textIn(headers, name)
  const raw = textIn(error, "responseBody") ?? dataOf(error)
  const status = numberIn(error, "statusCode") ?? numberIn(error, "status")
  const requestId = ids.map(header).find((id) => id !== undefined)
  const codes = ["code", "type"].map((name) => textIn(error, name) ?? "")
  return {
    facts: {
      detail: VendorKeys.cutOut(detailOf(error)).slice(0, maxDetail),
      ...(status === undefined ? {} : { status }),
      ...(requestId === undefined ? {} : { requestId }),
      ...(raw === undefined ? {} : { body: excerpt(VendorKeys.cutOut(raw)) }),
      // Only where the status alone would allow a retry.
      ...(member(error, "isRetryable") === false && (status === 429 || (status ?? 0) >= 500)
        ? { shouldRetry: false }
        : {})
    },
    status,
    name: textIn(error, "name") ?? "",
    text: [...codes, messageOf(error), (raw ?? "").slice(0, maxBody)].join(" "),
    retryAfter: waitOf(header, raw ?? "", now)
  }
}

const maxDetail = 1600
/** Bytes. */
const maxBody = 4096
const ids = ["x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-goog-request-id"]

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
    member(error, "data") ?? (error instanceof Error || !Predicate.isObject(error) ? undefined : error)
  return data === undefined ? undefined : Inspectable.toStringUnknown(data, 0)
}

const messageOf = (error: unknown): string => {
  const message = textIn(error, "message") ?? textIn(member(error, "error"), "message")
  return message ?? (typeof error === "string" ? error : Inspectable.toStringUnknown(error, 0))
}

/** A package that cannot read the body of an error has the reason of HTTP alone, such as "Bad Request". */
const detailOf = (error: unknown): string => {
  const body = textIn(error, "responseBody")?.trim() ?? ""
  const message = messageOf(error)
  if (body === "" || member(error, "data") !== undefined) return message
  return `${message}: ${reportIn(parse(body)) ?? body.slice(0, 300)}`
}

/** The message in the body of an error, whose shapes differ from server to server. */
const reportIn = (json: unknown): string | undefined => {
  const root = Array.isArray(json) ? json[0] : json
  const error = member(root, "error")
  return (
    textIn(error, "message") ?? textIn(root, "message") ?? textIn(root, "detail") ?? textIn(root, "error")
  )
}

const excerpt = (body: string): string =>
  new TextDecoder().decode(new TextEncoder().encode(body).subarray(0, maxBody)).replace(/\ufffd+$/, "")

/** The wait that a response names: in milliseconds, in seconds or as a date; Google has it in the body. */
const waitOf = (
  header: (name: string) => string | undefined,
  body: string,
  now: number
): Duration.Duration | undefined => {
  const after = header("retry-after")
  const millis = [
    Number(header("retry-after-ms") ?? NaN),
    Number(after ?? NaN) * 1000,
    /\d{4}/.test(after ?? "") ? Date.parse(after ?? "") - now : NaN,
    Number(/"retryDelay":\s*"(\d+(?:\.\d+)?)s"/.exec(body)?.[1] ?? NaN) * 1000
  ].find((wait) => wait > 0)
  return millis === undefined ? undefined : Duration.millis(Math.min(millis, longest))
}

const longest = Duration.toMillis("365 days")

/** The status that an error without one stands for, by the codes that vendors use in streams. */
const meant = ({ text }: Report): number => statuses.find(([pattern]) => pattern.test(text))?.[1] ?? 500

const statuses: ReadonlyArray<readonly [RegExp, number]> = [
  [/insufficient_quota|rate_limit|resource_exhausted/i, 429],
  [/overloaded/i, 529],
  [/authentication_error|unauthenticated|invalid_api_key/i, 401],
  [/permission_(?:error|denied)/i, 403],
  [/not_found/i, 404],
  [/invalid_(?:request|prompt)|context_length|invalid_argument|failed_precondition/i, 400]
]

const ofStatus = (report: Report, status: number): Reason => {
  const { facts, retryAfter, text } = report
  const waiting = retryAfter === undefined ? facts : { ...facts, retryAfter }
  if (status < 500 && tooLong.test(text)) return new Reasons.ContextOverflow(facts)
  if (status === 402 || (status < 500 && noCredit.test(text))) return new Reasons.QuotaExceeded(facts)
  if (status === 429) return new Reasons.RateLimited(waiting)
  if ((status === 400 || status === 403) && policy.test(text)) return new Reasons.ContentPolicy(facts)
  if (status === 401 || (status === 400 && badKey.test(text))) return new Reasons.Unauthenticated(facts)
  if (status === 403) return new Reasons.Forbidden(facts)
  if (status === 404) return new Reasons.NotFound(facts)
  if (status === 529 || (status >= 500 && busy.test(text))) return new Reasons.Overloaded(waiting)
  // Timeout, conflict, "too early" and "cancelled" pass like a failure of the server.
  if (status >= 500 || [408, 409, 425, 499].includes(status)) return new Reasons.ServerError(waiting)
  return new Reasons.InvalidRequest(facts)
}

const tooLong =
  /context_length_exceeded|context[ _-]?(?:window|length|size|limit)|(?:prompt|input|conversation|messages) is too long|too many (?:input |prompt )?tokens(?!,? please wait| per (?:minute|hour|day)| processed)|input token count/i
const noCredit =
  /insufficient_(?:quota|balance|credit|funds)|credit balance is too low|billing_(?:hard_limit|not_active)|PerDay/i
const policy =
  /content_(?:policy|filter)|moderation_|data_inspection|\bflagged\b|content (?:management )?policy/i
const badKey = /api_key_invalid|invalid_api_key|api key not valid|incorrect api key/i
const busy = /overloaded|at capacity|slow_down/i

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

/** The reason of a connection that failed, or `undefined` if nothing in the error is about a connection. */
const ofNetwork = (error: unknown, { facts }: Report): Reason | undefined => {
  const causes = causesOf(error)
  const code = causes.map((cause) => textIn(cause, "code")).find((code) => code !== undefined)
  const text = `${code ?? ""} ${causes.map(messageOf).join(" ")}`
  const kind = kinds.find(([pattern]) => pattern.test(text))?.[1]
  return kind === undefined
    ? undefined
    : new Reasons.Transport({ ...facts, kind, ...(code === undefined ? {} : { code }) })
}

const kinds: ReadonlyArray<readonly [RegExp, Reasons.Transport["kind"]]> = [
  [/ECONNREFUSED/, "refused"],
  [/ENOTFOUND|EAI_AGAIN|getaddrinfo/, "dns"],
  [/certificate|CERT_|TLS|SSL/, "tls"],
  [/ECONNRESET|EPIPE|UND_ERR|ETIMEDOUT|\bterminated\b|fetch failed|socket hang up|other side closed/, "reset"]
]

/** An error and its causes, at most eight. */
const causesOf = (error: unknown): ReadonlyArray<unknown> => {
  const found: Array<unknown> = []
  for (let cause = error; cause !== undefined && cause !== null && found.length < 8; ) {
    found.push(cause)
    cause = member(cause, "cause")
  }
  return found
}
