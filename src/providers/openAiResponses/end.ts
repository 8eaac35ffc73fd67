/** The stop reason and the usage in the last event of OpenAI Responses. */
import type { StopReason } from "../../Message.ts"
import * as Usage from "../../Usage.ts"
import * as Counting from "../internal/counting.ts"
import * as Json from "../internal/json.ts"

export const stopReason = (response: Json.JsonObject): StopReason => {
  const reason = Json.object(response["incomplete_details"])?.["reason"]
  if (reason === "content_filter") return "contentFilter"
  return response["status"] === "incomplete" || reason !== undefined ? "length" : "stop"
}

export const usage = (wireUsage: Json.JsonObject): Usage.Usage => {
  const input = Json.object(wireUsage["input_tokens_details"])
  const reasoning = Counting.tokens(Json.object(wireUsage["output_tokens_details"])?.["reasoning_tokens"])
  const total = Counting.tokens(wireUsage["total_tokens"])
  const cost = costOf(wireUsage)
  return Usage.make({
    input: Counting.tokens(wireUsage["input_tokens"]) ?? 0,
    output: Counting.tokens(wireUsage["output_tokens"]) ?? 0,
    cacheRead: Counting.tokens(input?.["cached_tokens"]) ?? 0,
    cacheWrite: Counting.tokens(input?.["cache_write_tokens"]) ?? 0,
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
