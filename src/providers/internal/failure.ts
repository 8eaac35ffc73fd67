/**
 * Converts the error response of a provider (status, headers, and a body of any shape) to a `Reason`. Pure.
 *
 * The status decides unless a code or the message is more exact: vendors answer 400 to a context overflow, 429
 * for an empty account, and 200 to anything.
 */
import type * as Duration from "effect/Duration"
import * as VendorErrors from "../../internal/vendorErrors.ts"
import * as Reasons from "../../ProviderError.ts"
import type { Reason } from "../../ProviderError.ts"
import * as AwsErrors from "./awsErrors.ts"
import * as ContextOverflow from "./contextOverflow.ts"
import * as Json from "./json.ts"
import * as RetryAfter from "./retryAfter.ts"
import * as Status from "./status.ts"
import * as Wording from "./wording.ts"

/** A response that is not an answer, without secrets. `body` is its start. */
export interface Refusal {
  readonly status: number
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
  readonly model: string
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Advice to append to the message of the server. Default: none. */
  readonly advice?: string | undefined
}

/** The reason of an error response. */
export const ofResponse = (refusal: Refusal): Reason => {
  const { advice, body, headers, model, now, status } = refusal
  const report = readReport(Json.parseShallow(body), body, AwsErrors.nameOf(headers["x-amzn-errortype"]))
  const requestId = idHeaders.map((name) => headers[name]).find((id) => id !== undefined) ?? report.requestId
  const message = Wording.cut(report.message === "" ? `HTTP ${status}` : report.message, maxDetail)
  const meant = AwsErrors.statusOf(report.codes, report.message) ?? status
  return classify(report, meant, model, RetryAfter.read(headers, report.error, report.message, now), {
    detail: advice === undefined ? message : `${message} (model ${model}). ${advice}`,
    status,
    ...(requestId === undefined ? {} : { requestId }),
    ...(body === "" ? {} : { body: Wording.excerpt(body) }),
    ...(headers["x-should-retry"] === "false" ? { shouldRetry: false } : {})
  })
}

/** The failure that an event of an answer reports, `undefined` if it reports none. */
export const inBand = (event: Json.Json | undefined, data: string, model: string): Reason | undefined =>
  reportsFailure(event) ? ofEvent(event, data, model) : undefined

/** The failure in an event that has the name `error`, for data of any shape. */
export const ofErrorEvent = (data: string, model: string): Reason =>
  ofEvent(Json.parseShallow(data), data, model)

/**
 * The failure for data that is not an event of the protocol. The message contains only a short part of it,
 * because it may be half an answer.
 */
export const badJson = (data: string): Reason =>
  new Reasons.Protocol({
    kind: "badJson",
    detail: `${Wording.cut(Json.problem(data), 200)}: ${Wording.cut(data, 200)}`
  })

export const badShape = (problem: string, data: string): Reason =>
  new Reasons.Protocol({ kind: "badShape", detail: `${problem}: ${Wording.cut(data, 200)}` })

/** The object in an event of the protocol. `what` is the noun for one: `an event`. */
export const objectIn = (data: string, what: string): Json.JsonObject | Reason => {
  const json = Json.parse(data)
  if (json === undefined) return badJson(data)
  return Json.isObject(json) ? json : badShape(`Not ${what}`, data)
}

/** The object in an event, or the failure that it reports. */
export const eventIn = (data: string, model: string, what: string): Json.JsonObject | Reason => {
  const json = objectIn(data, what)
  return json instanceof Error ? json : (inBand(json, data, model) ?? json)
}

const maxDetail = 1600
/** Maximum characters of a code. */
const maxCode = 200

const idHeaders = [
  "x-request-id",
  "request-id",
  "x-amzn-requestid",
  "apim-request-id",
  "x-goog-request-id",
  "cf-ray"
]

