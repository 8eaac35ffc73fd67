/**
 * The tokens of a server.
 */
import * as Redacted from "effect/Redacted"

const encoder = new TextEncoder()

/** The token in the header `Authorization`, `undefined` for none of the list. */
export const find = (tokens: ReadonlyArray<Redacted.Redacted>, authorization = ""): string | undefined => {
  const given = encoder.encode(/^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "")
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
