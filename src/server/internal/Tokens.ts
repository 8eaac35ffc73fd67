/**
 * The tokens of a server.
 */
import * as Redacted from "effect/Redacted"

const encoder = new TextEncoder()

/** The credential if it is one of the tokens. */
export const find = (
  tokens: ReadonlyArray<Redacted.Redacted>,
  credential: Redacted.Redacted
): string | undefined => {
  const given = encoder.encode(Redacted.value(credential))
  let found: string | undefined
  for (const token of tokens.map(Redacted.value)) if (equal(given, encoder.encode(token))) found = token
  return found
}

/** Compares in a time that depends on the length of `given` alone. An empty secret equals nothing. */
const equal = (given: Uint8Array, secret: Uint8Array): boolean => {
  if (secret.length === 0) return false
  let difference = given.length ^ secret.length
  for (let index = 0; index < given.length; index++) {
    difference |= (given[index] ?? 0) ^ (secret[index % secret.length] ?? 0)
  }
  return difference === 0
}
