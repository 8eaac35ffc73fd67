/** The end of an answer: its stop reason, its failure and its usage. */
import type { StopReason } from "../../../Message.ts"
import type { Logprob } from "../../../ModelEvent.ts"
import type { Reason } from "../../../ProviderError.ts"
import { InvalidRequest, ServerError, StreamTruncated } from "../../../ProviderError.ts"
import * as Usage from "../../../Usage.ts"
import * as Counting from "../counting.ts"
import * as Json from "../json.ts"

/** The end of an answer as far as the server has sent it. */
export interface Ending {
  /** Whether Google blocked the prompt. */
  readonly isBlocked: boolean
  readonly finish: string | undefined
  readonly finishMessage: string | undefined
}

/**
 * The failure of an incomplete answer, `undefined` for a complete one. A finish reason, or a blocked prompt,
 * proves completeness.
 */
export const missing = ({ finish, finishMessage, isBlocked }: Ending): Reason | undefined => {
  if (finish === undefined) {
    return isBlocked ? undefined : new StreamTruncated({ detail: "The answer stopped before its end" })
  }
  if (stopReasons.has(finish)) return undefined
  const detail = `The answer ended with ${finish}${finishMessage === undefined ? "" : `: ${finishMessage}`}`
  // Google adds finish reasons for new failures, so an unknown one is a failure. Most are temporary: a
  // malformed call, or a call of an unknown function.
  return finish === "MISSING_THOUGHT_SIGNATURE" ? new InvalidRequest({ detail }) : new ServerError({ detail })
}

/** The stop reason of a complete answer. A blocked prompt has no finish reason. */
export const stopReasonOf = (finish: string | undefined): StopReason =>
  finish === undefined ? "contentFilter" : (stopReasons.get(finish) ?? "error")

/** The answer is longer than one request gives: https://ai.google.dev/gemini-api/docs/generate-content/long-decode */
export const continuation = "CONTINUATION"

const stopReasons: ReadonlyMap<string, StopReason> = new Map([
  ["STOP", "stop"],
  // Servers that imitate Google send this.
  ["FUNCTION_CALL", "stop"],
  ["MAX_TOKENS", "length"],
  // The end of one request of a long answer, if no further request continues it.
  [continuation, "length"],
  ["SAFETY", "contentFilter"],
  ["RECITATION", "contentFilter"],
  ["LANGUAGE", "contentFilter"],
  ["BLOCKLIST", "contentFilter"],
  ["PROHIBITED_CONTENT", "contentFilter"],
  ["SPII", "contentFilter"],
  ["MODEL_ARMOR", "contentFilter"],
  // SDK 3.3: a rule of escalation, and an account that is limited for what it did against the policies.
  ["ESCALATION", "contentFilter"],
  ["PUP_LIMITED_DISABLED", "contentFilter"],
  ["IMAGE_SAFETY", "contentFilter"],
  ["IMAGE_PROHIBITED_CONTENT", "contentFilter"],
  ["IMAGE_RECITATION", "contentFilter"]
])

/**
 * The prompt count includes cached tokens, but not those that Google's own tools add. The candidate count
 * excludes thinking.
 */
export const usageOf = (wireUsage: Json.JsonObject): Usage.Usage => {
  const count = (name: string) => Counting.tokens(wireUsage[name])
  const reasoning = count("thoughtsTokenCount")
  const total = count("totalTokenCount")
  return Usage.make({
    input: (count("promptTokenCount") ?? 0) + (count("toolUsePromptTokenCount") ?? 0),
    output: (count("candidatesTokenCount") ?? 0) + (reasoning ?? 0),
    cacheRead: count("cachedContentTokenCount") ?? 0,
    ...Counting.audio(
      audioIn(wireUsage["promptTokensDetails"]) + audioIn(wireUsage["toolUsePromptTokensDetails"]),
      audioIn(wireUsage["candidatesTokensDetails"])
    ),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(total === undefined ? {} : { total })
  })
}

const audioIn = (details: Json.Json | undefined): number =>
  Json.array(details).reduce<number>((sum, detail) => {
    const { modality, tokenCount } = Json.object(detail) ?? {}
    return modality === "AUDIO" ? sum + (Counting.tokens(tokenCount) ?? 0) : sum
  }, 0)

/** The probabilities of the tokens of a chunk: https://ai.google.dev/api/generate-content#LogprobsResult */
export const logprobsOf = (result: Json.Json | undefined): ReadonlyArray<Logprob> => {
  const { chosenCandidates, topCandidates } = Json.object(result) ?? {}
  const tops = Json.array(topCandidates)
  return Json.array(chosenCandidates).flatMap((chosen, index) => {
    const top = Json.array(Json.object(tops[index])?.["candidates"]).flatMap(tokenOf)
    return tokenOf(chosen).map((token) => (top.length === 0 ? token : { ...token, top }))
  })
}

const tokenOf = (candidate: Json.Json): ReadonlyArray<Pick<Logprob, "token" | "logprob">> => {
  const { logProbability: logprob, token } = Json.object(candidate) ?? {}
  return typeof token === "string" && typeof logprob === "number" ? [{ token, logprob }] : []
}
