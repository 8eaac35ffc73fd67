/** The tokens of an answer of Chat Completions. */
import * as Usage from "../../Usage.ts"
import * as Counting from "../internal/counting.ts"
import * as Json from "../internal/json.ts"

export const usageOf = (wireUsage: Json.JsonObject): Usage.Usage => {
  const prompt = Json.object(wireUsage["prompt_tokens_details"])
  const completion = Json.object(wireUsage["completion_tokens_details"])
  const input = Counting.tokens(wireUsage["prompt_tokens"]) ?? 0
  const completionTokens = Counting.tokens(wireUsage["completion_tokens"]) ?? 0
  const reasoning = Counting.tokens(completion?.["reasoning_tokens"])
  const total = Counting.tokens(wireUsage["total_tokens"])
  // xAI excludes reasoning from the completion tokens, but includes it in the total.
  const output =
    reasoning !== undefined && total === input + completionTokens + reasoning
      ? completionTokens + reasoning
      : completionTokens
  const cost =
    Counting.cost(wireUsage["cost"]) ?? Counting.cost(Json.object(wireUsage["cost"])?.["total_cost"])
  return Usage.make({
    input,
    output,
    cacheRead:
      Counting.tokens(prompt?.["cached_tokens"]) ??
      Counting.tokens(wireUsage["prompt_cache_hit_tokens"]) ??
      0,
    cacheWrite: Counting.tokens(prompt?.["cache_write_tokens"]) ?? 0,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(total === undefined ? {} : { total }),
    ...(cost === undefined ? {} : { cost })
  })
}
