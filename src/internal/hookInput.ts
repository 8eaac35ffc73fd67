/**
 * Copies the input of a hook, so that a hook changes a run by its output alone.
 */
import * as Duration from "effect/Duration"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Message from "../Message.ts"
import { once } from "./once.ts"
import { goesOnFrom } from "../Transcript.ts"

/**
 * Copies an input, each member when the hook reads it: a hook that ignores the transcript does not pay for a copy. Copies and
 * freezes plain data, arrays and durations, copies dates, maps and sets, and freezes errors in place. `metadata` stays
 * writable, and instances of other classes stay as they are: see `isCopied`.
 */
export const frozen = <Input extends object>(input: Input): Input => {
  const seen = new Map<object, object>()
  const copy: Input = Object.create(Object.prototype)
  for (const [key, value] of Object.entries(input)) {
    let known: { readonly part: unknown } | undefined
    const get = () => (known ??= { part: partOf(key, value, seen) }).part
    Object.defineProperty(copy, key, { get, enumerable: true })
  }
  return Object.freeze(copy)
}

const partOf = (key: string, value: unknown, seen: Map<object, object>): unknown => {
  if (key === "metadata") return value
  return (key === "tools" || key === "tool") && Predicate.isObjectOrArray(value)
    ? toolsOf(value)
    : copyOf(value, seen)
}

/** Whether `frozen` copies all of a value, so that nothing done to the copy reaches it. */
export const isCopied = (value: unknown): boolean => areCopied([value], new Set())

const areCopied = (values: Iterable<unknown>, seen: Set<object>): boolean => {
  for (const value of values) {
    if (typeof value === "function") return false
    if (!Predicate.isObjectOrArray(value) || seen.has(value)) continue
    seen.add(value)
    if (value instanceof Date || Duration.isDuration(value)) continue
    const parts = partsOf(value)
    if (parts === undefined || !areCopied(parts, seen)) return false
  }
  return true
}

const partsOf = (value: object): Iterable<unknown> | undefined => {
  if (Array.isArray(value) || value instanceof Map || value instanceof Set) return value
  return isPlain(value) ? Object.values(value) : undefined
}

/** The message behind the copy that a hook got: encodings are cached by identity. `undefined` for any other value. */
export const originalOf = (copy: object): unknown => originals.get(copy)

/** Copies of messages, which hooks get with every turn. */
const copies = new WeakMap<object, object>()
const originals = new WeakMap<object, object>()
const isMessage = Schema.is(Message.Message)

// Tools rarely change from turn to turn.
const toolsOf = once((tools: object) => copyOf(tools, new Map()))

/** `seen` has the copies made so far, since data may refer to itself. */
const copyOf = (value: unknown, seen: Map<object, object>): unknown => {
  if (!Predicate.isObjectOrArray(value)) return value
  const known = seen.get(value) ?? copies.get(value)
  if (known !== undefined) return known
  const inner = (part: unknown) => copyOf(part, seen)
  if (Array.isArray(value)) return list(value, inner, seen)
  if (value instanceof Error) return frozenError(value)
  if (value instanceof Date) return new Date(value.getTime())
  if (value instanceof Map || value instanceof Set) return collection(value, inner, seen)
  if (Duration.isDuration(value))
    return filled(value, Object.create(Object.getPrototypeOf(value)), inner, seen)
  if (!isPlain(value)) return value
  const copy = filled(value, {}, inner, seen)
  if (isMessage(value)) {
    copies.set(value, copy)
    originals.set(copy, value)
  }
  return copy
}

/** The last copy of each list, by the first object in it. */
const lists = new WeakMap<
  object,
  { readonly from: ReadonlyArray<unknown>; readonly copy: ReadonlyArray<unknown> }
>()

/** Extends the last copy of a list that has only grown at its end, as a transcript does. */
const list = (
  from: ReadonlyArray<unknown>,
  inner: (value: unknown) => unknown,
  seen: Map<object, object>
): ReadonlyArray<unknown> => {
  const [first] = from
  const last = Predicate.isObject(first) ? lists.get(first) : undefined
  const known = last !== undefined && goesOnFrom(from, last.from) ? last : undefined
  if (known?.from.length === from.length) return known.copy
  const copy: Array<unknown> = known?.copy.slice() ?? []
  seen.set(from, copy)
  const news = from.slice(copy.length)
  for (const one of news) copy.push(inner(one))
  // Only messages never change.
  if (Predicate.isObject(first) && news.every((one) => Predicate.isObject(one) && copies.has(one))) {
    lists.set(first, { from: from.slice(), copy })
  }
  return Object.freeze(copy)
}

const collection = (
  from: ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>,
  inner: (value: unknown) => unknown,
  seen: Map<object, object>
): object => {
  const copy = from instanceof Map ? new Map<unknown, unknown>() : new Set<unknown>()
  seen.set(from, copy)
  from.forEach((value, key) => {
    if (copy instanceof Map) copy.set(inner(key), inner(value))
    else copy.add(inner(value))
  })
  return copy
}

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const filled = (
  from: object,
  copy: object,
  inner: (value: unknown) => unknown,
  seen: Map<object, object>
): object => {
  seen.set(from, copy)
  for (const [key, value] of Object.entries(from)) {
    Object.defineProperty(copy, key, { value: inner(value), enumerable: true })
  }
  return Object.freeze(copy)
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
