/**
 * A wire protocol: the bodies of requests and the frames of answers of an API such as OpenAI's Chat Completions.
 *
 * A protocol knows no address, no key and no HTTP, so that many vendors share one, and a test can replay an answer from an
 * array. `Framing` divides the bytes of an answer into frames, `Auth` and `Deployment` say where requests go and who sends
 * them, and `Transport` makes a `Provider` of the four.
 *
 * @since 0.2.0
 */
import type * as Schema from "effect/Schema"
import type { File, Image } from "../Message.ts"
import type { Adjustment } from "../ModelEvent.ts"
import type { ModelRequest, ToolDefinition } from "../Provider.ts"
import type { Reason } from "../ProviderError.ts"
import type { ModelOptions, ThinkingLevel } from "../RunOptions.ts"
import type { HostedTool, SearchMember, Serves } from "./Deployment.ts"
import type { Frame } from "./Framing.ts"
import { eventIn } from "./internal/reading.ts"
import type { Endpoint, MediaLimits, Rule } from "./internal/models/rule.ts"
import type { Form } from "./internal/schemaWriter.ts"
import type * as Reply from "../reply/ReplyWriter.ts"

export type { Form } from "./internal/schemaWriter.ts"

/**
 * A wire protocol for one provider.
 *
 * **Details**
 *
 * A protocol is total and deterministic: equal input gives equal model events, and no function throws. A failure is a
 * `Reason` that the function returns.
 *
 * **Example** (Writing a protocol)
 *
 * ```ts
 * import { Message, ProviderError } from "effect-agent"
 * import type { Protocol } from "effect-agent/providers"
 *
 * // A server that answers with lines of text, and with a line "END" after the last one.
 * const lines: Protocol.Protocol = {
 *   name: "lines",
 *   provider: "acme",
 *   encode: ({ messages, model }) => JSON.stringify({ model, lines: messages.map(Message.textOf) }),
 *   decoder: (_call, reply) => ({
 *     step: ({ data }) => {
 *       if (data === "END") return true
 *       reply.text(data)
 *       return false
 *     },
 *     end: (sawEnd) => {
 *       if (!sawEnd) return new ProviderError.StreamTruncated({ detail: "The answer has no END" })
 *       reply.finish({ stopReason: "stop" })
 *       return undefined
 *     }
 *   })
 * }
 *
 * console.log(lines.name) // => lines
 * ```
 *
 * @since 0.2.0
 * @category models
 */
export interface Protocol extends Api {
  /** The name of the protocol in messages, such as `openai-chat`. */
  readonly name: string
  /** The id of the provider in messages, errors, `modelOptions.vendor` and `Credentials`. */
  readonly provider: string
  /** Encodes the body of a request. Returns a `Reason` if the vendor cannot take the conversation. */
  readonly encode: (question: Question) => string | Reason
  /**
   * Returns why no request can have an image or a file, `undefined` if it can (default: it can).
   *
   * The provider puts a note in place of such an image or file, and reports it in `ModelCallEnd.adjusted`.
   */
  readonly refuses?: (media: Image | File) => string | undefined
  /**
   * Returns the headers that a request needs for its options, such as `anthropic-beta` (default: none).
   *
   * The values of a header that the `Deployment` has too go out as one list.
   */
  readonly headers?: (question: Question) => Readonly<Record<string, string>>
  /** The data that marks the end of an answer (default: the protocol has none). */
  readonly sentinel?: "[DONE]"
  /** Makes the decoder of one answer, which writes its events to `reply`. */
  readonly decoder: (call: Call, reply: Reply.ReplyWriter) => Decoder
  /** How the protocol counts the tokens of a request (default: it cannot). */
  readonly counting?: Counting
}

/**
 * The parts of a request that an API takes, besides what the rule of a model says.
 *
 * **Details**
 *
 * The provider leaves out or changes all other parts, and reports each in `ModelCallEnd.adjusted`. A protocol without these members gets
 * requests as they are, but for the rules of `Models`.
 *
 * @since 0.2.0
 * @category models
 */
