/**
 * The arguments of a tool call in the form that vendors accept. Vendors reject a conversation in which the
 * arguments of one call are not a JSON object. The result of the call describes the mistake to the model.
 */
import { parseArguments } from "../../ModelEvent.ts"
import * as Json from "./json.ts"

export const object = (raw: string): Json.JsonObject => Json.object(parseArguments(raw)) ?? {}

/**
 * The arguments as the model wrote them, except for escapes of half a surrogate pair, because some vendors
 * parse the text.
 */
export const text = (raw: string): string => {
  const params = ["", "null"].includes(raw.trim()) ? undefined : parseArguments(raw)
  return Json.isObject(params) ? (surrogate.test(raw) ? Json.encode(params) : raw) : "{}"
}

const surrogate = /\\ud[89a-f][0-9a-f]{2}/i
