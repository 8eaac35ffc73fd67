/**
 * Finds the item to which an event of OpenAI Responses belongs, in nearly constant time, because a server may
 * send any number of items.
 */
import * as Json from "../json.ts"
import type { Place } from "./wire.ts"

/** The members by which an item is found. */
export interface Item {
  /** The type of the server. */
  type: string
  readonly kind: "message" | "thinking" | "call" | "hosted" | "other"
  /** The output index at its start, if the server sent it. */
  readonly index: number | undefined
  /** The item at its start, later at its end. */
  wire: Json.JsonObject
  isDone: boolean
}

export class Places<I extends Item> {
  /** All items in order of arrival. */
  readonly items: Array<I> = []
  private readonly byIndex = new Map<number, I>()
  /** Items that may be open, by type, and by type and id. */
  private readonly open = new Lists<I>()
  private readonly named = new Map<string, Lists<I>>()
  private readonly calls = new Map<Json.Json, Calls<I>>()

  add(item: I): void {
    const { index, type, wire } = item
    this.items.push(item)
    if (index !== undefined) this.byIndex.set(index, item)
    this.open.add(type, item)
    const named = this.named.get(type) ?? new Lists<I>()
    this.named.set(type, named)
    if (wire["id"] !== undefined) named.add(wire["id"], item)
    this.addCall(item)
  }

  /** Must be called when a call gets its id. */
  addCall(item: I): void {
    const id = item.wire["call_id"]
    if (item.kind !== "call" || id === undefined) return
    const calls = this.calls.get(id) ?? new Calls<I>()
    this.calls.set(id, calls)
    calls.add(item)
  }

  /** The item at an index. */
  at(index: number | undefined): I | undefined {
    return index === undefined ? undefined : this.byIndex.get(index)
  }

  /** The item of the type at a place, else the one with its id, else the one of another type, else, without an index, the last open one. */
  find({ id, index }: Place, type: string): I | undefined {
    const known = this.at(index)
    if (known?.type === type) return known
    const named = id === undefined ? undefined : this.named.get(type)?.first(id)
    return named ?? known ?? (index === undefined ? this.open.last(type) : undefined)
  }

  /** The call of that id, open or ended, so that one call does not run twice. */
  callAt({ index }: Place, wireItem: Json.JsonObject): I | undefined {
    const id = wireItem["call_id"]
    const call = id === undefined ? undefined : this.calls.get(id)?.find(index)
    // The end of a call may lack its id.
    return call?.wire["call_id"] === id ? call : undefined
  }

  /**
   * The known item for each item of the complete output, each at most once. Calls match by id, other items by
   * the order of their type, because some servers send other ids and indices than in the events. Ended items
   * match first.
   */
  match(output: ReadonlyArray<Json.JsonObject>): ReadonlyArray<I | undefined> {
    const left = new Set(this.items)
    const calls = new Lists<I>()
    const alike = new Map<string, Lists<I>>()
    const sorted = [
      ...this.items.filter(({ isDone }) => isDone),
      ...this.items.filter(({ isDone }) => !isDone)
    ]
    for (const item of sorted) {
      const { kind, type, wire } = item
      if (kind === "call" && wire["call_id"] !== undefined) calls.add(wire["call_id"], item)
      const named = alike.get(type) ?? new Lists<I>()
      alike.set(type, named)
      named.add(wire["name"], item)
    }
    const rank = new Map(sorted.map((item, at) => [item, at]))
    const take = (found: ReadonlyArray<I | undefined>): I | undefined => {
      const [first, second] = found
      const isSecond = second !== undefined && (first === undefined || before(rank, second, first))
      const taken = isSecond ? second : first
      if (taken !== undefined) left.delete(taken)
      return taken
    }
    const isLeft = (item: I) => left.has(item)
    const ofCalls = output.map((wireItem) => take([calls.first(wireItem["call_id"], isLeft)]))
    return output.map((wireItem, at) => {
      const named = alike.get(typeOf(wireItem))
      // Calls of different tools never match.
      const names = wireItem["name"] === undefined ? [undefined] : [undefined, wireItem["name"]]
      return ofCalls[at] ?? take(names.map((name) => named?.first(name, isLeft)))
    })
  }
}

/** The type of an item. */
export const typeOf = (item: Json.JsonObject): string => Json.text(item["type"]) ?? ""

const before = <I>(rank: ReadonlyMap<I, number>, self: I, that: I): boolean =>
  (rank.get(self) ?? 0) < (rank.get(that) ?? 0)

/** Items by a key. Skips items that are no longer relevant, each of them once. */
class Lists<I extends Item> {
  private readonly lists = new Map<Json.Json | undefined, { readonly items: Array<I>; head: number }>()

  add(key: Json.Json | undefined, item: I): void {
    const list = this.lists.get(key)
    if (list === undefined) this.lists.set(key, { items: [item], head: 0 })
    else list.items.push(item)
  }

  /** The first item for which `is` holds. Default: the first open one. */
  first(key: Json.Json | undefined, is: (item: I) => boolean = isOpen): I | undefined {
    const list = this.lists.get(key)
    for (; list !== undefined; list.head++) {
      const item = list.items[list.head]
      if (item === undefined || is(item)) return item
    }
    return undefined
  }

  /** The last open item. */
  last(key: Json.Json | undefined): I | undefined {
    const items = this.lists.get(key)?.items ?? []
    while (items.at(-1)?.isDone === true) items.pop()
    return items.at(-1)
  }
}

const isOpen = ({ isDone }: Item): boolean => !isDone

/** The calls of one id. */
class Calls<I extends Item> {
  private readonly items: Array<I> = []
  private readonly places = new Map<number | undefined, number>()
  /** Number of ended calls at the start of the list. */
  private ended = 0

  add(item: I): void {
    if (!this.places.has(item.index)) this.places.set(item.index, this.items.length)
    this.items.push(item)
  }

  /** The first call that is open or started at this index. Without an index, here or at its start, the first call. */
  find(index: number | undefined): I | undefined {
    if (index === undefined) return this.items[0]
    const withoutIndex = this.places.get(undefined)
    if (withoutIndex !== undefined && !this.places.has(index)) return this.items[withoutIndex]
    while (this.items[this.ended]?.isDone === true) this.ended++
    return this.items[Math.min(this.ended, this.places.get(index) ?? this.ended)]
  }
}
