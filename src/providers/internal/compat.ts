/**
 * Where servers that speak Chat Completions differ. Data, set by whoever names a server: nothing is guessed from a URL.
 */
import type { ThinkingLevel } from "../../RunOptions.ts"
import type { Rule } from "./callId.ts"
import type * as Json from "./json.ts"
import type { Thinking } from "./models/rule.ts"

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
   * Whose models the server has: the rules of the model table that hold for them. Default: the server's id, if the table
   * has rules of that name, else none.
   */
  readonly vendor?: string
  /**
   * The server passes requests on to other vendors. Of the model table only limits and inputs of the id's family hold then.
   * Default false.
   */
  readonly gateway: boolean
  /**
   * How a model without a rule is asked for a thinking level: `effort` is `reasoning_effort`, `reasoning` is OpenRouter's
   * object of that name, `switch` is `thinking: {type}`, `flag` is `enable_thinking`. With `effort` the level "off" is left
   * out, as not every model has a word for it. With `none` a level is left out and reported, as everything is that a request
   * cannot say. Default "effort", and "none" for a vendor of the model table.
   */
  readonly thinking: "none" | "effort" | "reasoning" | "switch" | "flag"
  /** The server's word for a level, where it is another. Default none is. */
  readonly efforts: Partial<Record<Exclude<ThinkingLevel, "off">, string>>
  /**
   * The field in which thinking goes back with each message of the assistant, empty where there was none. DeepSeek and Kimi
   * answer 400 without it, others with it. What came as `reasoning_details` always goes back. Default "none".
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
  gateway: false,
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

const levels = ["minimal", "low", "medium", "high", "xhigh", "max"] as const

/** How a model without a rule is asked to think. */
export const thinkingOf = ({ efforts, thinking }: Compat): Thinking | undefined => {
  const words = Object.fromEntries(levels.map((level) => [level, efforts[level] ?? level]))
  const always = (word: Json.JsonObject) => Object.fromEntries(levels.map((level) => [level, word]))
  switch (thinking) {
    case "none":
      return undefined
    case "effort":
      return { kind: "effort", wire: { chat: { reasoning_effort: "$" } }, levels: { off: null, ...words } }
    case "reasoning":
      return {
        kind: "effort",
        wire: { chat: { reasoning: { effort: "$" } } },
        levels: { off: { reasoning: { enabled: false } }, ...words },
        budget: { wire: { chat: { reasoning: { max_tokens: "$" } } } }
      }
    case "switch":
      return {
        kind: "switch",
        levels: { off: { thinking: { type: "disabled" } }, ...always({ thinking: { type: "enabled" } }) }
      }
    case "flag":
      return {
        kind: "switch",
        levels: { off: { enable_thinking: false }, ...always({ enable_thinking: true }) },
        budget: { wire: { chat: { enable_thinking: true, thinking_budget: "$" } } }
      }
  }
}
