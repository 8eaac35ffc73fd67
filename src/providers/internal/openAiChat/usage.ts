/** The tokens of an answer of Chat Completions, by the names that servers give them. */
import * as Usage from "../../../Usage.ts"
import * as Counting from "../counting.ts"
import * as Json from "../json.ts"

/** `undefined` if the server counted neither the request nor the answer. */
export const usageOf = (wireUsage: Json.JsonObject): Usage.Usage | undefined => {
  const details = (side: "prompt" | "input" | "completion" | "output") =>
    Json.object(wireUsage[`${side}_tokens_details`])
  const prompt = details("prompt") ?? details("input")
  const completion = details("completion") ?? details("output")
  const input = Counting.first(wireUsage, "prompt_tokens", "input_tokens")
  const completionTokens = Counting.first(wireUsage, "completion_tokens", "output_tokens")
  if (input === undefined && completionTokens === undefined) return undefined
  const reasoning = Counting.first(completion, "reasoning_tokens")
  const total = Counting.first(wireUsage, "total_tokens")
  // xAI excludes reasoning from the completion tokens, but includes it in the total.
  const output =
    reasoning !== undefined && total === (input ?? 0) + (completionTokens ?? 0) + reasoning
      ? (completionTokens ?? 0) + reasoning
      : completionTokens
  const cost =
    Counting.cost(wireUsage["cost"]) ?? Counting.cost(Json.object(wireUsage["cost"])?.["total_cost"])
  return Usage.make({
    input: input ?? 0,
    output: output ?? 0,
    cacheRead:
      Counting.first(prompt, "cached_tokens") ??
      // DeepSeek, Kimi, LiteLLM
      Counting.first(wireUsage, "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens") ??
      0,
    cacheWrite:
      // OpenAI and OpenRouter, DashScope, gateways to Anthropic
      Counting.first(prompt, "cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens") ??
      // LiteLLM, Vercel
      Counting.first(wireUsage, "cache_creation_input_tokens") ??
      0,
    ...Counting.audio(Counting.first(prompt, "audio_tokens"), Counting.first(completion, "audio_tokens")),
    ...Counting.hostedToolCalls(wireUsage["server_tool_use"]),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(total === undefined ? {} : { total }),
    ...(cost === undefined ? {} : { cost })
  })
}
