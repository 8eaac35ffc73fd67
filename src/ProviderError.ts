/**
 * The failures of a model call: one tagged error whose `reason` says what went wrong.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import * as DurationInput from "./internal/durationInput.ts"
import { TaggedError } from "./internal/errors.ts"

/** The fields of every reason. */
const facts = {
  /** The failure in words, or `""`. */
  detail: Schema.String,
  /** The HTTP status of the response, absent if there was none. */
  status: Schema.optionalKey(Schema.Int),
  /** The id of the request at the vendor, absent if the vendor gave none. */
  requestId: Schema.optionalKey(Schema.String),
  /** The start of the response's body, at most 4 kB; absent if there was none. */
  body: Schema.optionalKey(Schema.String),
  /** `false` where the provider says that another attempt is of no use (`x-should-retry`); else absent. */
  shouldRetry: Schema.optionalKey(Schema.Literal(false))
}

/** The fields of the reasons that may name a time to wait. */
const waiting = {
  ...facts,
  /**
   * The time to wait that the server names: a `Duration`, milliseconds, or a text such as `"30 seconds"`. Default none.
   */
  retryAfter: Schema.optionalKey(DurationInput.Wait)
}

/**
 * The part of a request that a provider refuses.
 *
 * **Details**
 *
 * - `"thinking"`: thinking of an earlier answer, its signature or its encrypted form, in the history.
 * - `"image"`: an image in the history, or images as such.
 * - `"file"`: a document, audio or video in the history, or a kind of them as such.
 * - `"message"`: a call, a result or an answer in the history.
 * - `"tool"`: the definition of a tool.
 * - `"option"`: an option of the request, such as `maxTokens`, so the conversation itself is none of its troubles.
 *
 * @category models
 * @since 0.2.0
 */
export const RefusedPart = Schema.Literals(["thinking", "image", "file", "message", "tool", "option"])
export type RefusedPart = typeof RefusedPart.Type

/** The fields of the reasons that may name a part of the request. */
const refusing = {
  ...facts,
  /** The part of the request that the provider refuses, absent where its code and words name none that is known. */
  refused: Schema.optionalKey(RefusedPart)
}

/**
 * The account has sent too many requests or tokens for now.
 *
 * A retry may succeed.
 *
 * @category errors
 * @since 0.1.0
 */
export class RateLimited extends TaggedError<RateLimited>()("RateLimited", waiting) {
  readonly isRetryable = true
}

/**
 * The provider has no capacity for anyone right now.
 *
 * A retry may succeed.
 *
 * @category errors
 * @since 0.1.0
 */
export class Overloaded extends TaggedError<Overloaded>()("Overloaded", waiting) {
  readonly isRetryable = true
}

/**
 * The account has no credit or quota left.
 *
 * A retry of the same request cannot succeed before the quota renews, which may take days: `retryAfter`, if the provider says it.
 *
 * @category errors
 * @since 0.1.0
 */
export class QuotaExceeded extends TaggedError<QuotaExceeded>()("QuotaExceeded", waiting) {
  readonly isRetryable = false
}

/**
 * The provider does not accept the API key.
 *
 * A retry of the same request cannot succeed.
 *
 * @category errors
 * @since 0.1.0
 */
export class Unauthenticated extends TaggedError<Unauthenticated>()("Unauthenticated", facts) {
  readonly isRetryable = false
}

/**
 * The API key may not be used for this request.
 *
 * A retry of the same request cannot succeed.
 *
 * @category errors
 * @since 0.1.0
 */
export class Forbidden extends TaggedError<Forbidden>()("Forbidden", facts) {
  readonly isRetryable = false
}

/**
 * The provider has no such model or address.
 *
 * A retry of the same request cannot succeed.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotFound extends TaggedError<NotFound>()("NotFound", facts) {
  readonly isRetryable = false
}

/**
 * No provider of the application serves the model.
 *
 * A retry of the same request cannot succeed.
 *
 * @category errors
 * @since 0.1.0
 */
export class ModelNotSupported extends TaggedError<ModelNotSupported>()("ModelNotSupported", {
  ...facts,
  /** The id of the model as the request named it. */
  model: Schema.String
}) {
  readonly isRetryable = false
}

