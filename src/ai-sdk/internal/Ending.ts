/**
 * The end of an answer: its reason and its tokens, or its failure.
 */
import type { LanguageModelV3StreamPart, LanguageModelV4StreamPart } from "@ai-sdk/provider"
import type { StopReason } from "../../Message.ts"
import type { Reason } from "../../ProviderError.ts"
import { ServerError, StreamTruncated } from "../../ProviderError.ts"
import * as Usage from "../../Usage.ts"

type Finish = Extract<LanguageModelV3StreamPart | LanguageModelV4StreamPart, { type: "finish" }>
type FinishReason = Finish["finishReason"]

/** Packages report an answer that was cut as `"interrupted"`, and older ones as `"other"` without a reason of the vendor. */
export const failureOf = ({ raw, unified }: FinishReason): Reason | undefined => {
  if (unified === "error") return new ServerError({ detail: `The answer ended with an error${quoted(raw)}` })
  if (unified === "interrupted" || (unified === "other" && raw === undefined)) {
    return new StreamTruncated({ detail: "the answer ended before it was finished" })
  }
  return undefined
}

const quoted = (raw: string | undefined): string => (raw === undefined ? "" : ` (${raw.slice(0, 100)})`)

/** Tool calls, also those that the model forgot, make it `toolUse`, unless the answer was cut. A pause is an answer that the run does not continue. */
export const stopReasonOf = ({ raw, unified }: FinishReason, hasCalls: boolean): StopReason => {
  if (unified === "length") return "length"
  // OpenAI has no reason of its own for an answer that the model declined.
  if (unified === "content-filter") return refusals.includes(raw) ? "refusal" : "contentFilter"
  if (hasCalls || unified === "tool-calls") return "toolUse"
  return raw === "pause_turn" ? "length" : "stop"
}

const refusals: ReadonlyArray<string | undefined> = ["refusal", "stop", undefined]

/** Converts the usage, or returns `undefined` if the vendor reports none. */
export const usageOf = ({ inputTokens, outputTokens }: Finish["usage"]): Usage.Usage | undefined => {
  const counts = [...Object.values(inputTokens), ...Object.values(outputTokens)]
  if (counts.every((count) => count === undefined)) return undefined
  const { cacheRead = 0, cacheWrite = 0, noCache = 0 } = inputTokens
  const { reasoning, text = 0 } = outputTokens
  return Usage.make({
    input: inputTokens.total ?? noCache + cacheRead + cacheWrite,
    output: outputTokens.total ?? text + (reasoning ?? 0),
    cacheRead,
    cacheWrite,
    ...(reasoning === undefined ? {} : { reasoning })
  })
}
