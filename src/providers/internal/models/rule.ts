/** The rules of the model table. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { memoize } from "effect/Function"
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

// ───────────────────────── Tables

/** The facts on the models of one vendor. */
export interface Table {
  readonly vendor: string
  /** The members of the body for the words of a level (default: none). */
  readonly wire?: Thinking["wire"]
  /** The facts that a row does not have itself. */
  readonly common: Facts
  /** The first row whose pattern matches an id applies. */
  readonly families: ReadonlyArray<Family>
  /** The days on which the vendor turns models off, as `YYYY-MM-DD`, with patterns of their ids (default: none). */
  readonly endings?: Readonly<Record<string, RegExp>>
  /** Limits and inputs at Amazon Bedrock. The first row whose pattern matches an id applies (default: none). */
  readonly atBedrock?: ReadonlyArray<BedrockRow>
}

/** A family of models, with its sources, which semicolons separate. */
type Family = readonly [family: string, pattern: RegExp, facts: Facts, sources: string, note?: string]

/** The facts on a family. They are `verified`, unless they say otherwise. */
export interface Facts
  extends Omit<
    Rule,
    "contextWindow" | "family" | "maxOutput" | "note" | "pattern" | "sources" | "thinking" | "vendor"
  > {
  readonly tokens?: readonly [contextWindow: number, maxOutput?: number]
  /** The levels, as `thinkingOf` takes them, or what a request sets. */
  readonly thinking?: string | Thinking
  readonly usual?: string
}

export type Levels = NonNullable<Thinking["levels"]>

/**
 * The input of a model at Amazon Bedrock, its context window and its longest answer, by a pattern of its id there. A pattern alone: they
 * are as at its vendor. By `@earendil-works/pi-ai@1.5.2` dist/providers/data/amazon-bedrock.json.
 */
type BedrockRow =
  | readonly [pattern: RegExp]
  | readonly [pattern: RegExp, input: "text" | "image", contextWindow: number, maxOutput?: number]

/** The usual member of Chat Completions. */
export const chatEffort: NonNullable<Thinking["wire"]> = { chat: { reasoning_effort: "$" } }

export const never: Thinking = { kind: "none", omitted: "doesNotThink" }
export const always: Thinking = { kind: "always-on", omitted: "thinks" }

/** Levels as words: `medium:high` is a level with another name at the vendor, and a model without `none` does not stop thinking. */
export const thinkingOf = (words: string, wire: Thinking["wire"] = chatEffort): Thinking => {
  const levels = Object.fromEntries(
    words.split(" ").map((word) => {
      const [level = word, name = level] = word.split(":")
      return [level === "none" ? "off" : level, name]
    })
  )
  return { kind: levels["off"] === undefined ? "always-on" : "effort", wire, levels, omitted: "thinks" }
}

/** The rules of a table, one for each family. */
export const rulesIn = memoize(
  ({ common, families, vendor, wire }: Table): ReadonlyArray<Rule> =>
    families.map(([family, pattern, own, sources, note]) => {
      const { thinking = never, tokens = [], usual, verified = true, ...facts } = { ...common, ...own }
      const [contextWindow, maxOutput] = tokens
      return {
        vendor,
        family,
        pattern: pattern.source,
        ...facts,
        thinking: {
          ...(typeof thinking === "string" ? thinkingOf(thinking, wire) : thinking),
          ...(usual === "none" ? { omitted: "doesNotThink" } : {}),
          ...(usual === undefined ? {} : { usual })
        },
        ...(contextWindow === undefined ? {} : { contextWindow }),
        ...(maxOutput === undefined ? {} : { maxOutput }),
        ...(note === undefined ? {} : { note }),
        sources: sources.split("; "),
        verified
      }
    })
)

// ───────────────────────── Ids

/** Matches ids of models in the spellings of gateways, clouds and dated releases. */

/** Whether a pattern matches an id in any of its spellings. */
export const matches = (pattern: RegExp, id: string): boolean =>
  spellings(id).some((spelling) => pattern.test(spelling))

/** Whether a text is a regular expression. */
export const isPattern = (pattern: string): boolean => {
  try {
    compiled(pattern)
    return true
  } catch {
    return false
  }
}

/** `gpt-5.6` of `openai/gpt-5.6`. */
export const withoutPrefix = (id: string): string => id.slice(id.lastIndexOf("/") + 1)

/** The vendor in an id of Amazon Bedrock: `anthropic` of `us.anthropic.claude-opus-5`, and of an ARN that ends in it. */
export const vendorAtBedrock = (id: string): string | undefined => {
  const vendor = bedrock.exec(id)?.groups?.["vendor"]
  return vendor === "moonshotai" ? "moonshot" : vendor
}

const bedrock =
  /^(?:.*[./])?(?<vendor>ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen|writer|xai|zai)\./

const expressions = new Map<string, RegExp>()

/** A pattern of the application, compiled once. */
export const compiled = (pattern: string): RegExp => {
  const known = expressions.get(pattern)
  if (known !== undefined) return known
  const expression = new RegExp(pattern, "i")
  expressions.set(pattern, expression)
  return expression
}

/** Maximum characters of an id to compare: the last ones, because an ARN ends in the id. */
const maxLength = 256

/**
 * The id as it is, without its date, and with a dot between the digits of its version: `gpt-5-6` and `glm-5p3` are `gpt-5.6` and
 * `glm-5.3` too. An id of Amazon Bedrock also without the region and the vendor before it.
 */
