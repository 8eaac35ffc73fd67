/**
 * Which item of an answer an event of OpenAI Responses is about. Each is found in constant time, or nearly so: how many
 * items there are is up to the server.
 */
import * as Json from "./json.ts"
import type { Place } from "./openAiResponsesWire.ts"

/** What an item is found by. */
export interface Item {
  /** The wire's type of it. */
  type: string
  readonly kind: "message" | "thinking" | "call" | "other"
  /** Where it began, if that was told. */
  readonly index: number | undefined
  /** As it began, then as it ended. */
  wire: Json.JsonObject
  isDone: boolean
}

export class Places<I extends Item> {
  /** In the order in which they came. */
  readonly items: Array<I> = []
  private readonly byIndex = new Map<number, I>()
  /** Those that may go on, by type, and by type and id. */
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

  /** To be called when a call has got its id. */
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

  /** The item at a place; of this id, if nothing is there; without an index, the last of its type that goes on. */
  find({ id, index }: Place, type: string): I | undefined {
    const known = this.at(index)
    if (known !== undefined) return known
    const named = id === undefined ? undefined : this.named.get(type)?.first(id)
    return named ?? (index === undefined ? this.open.last(type) : undefined)
  }

  /** The call of that id which goes on, or was there: one call is not to run twice. */
  callAt({ index }: Place, wireItem: Json.JsonObject): I | undefined {
    const id = wireItem["call_id"]
    const call = id === undefined ? undefined : this.calls.get(id)?.find(index)
    // Its end may have taken the id away.
    return call?.wire["call_id"] === id ? call : undefined
  }

  /**
   * For each item of the whole output the one that is meant, each at most once. A call is found by its id, and the rest by
   * the order of their type alone, as with some servers neither ids nor indices are those of the events. Those that ended
   * come first.
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
      // Arguments are never those of another tool.
      const names = wireItem["name"] === undefined ? [undefined] : [undefined, wireItem["name"]]
      return ofCalls[at] ?? take(names.map((name) => named?.first(name, isLeft)))
    })
  }
}

/** The wire's type of an item. */
export const typeOf = (item: Json.JsonObject): string => Json.text(item["type"]) ?? ""

const before = <I>(rank: ReadonlyMap<I, number>, self: I, that: I): boolean =>
  (rank.get(self) ?? 0) < (rank.get(that) ?? 0)

/** Items by some key, without those that are of no use any more: they are passed over once. */
class Lists<I extends Item> {
  private readonly lists = new Map<Json.Json | undefined, { readonly items: Array<I>; head: number }>()

  add(key: Json.Json | undefined, item: I): void {
    const list = this.lists.get(key)
    if (list === undefined) this.lists.set(key, { items: [item], head: 0 })
    else list.items.push(item)
  }

  /** The first that `is` of use, by default one that goes on. */
  first(key: Json.Json | undefined, is: (item: I) => boolean = goesOn): I | undefined {
    const list = this.lists.get(key)
    for (; list !== undefined; list.head++) {
      const item = list.items[list.head]
      if (item === undefined || is(item)) return item
    }
    return undefined
  }

  /** The last that goes on. */
  last(key: Json.Json | undefined): I | undefined {
    const items = this.lists.get(key)?.items ?? []
    while (items.at(-1)?.isDone === true) items.pop()
    return items.at(-1)
  }
}

const goesOn = ({ isDone }: Item): boolean => !isDone

/** The calls of one id. */
class Calls<I extends Item> {
  private readonly items: Array<I> = []
  private readonly places = new Map<number | undefined, number>()
  /** How many of the first have ended. */
  private ended = 0

  add(item: I): void {
    if (!this.places.has(item.index)) this.places.set(item.index, this.items.length)
    this.items.push(item)
  }

  /** The first that goes on or began at this index; the first at all, without an index. */
  find(index: number | undefined): I | undefined {
    if (index === undefined) return this.items[0]
    while (this.items[this.ended]?.isDone === true) this.ended++
    return this.items[Math.min(this.ended, this.places.get(index) ?? this.ended)]
  }
}
