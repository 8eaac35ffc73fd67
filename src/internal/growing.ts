/**
 * Folds `PartialValue` events: the JSON values of arguments and outputs grow while an answer streams.
 */
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"

/** The value that an event belongs to. */
interface Named {
  /** The id of the run. */
  readonly runId: string
  /** The id of the message that it is in. */
  readonly messageId: string
  /** The `contentIndex` of its block. */
  readonly index: number
  /** Whether it is the arguments of a tool call, or the typed output of the run. */
  readonly for: "arguments" | "output"
  /** The id of its tool call; absent for an output in the text of the answer. */
  readonly toolCallId?: string
  /** The name of its tool; absent for an output in the text of the answer. */
  readonly toolName?: string
}

/**
 * A value as far as it has come: the arguments of a tool call, or the typed output.
 *
 * @category models
 * @since 0.2.0
 */
export interface Partial extends Named {
  /** The value. */
  readonly value: Schema.Json
  /** Whether the answer is void, and the value with it: nothing follows under its `messageId`. */
  readonly isRetracted: boolean
}

interface Growth extends Named {
  readonly _tag: "PartialValue"
  readonly changes: ReadonlyArray<ValueChange>
}

/** The events that change values, or end them. */
type Event =
  | Growth
  | { readonly _tag: "MessageRetracted"; readonly messageId: string }
  | { readonly _tag: "MessageEnd"; readonly message: { readonly id: string } }

interface Value {
  readonly of: Named
  readonly draft: ValueDraft
  isRetracted: boolean
}

export class Growing {
  /** The values that grow, by the ids of their messages and the indexes of their blocks. */
  private readonly messages = new Map<string, Map<number, Value>>()

  /** Adds a batch of events, and returns the values that they changed, each once. */
  add(events: ReadonlyArray<Event>): ReadonlyArray<Partial> {
    const changed = new Set<Value>()
    for (const event of events) {
      if (event._tag === "PartialValue") changed.add(this.grow(event))
      else {
        const id = event._tag === "MessageEnd" ? event.message.id : event.messageId
        for (const value of event._tag === "MessageEnd" ? [] : (this.messages.get(id)?.values() ?? [])) {
          value.isRetracted = true
          changed.add(value)
        }
        this.messages.delete(id)
      }
    }
    return [...changed].flatMap(({ draft, isRetracted, of }) => {
      const value = draft.take()
      return value === undefined ? [] : [{ ...of, value, isRetracted }]
    })
  }

  private grow(event: Growth): Value {
    const { changes, index, messageId } = event
    const values = this.messages.get(messageId) ?? new Map<number, Value>()
    this.messages.set(messageId, values)
    const value = values.get(index) ?? {
      of: Struct.pick(event, ["runId", "messageId", "index", "for", "toolCallId", "toolName"]),
      draft: new ValueDraft(undefined),
      isRetracted: false
    }
    values.set(index, value)
    value.draft.add(changes)
    return value
  }
}

const path = { path: Schema.Array(Schema.Union([Schema.String, Schema.Int])) }

/**
 * A change of a value that grows.
 *
 * **Details**
 *
 * `path` has the names of members and the indexes of elements that lead to the place of the change, from the outermost one; the whole value
 * has the empty path. `set` is the value at that place, which may grow further. `append` is more text of the string at that place.
 *
 * @category models
 * @since 0.2.0
 */
export const ValueChange = Schema.Union([
  Schema.Struct({ ...path, set: Schema.Json }),
  Schema.Struct({ ...path, append: Schema.String })
])
export type ValueChange = typeof ValueChange.Type

export class ValueDraft {
  private value: Schema.Json | undefined
  /** The copies of containers that `take` has not returned yet, and that changes may therefore mutate. */
  private lists = new WeakMap<object, Array<Schema.Json>>()
  private objects = new WeakMap<object, Members>()

  constructor(value: Schema.Json | undefined) {
    this.value = value
  }

  /** Applies changes. Ignores one whose path does not lead into the value. */
  add(changes: ReadonlyArray<ValueChange>): void {
    for (const change of changes) this.value = this.changed(this.value, change, 0)
  }

  /** Returns the value so far. Later changes copy it and leave it as it is. */
  take(): Schema.Json | undefined {
    this.lists = new WeakMap()
    this.objects = new WeakMap()
    return this.value
  }

  private changed(
    value: Schema.Json | undefined,
    change: ValueChange,
    depth: number
  ): Schema.Json | undefined {
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
    change: ValueChange,
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
