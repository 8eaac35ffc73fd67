/**
 * What a rule of the model table can say.
 */
import type * as Schema from "effect/Schema"
import type { ThinkingLevel } from "../../../RunOptions.ts"

/** An API that a model is served by. */
export type Endpoint = "messages" | "responses" | "chat" | "generateContent" | "converse"

/**
 * The vendor's word for a thinking level: it stands for `"$"` in the `wire` of the endpoint. An object is sent as it is,
 * `null` sends nothing.
 */
export type Word = string | number | Schema.JsonObject | null

/** How a model is asked to think. */
export interface Thinking {
  /**
   * `none`: there is nothing to ask for. `always-on`: it cannot stop, and `off` asks for its lowest level. `switch`: on or
   * off. `budget`: in tokens. `effort` and `adaptive`: by a word.
   */
  readonly kind: "none" | "budget" | "effort" | "adaptive" | "switch" | "always-on"
  /** Members of the body, with `"$"` where the word of the level goes. */
  readonly wire?: Partial<Readonly<Record<Endpoint, Schema.JsonObject>>>
  /** A level that is left out is sent as the next lower one, else as the next higher one. Default: no level is known. */
  readonly levels?: Partial<Readonly<Record<ThinkingLevel, Word>>>
  /** Words that differ at one endpoint. */
  readonly perEndpoint?: Partial<Readonly<Record<Endpoint, Partial<Readonly<Record<ThinkingLevel, Word>>>>>>
  /**
   * What a budget of tokens must keep to, and the members of the body for a budget of `thinkingBudgets` where they differ
   * from `wire`.
   */
  readonly budget?: {
    readonly min?: number
    readonly max?: number
    readonly wire?: Partial<Readonly<Record<Endpoint, Schema.JsonObject>>>
  }
  /** What the model does when nothing is asked for. Default "varies". */
  readonly omitted?: "thinks" | "doesNotThink" | "varies"
  /** The level at which it then thinks, in the vendor's word. */
  readonly usual?: string
}

/** What one family of models accepts. What a rule leaves out is not known, and sent as it is asked for. */
export interface Rule {
  /** Whose models these are: "anthropic", "openai", "moonshot" … Default: any provider's. */
  readonly vendor?: string
  /** Names the family for people. */
  readonly family?: string
  /**
   * A regular expression that finds the family in an id. Case does not matter, a date at the end of an id is passed over,
   * and "gpt-5-6" is read as "gpt-5.6" as well.
   */
  readonly pattern: string
  readonly thinking?: Thinking
  /**
   * Whether `temperature` and `topP` are accepted. `whileOff`: only while the model does not think. `one`: one of the two,
   * and while it thinks only a `topP` from 0.95. `oneWhileOff`: one of the two, none while it thinks. `ignored`: accepted
   * without effect.
   */
  readonly sampling?: "any" | "refused" | "ignored" | "whileOff" | "one" | "oneWhileOff"
  /** Tokens that a conversation may have. */
  readonly contextWindow?: number
  /** Tokens that an answer may have, its thinking included. */
  readonly maxOutput?: number
  readonly endpoints?: ReadonlyArray<Endpoint>
  readonly input?: ReadonlyArray<"text" | "image" | "pdf" | "audio" | "video">
  /** Whether stop sequences are accepted. Default true. */
  readonly stop?: boolean
  /**
   * Whether the model can be made to call a tool. `whileOff`: only while it does not think. `namedWhileOff`: so, and only a
   * tool that is named.
   */
  readonly forcedTools?: "taken" | "refused" | "whileOff" | "namedWhileOff"
  /**
   * Where tools are accepted, if not everywhere. `none`: nowhere. `responses`: not on Chat Completions.
   * `chatWithEffortNone`: on Chat Completions only with an effort of "none", which must be sent. `chatWithoutEffort`: on
   * Chat Completions only without an effort.
   */
  readonly tools?: "none" | "responses" | "chatWithEffortNone" | "chatWithoutEffort"
  /** How OpenAI's APIs are asked to keep a prompt for long: `prompt_cache_retention` or `prompt_cache_options`. */
  readonly longCache?: "retention" | "options"
  /** These are models of other vendors: the rule holds at this vendor only. */
  readonly isResold?: boolean
  readonly note?: string
  /** Where the facts are from. */
  readonly sources?: ReadonlyArray<string>
  /** False: no source tried it, or sources differ. */
  readonly verified?: boolean
  /** The rule stands for ids of its vendor that no family matches. */
  readonly isUnknown?: boolean
}