const spellings = (id: string): ReadonlyArray<string> => {
  const whole = id.slice(-maxLength)
  const undated = whole.replace(date, "")
  const bare = undated.replace(bedrock, "")
  return [
    ...new Set([
      whole,
      ...[undated, bare].flatMap((id) => [id, id.replace(version, "$1.$2"), id.replace(pointed, "$1.$2")])
    ])
  ]
}

const date = /(?:-\d{4}-\d{2}-\d{2}|[-@]\d{8})(?=$|[-:@])/

const version = /(\d)-(\d{1,2})(?![\da-z])/i

/** Fireworks writes `p` for the dot. */
const pointed = /(\d)p(\d)/gi

// ───────────────────────── Lookup

// Finds the rule of a model in the table of its vendor, and among the rules of an application.

/**
 * The rules of the application, which win over the table member by member (default: none).
 *
 * **Example** (Reading the rules of the application)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Models } from "effect-agent/providers"
 *
 * const program = Effect.map(Models.Rules, (rules) => rules.length)
 * console.log(await Effect.runPromise(program)) // => 0
 * ```
 *
 * @since 0.2.0
 * @category services
 */
export const Rules = Context.Reference<ReadonlyArray<Rule>>("effect-agent/Models/Rules", {
  defaultValue: () => []
})

/**
 * The vendor of the models of a server, or of each model by its id.
 *
 * @since 0.2.0
 * @category models
 */
export type Vendor = string | ((model: string) => string | undefined)

/** The rules that apply to the models of a server. */
export interface Served {
  readonly id?: string | undefined
  readonly vendor?: Vendor | undefined
  readonly own?: ReadonlyArray<Rule> | undefined
}

/** The vendor of a model. */
export const makerOf = ({ vendor }: Served, model: string): string | undefined =>
  typeof vendor === "function" ? vendor(model) : vendor

/** A rule of the table with those of the application, which win member by member. */
export const joined = (known: Rule | undefined, model: string, served: Served): Rule | undefined => {
  const maker = makerOf(served, model)
  const isOurs = ({ vendor }: Rule) => vendor === undefined || vendor === maker || vendor === served.id
  const added = served.own?.find((rule) => isOurs(rule) && matches(compiled(rule.pattern), model))
  if (added === undefined || known === undefined) return added ?? known
  const isLimited = added.maxOutput !== undefined || added.input !== undefined
  return { ...known, ...(isLimited ? { isSecondHand: false } : {}), ...added }
}

/** A server, and the rules of its models if its vendor module has them. */
interface Server extends Omit<Served, "own"> {
  readonly isGateway?: boolean | undefined
  readonly rules?: ((model: string) => Rule | undefined) | undefined
}

/** Makes a function that finds the rule of a model. Loads the tables of all vendors for a server that only names one, and for a gateway. */
export const finder = Effect.fnUntraced(function* (
  server: Server
): Effect.fn.Return<(model: string) => Rule | undefined> {
  const { isGateway = false, vendor } = server
  const served = { ...server, own: yield* Rules }
  const isKnown = isGateway || (vendor !== undefined && (typeof vendor === "function" || vendors.has(vendor)))
  const known = server.rules ?? (isKnown ? yield* loaded(server) : () => undefined)
  return (model) => joined(known(model), model, served)
})

const loaded = (server: Server): Effect.Effect<(model: string) => Rule | undefined> =>
  Effect.map(
    Effect.promise(() => import("./tables.ts")),
    ({ rulesOf }) => rulesOf(server)
  )

/** Makes a function that finds the rule of a model in the table of its vendor. */
export const among = (table: Table) => {
  const { atBedrock = [], endings = {}, families } = table
  return (model: string): Rule | undefined => {
    const fits = (pattern: RegExp | undefined) => pattern !== undefined && matches(pattern, model)
    const rule = rulesIn(table)[families.findIndex(([, pattern]) => fits(pattern))]
    if (vendorAtBedrock(model) !== undefined) {
      const row = atBedrock.find(([pattern]) => fits(pattern))
      const { media: _none, ...here } = rule ?? { pattern: "" }
      if (row === undefined) return rule && { ...here, isSecondHand: true }
      return { ...here, ...limits(row) }
    }
    const endsOn = Object.keys(endings).find((day) => fits(endings[day]))
    return rule === undefined || endsOn === undefined ? rule : { ...rule, endsOn }
  }
}

const limits = ([pattern, input, contextWindow, maxOutput]: BedrockRow): Partial<Rule> =>
  input === undefined || contextWindow === undefined
    ? {}
    : {
        pattern: pattern.source,
        contextWindow,
        input: input === "text" ? ["text"] : ["text", "image"],
        sources: ["@earendil-works/pi-ai@1.5.2 dist/providers/data/amazon-bedrock.json"],
        ...(maxOutput === undefined ? {} : { maxOutput })
      }

/** The vendors whose tables have rules. */
const vendors: ReadonlySet<string> = new Set([
  "amazon",
  "ant-ling",
  "anthropic",
  "deepseek",
  "google",
  "groq",
  "meta",
  "minimax",
  "mistral",
  "moonshot",
  "openai",
  "qwen",
  "stepfun",
  "xai",
  "xiaomi",
  "zai"
])

/**
 * Returns the vendor of a provider whose options name none: its id if the table has rules for it, else `usual`.
 *
 * **Example** (Finding the vendor of a provider id)
 *
 * ```ts
 * import { Models } from "effect-agent/providers"
 *
 * console.log(Models.vendorOf("mistral", undefined)) // => mistral
 * console.log(Models.vendorOf("my-server", "openai")) // => openai
 * ```
 *
 * @since 0.2.0
 * @category getters
 */
export const vendorOf = <Usual extends string | undefined>(id: string, usual: Usual): string | Usual =>
  vendors.has(id) ? id : usual
