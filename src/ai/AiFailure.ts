/**
 * What a `ProviderError` is to users of `effect/ai`: an `AiError`.
 */
import * as AiError from "effect/ai/AiError"
import type { ProviderError } from "../ProviderError.ts"

/** The same failure; whether asking again may help stays as it was. */
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
      // A vendor that says not to ask again: of the limits that one may run into, a quota is the one that does not pass.
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
      // A transport, a protocol, a stream or a server that failed: what counts is whether another try may help.
      return isRetryable
        ? new AiError.InternalProviderError({ description: error.message, http })
        : new AiError.InvalidResponseError({ description: error.message, http })
  }
}
