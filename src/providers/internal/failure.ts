/**
 * What a provider says of a failure, in a status, headers and a body of any shape, as a reason of ours. Pure.
 *
 * The status decides, unless codes or words tell something more exact: vendors answer 400 to a context overflow, 429 to
 * an empty account and 200 to anything.
 */
import type * as Duration from "effect/Duration"
import * as Reasons from "../../ProviderError.ts"
import type { Reason } from "../../ProviderError.ts"
import * as ContextOverflow from "./contextOverflow.ts"
import * as Json from "./json.ts"
import * as RetryAfter from "./retryAfter.ts"
import * as Status from "./status.ts"
import * as Wording from "./wording.ts"

/** A response that is no answer, its body read as far as it is of use, with no secret in it. */
export interface Refusal {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
  readonly model: string
  /** Milliseconds since the epoch. */
  readonly now: number
  /** What to do about it, said behind the words of the server. Default: nothing. */
  readonly advice?: string | undefined
}

/** Why the provider refused. */
export const ofResponse = (refusal: Refusal): Reason => {
  const { advice, body, headers, model, now, status } = refusal
  const told = tell(Json.parseShallow(body), body)
  const requestId = idHeaders.map((name) => headers[name]).find((id) => id !== undefined) ?? told.requestId
  const said = Wording.cut(told.message === "" ? `HTTP ${status}` : told.message, maxDetail)
  return classify(told, status, model, RetryAfter.read(headers, told.error, told.message, now), {
    detail: advice === undefined ? said : `${said} (model ${model}). ${advice}`,
    status,
    ...(requestId === undefined ? {} : { requestId }),
    ...(body === "" ? {} : { body: Wording.excerpt(body) }),
    ...(headers["x-should-retry"] === "false" ? { shouldRetry: false } : {})
  })
}

/** The failure that an event of an answer reports, `undefined` when it reports none. */
export const inBand = (event: Json.Json | undefined, data: string, model: string): Reason | undefined =>
  reportsFailure(event) ? ofEvent(event, data, model) : undefined

/** The failure in an event that is one by its name, whatever its data looks like. */
export const said = (data: string, model: string): Reason => ofEvent(Json.parseShallow(data), data, model)

/** Data that is no event of the language. The part of it that is shown is short: it may be half an answer. */
export const badJson = (data: string): Reason =>
  new Reasons.Protocol({
    kind: "badJson",
    detail: `${Wording.cut(Json.problem(data), 200)}: ${Wording.cut(data, 200)}`
  })

export const badShape = (what: string, data: string): Reason =>
  new Reasons.Protocol({ kind: "badShape", detail: `${what}: ${Wording.cut(data, 200)}` })

const maxDetail = 1600
/** Codes and names are words. */
const maxCode = 200

const idHeaders = [
  "x-request-id",
  "request-id",
  "x-amzn-requestid",
  "apim-request-id",
  "x-goog-request-id",
  "cf-ray"
]

/** What was told, with the members that vendors put in different places. */
interface Told {
  /** As far as it is searched, and more than is shown. */
  readonly message: string
  /** Codes, types and names, in lower case. */
  readonly codes: ReadonlyArray<string>
  readonly status: number | undefined
  readonly requestId: string | undefined
  readonly error: Json.JsonObject | undefined
}

