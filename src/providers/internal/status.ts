/** The HTTP status of a failure that the body of an answer reports. */
import * as Json from "./json.ts"

/** An error status as a number or as digits, `undefined` for anything else. */
export const of = (json: Json.Json | undefined): number | undefined => {
  const status = typeof json === "string" && /^\d{3}$/.test(json) ? Number(json) : Json.number(json)
  const isStatus = status !== undefined && Number.isInteger(status) && status >= 400 && status < 600
  return isStatus ? status : undefined
}

/** The status that corresponds to an error code. Default: 500. */
export const meant = (codes: ReadonlyArray<string>): number =>
  symbolic.find(([pattern]) => codes.some((code) => pattern.test(code)))?.[1] ?? 500

const symbolic: ReadonlyArray<readonly [RegExp, number]> = [
  [/rate.?limit|too_many_requests|resource_exhausted|throttl/, 429],
  [/overload|capacity|slow_down|unavailable/, 529],
  [/permission|forbidden/, 403],
  [/authenti|api_key|unauthorized/, 401],
  [/not_found/, 404],
  [/billing|quota|payment/, 402],
  [/timeout|deadline/, 408],
  [/invalid|bad_request|tool_use_failed|precondition|unsupported/, 400]
]
