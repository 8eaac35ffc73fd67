/**
 * The tokens of a server.
 */
import * as Redacted from "effect/Redacted"

const encoder = new TextEncoder()

export class Tokens {
  private readonly secrets: ReadonlyArray<Uint8Array>

  constructor(tokens: ReadonlyArray<Redacted.Redacted>) {
    this.secrets = tokens.map((token) => encoder.encode(Redacted.value(token)))
  }

  /** The number of the token in the header `Authorization`, `undefined` for none that is known. */
  find(authorization = ""): number | undefined {
    const given = encoder.encode(/^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "")
    let found: number | undefined
    for (const [index, secret] of this.secrets.entries()) if (equal(given, secret)) found = index
    return found
  }
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
