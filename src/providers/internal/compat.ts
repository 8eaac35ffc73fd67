/**
 * Where servers that speak Chat Completions differ. Data, set by whoever names a server: nothing is guessed from a URL.
 */
import type { ThinkingLevel } from "../../RunOptions.ts"
import type { Rule } from "./callId.ts"

export interface Compat {
  /**
   * The field for `maxTokens`. OpenAI's reasoning models refuse the old one, most other servers know no other. Default
   * "max_tokens".
   */
  readonly maxTokensField: "max_tokens" | "max_completion_tokens"
  /** Who says the system prompt. OpenAI's reasoning models want "developer", which other servers refuse. Default "system". */
  readonly systemRole: "system" | "developer"
  /** Whether to ask for usage. Servers that do not know `stream_options` refuse it. Default true. */
  readonly streamUsage: boolean
  /**
   * How a thinking level is asked for: `effort` is `reasoning_effort`, `reasoning` is OpenRouter's object of that name,
   * `switch` is `thinking: {type}` (Z.ai, Kimi, DeepSeek), `flag` is `enable_thinking` (Qwen). With `effort` the level "off"
   * sends nothing, as not every model has a word for it: it thinks as it does by default. Default "effort".
   */
  readonly thinking: "none" | "effort" | "reasoning" | "switch" | "flag"
  /** The vendor's word for a level, where it is another. Default none is. */
  readonly efforts: Partial<Record<Exclude<ThinkingLevel, "off">, string>>
  /**
   * The field in which thinking goes back with a message that calls tools. DeepSeek and Kimi answer 400 without it, others
   * with it. What came as `reasoning_details` always goes back. Default "none".
   */
  readonly replayThinking: "none" | "reasoning_content" | "reasoning"
  /** What the ids of tool calls must look like. Default anything. */
  readonly callIds?: Rule
  /** Tool results carry the tool's name. Default false. */
  readonly toolName: boolean
  /** A user message must not follow a tool result: an assistant message is put between them. Default false. */
  readonly assistantAfterTools: boolean
  /** Whether it takes images. Else a conversation with one fails, and is not sent. Default true. */
  readonly images: boolean
  /** Whether it takes files. Else a conversation with one fails, and is not sent. Default true. */
  readonly files: boolean
  /** The session id goes along as `prompt_cache_key`, and a long retention with it. Default false. */
  readonly cacheKey: boolean
  /**
   * How an output schema is asked for. `json_object` is without the schema, which the prompt then has to tell. Default
   * "json_schema".
   */
  readonly output: "json_schema" | "json_object"
}

/** What most servers take: the defaults. */
export const common: Compat = {
  maxTokensField: "max_tokens",
  systemRole: "system",
  streamUsage: true,
  thinking: "effort",
  efforts: {},
  replayThinking: "none",
  toolName: false,
  assistantAfterTools: false,
  images: true,
  files: true,
  cacheKey: false,
  output: "json_schema"
}
