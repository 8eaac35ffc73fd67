/** The rules of the model table. */
import type * as Schema from "effect/Schema"
import type { ThinkingLevel } from "../../../RunOptions.ts"

/**
 * An API of a model vendor, by the `endpoint` of its `Protocol`.
 *
 * @since 0.2.0
 * @category models
 */
export type Endpoint = "messages" | "responses" | "chat" | "generateContent" | "converse" | (string & {})

/**
 * The limits of images and files in a request.
 *
 * Lengths are those of base64, which servers count.
 *
 * @since 0.2.0
 * @category models
 */
export interface MediaLimits {
  /** The length of an image (default: none). */
  readonly length?: number
  /** The pixels of a side of an image (default: none). */
  readonly pixels?: number
  /** The pixels of a side in a request with more images than `crowd` (default: none). */
  readonly crowdedPixels?: number
  /** The number of images up to which `pixels` counts (default: none). */
  readonly crowd?: number
  /** The length of all files of a request (default: none). */
  readonly total?: number
}

/**
 * A part of a prompt that may change within a conversation.
 *
 * @since 0.2.0
 * @category models
 */
export type PromptPart = "system" | "tools" | "effort"

/**
 * The value that a vendor uses for a thinking level.
 *
 * It replaces `"$"` in the `wire` of the endpoint. An object is merged into the body, `null` sends nothing.
 *
 * @since 0.2.0
 * @category models
 */
export type Word = string | number | Schema.JsonObject | null

/**
 * How a request sets the thinking of a model.
 *
 * @since 0.2.0
 * @category models
 */
export interface Thinking {
  /**
   * The way in which the model takes a level.
   *
   * `none`: the model does not think. `always-on`: it always thinks, and `off` sets its lowest level. `switch`:
   * on or off. `budget`: a number of tokens. `effort` and `adaptive`: a named level.
   */
  readonly kind: "none" | "budget" | "effort" | "adaptive" | "switch" | "always-on"
  /** The members of the request body for each endpoint, with `"$"` in place of the value of the level. */
  readonly wire?: Partial<Readonly<Record<Endpoint, Schema.JsonObject>>>
  /**
   * The values of the levels (default: none).
   *
   * A missing level is sent as the next lower one, else as the next higher one.
   */
  readonly levels?: Partial<Readonly<Record<ThinkingLevel, Word>>>
  /** Values that differ at one endpoint (default: none). */
  readonly perEndpoint?: Partial<Readonly<Record<Endpoint, Partial<Readonly<Record<ThinkingLevel, Word>>>>>>
  /**
   * The bounds of a token budget, and the members of the body for a budget of `thinkingBudgets` where they
   * differ from `wire` (default: none).
   */
  readonly budget?: {
    readonly min?: number
    readonly max?: number
    readonly wire?: Partial<Readonly<Record<Endpoint, Schema.JsonObject>>>
  }
  /** Whether the model thinks without a thinking level in the request (default: `"varies"`). */
  readonly omitted?: "thinks" | "doesNotThink" | "varies"
  /** The level at which the model then thinks, as the vendor names it (default: unknown). */
  readonly usual?: string
}

/**
 * The options that one family of models accepts.
 *
 * The provider sends options unchanged for which a rule has no member.
 *
 * @since 0.2.0
 * @category models
 */