/**
 * The provider refused the request for its content, or the provider module could not encode it.
 *
 * A retry of the same request cannot succeed.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidRequest extends TaggedError<InvalidRequest>()("InvalidRequest", refusing) {
  readonly isRetryable = false
}

/**
 * The conversation is longer than the model can read.
 *
 * A retry of the same request cannot succeed.
 *
 * @category errors
 * @since 0.1.0
 */
export class ContextOverflow extends TaggedError<ContextOverflow>()("ContextOverflow", {
  ...facts,
  /** The size of the context window in tokens, absent if the provider does not report it. */
  limit: Schema.optionalKey(Schema.Finite),
  /** The size of the conversation in tokens, absent if the provider does not report it. */
  size: Schema.optionalKey(Schema.Finite)
}) {
  readonly isRetryable = false
}

/**
 * The provider refused the conversation for its content.
 *
 * A retry of the same request cannot succeed.
 *
 * @category errors
 * @since 0.1.0
 */
export class ContentPolicy extends TaggedError<ContentPolicy>()("ContentPolicy", refusing) {
  readonly isRetryable = false
}

/**
 * The conversation has content that the provider does not accept, so no request was sent.
 *
 * A retry of the same request cannot succeed. A run asks once more with a note in place of each image and file.
 *
 * @category errors
 * @since 0.1.0
 */
export class UnsupportedContent extends TaggedError<UnsupportedContent>()("UnsupportedContent", facts) {
  readonly isRetryable = false
}

/**
 * The connection failed.
 *
 * **Details**
 *
 * A retry may succeed for `"refused"`, `"reset"` and, unless the host name does not exist, `"dns"`.
 *
 * @category errors
 * @since 0.1.0
 */
export class Transport extends TaggedError<Transport>()("Transport", {
  ...facts,
  /** The part of the connection that failed. */
  kind: Schema.Literals(["refused", "dns", "tls", "reset", "badHttp", "redirect"]),
  /** The code of the runtime, such as `"ECONNREFUSED"`; absent if it gave none. */
  code: Schema.optionalKey(Schema.String)
}) {
  get isRetryable(): boolean {
    // A host name that does not exist (`ENOTFOUND`) will not exist after a delay. A failed lookup may succeed then.
    if (this.kind === "dns") return this.code !== "ENOTFOUND"
    return this.kind === "refused" || this.kind === "reset"
  }
}

/**
 * The response breaks the protocol of the provider.
 *
 * **Details**
 *
 * A retry may succeed for `"empty"` alone.
 *
 * @category errors
 * @since 0.1.0
 */
export class Protocol extends TaggedError<Protocol>()("Protocol", {
  ...facts,
  /** The rule of the protocol that the response breaks. */
  kind: Schema.Literals([
    "contentType",
    "badJson",
    "badShape",
    "empty",
    "noToolCalls",
    "unanswered",
    "tooLarge"
  ])
}) {
  get isRetryable(): boolean {
    return this.kind === "empty"
  }
}

/**
 * The answer ended without proof that it is complete.
 *
 * A retry may succeed.
 *
 * @category errors
 * @since 0.1.0
 */
export class StreamTruncated extends TaggedError<StreamTruncated>()("StreamTruncated", facts) {
  readonly isRetryable = true
}

/**
 * The provider sent nothing for too long.
 *
 * **Details**
 *
 * A retry may succeed, but the default schedule of `Retry` does not retry: the application has waited long enough.
 *
 * @category errors
 * @since 0.1.0
 */
export class StreamStalled extends TaggedError<StreamStalled>()("StreamStalled", {
  ...facts,
  /** The time limit that was reached: until the first byte, between two pieces, or of the whole answer. */
  kind: Schema.Literals(["firstByte", "idle", "total"]),
  /** The time limit. */
  after: Schema.Duration
}) {
  readonly isRetryable = true
}

/**
 * The provider failed on its side.
 *
 * A retry may succeed.
 *
 * @category errors
 * @since 0.1.0
 */
export class ServerError extends TaggedError<ServerError>()("ServerError", waiting) {
  readonly isRetryable = true
}

/**
 * A circuit breaker did not send the request, since calls before failed.
 *
 * A retry may succeed.
 *
 * @see `CircuitBreaker` of `effect-agent/resilience`
 *
 * @category errors
 * @since 0.2.0
 */