/** The members of an error, which vendors put in different places. */
interface Report {
  /** The part of the message that is searched. The error shows less. */
  readonly message: string
  /** Codes, types and names, in lower case. */
  readonly codes: ReadonlyArray<string>
  readonly status: number | undefined
  readonly requestId: string | undefined
  readonly error: Json.JsonObject | undefined
}

/** `name` is the name of the error in a header. */
const readReport = (json: Json.Json | undefined, raw: string, name?: string): Report => {
  const root = Json.isArray(json) ? Json.object(json[0]) : Json.object(json)
  const inner = root?.["error"]
  const error = Json.object(inner) ?? root
  const details = detailsOf(error)
  const named = [name, error?.["code"], error?.["type"], error?.["status"], root?.["code"], root?.["type"]]
  const coded = [error?.["code"], error?.["status_code"], error?.["status"], root?.["code"]].map(Status.of)
  return {
    message: Wording.start(
      messageOf(root, inner) ?? (typeof json === "string" ? json : Wording.cut(raw.trim(), 300))
    ),
    codes: [...named, ...details.map((detail) => detail["reason"])].flatMap((code) =>
      typeof code === "string" ? [code.slice(0, maxCode).toLowerCase()] : []
    ),
    status: coded.find((code) => code !== undefined),
    requestId: Json.text(root?.["request_id"]) ?? Json.text(error?.["request_id"]),
    error
  }
}

/** The details in errors of Google. More than a few explain nothing. */
const detailsOf = (error: Json.JsonObject | undefined): ReadonlyArray<Json.JsonObject> =>
  Json.array(error?.["details"])
    .slice(0, 32)
    .flatMap((detail) => (Json.isObject(detail) ? [detail] : []))

const messageOf = (root: Json.JsonObject | undefined, inner: Json.Json | undefined): string | undefined => {
  const error = Json.object(inner)
  // In quotes, because it is a message of another program without further members.
  if (typeof inner === "string") return JSON.stringify(Wording.start(inner))
  const message =
    Json.text(error?.["message"]) ??
    Json.text(root?.["message"]) ??
    Json.text(root?.["Message"]) ??
    detailOf(root?.["detail"])
  // OpenRouter's own message is only "Provider returned error".
  const upstream = Json.text(Json.object(error?.["metadata"])?.["raw"])
  return upstream === undefined
    ? message
    : `${Wording.start(message ?? "Provider returned error")}: ${upstream}`
}

/** FastAPI: a text, or a list of errors with their places. */
const detailOf = (detail: Json.Json | undefined): string | undefined =>
  typeof detail === "string" ? detail : Json.isArray(detail) ? JSON.stringify(detail) : undefined

const reportsFailure = (event: Json.Json | undefined): boolean => {
  if (typeof event !== "object" || event === null) return false
  if (Json.isArray(event)) return event.some(reportsFailure)
  const { error } = event
  return (
    (error !== undefined && error !== null && error !== "" && error !== false) ||
    event["object"] === "error" ||
    event["type"] === "error"
  )
}

const ofEvent = (event: Json.Json | undefined, data: string, model: string): Reason => {
  const report = readReport(event, data)
  const status =
    report.status ?? AwsErrors.statusOf(report.codes, report.message) ?? Status.meant(report.codes)
  return classify(report, status, model, RetryAfter.read({}, report.error, report.message), {
    detail: Wording.cut(report.message, maxDetail),
    ...(report.status === undefined ? {} : { status: report.status }),
    ...(report.requestId === undefined ? {} : { requestId: report.requestId }),
    body: Wording.excerpt(data)
  })
}

interface Facts {
  readonly detail: string
  readonly status?: number
  readonly requestId?: string
  readonly body?: string
  readonly shouldRetry?: false
}

