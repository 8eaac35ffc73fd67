/**
 * Converts what a vendor answers in place of an answer, or inside one, to a `Reason`: status, headers, and a body of any shape. Pure.
 *
 * The status decides unless a code or the message is more exact: vendors answer 400 to a context overflow, 429 for an empty account,
 * and 200 to anything. `VendorErrors` knows what codes and words mean.
 */
import * as Duration from "effect/Duration"
import * as Json from "../internal/json.ts"
import { type JsonObject, array, isObject, object, text } from "../internal/json.ts"
import * as Reasons from "../ProviderError.ts"
import type { Reason } from "../ProviderError.ts"
import * as Errors from "./VendorErrors.ts"
import * as VendorText from "./VendorText.ts"

/** A response that is not an answer, without secrets. `body` is its start. */
interface Refusal {
  readonly status: number
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
  /** The id of the model, to name in the message. Default: none. */
  readonly model?: string | undefined
  /** Milliseconds since the epoch. Default: waits until a point in time are not read. */
  readonly now?: number | undefined
  /** The message for a body that has none. Default: the start of the body, or the status. */
  readonly words?: string | undefined
  /** Advice to append to the message of the server. Default: none. */
  readonly advice?: string | undefined
}

/** The reason of an error response. */
export const ofResponse = (refusal: Refusal): Reason => {
  const { advice, body, headers, model = "", now, status, words } = refusal
  const json = Json.parse(body)
  const unread = json === undefined && body !== "" ? [words, body].filter(isText).join(": ") : (words ?? body)
  const report = readReport(json, unread, nameOf(headers["x-amzn-errortype"]))
  const requestId = idHeaders.map((name) => headers[name]).find((id) => id !== undefined) ?? report.requestId
  const message = VendorText.cut(report.message === "" ? `HTTP ${status}` : report.message, maxDetail)
  return classify(report, status, model, retryAfter(headers, report.error, report.message, now), {
    detail: advice === undefined ? message : `${message} (model ${model}). ${advice}`,
    status,
    ...(requestId === undefined ? {} : { requestId }),
    ...(body === "" ? {} : { body: VendorText.excerpt(body) }),
    ...(headers["x-should-retry"] === "false" ? { shouldRetry: false } : {})
  })
}

/** The failure that an event of an answer reports, `undefined` if it reports none. */
export const inBand = (event: Json.Json | undefined, data: string, model: string): Reason | undefined =>
  reportsFailure(event) ? ofEvent(event, data, model) : undefined

/** The failure in data of any shape that stand for an error, such as those of an event with that name. */
export const ofErrorEvent = (data: string, model = ""): Reason => ofEvent(Json.parse(data), data, model)

/**
 * The failure in words that stand for an error: a status or JSON may be among them, or they are the message of a `ProviderError`, as
 * where a server sends on what its client of the vendor has thrown.
 */
export const ofWords = (words: string): Reason => {
  const [, tag = ""] = /^[^:]{1,100}: (\w+)(?:: |$)/.exec(words) ?? []
  const meaning = Errors.isMeaning(tag) ? tag : undefined
  const json = jsonIn(words) ?? jsonIn(words.slice(words.indexOf("{")))
  const report = readReport(json, words)
  const [, digits] = /^(?:\S+: )?(?:error |http |status (?:code )?)*([45]\d\d)\b/i.exec(words) ?? []
  const facts = { detail: VendorText.cut(words, maxDetail) }
  const status = digits === undefined ? report.status : Number(digits)
  const wait = retryAfter({}, report.error, report.message)
  return classify(report, status, "", wait, facts, meaning)
}

/**
 * The failure in what a server wrote in place of an answer or of an event, `undefined` where nothing says that it is one. Half of an
 * event is not searched: the words in it are those of the model.
 */