export class CircuitOpen extends TaggedError<CircuitOpen>()("CircuitOpen", waiting) {
  readonly isRetryable = true
}

/**
 * The reason of a {@link ProviderError}.
 *
 * @category errors
 * @since 0.1.0
 */
export const Reason = Schema.Union([
  RateLimited,
  Overloaded,
  QuotaExceeded,
  Unauthenticated,
  Forbidden,
  NotFound,
  ModelNotSupported,
  InvalidRequest,
  ContextOverflow,
  ContentPolicy,
  UnsupportedContent,
  Transport,
  Protocol,
  StreamTruncated,
  StreamStalled,
  ServerError,
  CircuitOpen
])
export type Reason = typeof Reason.Type

/** Writes a time in the largest unit of which it has at least two: 24 hours, 3 days. */
const inWords = (millis: number): string => {
  const [unit, length] = units.find(([, length]) => millis >= 2 * length) ?? ["seconds", 1000]
  return `${Math.ceil(millis / length)} ${unit}`
}

const units: ReadonlyArray<readonly [name: string, millis: number]> = [
  ["days", 86_400_000],
  ["hours", 3_600_000],
  ["minutes", 60_000]
]

/** Advice for the developer about a failure that a wrong setting causes. */
const adviceOf = (reason: Reason): string | undefined => {
  const wait = "retryAfter" in reason ? reason.retryAfter : undefined
  const span = wait === undefined ? 0 : Duration.toMillis(Duration.fromInputUnsafe(wait))
  // A shorter wait is over before a person has read the message.
  if (span >= 60_000 && span < Infinity) {
    return reason._tag === "QuotaExceeded"
      ? `It renews in ${inWords(span)}.`
      : `Try again in ${inWords(span)}.`
  }
  switch (reason._tag) {
    case "Unauthenticated":
      return "Check the API key that the provider is given."
    case "NotFound":
      return "Check the model id, and the baseUrl if one is given."
    case "Transport":
      return reason.kind === "refused" || reason.kind === "dns"
        ? "Check the network, that the server runs, and the baseUrl if one is given."
        : undefined
    default:
      return undefined
  }
}

/**
 * A model call failed.
 *
 * **Details**
 *
 * `message` has the provider, the tag of the reason, its `detail` and, where a wrong setting causes the failure, advice. It names a wait of
 * a minute or more. It ends with the messages of `earlier`.
 *
 * **Example** (Recovering from one reason)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { ProviderError } from "effect-agent"
 *
 * const call = Effect.fail(
 *   new ProviderError.ProviderError({
 *     provider: "openai",
 *     reason: new ProviderError.RateLimited({ detail: "slow down", retryAfter: "30 seconds" })
 *   })
 * )
 *
 * const program = call.pipe(
 *   Effect.catchReason("ProviderError", "RateLimited", (reason) => Effect.succeed(`Later: ${reason.detail}`))
 * )
 *
 * console.log(await Effect.runPromise(program)) // => Later: slow down
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class ProviderError extends TaggedError<ProviderError>()("ProviderError", {
  /** The id of the provider. */
  provider: Schema.String,
  /** The reason of the failure. */
  reason: Reason,
  /** The messages of the failures of the providers that `Fallback` called before this one, in their order; absent if there are none. */
  earlier: Schema.optionalKey(Schema.Array(Schema.String))
}) {
  override get message(): string {
    const { earlier, reason } = this
    const text = `${this.provider}: ${reason._tag}${reason.detail === "" ? "" : `: ${reason.detail}`}`
    const before = earlier === undefined ? undefined : `Before: ${earlier.join(" | ")}`
    const more = [adviceOf(reason), before].filter((sentence) => sentence !== undefined)
    return more.length === 0 ? text : [text.replace(/\.?$/, "."), ...more].join(" ")
  }

  /** Whether another attempt may succeed. */
  get isRetryable(): boolean {
    return this.reason.isRetryable && this.reason.shouldRetry !== false
  }

  /** The time to wait that the provider names, or `undefined` if it names none. */
  get retryAfter(): Duration.Duration | undefined {
    const input = "retryAfter" in this.reason ? this.reason.retryAfter : undefined
    return input === undefined ? undefined : Duration.fromInputUnsafe(input)
  }
}
