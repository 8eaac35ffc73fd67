/**
 * The partial values of the answers of a stream, while they grow.
 */
import type * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import type { Change } from "./valueChange.ts"
import { ValueDraft } from "./valueDraft.ts"

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
  readonly changes: ReadonlyArray<Change>
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
  /** By the ids of their messages, then by the indexes of their blocks. */
  private readonly messages = new Map<string, Map<number, Value>>()

  /** Adds events that came together, and returns the values that they changed. */
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
