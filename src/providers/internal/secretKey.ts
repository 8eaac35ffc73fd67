/** Keys of applications: `Redacted` or plain text. */
import * as Redacted from "effect/Redacted"

/** The key as `Redacted`. */
export const of = (key: Redacted.Redacted | string | undefined): Redacted.Redacted | undefined =>
  typeof key === "string" ? Redacted.make(key) : key
