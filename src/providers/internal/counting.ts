/**
 * Token counts and costs of a server. Implausible values count as missing, so that sums and limits stay
 * correct.
 */
import { type Counting, isReason, type Protocol } from "../Protocol.ts"
import type { Usage } from "../../Usage.ts"
import * as Json from "./json.ts"

/** An integer from 0 to 1e12, `undefined` for anything else. */
export const tokens = (json: Json.Json | undefined): number | undefined => {
  const count = Json.number(json)
  return count !== undefined && Number.isInteger(count) && count >= 0 && count <= 1e12 ? count : undefined
}

/** The first of these members that is a count. */
export const first = (
  counts: Json.JsonObject | undefined,
  ...names: ReadonlyArray<string>
): number | undefined => {
  for (const name of names) {
    const count = tokens(counts?.[name])
    if (count !== undefined) return count
  }
  return undefined
}

/** The tokens of audio, where there are some. */
export const audio = (
  input: number | undefined = 0,
  output: number | undefined = 0
): Pick<Usage, "inputAudio" | "outputAudio"> => ({
  ...(input === 0 ? {} : { inputAudio: input }),
  ...(output === 0 ? {} : { outputAudio: output })
})

/** The calls of tools of the vendor, from `{ web_search_requests: 2 }` or `{ web_search: { num_requests: 2 } }`. */
export const hostedToolCalls = (json: Json.Json | undefined): Pick<Usage, "hostedToolCalls"> => {
  const counts = Object.entries(Json.object(json) ?? {}).flatMap(([name, value]) => {
    const count = tokens(Json.object(value)?.["num_requests"] ?? value) ?? 0
    return count === 0 ? [] : [[name.replace(/_(?:requests|calls)$/, ""), count] as const]
  })
  return counts.length === 0 ? {} : { hostedToolCalls: Object.fromEntries(counts) }
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