export const inText = (text: string, model: string): Reason | undefined => {
  const json = jsonIn(text)
  if (json !== undefined) return inBand(json, text, model)
  const words = /[{[]/.test(text) ? "" : VendorText.start(text)
  const isKnown = Errors.overflowIn(words) ?? Errors.meaningOfWords(words)
  return isKnown === undefined ? undefined : ofEvent(undefined, text, model)
}

/** The JSON at the end of a text. */
const jsonIn = (text: string) => Json.parse(text.replace(/^[^{[]*/, ""))

const isText = (text: string | undefined): text is string => text !== undefined

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

/** The name of an error of AWS without its namespace and its address: `x-amzn-errortype` is `ThrottlingException:http://…`. */
const nameOf = (errorType: string | undefined): string | undefined =>
  errorType?.replace(/:.*$/s, "").replace(/^.*#/s, "")

// ───────────────────────── What an error says

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

/** `raw` is the message of JSON that has none. `name` is the name of the error in a header. */
const readReport = (json: Json.Json | undefined, raw: string, name?: string): Report => {
  const root = Json.isArray(json) ? Json.object(json[0]) : Json.object(json)
  const base = Json.object(root?.["base_resp"])
  const inner =
    root?.["error"] ?? Json.object(root?.["response"])?.["error"] ?? Json.array(root?.["errors"])[0] ?? base
  const error = Json.object(inner) ?? root
  const sent = rawOf(error)
  const upstream = sent === undefined ? undefined : readReport(jsonIn(sent), "")
  const codes = [
    name,
    base === undefined ? undefined : `base_resp ${Json.number(base["status_code"])}`,
    ...detailsOf(error).map(({ error_code, reason }) => error_code ?? reason),
    Json.object(error?.["innererror"])?.["code"],
    ...["code", "error_code", "type", "status", "__type"].map((member) => error?.[member]),
    ...["code", "type"].map((member) => root?.[member])
  ]
  const coded = [error?.["code"], error?.["status_code"], error?.["status"], root?.["code"], root?.["status"]]
  return {
    message: VendorText.start(
      messageOf(root, inner) ?? (typeof json === "string" ? json : VendorText.cut(raw.trim(), 300))
    ),
    codes: [...codes.map(codeOf).filter((code) => code !== ""), ...(upstream?.codes ?? [])],
    status: coded.map(statusOf).find((code) => code !== undefined) ?? upstream?.status,
    requestId: Json.text(root?.["request_id"]) ?? Json.text(error?.["request_id"]),
    error
  }
}

/** A code in lower case, `""` for a status and for what is no code. */
const codeOf = (code: Json.Json | undefined): string => {
  const text = typeof code === "number" && code !== 0 ? String(code) : Json.text(code)
  return text === undefined || text === "error" || statusOf(code) !== undefined
    ? ""
    : text.slice(0, maxCode).toLowerCase()
}

/** An error status as a number or as digits, `undefined` for anything else. */
const statusOf = (json: Json.Json | undefined): number | undefined => {
  const status = typeof json === "string" && /^\d{3}$/.test(json) ? Number(json) : Json.number(json)
  const isStatus = status !== undefined && Number.isInteger(status) && status >= 400 && status < 600
  return isStatus ? status : undefined
}

/** The details in errors of Google, of which more than a few explain nothing, and of Anthropic. */
const detailsOf = (error: Json.JsonObject | undefined): ReadonlyArray<Json.JsonObject> => {
  const details = error?.["details"]
  if (Json.isObject(details)) return [details]
  return Json.array(details)
    .slice(0, 32)
    .flatMap((detail) => (Json.isObject(detail) ? [detail] : []))
}

const messageOf = (root: Json.JsonObject | undefined, inner: Json.Json | undefined): string | undefined => {
  const error = Json.object(inner)
  // In quotes, because it is a message of another program without further members.
  if (typeof inner === "string" && inner !== "") return JSON.stringify(VendorText.start(inner))
  const message = [error, root].flatMap((place) => messages.map((member) => Json.text(place?.[member])))
  const found = message.find((text) => text !== undefined) ?? listOf(root?.["detail"])
  // OpenRouter's own message is only "Provider returned error".
  const upstream = rawOf(error)
  return upstream === undefined
    ? found
    : `${VendorText.start(found ?? "Provider returned error")}: ${upstream}`
}

/** The answer of OpenRouter's provider. */
const rawOf = (error: Json.JsonObject | undefined): string | undefined => {
  const raw = Json.object(error?.["metadata"])?.["raw"]
  return Json.isObject(raw) || Json.isArray(raw) ? JSON.stringify(raw) : Json.text(raw)
}

/** The last are those of FastAPI, MiniMax, Java servers and RFC 9457. */
const messages = ["message", "Message", "detail", "status_msg", "msg", "error_msg", "title"]

/** FastAPI: a list of errors with their places. */
const listOf = (detail: Json.Json | undefined): string | undefined =>
  Json.isArray(detail) ? JSON.stringify(detail) : undefined

/** Whether an event is an error. Runs for each delta, whose first lookups say that it is none. */
const reportsFailure = (event: Json.Json | undefined): boolean => {
  if (typeof event !== "object" || event === null) return false
  if (Json.isArray(event)) return event.some(reportsFailure)
  const { choices, error, type } = event
  if (error !== undefined && error !== null && error !== "" && error !== false) return true
  if (type === "error" || event["object"] === "error") return true
  if (typeof type === "string" || (Json.isArray(choices) && choices.length > 0)) return false
  return isFailed(event)
}

/** MiniMax: `base_resp`; gateways: `{success: false, message}`, `{code: 500, msg}`, `{detail}`. */
const isFailed = (event: Json.JsonObject): boolean => {
  const { base_resp, code, detail, success } = event
  if ((Json.number(Json.object(base_resp)?.["status_code"]) ?? 0) !== 0) return true
  if (success === false || (typeof detail === "string" && detail !== "")) return true
  const isCode = codeOf(code) !== "" || statusOf(code) !== undefined
  return isCode && (typeof event["msg"] === "string" || typeof event["message"] === "string")
}

const ofEvent = (event: Json.Json | undefined, data: string, model: string): Reason => {
  const report = readReport(event, data)
  return classify(report, report.status, model, retryAfter({}, report.error, report.message), {
    detail: VendorText.cut(report.message, maxDetail),
    ...(report.status === undefined ? {} : { status: report.status }),
    ...(report.requestId === undefined ? {} : { requestId: report.requestId }),
    body: VendorText.excerpt(data)
  })
}

// ───────────────────────── What it means

interface Facts {
  readonly detail: string
  readonly status?: number
  readonly requestId?: string
  readonly body?: string
  readonly shouldRetry?: false
}

/** `status` is absent for an error inside an answer that names none, and `known` where the meaning is known already. */
const classify = (
  report: Report,
  status: number | undefined,
  model: string,
  wait: Duration.Duration | undefined,
  facts: Facts,
  known?: Errors.Meaning
): Reason => {
  const { codes, error, message } = report
  // OpenAI: the place of the part in the request.
  const place = Json.text(error?.["param"])
  const named = place === undefined ? message : `${VendorText.start(place)}: ${message}`
  const refused = countsBytes(report) ? "image" : Errors.refusedPart(codes, named)
  const refusing = refused === undefined ? facts : { ...facts, refused }
  const waiting = wait === undefined ? facts : { ...facts, retryAfter: wait }
  switch (known ?? meaningOf(report, status, refused, wait)) {
    case "ContextOverflow":
      return new Reasons.ContextOverflow({ ...facts, ...sizesIn(report) })
    case "QuotaExceeded":
      return new Reasons.QuotaExceeded(isDaily(report) ? facts : waiting)
    case "RateLimited":
      return new Reasons.RateLimited(waiting)
    case "ContentPolicy":
      return new Reasons.ContentPolicy(refusing)
    case "Unauthenticated":
      return new Reasons.Unauthenticated(facts)
    case "Forbidden":
      return new Reasons.Forbidden(facts)
    case "NotFound":
      return new Reasons.NotFound(naming(model, facts))
    case "Overloaded":
      return new Reasons.Overloaded(waiting)
    case "ServerError":
      return new Reasons.ServerError(waiting)
    case "InvalidRequest":
      return new Reasons.InvalidRequest(refusing)
  }
}

const meaningOf = (
  report: Report,
  status: number | undefined,
  refused: Reasons.RefusedPart | undefined,
  wait: Duration.Duration | undefined
): Errors.Meaning => {
  const { codes, error, message } = report
  const coded = Errors.meaningOf(codes)
  if (coded !== undefined) return coded
  if (Errors.overflowIn(message) !== undefined) return "ContextOverflow"
  if (isDaily(report)) return "QuotaExceeded"
  const meant = Errors.awsStatus(codes, message) ?? status ?? Errors.statusOf(codes)
  const worded = Errors.meaningOfWords(message, meant, wait !== undefined)
  if (worded !== undefined) return worded
  // OpenRouter's moderation.
  if (Json.isArray(Json.object(error?.["metadata"])?.["reasons"])) return "ContentPolicy"
  // An error without a code is one of the server. A code that no row knows is a refusal, since vendors add new ones for policies, and
  // a repeated request would be blocked again.
  const general = Errors.meaningOfStatus(meant ?? (codes.length === 0 ? 500 : 400))
  // 404 is also the answer to thinking that is stored nowhere, and to an image for a model without; 413 to a file; 403 to one that
  // is gone.
  const isPart =
    general === "NotFound" ||
    (general === "ContextOverflow" && (refused === "image" || refused === "file")) ||
    (general === "Forbidden" && refused === "file")
  return isPart && refused !== undefined ? "InvalidRequest" : general
}

/** Anthropic itself refuses 32 MB, which only images and files reach. Servers that speak its protocol send no such id, and count tokens. */
const countsBytes = ({ codes, requestId }: Report): boolean =>
  requestId !== undefined && codes.includes("request_too_large")

const sizesIn = ({ error, message }: Report): Errors.Overflow => {
  const { limit, size } = Errors.overflowIn(message) ?? {}
  const [most, length] = [
    Json.number(error?.["n_ctx"]) ?? limit,
    Json.number(error?.["n_prompt_tokens"]) ?? size
  ]
  return { ...(most === undefined ? {} : { limit: most }), ...(length === undefined ? {} : { size: length }) }
}

/** Google: the quota of the day is used up, although the response contains a retry in a minute. */
const isDaily = ({ error }: Report): boolean =>
  detailsOf(error).some((detail) =>
    Json.array(detail["violations"]).some((violation) =>
      (Json.text(Json.object(violation)?.["quotaId"]) ?? "").includes("PerDay")
    )
  )

const naming = (model: string, facts: Facts): Facts =>
  facts.detail.includes(model) ? facts : { ...facts, detail: `${facts.detail} (model ${model})` }

// ───────────────────────── The wait that a provider requests, in all places and forms that providers use

/** Maximum wait. A higher number means an error or no end. */
const maxMillis = Duration.toMillis("365 days")

type Headers = Readonly<Record<string, string | undefined>>

/**
 * The wait, `undefined` if the response contains none in a known form. Headers win over the body, and fields of
 * the body over its message. `now`, in milliseconds since the epoch, is necessary for forms that contain a
 * point in time.
 */
export const retryAfter = (
  headers: Headers,
  error: JsonObject | undefined,
  message: string,
  now?: number
): Duration.Duration | undefined => {
  const all = { ...headersIn(error), ...headers }
  const millis =
    positive(seconds(all["retry-after-ms"], 0.001)) ??
    retryAfterHeader(all["retry-after"], now) ??
    retryInfo(error) ??
    resetHeaders(all, now) ??
    member(error?.["retry_after"] ?? error?.["retryAfter"]) ??
    renewal(error, now) ??
    prose(message)
  return millis === undefined ? undefined : Duration.millis(Math.min(Math.max(0, millis), maxMillis))
}

/** "1m2.5s", "250ms", "20 seconds", "3", in milliseconds. A bare number is in seconds. */
const spell = (value: string): number | undefined => {
  const parts = [...value.slice(0, maxSpan).matchAll(/(\d+(?:\.\d+)?)\s*([a-z]*)/gi)]
  const millis = parts.map(
    ([, amount, unit]) => Number(amount) * (units.get(unit?.toLowerCase() ?? "") ?? NaN)
  )
  const sum = millis.reduce((total, part) => total + part, 0)
  return parts.length === 0 || !Number.isFinite(sum) ? undefined : sum
}

/** Maximum characters of a duration. Vendors use a dozen. */
const maxSpan = 100

const units: ReadonlyMap<string, number> = new Map([
  ["", 1000],
  ["ms", 1],
  ["milliseconds", 1],
  ["s", 1000],
  ["sec", 1000],
  ["secs", 1000],
  ["second", 1000],
  ["seconds", 1000],
  ["m", 60_000],
  ["min", 60_000],
  ["mins", 60_000],
  ["minute", 60_000],
  ["minutes", 60_000],
  ["h", 3_600_000],
  ["hr", 3_600_000],
  ["hour", 3_600_000],
  ["hours", 3_600_000],
  ["d", 86_400_000],
  ["day", 86_400_000],
  ["days", 86_400_000]
])

const positive = (value: number | undefined) => (value !== undefined && value > 0 ? value : undefined)

/** `unit` is in seconds. "1e308" is a number, and "inf" is infinite. */
const seconds = (value: string | undefined, unit = 1): number | undefined => {
  const trimmed = value?.trim() ?? ""
  if (/^(?:\+?inf(?:inity)?)$/i.test(trimmed)) return Infinity
  return /^\d+(?:\.\d+)?(?:e\+?\d+)?$/i.test(trimmed) ? Number(trimmed) * unit * 1000 : undefined
}

/** Cloudflare, Discord and others: in seconds, as in the header of that name. */
const member = (value: Json.Json | undefined) =>
  seconds(typeof value === "number" ? String(value) : text(value))

const retryAfterHeader = (value: string | undefined, now: number | undefined) =>
  seconds(value) ?? until(value, now)

/** An HTTP or ISO date. `Date.parse` accepts some words too, which do not count. */
const until = (value: string | undefined, now: number | undefined): number | undefined => {
  const at = value !== undefined && /\d{4}/.test(value) ? Date.parse(value) : NaN
  return Number.isNaN(at) || now === undefined ? undefined : at - now
}

/** https://cloud.google.com/apis/design/errors: `{"@type": "…RetryInfo", "retryDelay": "34.4s"}` */
const retryInfo = (error: JsonObject | undefined): number | undefined => {
  for (const detail of array(error?.["details"])) {
    const delay = isObject(detail) ? text(detail["retryDelay"]) : undefined
    if (delay !== undefined) return spell(delay)
  }
  return undefined
}

/** The time at which an exhausted limit resets. Limits with remaining requests send this header too. */
const resetHeaders = (headers: Headers, now: number | undefined): number | undefined => {
  const waits = Object.entries(headers).flatMap(([name, value]) => {
    const pair = name.replace("reset", "remaining")
    if (!isReset(name) || value === undefined || headers[pair]?.trim() !== "0") return []
    const wait = resetAt(value.trim(), now)
    return wait === undefined ? [] : [wait]
  })
  return waits.length === 0 ? undefined : waits.reduce((longest, wait) => Math.max(longest, wait))
}

/** "x-ratelimit-reset-tokens". */
const isReset = (name: string): boolean => {
  const limit = name.indexOf("ratelimit")
  return limit !== -1 && name.includes("reset", limit)
}

/** The milliseconds until a date, seconds or milliseconds since the epoch, or a duration. */
export const resetAt = (value: string, now: number | undefined): number | undefined => {
  if (!/^\d+(?:\.\d+)?$/.test(value)) return /^[\d.]+[a-z]/i.test(value) ? spell(value) : until(value, now)
  const count = Number(value)
  if (count < 1e9) return count * 1000
  return now === undefined ? undefined : (count > 1e12 ? count : count * 1000) - now
}

/** OpenRouter sends the headers of the upstream provider in the body. */
const headersIn = (error: JsonObject | undefined): Headers => {
  const headers: Json.Json | undefined = object(error?.["metadata"])?.["headers"]
  if (!isObject(headers)) return {}
  const pairs = Object.entries(headers).flatMap(([name, value]) =>
    typeof value === "string" || typeof value === "number" ? [[name.toLowerCase(), `${value}`] as const] : []
  )
  return Object.fromEntries(pairs)
}

/** The limits of ChatGPT plans: seconds, or seconds since the epoch. Codex reads both (openai/codex, codex-api). */
const renewal = (error: JsonObject | undefined, now: number | undefined): number | undefined =>
  member(error?.["resets_in_seconds"]) ?? resetAt(String(error?.["resets_at"] ?? ""), now)

/** "Please try again in 1m2.5s." */
const prose = (message: string): number | undefined => {
  const span =
    /(?:try again|retry|available|reset)\w{0,10}\s+(?:in|after)\s+((?:\d+(?:\.\d+)?\s*[a-z]+\s*)+)/i.exec(
      VendorText.start(message)
    )?.[1]
  return span === undefined ? undefined : spell(leading(span))
}

/** The amounts at the start. The rest of the sentence follows them. */
const leading = (span: string): string =>
  [...span.matchAll(/\d+(?:\.\d+)?\s*([a-z]+)/gi)]
    .filter(([, unit]) => unit !== undefined && units.has(unit.toLowerCase()))
    .map(([amount]) => amount)
    .join(" ")
