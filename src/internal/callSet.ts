/**
 * An immutable set of the ids of tool calls, in the order in which they were added. `with` and `without` return a set that shares its
 * structure with this one: the state changes with each call, and copies of the ids of thousands of calls would take too long.
 */
import * as HashMap from "effect/HashMap"

/** The members that the methods of `Set` need of their argument. */
interface Ids {
  readonly size: number
  readonly has: (id: string) => boolean
  readonly keys: () => Iterator<string>
}

export class CallSet implements ReadonlySet<string> {
  /** The place of each id in the order of adding. */
  readonly #places: HashMap.HashMap<string, number>
  readonly #next: number

  private constructor(places: HashMap.HashMap<string, number>, next: number) {
    this.#places = places
    this.#next = next
  }

  static readonly empty = new CallSet(HashMap.empty(), 0)

  get size(): number {
    return HashMap.size(this.#places)
  }

  has(id: string): boolean {
    return HashMap.has(this.#places, id)
  }

  /** The set with an id. */
  with(id: string): CallSet {
    return this.has(id) ? this : new CallSet(HashMap.set(this.#places, id, this.#next), this.#next + 1)
  }

  /** The set without an id. */
  without(id: string): CallSet {
    if (!this.has(id)) return this
    const places = HashMap.remove(this.#places, id)
    return HashMap.isEmpty(places) ? CallSet.empty : new CallSet(places, this.#next)
  }

  [Symbol.iterator](): SetIterator<string> {
    const inOrder = [...this.#places].sort(([, one], [, other]) => one - other)
    return new Set(inOrder.map(([id]) => id)).values()
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
}

const idsOf = (ids: Ids): Iterable<string> => ({ [Symbol.iterator]: () => ids.keys() })

/** Any set of ids as one that is cheap to change. */
export const from = (ids: ReadonlySet<string>): CallSet => {
  if (ids instanceof CallSet) return ids
  let set = CallSet.empty
  for (const id of ids) set = set.with(id)
  return set
}