const classify = (
  report: Report,
  status: number,
  model: string,
  retryAfter: Duration.Duration | undefined,
  facts: Facts
): Reason => {
  const waiting = retryAfter === undefined ? facts : { ...facts, retryAfter }
  const overflow = ContextOverflow.find(report.codes, report.message, report.error)
  if (overflow !== undefined) return new Reasons.ContextOverflow({ ...facts, ...overflow })
  if (isQuota(report, status, retryAfter)) return new Reasons.QuotaExceeded(facts)
  if (status === 429) return new Reasons.RateLimited(waiting)
  const part = VendorErrors.refusedPart(report.codes, report.message)
  const refused = part === undefined ? facts : { ...facts, refused: part }
  if (isPolicy(report, status)) return new Reasons.ContentPolicy(refused)
  if (status === 401 || (status === 400 && isKey(report))) return new Reasons.Unauthenticated(facts)
  if (status === 403) return new Reasons.Forbidden(facts)
  // 404 is also the answer to thinking that is stored nowhere, and to an image for a model without.
  if (status === 404 && part !== undefined) return new Reasons.InvalidRequest(refused)
  if (status === 404 || (status === 400 && isModel(report))) return new Reasons.NotFound(naming(model, facts))
  if (status === 529 || status === 498 || isOverload(report, status)) return new Reasons.Overloaded(waiting)
  // Timeout, conflict, "too early", and Google's "cancelled", which this client did not cause, are temporary
  // like a failure of the server.
  if (status >= 500 || status === 408 || status === 409 || status === 425 || status === 499)
    return new Reasons.ServerError(waiting)
  return new Reasons.InvalidRequest(refused)
}

const mentions = (report: Report, codes: RegExp, words: RegExp): boolean =>
  report.codes.some((code) => codes.test(code)) || words.test(report.message)

/** The message does not distinguish an empty account from a limit of a minute. A wait in the response does. */
const isQuota = (report: Report, status: number, retryAfter: Duration.Duration | undefined): boolean => {
  if (status === 402 || report.codes.some((code) => quotaCodes.test(code)) || isDaily(report)) return true
  return (
    (status === 429 || status === 403 || status === 400) &&
    retryAfter === undefined &&
    quotaWords.test(report.message)
  )
}

const quotaCodes = /insufficient_(?:quota|balance|credit|funds)|billing|payment_required|credits?_exhausted/
const quotaWords =
  /insufficient (?:quota|balance|credit|funds)|credit balance is too low|(?:out of|more) credits|exceeded your \w+ (?:quota|budget)|quota exceeded|(?:monthly|daily|weekly|usage|spending|billing)(?: hard)? (?:limit|cap|budget|quota)/i

/** Google: the quota of the day is used up, although the response contains a retry in a minute. */
const isDaily = (report: Report): boolean =>
  detailsOf(report.error).some((detail) =>
    Json.array(detail["violations"]).some((violation) =>
      (Json.text(Json.object(violation)?.["quotaId"]) ?? "").includes("PerDay")
    )
  )

const isPolicy = (report: Report, status: number): boolean =>
  (status === 400 || status === 403) &&
  (Json.isArray(Json.object(report.error?.["metadata"])?.["reasons"]) ||
    mentions(
      report,
      /content_(?:policy|filter)|moderation|data_inspection|safety/,
      /\bflagged\b|content (?:management )?policy|usage polic|moderation/i
    ))

const isKey = (report: Report): boolean =>
  mentions(
    report,
    /api_key_invalid|invalid_api_key|authentication|unauthenticated/,
    /(?:incorrect|invalid) api key|api key not valid/i
  )

const isModel = (report: Report): boolean =>
  mentions(
    report,
    /model_not_found|model_not_available/,
    /model\b.{0,100}(?:does not exist|not found|is not a valid model)|not a valid model/i
  )

const isOverload = (report: Report, status: number): boolean =>
  status >= 500 &&
  mentions(report, /overload|capacity|slow_down/, /overloaded|at capacity|no capacity|loading model/i)

const naming = (model: string, facts: Facts): Facts =>
  facts.detail.includes(model) ? facts : { ...facts, detail: `${facts.detail} (model ${model})` }
