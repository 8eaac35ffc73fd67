/**
 * Ids of tool calls as a vendor takes them. A conversation may hold the ids of other vendors, which are longer, or of
 * other characters.
 */

/** What a vendor takes. */
export interface Rule {
  readonly pattern: RegExp
  /** Of an id that is made to fit. */
  readonly length: number
}

/**
 * The id itself where it fits, else one made of it: the same for the same id, in every request and after every restart,
 * so that a call and its result stay a pair.
 */
export const fit = (id: string, rule: Rule | undefined): string =>
  rule === undefined || rule.pattern.test(id) ? id : digest(id, rule.length)

/** Letters and digits; 53 bits of hash for each eleven of them, so that two ids meet once in a lifetime at most. */
const digest = (id: string, length: number): string => {
  let out = ""
  for (let seed = 0; out.length < length; seed++) out += hash(id, seed).toString(36).padStart(11, "0")
  return out.slice(0, length)
}

/** cyrb53, public domain: https://github.com/bryc/code/blob/master/jshash/experimental/cyrb53.js */
const hash = (text: string, seed: number): number => {
  let high = 0xdeadbeef ^ seed
  let low = 0x41c6ce57 ^ seed
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    high = Math.imul(high ^ code, 2654435761)
    low = Math.imul(low ^ code, 1597334677)
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909)
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909)
  return 4294967296 * (2097151 & low) + (high >>> 0)
}

/** The ids of the calls of one answer, which a wire may leave out, or give twice. */
export class CallIds {
  private readonly given = new Set<string>()
  private readonly seed: string
  private count = 0

  /** `seed`: unique per answer. */
  constructor(seed: string) {
    this.seed = seed
  }

  /** That of the next call: the wire's, if it has one that no call had before. */
  next(wireId: string | undefined): string {
    const number = this.count++
    const own = wireId ?? `call_${this.seed}_${number}`
    const id = this.given.has(own) ? `${own}_${number}` : own
    this.given.add(id)
    return id
  }
}