const tell = (json: Json.Json | undefined, raw: string): Told => {
  const root = Json.isArray(json) ? Json.object(json[0]) : Json.object(json)
  const inner = root?.["error"]
  const error = Json.object(inner) ?? root
  const details = detailsOf(error)
  const named = [error?.["code"], error?.["type"], error?.["status"], root?.["code"], root?.["type"]]
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

/** Google's. More than a few are no explanation. */
const detailsOf = (error: Json.JsonObject | undefined): ReadonlyArray<Json.JsonObject> =>
  Json.array(error?.["details"])
    .slice(0, 32)
    .flatMap((detail) => (Json.isObject(detail) ? [detail] : []))

const messageOf = (root: Json.JsonObject | undefined, inner: Json.Json | undefined): string | undefined => {
  const error = Json.object(inner)
  // In quotes, as a sentence of somebody else that came with no member to say what it is.
  if (typeof inner === "string") return JSON.stringify(Wording.start(inner))
  const message = Json.text(error?.["message"]) ?? Json.text(root?.["message"]) ?? detailOf(root?.["detail"])
  // OpenRouter's own message is but "Provider returned error".
  const upstream = Json.text(Json.object(error?.["metadata"])?.["raw"])
  return upstream === undefined
    ? message
    : `${Wording.start(message ?? "Provider returned error")}: ${upstream}`
}

/** FastAPI: a text, or a list of what is wrong where. */
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
  const told = tell(event, data)
  const status = told.status ?? Status.meant(told.codes)
  return classify(told, status, model, RetryAfter.read({}, told.error, told.message), {
    detail: Wording.cut(told.message, maxDetail),
    ...(told.status === undefined ? {} : { status: told.status }),
    ...(told.requestId === undefined ? {} : { requestId: told.requestId }),
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
  told: Told,
  status: number,
  model: string,
  retryAfter: Duration.Duration | undefined,
  facts: Facts
): Reason => {
  const waiting = retryAfter === undefined ? facts : { ...facts, retryAfter }
  const overflow = ContextOverflow.find(told.codes, told.message, told.error)
  if (overflow !== undefined) return new Reasons.ContextOverflow({ ...facts, ...overflow })
  if (isQuota(told, status, retryAfter)) return new Reasons.QuotaExceeded(facts)
  if (status === 429) return new Reasons.RateLimited(waiting)
  if (isPolicy(told, status)) return new Reasons.ContentPolicy(facts)
  if (status === 401 || (status === 400 && isKey(told))) return new Reasons.Unauthenticated(facts)
  if (status === 403) return new Reasons.Forbidden(facts)
  if (status === 404 || (status === 400 && isModel(told))) return new Reasons.NotFound(naming(model, facts))
  if (status === 529 || status === 498 || isOverload(told, status)) return new Reasons.Overloaded(waiting)
  // Timeout, conflict, "too early" and Google's "cancelled", which we did not do, pass like a failure of the server.
  if (status >= 500 || status === 408 || status === 409 || status === 425 || status === 499)
    return new Reasons.ServerError(waiting)
  return new Reasons.InvalidRequest(facts)
}

const says = (told: Told, codes: RegExp, words: RegExp): boolean =>
  told.codes.some((code) => codes.test(code)) || words.test(told.message)

/** Words alone do not tell an empty account from a full minute; a wait that is told does. */
const isQuota = (told: Told, status: number, retryAfter: Duration.Duration | undefined): boolean => {
  if (status === 402 || told.codes.some((code) => quotaCodes.test(code)) || isDaily(told)) return true
  return (
    (status === 429 || status === 403 || status === 400) &&
    retryAfter === undefined &&
    quotaWords.test(told.message)
  )
}

const quotaCodes = /insufficient_(?:quota|balance|credit|funds)|billing|payment_required|credits?_exhausted/
const quotaWords =
  /insufficient (?:quota|balance|credit|funds)|credit balance is too low|(?:out of|more) credits|exceeded your \w+ (?:quota|budget)|quota exceeded|(?:monthly|daily|weekly|usage|spending|billing)(?: hard)? (?:limit|cap|budget|quota)/i

/** Google: the quota of the day is used up, though it asks to try again in a minute. */
const isDaily = (told: Told): boolean =>
  detailsOf(told.error).some((detail) =>
    Json.array(detail["violations"]).some((violation) =>
      (Json.text(Json.object(violation)?.["quotaId"]) ?? "").includes("PerDay")
    )
  )

const isPolicy = (told: Told, status: number): boolean =>
  (status === 400 || status === 403) &&
  (Json.isArray(Json.object(told.error?.["metadata"])?.["reasons"]) ||
    says(
      told,
      /content_(?:policy|filter)|moderation|data_inspection|safety/,
      /\bflagged\b|content (?:management )?policy|usage polic|moderation/i
    ))

const isKey = (told: Told): boolean =>
  says(
    told,
    /api_key_invalid|invalid_api_key|authentication|unauthenticated/,
    /(?:incorrect|invalid) api key|api key not valid/i
  )

const isModel = (told: Told): boolean =>
  says(
    told,
    /model_not_found|model_not_available/,
    /model\b.{0,100}(?:does not exist|not found|is not a valid model)|not a valid model/i
  )

const isOverload = (told: Told, status: number): boolean =>
  status >= 500 &&
  says(told, /overload|capacity|slow_down/, /overloaded|at capacity|no capacity|loading model/i)

const naming = (model: string, facts: Facts): Facts =>
  facts.detail.includes(model) ? facts : { ...facts, detail: `${facts.detail} (model ${model})` }
