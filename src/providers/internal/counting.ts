/**
 * Token counts and costs of a server. Implausible values count as missing, so that sums and limits stay
 * correct.
 */
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
