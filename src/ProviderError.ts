/**
 * Everything that can go wrong between a request and a finished answer.
 *
 * One tagged error carries a `reason`. Catch `ProviderError` to handle any failure, or one reason with
 * `Effect.catchReason("ProviderError", "RateLimited", …)`.
 */
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import * as DurationInput from "./internal/durationInput.ts"

/**
 * What a program may want to know of any failure. `body` is at most 4 kB of what the provider said. `shouldRetry` is
 * false where it said itself that another try is of no use (`x-should-retry`).
 */
const facts = {
  detail: Schema.String,
  status: Schema.optionalKey(Schema.Int),
  requestId: Schema.optionalKey(Schema.String),
  body: Schema.optionalKey(Schema.String),
  shouldRetry: Schema.optionalKey(Schema.Literal(false))
}

const waiting = {
  ...facts,
  /** How long the server asks to wait: a `Duration`, milliseconds, or a text such as "30 seconds". */
  retryAfter: Schema.optionalKey(DurationInput.Wait)
}

/** Too many requests or tokens for now. */
export class RateLimited extends Schema.TaggedError<RateLimited>()("RateLimited", waiting) {
  readonly isRetryable = true
}

/** The provider has no capacity right now, for anybody. */
export class Overloaded extends Schema.TaggedError<Overloaded>()("Overloaded", waiting) {
  readonly isRetryable = true
}

/** The account has no credit or quota left: waiting does not help. */
export class QuotaExceeded extends Schema.TaggedError<QuotaExceeded>()("QuotaExceeded", facts) {
  readonly isRetryable = false
}

export class Unauthenticated extends Schema.TaggedError<Unauthenticated>()("Unauthenticated", facts) {
  readonly isRetryable = false
}

export class Forbidden extends Schema.TaggedError<Forbidden>()("Forbidden", facts) {
  readonly isRetryable = false
}

export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", facts) {
  readonly isRetryable = false
}

/** No provider here serves the model. */
export class ModelNotSupported extends Schema.TaggedError<ModelNotSupported>()("ModelNotSupported", {
  ...facts,
  model: Schema.String
}) {
  readonly isRetryable = false
}

export class InvalidRequest extends Schema.TaggedError<InvalidRequest>()("InvalidRequest", facts) {
  readonly isRetryable = false
}

/** The conversation is longer than the model can read. `limit` and `size` are tokens, when the provider says them. */
export class ContextOverflow extends Schema.TaggedError<ContextOverflow>()("ContextOverflow", {
  ...facts,
  limit: Schema.optionalKey(Schema.Finite),
  size: Schema.optionalKey(Schema.Finite)
}) {
  readonly isRetryable = false
}

export class ContentPolicy extends Schema.TaggedError<ContentPolicy>()("ContentPolicy", facts) {
  readonly isRetryable = false
}

/** The conversation holds something this provider cannot be sent. Nothing was sent. */
export class UnsupportedContent extends Schema.TaggedError<UnsupportedContent>()(
  "UnsupportedContent",
  facts
) {
  readonly isRetryable = false
}

/** The connection failed. `code` is what the runtime calls it, such as "ECONNREFUSED". */
export class Transport extends Schema.TaggedError<Transport>()("Transport", {
  ...facts,
  kind: Schema.Literals(["refused", "dns", "tls", "reset", "badHttp", "redirect"]),
  code: Schema.optionalKey(Schema.String)
}) {
  get isRetryable(): boolean {
    // A name that nobody has will not be there in a second; one that could not be looked up may be.
    if (this.kind === "dns") return this.code !== "ENOTFOUND"
    return this.kind === "refused" || this.kind === "reset"
  }
}

/** The provider answered in a way its protocol does not allow. */
export class Protocol extends Schema.TaggedError<Protocol>()("Protocol", {
  ...facts,
  kind: Schema.Literals(["contentType", "badJson", "badShape", "empty", "noToolCalls", "tooLarge"])
}) {
  get isRetryable(): boolean {
    return this.kind === "empty"
  }
}

/** The answer ended without proof that it was complete. */
export class StreamTruncated extends Schema.TaggedError<StreamTruncated>()("StreamTruncated", facts) {
  readonly isRetryable = true
}

/** The provider went silent. Retryable, but the default schedule does not: it has waited long enough. */
export class StreamStalled extends Schema.TaggedError<StreamStalled>()("StreamStalled", {
  ...facts,
  kind: Schema.Literals(["firstByte", "idle", "total"]),
  after: Schema.Duration
}) {
  readonly isRetryable = true
}

/** The provider failed on its side. */
export class ServerError extends Schema.TaggedError<ServerError>()("ServerError", waiting) {
  readonly isRetryable = true
}

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
  ServerError
])
export type Reason = typeof Reason.Type

/** What the developer can do about a failure that a wrong setting causes. */
const adviceOf = (reason: Reason): string | undefined => {
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

export class ProviderError extends Schema.TaggedError<ProviderError>()("ProviderError", {
  provider: Schema.String,
  reason: Reason
}) {
  override get message(): string {
    const { reason } = this
    const said = `${this.provider}: ${reason._tag}${reason.detail === "" ? "" : `: ${reason.detail}`}`
    const advice = adviceOf(reason)
    return advice === undefined ? said : `${said.replace(/\.$/, "")}. ${advice}`
  }

  /** Whether asking again may help. */
  get isRetryable(): boolean {
    return this.reason.isRetryable && this.reason.shouldRetry !== false
  }

  /** How long the provider asked us to wait, if it said. */
  get retryAfter(): Duration.Duration | undefined {
    const input = "retryAfter" in this.reason ? this.reason.retryAfter : undefined
    return input === undefined ? undefined : Duration.fromInputUnsafe(input)
  }
}
