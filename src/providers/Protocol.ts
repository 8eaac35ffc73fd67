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
import type { Reason } from "../ProviderError.ts"
import type { Frame } from "./Framing.ts"
import * as Failure from "./internal/failure.ts"
import type { Question } from "./internal/question.ts"
import type { Endpoint } from "./internal/models/rule.ts"
import type * as Reply from "../reply/ReplyWriter.ts"

export type { Change, Changed, Prompt, Question } from "./internal/question.ts"

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
export interface Protocol {
  /** The name of the protocol in messages, such as `openai-chat`. */
  readonly name: string
  /** The id of the provider in messages, errors, `modelOptions.vendor` and `Credentials`. */
  readonly provider: string
  /** The API whose rules in `Models` apply (default: none, so that no rule on thinking applies). */
  readonly endpoint?: Endpoint
  /**
   * The options that the protocol has no field for, besides those of the `endpoint` (default: none).
   *
   * The provider leaves them out of a `Question`, and reports them in `ModelCallEnd.adjusted`.
   */
  readonly lacks?: ReadonlyArray<keyof Question["options"]>
  /**
   * The form of JSON Schema that tools have (default: that of the `endpoint`, and of the model where a gateway may have another
   * vendor behind it). `"openApi"` is the part that Gemini took first, for servers that hand schemas on to it.
   */
  readonly schemas?: "jsonSchema" | "openApi" | undefined
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
  Failure.eventIn(data, model, "an object")
