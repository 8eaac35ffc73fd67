/**
 * A JSON value that changes in place, and of which others get values that do not.
 *
 * After `take` it copies a container before its next change: once, however many changes follow.
 */
import type * as Schema from "effect/Schema"
import type { Change } from "./valueChange.ts"

export class ValueDraft {
  private value: Schema.Json | undefined
  /** The containers that no other value has. */
  private lists = new WeakMap<object, Array<Schema.Json>>()
  private objects = new WeakMap<object, Members>()

  constructor(value: Schema.Json | undefined) {
    this.value = value
  }

  /** Makes changes. Ignores one whose path does not lead into the value. */
  add(changes: ReadonlyArray<Change>): void {
    for (const change of changes) this.value = this.changed(this.value, change, 0)
  }

  /** The value so far, which does not change any more. */
  take(): Schema.Json | undefined {
    this.lists = new WeakMap()
    this.objects = new WeakMap()
    return this.value
  }

  private changed(value: Schema.Json | undefined, change: Change, depth: number): Schema.Json | undefined {
    const key = change.path[depth]
    if (key === undefined) {
      if ("set" in change) return change.set
      return typeof value === "string" ? value + change.append : value
    }
    if (typeof key === "number") return isList(value) ? this.changedList(value, key, change, depth) : value
    if (typeof value !== "object" || value === null || isList(value)) return value
    const next = this.changed(Object.hasOwn(value, key) ? value[key] : undefined, change, depth + 1)
    if (next === undefined) return value
    const members = this.objects.get(value) ?? { ...value }
    this.objects.set(members, members)
    setMember(members, key, next)
    return members
  }

  private changedList(
    value: ReadonlyArray<Schema.Json>,
    index: number,
    change: Change,
    depth: number
  ): ReadonlyArray<Schema.Json> {
    const next = index > value.length ? undefined : this.changed(value[index], change, depth + 1)
    if (next === undefined) return value
    const list = this.lists.get(value) ?? [...value]
    this.lists.set(list, list)
    list[index] = next
    return list
  }
}

const isList = (value: Schema.Json | undefined): value is ReadonlyArray<Schema.Json> => Array.isArray(value)

/** The members of a JSON object that grows. */
export interface Members {
  [key: string]: Schema.Json
}

/** Sets a member as `JSON.parse` does: `__proto__` is a member too. */
export const setMember = (of: Members, key: string, value: Schema.Json): void => {
  if (key !== "__proto__") of[key] = value
  else Object.defineProperty(of, key, { value, configurable: true, enumerable: true, writable: true })
}