export interface Api {
  /** The name of the API in reports (default: `The protocol`, and its name). */
  readonly title?: string
  /**
   * The name under which rules of `Models` have the API, in `thinking.wire`, `endpoints` and `promptChanges` (default: none, so that no rule
   * on thinking applies, and the `Question` has the level).
   */
  readonly endpoint?: Endpoint
  /** The options that it has no field for (default: none). */
  readonly lacks?: ReadonlyArray<keyof Question["options"]>
  /** The tools that its vendor runs (default: all). */
  readonly hostedTools?: ReadonlyArray<HostedTool>
  /** The members of web searches that it lacks (default: none). */
  readonly searchLacks?: ReadonlyArray<SearchMember>
  /** The schemas of strict tools to which it holds the model: those without optional members, or all (default: all). */
  readonly strictTools?: "closed" | "all"
  /** Returns the options of blocks and tools that it has for a model (default: all). */
  readonly parts?: (model: string, serves: Serves) => ReadonlyArray<PartOption>
  /** Puts the names of betas, which the application gives among the members of the body, into a request (default: they stay there). */
  readonly betas?: (names: ReadonlyArray<string>, given: Given) => Given
  /** Whether it can let a model search for tools that a request defers (default: where the server does, for all models). */
  readonly toolSearch?: boolean
  /** The form of the schemas of all tools, in place of that of `form`: `"openApi"` is the part of JSON Schema that Gemini took first. */
  readonly schemas?: "jsonSchema" | "openApi" | undefined
  /** Returns the form of the schemas of tools for a model (default: they stay as they are). */
  readonly form?: (model: string) => Form
  /** Returns the limits of images and files for a model (default: none). */
  readonly media?: (model: string) => MediaLimits
  /** How it counts the budget of a thinking level (default: half of `maxTokens` at most, and as the application gives it). */
  readonly budget?: Budget
  /** How it takes changes of a prompt within a conversation (default: not at all). */
  readonly promptChanges?: PromptChanges
  /** Returns the rule of a model as it applies by this API (default: as it is). */
  readonly adapt?: (rule: Rule, model: string) => Rule
  /** Returns whether the model of a request answers by an output schema (default: by the rule, else by `takesSchema` of the server). */
  readonly answersBySchema?: (rule: Rule | undefined, request: Asked) => boolean
  /** Returns the thinking that the application sets among the members of the body, which stands in place of a level (default: none). */
  readonly thinkingIn?: (vendor: Schema.JsonObject) => Schema.JsonObject | undefined
  /**
   * Adapts a request to limits that the other members do not say, and reports each change (default: it takes all). Returns the tools and the
   * level to send, or a `Reason` if the model cannot serve the request.
   */
  readonly accepts?: (rule: Rule | undefined, request: Asked, changes: Changes) => Accepted | Reason
}

/**
 * An option of a block or of a tool.
 *
 * @since 0.2.0
 * @category models
 */
export type PartOption = "detail" | "citations" | "inputExamples" | "allowedCallers"

/**
 * The tools and the thinking level of a request.
 *
 * @since 0.2.0
 * @category models
 */
export interface Accepted {
  /** The tools that the model may call. */
  readonly tools: ModelRequest["tools"]
  /** The thinking level, `undefined` for that of the model. */
  readonly level: ThinkingLevel | undefined
}

/**
 * A request to the models of a server, as a protocol adapts it.
 *
 * @since 0.2.0
 * @category models
 */
export interface Asked extends Accepted {
  /** The id of the model. */
  readonly model: string
  /** Members of the body that the application sets for this provider. */
  readonly vendor: Schema.JsonObject
  /** The models of the server. */
  readonly serves: Serves
}

/**
 * The members of the body and the headers that an application gives.
 *
 * @since 0.2.0
 * @category models
 */
export type Given = Pick<Question, "headers" | "vendor">

/**
 * How an API counts the tokens of thinking.
 *
 * @since 0.2.0
 * @category models
 */
export interface Budget {
  /** The tokens of `maxTokens` that a budget leaves for the answer, below which the model does not think (default: as it comes). */
  readonly leaves?: number
  /** The budget that stands for no limit (default: none). */
  readonly unlimited?: number
}

/**
 * How an API takes changes of a prompt within a conversation.
 *
 * @since 0.2.0
 * @category models
 */
export interface PromptChanges {
  /**
   * The tools that it adds: any, in place of those of the same names (`"define"`); any of new names, and it takes none away (`"add"`);
   * those that it took away (`"name"`).
   */
  readonly tools: "define" | "add" | "name"
  /** The member of the body that has the effort (default: none, so that the effort cannot change). */
  readonly effort?: string
  /** Whether the effort changes only between turns, and not between calls and their results (default: `false`). */
  readonly effortBetweenTurns?: boolean
  /** Whether each server takes them, not only that of the vendor (default: `false`). */
  readonly isEverywhere?: boolean
  /** Whether it takes none in a request that forbids tools (default: `false`). */
  readonly needsTools?: boolean
}

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
  readonly thinking: Schema.JsonObject
  /** Members of the body that the application sets for this provider. */
  readonly vendor: Schema.JsonObject
  /** HTTP headers of the application for this request. */
  readonly headers: Readonly<Record<string, string>>
  /** The rule of the model, `undefined` if there is none. */
  readonly rule: Rule | undefined
  /** The options that the provider changed for the model. */
  readonly adjusted: ReadonlyArray<Adjustment>
  /** The prompt at the start of the conversation, and its changes since (default: the prompt of now stands there). */
  readonly changed?: Changed
  /** The note on the answer, for later requests (default: none). */
  readonly note?: Schema.JsonObject
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

