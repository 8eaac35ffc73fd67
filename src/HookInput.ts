/**
 * What a hook is told: copies that cannot be changed. What happens is changed by what a hook returns, which is checked, and
 * in no other way.
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Message from "./Message.ts"

/** A frozen copy of plain data; anything else, such as the metadata of a run, as it is. */
export const frozen = (value: unknown): unknown => copyOf(value, new Map())

/** Messages that hooks were shown copies of, where they give such a copy back: encodings are cached by identity. */
export const originals = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<Message.Message> =>
  messages.map((message) => originalOf.get(message) ?? message)

/** Of messages: a transcript is shown often, and grows at its end only. */
const copies = new WeakMap<object, object>()
const originalOf = new WeakMap<object, Message.Message>()
const isMessage = Schema.is(Message.Message)

/** `seen`: what was copied on the way, as the data of others may go in circles. */
const copyOf = (value: unknown, seen: Map<object, object>): unknown => {
  if (Array.isArray(value)) return seen.get(value) ?? filled(value, [], seen)
  if (!Predicate.isObject(value) || Object.getPrototypeOf(value) !== Object.prototype) return value
  const known = copies.get(value) ?? seen.get(value)
  if (known !== undefined) return known
  const copy = filled(value, {}, seen)
  if (isMessage(value)) {
    copies.set(value, copy)
    originalOf.set(copy, value)
  }
  return copy
}

const filled = (from: object, copy: object, seen: Map<object, object>): object => {
  seen.set(from, copy)
  for (const [key, value] of Object.entries(from)) {
    Object.defineProperty(copy, key, { value: copyOf(value, seen), enumerable: true })
  }
  return Object.freeze(copy)
}
