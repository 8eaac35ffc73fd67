/**
 * Ids of tool calls, in the order in which they were added: a set that does not change. Adding and deleting give another
 * set, which shares what it can with the one before, so that thousands of calls side by side do not copy one another.
 */

/** From which version on an id is in the set, and from which on it is not any more. */
interface Span {
  readonly from: number
  until: number
}

/** Shared by the versions of a set. Only the newest version adds to it. */
class History {
  readonly spans = new Map<string, Span>()
  newest = 0
}

/** A set as the methods of `Set` take it. */
interface Ids {
  readonly size: number
  readonly has: (id: string) => boolean
  readonly keys: () => Iterator<string>
}

export class CallSet implements ReadonlySet<string> {
  readonly size: number
  readonly #history: History
  readonly #version: number

  private constructor(history: History, size: number) {
    this.#history = history
    this.#version = history.newest
    this.size = size
  }

  static readonly empty = new CallSet(new History(), 0)

  has(id: string): boolean {
    const span = this.#history.spans.get(id)
    return span !== undefined && this.#holds(span)
  }

  /** The set with an id. */
  with(id: string): CallSet {
    if (this.has(id)) return this
    const history =
      this.#isNewest && this.size > 0 && !this.#history.spans.has(id) ? this.#history : this.#copy()
    history.spans.set(id, { from: ++history.newest, until: Infinity })
    return new CallSet(history, this.size + 1)
  }

  /** The set without an id. */
  without(id: string): CallSet {
    if (!this.has(id)) return this
    if (this.size === 1) return CallSet.empty
    const history = this.#isNewest ? this.#history : this.#copy()
    const span = history.spans.get(id)
    history.newest++
    if (span !== undefined) span.until = history.newest
    return new CallSet(history, this.size - 1)
  }

  *[Symbol.iterator](): SetIterator<string> {
    for (const [id, span] of this.#history.spans) if (this.#holds(span)) yield id
  }

  keys(): SetIterator<string> {
    return this[Symbol.iterator]()
  }

  values(): SetIterator<string> {
    return this[Symbol.iterator]()
  }

  entries(): SetIterator<[string, string]> {
    return new Set(this).entries()
  }

  forEach(use: (value: string, key: string, set: ReadonlySet<string>) => void, self?: unknown): void {
    for (const id of this) use.call(self, id, id, this)
  }

  union(other: Ids): Set<string> {
    return new Set([...this, ...idsOf(other)])
  }

  intersection(other: Ids): Set<string> {
    return new Set([...this].filter((id) => other.has(id)))
  }

  difference(other: Ids): Set<string> {
    return new Set([...this].filter((id) => !other.has(id)))
  }

  symmetricDifference(other: Ids): Set<string> {
    return new Set([...this.difference(other), ...[...idsOf(other)].filter((id) => !this.has(id))])
  }

  isSubsetOf(other: Ids): boolean {
    return [...this].every((id) => other.has(id))
  }

  isSupersetOf(other: Ids): boolean {
    return [...idsOf(other)].every((id) => this.has(id))
  }

  isDisjointFrom(other: Ids): boolean {
    return ![...this].some((id) => other.has(id))
  }

  get #isNewest(): boolean {
    return this.#version === this.#history.newest
  }

  #holds({ from, until }: Span): boolean {
    return from <= this.#version && this.#version < until
  }

  #copy(): History {
    const history = new History()
    for (const id of this) history.spans.set(id, { from: 0, until: Infinity })
    return history
  }
}

const idsOf = (ids: Ids): Iterable<string> => ({ [Symbol.iterator]: () => ids.keys() })

/** Any set of ids as one that is cheap to change. */
export const from = (ids: ReadonlySet<string>): CallSet => {
  if (ids instanceof CallSet) return ids
  let set = CallSet.empty
  for (const id of ids) set = set.with(id)
  return set
}