/**
 * The options to send, and their differences from those of the application.
 *
 * @since 0.2.0
 * @category models
 */
export interface Changes {
  /** The options to send. */
  readonly options: Question["options"]
  /** The differences, as `ModelCallEnd.adjusted` reports them. */
  readonly adjusted: ReadonlyArray<Adjustment>
  /** Reports that the request has another value than the application gave, or none. */
  report(option: string, asked: Schema.Json | undefined, sent: Schema.Json, reason: string): void
  /** Leaves an option out, and reports it if the application gave it. */
  leaveOut(option: keyof Question["options"], reason: string): void
  /** Keeps the hosted tools of these types, and reports each other one. */
  keepHostedTools(types: ReadonlyArray<string>, reason: string): void
  /** Sends another value of an option. */
  set(option: "logprobs" | "maxTokens" | "temperature", value: number, reason: string): void
}

/**
 * The call to which an answer belongs.
 *
 * @since 0.2.0
 * @category models
 */
export interface Call extends Reply.Call {
  /** The request, for a protocol whose answers depend on it (default: unknown). */
  readonly question?: Question
}

/**
 * Decodes the frames of one answer.
 *
 * **Details**
 *
 * A decoder may have mutable state, because `step` runs for each delta.
 *
 * @since 0.2.0
 * @category models
 */
export interface Decoder {
  /**
   * Decodes one frame. Returns `true` after the last frame of the answer, and a `Reason` if the frame reports a failure or is
   * not a frame of the protocol. A frame with a `Reason` must leave the decoder unchanged.
   */
  readonly step: (frame: Frame) => boolean | Reason
  /**
   * Ends the answer: ends its blocks and finishes it. Returns the `Reason` if the answer is incomplete, and then ends no tool
   * call. `sawEnd`: the server sent a last frame or the sentinel. `isLenient`: an answer that lacks nothing but its end counts as
   * complete, if it has content, and arguments for each of its calls.
   */
  readonly end: (sawEnd: boolean, isLenient?: boolean) => Reason | undefined
  /**
   * Returns whether the answer is complete if nothing follows (default: never). For protocols in which more frames may
   * follow, or in which only the end of the body ends an answer.
   */
  readonly isComplete?: () => boolean
  /**
   * Returns the request that continues an answer which the server paused, after `end` found nothing missing (default: no
   * answer continues). This decoder decodes the continuation too, which belongs to its answer.
   */
  readonly resume?: (question: Question) => Question | undefined
}

/**
 * The request that counts the tokens of a conversation, and its response.
 *
 * @since 0.2.0
 * @category models
 */
export interface Counting {
  /** Encodes the body of the request. Returns a `Reason` if the vendor cannot take the conversation. */
  readonly encode: (question: Question) => string | Reason
  /** Returns the tokens that a response names, or `undefined` if it names none. */
  readonly read: (response: Schema.Json) => number | undefined
}

/**
 * Returns whether a value is a `Reason`.
 *
 * **Example** (Distinguishing a failure from a body)
 *
 * ```ts
 * import { ProviderError } from "effect-agent"
 * import { Protocol } from "effect-agent/providers"
 *
 * console.log(Protocol.isReason("{}")) // => false
 * console.log(Protocol.isReason(new ProviderError.InvalidRequest({ detail: "no messages" }))) // => true
 * ```
 *
 * @since 0.2.0
 * @category guards
 */
export const isReason = <A>(value: A | Reason): value is Reason => value instanceof Error

/**
 * Reads the data of a frame as a JSON object.
 *
 * **When to use**
 *
 * Use in `step` of a decoder whose frames are JSON objects, as those of most protocols are.
 *
 * **Details**
 *
 * Returns a `Reason` for data that is not JSON, for other JSON, and for an object that reports a failure in a member `error` or by
 * the type `error`: a `RateLimited`, an `Overloaded`, or what its code or its message says. Data that is not JSON is half a frame
 * if it is the last of an answer: the provider then fails with `StreamTruncated`.
 *
 * **Example** (Reading a frame and a failure)
 *
 * ```ts
 * import { Protocol } from "effect-agent/providers"
 *
 * const call = { model: "small" }
 * console.log(Protocol.readObject({ event: "", data: '{"text":"Hi"}' }, call)) // => { text: 'Hi' }
 *
 * const failure = Protocol.readObject({ event: "", data: '{"error":{"code":429,"message":"Slow down"}}' }, call)
 * console.log(Protocol.isReason(failure) ? failure._tag : "none") // => RateLimited
 * ```
 *
 * @since 0.2.0
 * @category decoding
 */
export const readObject = ({ data }: Frame, { model }: Pick<Call, "model">): Schema.JsonObject | Reason =>
  eventIn(data, model, "an object")
