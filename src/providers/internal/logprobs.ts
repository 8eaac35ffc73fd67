/** The probabilities of tokens, as both APIs of OpenAI send them. */
import type { Logprob } from "../../ModelEvent.ts"
import * as Json from "./json.ts"

/** The tokens of a list that have a probability. */
export const logprobsOf = (list: Json.Json | undefined): ReadonlyArray<Logprob> =>
  Json.array(list).flatMap((item) => {
    const token = tokenOf(item)
    if (token === undefined) return []
    const top = Json.array(Json.object(item)?.["top_logprobs"]).flatMap((other) => tokenOf(other) ?? [])
    return [top.length === 0 ? token : { ...token, top }]
  })

const tokenOf = (item: Json.Json): Pick<Logprob, "token" | "logprob"> | undefined => {
  const { logprob, token } = Json.object(item) ?? {}
  return typeof token === "string" && typeof logprob === "number" && Number.isFinite(logprob)
    ? { token, logprob }
    : undefined
}
