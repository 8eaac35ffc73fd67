/**
 * Token counts and costs of a server. Implausible values count as missing, so that sums and limits stay
 * correct.
 */
import { type Counting, isReason, type Protocol } from "../Protocol.ts"
import * as Json from "./json.ts"

/** An integer from 0 to 1e12, `undefined` for anything else. */
export const tokens = (json: Json.Json | undefined): number | undefined => {
  const count = Json.number(json)
  return count !== undefined && Number.isInteger(count) && count >= 0 && count <= 1e12 ? count : undefined
}

/** A number from 0 to 1e9, `undefined` for anything else. */
export const cost = (json: Json.Json | undefined): number | undefined => {
  const amount = Json.number(json)
  return amount !== undefined && amount >= 0 && amount <= 1e9 ? amount : undefined
}

/** Counts the tokens of a request by those members of its body that the vendor takes there. */
export const byMembers = (encode: Protocol["encode"], members: ReadonlyArray<string>): Counting => ({
  encode: (question) => {
    const body = encode(question)
    if (isReason(body)) return body
    const all = Object.entries(Json.object(Json.parse(body)) ?? {})
    return Json.encode(Object.fromEntries(all.filter(([name]) => members.includes(name))))
  },
  read: (response) => tokens(Json.object(response)?.["input_tokens"])
})
