/**
 * Detects from the error of any vendor that a conversation exceeds the context window. Vendors share no error
 * code: each pattern is the wording of the servers in its comment, as of 2025 and 2026.
 */
import type { JsonObject } from "./json.ts"
import { number } from "./json.ts"
import * as Wording from "./wording.ts"

/** The token counts in the error, if it contains them. */
export interface Overflow {
  readonly limit?: number
  readonly size?: number
}

/** The overflow, `undefined` for another failure. `codes` are in lower case. */
export const find = (
  codes: ReadonlyArray<string>,
  message: string,
  error: JsonObject | undefined
): Overflow | undefined => {
  const words = Wording.start(message)
  const match = wordings.map((wording) => wording.exec(words)).find((found) => found !== null)
  if (match === undefined && !codes.some((code) => overflowCodes.test(code))) return undefined
  const limit = number(error?.["n_ctx"]) ?? count(match?.groups?.["limit"])
  const size = number(error?.["n_prompt_tokens"]) ?? count(match?.groups?.["size"])
  return { ...(limit === undefined ? {} : { limit }), ...(size === undefined ? {} : { size }) }
}

const count = (digits: string | undefined): number | undefined =>
  digits === undefined ? undefined : Number(digits.replaceAll(",", ""))

const overflowCodes =
  /context_length_exceeded|exceed_context_size|too_many_prompt_tokens|context_window_exceeded|input_too_long/

/** Patterns with numbers come first. */
const wordings: ReadonlyArray<RegExp> = [
  // Anthropic
  /prompt is too long: (?<size>\d+) tokens? > (?<limit>\d+)/i,
  /exceed context limit: (?<size>\d+) \+ \d+ > (?<limit>\d+)/i,
  // OpenAI, OpenRouter, DeepSeek, Groq, vLLM
  /maximum context length (?:is|of) (?<limit>[\d,]+)[^]{0,120}?(?:requested|resulted in|contains?|has)\D{0,40}(?<size>[\d,]+)/i,
  // Google
  /input token count \((?<size>\d+)\) exceeds the maximum number of tokens allowed \((?<limit>\d+)\)/i,
  // xAI
  /maximum prompt length is (?<limit>\d+)\D+(?<size>\d+)/i,
  // llama.cpp, LM Studio
  /\((?<size>\d+) tokens\) exceeds the available context size \((?<limit>\d+)/i,
  /first (?<size>\d+) tokens when context[^]*context length of only (?<limit>\d+)/i,
  // Kimi
  /model token limit: (?<limit>\d+) \(requested: (?<size>\d+)\)/i,
  // Mistral
  /contains (?<size>\d+) tokens[^]{0,120}?(?<limit>\d+) maximum context/i,
  // vLLM, TGI
  /\(length (?<size>\d+)\) is longer than the maximum model length of (?<limit>\d+)/i,
  /must be <= (?<limit>\d+)\. Given: (?<size>\d+) `inputs` tokens/i,
  // OpenAI and Groq, if one request exceeds the limit of a minute. Waiting does not help, a shorter request
  // does.
  /request too large[^]*limit (?<limit>\d+), requested (?<size>\d+)/i,
  // GitHub
  /too large for \S+ model\. max size: (?<limit>\d+) tokens/i,
  // Ollama, Azure, MiniMax, Together and others
  /context[ _-]?(?:window|length|size|limit)[^]{0,60}(?:exceed|overflow|too (?:long|large|small))/i,
  /(?:exceed|overflow|larger than|longer than|too (?:long|large) for)\w{0,10}[^]{0,60}context[ _-]?(?:window|length|size|limit)/i,
  // Bedrock, Perplexity, Cohere
  /(?:prompt|input|conversation|total length of all messages) (?:is )?too long/i,
  // Bedrock also uses these words for limits of a minute or a day.
  /too many (?:input |prompt )?tokens(?!,? please wait| per (?:minute|hour|day)| processed)/i,
  /maximum context length/i
]
