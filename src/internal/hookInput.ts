/**
 * Copies the input of a hook, so that a hook changes a run by its output alone.
 */
import * as Duration from "effect/Duration"
import { memoize } from "effect/Function"
import { NodeInspectSymbol } from "effect/Inspectable"
import * as Predicate from "effect/Predicate"
import { isMessage } from "./invalidInput.ts"

/**
 * Copies an input, each member when the hook reads it: a hook that ignores the transcript does not pay for a copy. Copies and
 * freezes plain data and arrays, and freezes errors and durations in place. `metadata` stays writable, and instances of other
 * classes stay as they are.
 */
export const frozen = <Input extends object>(input: Input): Input => {
  const copy: Input = Object.create(Object.prototype)
  for (const [key, value] of Object.entries(input)) {
    let known: { readonly part: unknown } | undefined
    const get = () => (known ??= { part: partOf(key, value) }).part
    Object.defineProperty(copy, key, { get, enumerable: true })
  }
  // `console.log` shows the members, and not that they are getters.
  Object.defineProperty(copy, NodeInspectSymbol, { value: () => ({ ...copy }) })
  return Object.freeze(copy)
}

const partOf = (key: string, value: unknown): unknown => {
  if (key === "metadata") return value
  return (key === "tools" || key === "tool") && Predicate.isObjectOrArray(value)
    ? toolsOf(value)
    : copyOf(value)
}

/** The message behind the copy that a hook got: encodings are cached by identity. `undefined` for any other value. */
export const originalOf = (copy: object): unknown => originals.get(copy)

/** Copies of messages, which hooks get with every turn. */
const copies = new WeakMap<object, object>()
const originals = new WeakMap<object, object>()

const copyOf = (value: unknown): unknown => {
  if (!Predicate.isObjectOrArray(value)) return value
  if (Array.isArray(value)) return Object.freeze(value.map(copyOf))
  if (value instanceof Error) return frozenError(value)
  if (Duration.isDuration(value)) return Object.freeze(value.value) && Object.freeze(value)
  if (!isPlain(value)) return value
  const known = copies.get(value)
  if (known !== undefined) return known
  const members = Object.entries(value).map(([key, member]) => [key, copyOf(member)])
  const copy = Object.freeze(Object.fromEntries(members))
  if (isMessage(value)) {
    copies.set(value, copy)
    originals.set(copy, value)
  }
  return copy
}

// Tools rarely change from turn to turn.
const toolsOf = memoize((tools: object) => copyOf(tools) ?? null)

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Freezes an error, which events and the caller get, too. Its `cause` belongs to other code. */
const frozenError = (error: Error): Error => {
  if (Object.isFrozen(error)) return error
  for (const [key, value] of Object.entries(Object.freeze(error))) {
    if (value instanceof Error && key !== "cause") frozenError(value)
    if (Array.isArray(value)) Object.freeze(value)
  }
  return error
}
