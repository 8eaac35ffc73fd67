/**
 * What a hook is told: copies that cannot be changed. What happens is changed by what a hook returns, which is checked, and
 * in no other way.
 */
import * as Duration from "effect/Duration"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Message from "./Message.ts"
import { once } from "./Once.ts"

/**
 * A copy of an input whose parts are frozen: plain data, arrays and durations are copied and frozen, dates, maps and sets are
 * copied, errors are frozen where they are. Instances of other classes stay as they are: see `isCopied`. `metadata` is shared
 * by the hooks of a run and stays writable.
 */
export const frozen = (input: object): unknown => {
  const seen = new Map<object, object>()
  return filled(input, {}, (value, key) => {
    if (key === "metadata") return value
    return key === "tools" && Predicate.isObject(value) ? toolsOf(value) : copyOf(value, seen)
  })
}

/** Whether `frozen` copies all of a value, so that nothing done to the copy reaches it. */
export const isCopied = (value: unknown): boolean => {
  if (!Predicate.isObjectOrArray(value)) return typeof value !== "function"
  if (Array.isArray(value)) return value.every(isCopied)
  if (value instanceof Date || Duration.isDuration(value)) return true
  if (value instanceof Map) return [...value].every(isCopied)
  if (value instanceof Set) return [...value].every(isCopied)
  return isPlain(value) && Object.values(value).every(isCopied)
}

/** Messages that hooks were shown copies of, where they give such a copy back: encodings are cached by identity. */
export const originals = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<Message.Message> =>
  messages.map((message) => originalOf.get(message) ?? message)

/** Of messages: a transcript is shown often, and grows at its end only. */
const copies = new WeakMap<object, object>()
const originalOf = new WeakMap<object, Message.Message>()
const isMessage = Schema.is(Message.Message)

// Once: the tools of a run are mostly the same from turn to turn.
const toolsOf = once((tools: object) => copyOf(tools, new Map()))

/** `seen`: what was copied on the way, as the data of others may go in circles. */
const copyOf = (value: unknown, seen: Map<object, object>): unknown => {
  if (!Predicate.isObjectOrArray(value)) return value
  const known = seen.get(value) ?? copies.get(value)
  if (known !== undefined) return known
  const inner = (part: unknown) => copyOf(part, seen)
  if (Array.isArray(value)) return filled(value, [], inner, seen)
  if (value instanceof Error) return frozenError(value)
  if (value instanceof Date) return new Date(value.getTime())
  if (value instanceof Map) return new Map(Array.from(value, ([key, held]) => [inner(key), inner(held)]))
  if (value instanceof Set) return new Set(Array.from(value, inner))
  if (Duration.isDuration(value))
    return filled(value, Object.create(Object.getPrototypeOf(value)), inner, seen)
  if (!isPlain(value)) return value
  const copy = filled(value, {}, inner, seen)
  if (isMessage(value)) {
    copies.set(value, copy)
    originalOf.set(copy, value)
  }
  return copy
}

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const filled = (
  from: object,
  copy: object,
  inner: (value: unknown, key: string) => unknown,
  seen?: Map<object, object>
): object => {
  seen?.set(from, copy)
  for (const [key, value] of Object.entries(from)) {
    Object.defineProperty(copy, key, { value: inner(value, key), enumerable: true })
  }
  return Object.freeze(copy)
}

/** Hooks, events and the caller are given the same error. What stands behind it as its `cause` is of others. */
const frozenError = (error: Error): Error => {
  if (Object.isFrozen(error)) return error
  for (const [key, value] of Object.entries(Object.freeze(error))) {
    if (value instanceof Error && key !== "cause") frozenError(value)
    if (Array.isArray(value)) Object.freeze(value)
  }
  return error
}
