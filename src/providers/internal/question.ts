/**
 * A request in the form that a protocol encodes: with the options that the model accepts, and with members of
 * the body from the rule of the model and from the application.
 */
import type { Adjustment } from "../../ModelEvent.ts"
import type { ModelRequest, ToolDefinition } from "../../Provider.ts"
import { InvalidRequest, type Reason } from "../../ProviderError.ts"
import type { ModelOptions, ThinkingLevel } from "../../RunOptions.ts"
import * as Json from "./json.ts"
import type { Rule } from "./models/rule.ts"

/**
 * A request in the form that a protocol encodes.
 *
 * **Details**
 *
 * The provider has changed or left out the options that the model does not accept.
 *
 * @since 0.2.0
 * @category models
 */
export interface Question extends Omit<ModelRequest, "options"> {
  /** The options that the model accepts. */
  readonly options: Omit<
    ModelOptions,
    "headers" | "vendor" | "thinkingLevel" | "thinkingBudgets" | "promptChanges"
  >
  /** The thinking level that the model accepts, for a protocol without an `endpoint` (default: none). */
  readonly thinkingLevel: ThinkingLevel | undefined
  /** Members of the body that set the thinking of the model, by the rules for the `endpoint` of the protocol. */
  readonly thinking: Json.JsonObject
  /** Members of the body that the application sets for this provider. */
  readonly vendor: Json.JsonObject
  /** HTTP headers of the application for this request. */
  readonly headers: Readonly<Record<string, string>>
  /** The rule of the model, `undefined` if there is none. */
  readonly rule: Rule | undefined
  /** The options that the provider changed for the model. */
  readonly adjusted: ReadonlyArray<Adjustment>
  /** The prompt at the start of the conversation, and its changes since (default: the prompt of now stands there). */
  readonly changed?: Changed
  /** The note on the answer, for later requests (default: none). */
  readonly note?: Json.JsonObject
}

/**
 * The parts of a prompt that may change within a conversation, in the form in which the vendor takes them.
 *
 * @since 0.2.0
 * @category models
 */
export interface Prompt extends Pick<Question, "tools" | "thinking"> {
  /** The text at the head of the request, `""` for none. */
  readonly system: string
}

/**
 * A change of a prompt.
 *
 * @since 0.2.0
 * @category models
 */
export interface Change {
  /** The text of a message of the system (default: none). */
  readonly system?: string
  /** The tools that the model may call from here on. */
  readonly added: ReadonlyArray<ToolDefinition>
  /** The names of the tools that the model may no longer call. */
  readonly removed: ReadonlyArray<string>
  /** The level of effort, as the vendor names it (default: the one before). */
  readonly effort?: string
}

/**
 * The prompt at the start of a conversation, and its changes by the index of the message before which the model read each.
 *
 * @since 0.2.0
 * @category models
 */
export interface Changed {
  /** The prompt with which the conversation began. */
  readonly head: Prompt
  /** The changes by the index of the message before which each stands. */
  readonly changes: ReadonlyMap<number, Change>
  /** The parts that the model takes changes of. */
  readonly takes: ReadonlyArray<"system" | "tools" | "effort">
}

/** The members of `modelOptions.vendor` for a provider. */
export const vendorOf = (vendor: ModelOptions["vendor"], provider: string): Json.JsonObject | Reason => {
  for (const [id, members] of Object.entries(vendor ?? {})) {
    if (!Json.isObject(members)) return misplaced(id, members, provider)
  }
  return vendor?.[provider] ?? {}
}

const misplaced = (name: string, value: Json.Json, provider: string): Reason => {
  const shown = (JSON.stringify(value) ?? "…").slice(0, 60)
  const member = `${JSON.stringify(name)}: ${shown}`
  return new InvalidRequest({
    detail:
      `modelOptions.vendor holds an object for each provider id: ` +
      `write vendor: { ${JSON.stringify(provider)}: { ${member} } } instead of vendor: { ${member} }`
  })
}

/** Merges two objects: nested objects are merged, all other members of `over` win. */
export const merge = (under: Json.JsonObject, over: Json.JsonObject): Json.JsonObject => {
  const merged: Record<string, Json.Json> = { ...under }
  for (const [name, value] of Object.entries(over)) {
    const below = Object.hasOwn(under, name) ? under[name] : undefined
    merged[name] = Json.isObject(below) && Json.isObject(value) ? merge(below, value) : value
  }
  return merged
}

// ───────────────────────── Changes

// The options of a request while they are adapted to the model, with a report of each change.

type Options = Question["options"]

/**
 * The options to send, and their differences from those of the application.
 *
 * @since 0.2.0
 * @category models
 */
export class Changes {
  /** The options to send. */
  options: Options
  /** The differences, as `ModelCallEnd.adjusted` reports them. */
  readonly adjusted: Array<Adjustment> = []

  constructor(options: Options) {
    this.options = options
  }

  /** Reports that the request has another value than the application gave, or none. */
  report(option: string, asked: Json.Json | undefined, sent: Json.Json, reason: string): void {
    this.adjusted.push({ option, asked: asked ?? null, sent, reason })
  }

  /** Leaves an option out, and reports it if the application gave it. */
  leaveOut(option: keyof Options, reason: string): void {
    const { [option]: asked, ...rest } = this.options
    if (asked === undefined) return
    this.options = rest
    this.report(option, asked, null, reason)
  }

  /** Keeps the hosted tools of these types, and reports each other one. */
  keepHostedTools(types: ReadonlyArray<string>, reason: string): void {
    const { hostedTools: asked = [], ...rest } = this.options
    const hostedTools = asked.filter(({ type }) => types.includes(type))
    if (hostedTools.length === asked.length) return
    this.options = hostedTools.length === 0 ? rest : { ...rest, hostedTools }
    for (const { type } of asked) {
      if (!types.includes(type)) this.report("hostedTools", type, null, reason)
    }
  }

  /** Sends another value of an option. */
  set<Name extends "logprobs" | "maxTokens" | "temperature">(
    option: Name,
    value: number,
    reason: string
  ): void {
    const asked = this.options[option]
    this.options = { ...this.options, [option]: value }
    this.report(option, asked, value, reason)
  }
}
