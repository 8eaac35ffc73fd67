/**
 * The members of a JSON object that grows.
 */
import type * as Schema from "effect/Schema"

export interface Members {
  [key: string]: Schema.Json
}

/** Sets a member as `JSON.parse` does: `__proto__` is a member too. */
export const setMember = (of: Members, key: string, value: Schema.Json): void => {
  if (key !== "__proto__") of[key] = value
  else Object.defineProperty(of, key, { value, configurable: true, enumerable: true, writable: true })
}
