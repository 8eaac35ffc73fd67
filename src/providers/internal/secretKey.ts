/**
 * Keys as applications give them: `Redacted`, or plain text, which is kept as `Redacted` from then on.
 */
import * as Redacted from "effect/Redacted"

/** The key as `Redacted`. Plain text is not kept. */
export const of = (key: Redacted.Redacted | string | undefined): Redacted.Redacted | undefined =>
  typeof key === "string" ? Redacted.make(key) : key
