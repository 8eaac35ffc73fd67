/**
 * The failures of files in words.
 */
import type { PlatformError } from "effect/PlatformError"
import * as Predicate from "effect/Predicate"

/** The words of the system, which name its code, such as ENOSPC for a full disk and EROFS for one that takes no writes. */
export const detailOf = ({ message, reason }: PlatformError): string => {
  const cause = Predicate.hasProperty(reason, "cause") ? reason.cause : undefined
  return cause instanceof Error
    ? cause.message
    : ((reason._tag === "BadArgument" ? undefined : reason.description) ?? message)
}
