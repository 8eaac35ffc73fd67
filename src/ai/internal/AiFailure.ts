/**
 * The conversion of a `ProviderError` to an `AiError`.
 */
import * as AiError from "effect/ai/AiError"
import type { ProviderError } from "../../ProviderError.ts"

/** Converts a failure, and keeps whether a retry may succeed. */
export const fromProviderError = (error: ProviderError, method: string): AiError.AiError =>
  AiError.make({ module: `effect-agent/${error.provider}`, method, reason: reasonOf(error) })

const reasonOf = (error: ProviderError): AiError.AiErrorReason => {
  const { isRetryable, reason, retryAfter } = error
  const { body, detail: description, status } = reason
  const http = {
    ...(status === undefined ? {} : { response: { status, headers: {} } }),
    ...(body === undefined ? {} : { body })
  }
  switch (reason._tag) {
    case "RateLimited":
      // The vendor advises against a retry: of all limits, a quota is the one that does not pass.
      return isRetryable
        ? new AiError.RateLimitError({ http, ...(retryAfter === undefined ? {} : { retryAfter }) })
        : new AiError.QuotaExhaustedError({ http })
    case "QuotaExceeded":
      return new AiError.QuotaExhaustedError({ http })
    case "Unauthenticated":
      return new AiError.AuthenticationError({ kind: "Unknown", description, http })
    case "Forbidden":
      return new AiError.AuthenticationError({ kind: "InsufficientPermissions", description, http })
    case "ContentPolicy":
      return new AiError.ContentPolicyError({ description, http })
    case "UnsupportedContent":
      return new AiError.InvalidUserInputError({ description })
    case "NotFound":
    case "ModelNotSupported":
    case "InvalidRequest":
    case "ContextOverflow":
      return new AiError.InvalidRequestError({ description, http })
    default:
      // A transport, a protocol, a stream or a server failed: `effect/ai` distinguishes only whether a retry may succeed.
      return isRetryable
        ? new AiError.InternalProviderError({ description: error.message, http })
        : new AiError.InvalidResponseError({ description: error.message, http })
  }
}
