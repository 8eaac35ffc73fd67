/**
 * The arguments of a call, as vendors take them back. One call that is no JSON object has them refuse the whole
 * conversation; its result tells the model what was wrong.
 */
import { parseArguments } from "../../ModelEvent.ts"
import * as Json from "./json.ts"

export const object = (raw: string): Json.JsonObject => Json.object(parseArguments(raw)) ?? {}

/** As the model wrote them, but for escapes of half a surrogate pair: some vendors look into the text. */
export const text = (raw: string): string => {
  const params = raw.trim() === "" ? undefined : parseArguments(raw)
  return Json.isObject(params) ? (surrogate.test(raw) ? Json.encode(params) : raw) : "{}"
}

const surrogate = /\\ud[89a-f][0-9a-f]{2}/i
