/**
 * Writes values of the application as JSON, and reports those that are not JSON.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as FailureText from "./failureText.ts"

/** A sentence that names a value that is not JSON, its place, and a value to return instead. */
export type Fault = string

/**
 * Writes a value as JSON. Fails for values that `JSON.stringify` would write without their content: `Map`, `Set`, typed arrays,
 * `NaN`, `Infinity`, `bigint`, errors, promises, circular values, and functions and symbols outside of objects. Leaves out members
 * that are functions, symbols or `undefined`. Writes `undefined` as an empty text.
 */
export const of = (value: unknown): Result.Result<string, Fault> => {
  const faults: Array<Fault> = []
  const ancestors: Array<object> = []
  const read = function (this: unknown, key: string, read: unknown): unknown {
    // The value before `JSON.stringify` called its `toJSON`: that of a `Buffer` would hide it as an object of numbers.
    const original = Predicate.isObjectOrArray(this) ? Reflect.get(this, key) : read
    while (ancestors.length > 0 && ancestors.at(-1) !== this) ancestors.pop()
    if (isLeftOut(original) && Predicate.isObject(this) && key !== "") return undefined
    const what = faultOf(original) ?? faultOf(read) ?? (isAncestor(ancestors, read) ? circular : undefined)
    if (what !== undefined) {
      faults.push(key === "" ? what : `${what} It is at ${JSON.stringify(key)}.`)
      return null
    }
    if (Predicate.isObjectOrArray(read)) ancestors.push(read)
    return read
  }
  try {
    const text = JSON.stringify(value, read) ?? ""
    return faults[0] === undefined ? Result.succeed(text) : Result.fail(faults[0])
  } catch (thrown) {
    return Result.fail(`It cannot be written as JSON: ${FailureText.firstLine(thrown)}.`)
  }
}

/** Returns whether `JSON.stringify` leaves out a member with this value. */
const isLeftOut = (value: unknown): boolean => typeof value === "function" || typeof value === "symbol"

const isAncestor = (ancestors: ReadonlyArray<object>, value: unknown): boolean =>
  Predicate.isObjectOrArray(value) && ancestors.includes(value)

const circular = "It refers to itself. Return a copy without the reference."

const faultOf = (value: unknown): Fault | undefined => {
  switch (typeof value) {
    case "bigint":
      return "A bigint is not JSON. Return String(value)."
    case "number":
      return Number.isFinite(value) ? undefined : `${value} is not JSON. Return null or a text.`
    case "function":
      return "A function is not JSON. Return data."
    case "symbol":
      return "A symbol is not JSON. Return a text."
    default:
      return Predicate.isObjectOrArray(value) ? objectFault(value) : undefined
  }
}

const objectFault = (value: object): Fault | undefined => {
  if (value instanceof Map) return "A Map is not JSON. Return Object.fromEntries(map) or [...map]."
  if (value instanceof Set) return "A Set is not JSON. Return [...set]."
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return bytes
  if (value instanceof Error) return "An Error is not a result. Throw it, or fail with it."
  if (value instanceof WeakMap || value instanceof WeakSet)
    return "A WeakMap or WeakSet is not JSON. Return data."
  if (value instanceof RegExp) return "A RegExp is not JSON. Return its source."
  return value instanceof Promise ? "A promise is not a result. Await it." : undefined
}

const bytes =
  "Bytes are not JSON. Return their text, base64, or an image: " +
  "Tool.output([Message.image(base64, mediaType)])."
