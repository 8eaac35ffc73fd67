/** Converts the error of a library that gives credentials to a `Reason`. */
import { hasProperty } from "effect/Predicate"
import type { Reason } from "../../ProviderError.ts"
import { ServerError, Unauthenticated } from "../../ProviderError.ts"

/** A server of tokens that fails for a moment is no lack of credentials. `what` begins the sentence: `The AWS credentials cannot be read`. */
export const reason = (what: string, cause: unknown): Reason => {
  const detail = `${what}: ${cause instanceof Error ? cause.message : String(cause)}`
  return isTemporary(cause) ? new ServerError({ detail }) : new Unauthenticated({ detail })
}

const isTemporary = (cause: unknown): boolean =>
  ["status", "statusCode"].some((name) => hasProperty(cause, name) && Number(cause[name]) >= 500) ||
  (hasProperty(cause, "code") && /^(?:ECONN|EAI_|ENOTFOUND|EPIPE|ETIMEDOUT)/.test(String(cause.code)))