export interface Rule {
  /** The vendor or provider id to which the rule applies: `anthropic`, `openai`, `moonshot` (default: any). */
  readonly vendor?: string
  /** The name of the family for people (default: none). */
  readonly family?: string
  /**
   * A regular expression that matches the ids of the family, case-insensitively.
   *
   * A date at the end of an id is ignored, and `gpt-5-6` also matches as `gpt-5.6`.
   */
  readonly pattern: string
  /** How the family takes a thinking level (default: unknown). */
  readonly thinking?: Thinking
  /**
   * Whether the models accept `temperature` and `topP` (default: unknown).
   *
   * `whileOff`: only while the model does not think. `one`: one of the two, and while it thinks only a `topP`
   * of at least 0.95. `oneWhileOff`: one of the two, none while it thinks. `ignored`: accepted without effect.
   */
  readonly sampling?: "any" | "refused" | "ignored" | "whileOff" | "one" | "oneWhileOff"
  /** Maximum tokens of a conversation (default: unknown). */
  readonly contextWindow?: number
  /** Maximum tokens of an answer, including its thinking (default: unknown). */
  readonly maxOutput?: number
  /** The APIs that serve the models (default: unknown). */
  readonly endpoints?: ReadonlyArray<Endpoint>
  /** The types of content that the models accept (default: unknown). */
  readonly input?: ReadonlyArray<"text" | "image" | "pdf" | "audio" | "video">
  /** The limits of images and files (default: those of the API). */
  readonly media?: MediaLimits
  /** Whether the models accept stop sequences (default: `true`). */
  readonly stop?: boolean
  /**
   * Whether a request can force the models to call a tool (default: unknown).
   *
   * `whileOff`: only while the model does not think. `namedWhileOff`: only a named tool, while the model does
   * not think.
   */
  readonly forcedTools?: "taken" | "refused" | "whileOff" | "namedWhileOff"
  /**
   * Whether the models answer by an output schema (default: `true` at the Messages API, the Responses API and Gemini's API of
   * their own vendor; at Chat Completions by the `compat` of the server).
   */
  readonly structuredOutput?: boolean
  /**
   * Where the models accept tools (default: at every endpoint).
   *
   * `none`: nowhere, so that they are left out. `responses`: not on Chat Completions. `chatWithEffortNone`: on Chat Completions only with
   * the effort `none`, which the request must contain. `chatWithoutEffort`: on Chat Completions only without an
   * effort.
   */
  readonly tools?: "none" | "responses" | "chatWithEffortNone" | "chatWithoutEffort"
  /**
   * Where the models take the system prompt (default: in its own place).
   *
   * `firstMessage`: at the beginning of the first message. `message`: on the Responses API, in a message before the others.
   */
  readonly system?: "firstMessage" | "message"
  /** Whether their vendor lets the models search for tools that a request defers (default: `false`). */
  readonly toolSearch?: boolean
  /**
   * The parts of a prompt that the models let change within a conversation, at each API that lets them: for the option
   * `promptChanges` (default: none).
   */
  readonly promptChanges?: Partial<Readonly<Record<Endpoint, ReadonlyArray<"system" | "tools" | "effort">>>>
  /**
   * The field of OpenAI's APIs for a long cache retention: `prompt_cache_retention` or `prompt_cache_options`
   * (default: none).
   */
  readonly longCache?: "retention" | "options"
  /**
   * Whether these are models of other vendors, so that the rule applies only to this vendor (default: `false`).
   */
  readonly isResold?: boolean
  /**
   * Whether the limits and inputs come from elsewhere than the server, such as the vendor of a model that a gateway serves
   * (default: `false`). A request beyond them is sent as it is, and reported.
   */
  readonly isSecondHand?: boolean
  /** The day on which the vendor turns the model off, as `YYYY-MM-DD` (default: none is announced). */
  readonly endsOn?: string
  /** A note for people (default: none). */
  readonly note?: string
  /** The addresses of the documents that the facts are from (default: none). */
  readonly sources?: ReadonlyArray<string>
  /**
   * Whether a test or agreeing documents confirm the facts (default: unknown).
   *
   * `false`: no source tried it, or sources differ.
   */
  readonly verified?: boolean
  /** Whether the rule applies to ids of its vendor that match no family (default: `false`). */
  readonly isUnknown?: boolean
}

/** The facts on the models of one vendor. */
export interface Table {
  readonly vendor: string
  /** The first rule whose pattern matches an id applies. */
  readonly rules: ReadonlyArray<Rule>
  /** The days on which the vendor turns models off, as `YYYY-MM-DD`, with patterns of their ids (default: none). */
  readonly endings?: Readonly<Record<string, string>>
  /** Limits and inputs at Amazon Bedrock. The first row whose pattern matches an id applies (default: none). */
  readonly atBedrock?: ReadonlyArray<BedrockRow>
}

/**
 * The input of a model at Amazon Bedrock, its context window and its longest answer, by a pattern of its id there. A pattern alone: they
 * are as at its vendor. By `@earendil-works/pi-ai@1.5.2` dist/providers/data/amazon-bedrock.json.
 */
export type BedrockRow =
  | readonly [pattern: string]
  | readonly [pattern: string, input: "text" | "image", contextWindow: number, maxOutput?: number]
