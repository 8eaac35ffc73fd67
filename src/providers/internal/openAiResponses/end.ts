/** The stop reason and the usage in the last event of OpenAI Responses. */
import type { StopReason } from "../../../Message.ts"
import * as Usage from "../../../Usage.ts"
import * as Counting from "../counting.ts"
import * as Json from "../json.ts"

export const stopReason = (response: Json.JsonObject): StopReason => {
  const reason = Json.object(response["incomplete_details"])?.["reason"]
  if (reason === "content_filter") return "contentFilter"
  return response["status"] === "incomplete" || reason !== undefined ? "length" : "stop"
}

/** `undefined` if the server counted neither the request nor the answer. */
export const usage = (response: Json.JsonObject): Usage.Usage | undefined => {
  const wireUsage = Json.object(response["usage"]) ?? {}
  const [inputTokens, outputTokens] = ["input_tokens", "output_tokens"].map((name) =>
    Counting.tokens(wireUsage[name])
  )
  if (inputTokens === undefined && outputTokens === undefined) return undefined
  const input = Json.object(wireUsage["input_tokens_details"])
  const output = Json.object(wireUsage["output_tokens_details"])
  const reasoning = Counting.tokens(output?.["reasoning_tokens"])
  const total = Counting.tokens(wireUsage["total_tokens"])
  const cost = costOf(wireUsage)
  return Usage.make({
    input: inputTokens ?? 0,
    output: outputTokens ?? 0,
    cacheRead: Counting.tokens(input?.["cached_tokens"]) ?? 0,
    cacheWrite: Counting.tokens(input?.["cache_write_tokens"]) ?? 0,
    ...Counting.audio(Counting.first(input, "audio_tokens"), Counting.first(output, "audio_tokens")),
    ...Counting.hostedToolCalls(response["tool_usage"] ?? wireUsage["server_side_tool_usage_details"]),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(total === undefined ? {} : { total }),
    ...(cost === undefined ? {} : { cost })
  })
}

/** OpenRouter sends dollars, xAI ten billionths of a dollar. */
const costOf = (wireUsage: Json.JsonObject): number | undefined => {
  const ticks = Json.number(wireUsage["cost_in_usd_ticks"])
  return Counting.cost(wireUsage["cost"]) ?? Counting.cost(ticks === undefined ? undefined : ticks / 1e10)
}
