/**
 * Tokens and costs as a server tells them. One that is nonsense is as good as none: sums of it would be, and so would the
 * limits that go by them.
 */
import * as Json from "./json.ts"

/** Tokens: a whole number from 0 to 1e12, `undefined` for anything else. */
export const tokens = (json: Json.Json | undefined): number | undefined => {
  const count = Json.number(json)
  return count !== undefined && Number.isInteger(count) && count >= 0 && count <= 1e12 ? count : undefined
}

/** A cost: a number from 0 to 1e9, `undefined` for anything else. */
export const cost = (json: Json.Json | undefined): number | undefined => {
  const amount = Json.number(json)
  return amount !== undefined && amount >= 0 && amount <= 1e9 ? amount : undefined
}
