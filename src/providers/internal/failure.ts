/** The failures that events of an answer report, and those of data that are no events of the protocol. */
import { Protocol, type Reason } from "../../ProviderError.ts"
import { inBand, inText } from "../../http/VendorFailure.ts"
import * as Wording from "../../http/Wording.ts"
import * as Json from "./json.ts"

export { inText, ofErrorEvent, ofResponse } from "../../http/VendorFailure.ts"

/**
 * The failure for data that is not an event of the protocol. The message contains only a short part of it,
 * because it may be half an answer.
 */
export const badJson = (data: string): Reason =>
  new Protocol({
    kind: "badJson",
    detail: `${Wording.cut(Json.problem(data), 200)}: ${Wording.cut(data, 200)}`
  })

export const badShape = (problem: string, data: string): Reason =>
  new Protocol({ kind: "badShape", detail: `${problem}: ${Wording.cut(data, 200)}` })

/** The object in an event of the protocol. `what` is the noun for one: `an event`. */
export const objectIn = (data: string, what: string): Json.JsonObject | Reason => {
  const json = Json.parse(data)
  if (json === undefined) return inText(data, "") ?? badJson(data)
  return Json.isObject(json) ? json : badShape(`Not ${what}`, data)
}

/** The object in an event, or the failure that it reports. */
export const eventIn = (data: string, model: string, what: string): Json.JsonObject | Reason => {
  const json = objectIn(data, what)
  return json instanceof Error ? json : (inBand(json, data, model) ?? json)
}

/** The words of a reason, `undefined` for anything that could be encoded. */
export const detailIn = <A>(encoded: A | Reason): string | undefined =>
  encoded instanceof Error ? encoded.detail : undefined
