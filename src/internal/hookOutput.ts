/**
 * Decodes the outputs of hooks. Plain JavaScript has no types, and a guard that returned a wrong value must not count as one that approved.
 */
import { memoize } from "effect/Function"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Duration from "effect/Duration"
import { NodeInspectSymbol } from "effect/Inspectable"
import { isMessage } from "./invalidInput.ts"
import type { Message, ModelMessage } from "../Message.ts"
import * as NearestName from "./nearestName.ts"
import * as RunOptions from "../RunOptions.ts"
import { isOutput, rendered } from "./toolOutput.ts"

/** The schema of a list of messages. It replaces the copy of a message that the hook got by the message of the transcript. */
const listOf = <A extends Message>(isOne: (value: unknown) => value is A) => {
  const isList = (value: unknown): value is ReadonlyArray<A> => Array.isArray(value) && value.every(isOne)
  const originals = (list: ReadonlyArray<A>): ReadonlyArray<A> =>
    list.map((message) => {
      const original = originalOf(message)
      return isOne(original) ? original : message
    })
  return Schema.declare(isList, { expected: "messages" }).pipe(
    Schema.decode(SchemaTransformation.transform({ decode: originals, encode: originals }))
  )
}

const isModelMessage = (value: unknown): value is ModelMessage => isMessage(value) && value.role !== "custom"

export const messages = listOf(isMessage)
export const modelMessages = listOf(isModelMessage)

/** The schema of a result in place of the tool's. It renders the result, so that one that is not JSON is a failure of the hook. */
export const toolResult = Schema.Unknown.pipe(
  Schema.decodeTo(
    Schema.declare(isOutput),
    SchemaTransformation.transform({
      decode: (result: unknown) => Result.getOrThrowWith(rendered(result), (fault) => `\`result\`: ${fault}`),
      encode: (output): unknown => output
    })
  )
)

/** The schemas of the outputs of one point. An output matches one of them. */
export type Alternatives<A> = ReadonlyArray<Schema.ConstraintDecoder<A>>

/**
 * Decodes the output of a hook. Fails for a member that no alternative has, for members of several alternatives, and for a value whose
 * getters throw.
 */
export const read = <A>(alternatives: Alternatives<A>, returned: unknown): Result.Result<A, unknown> => {
  try {
    const given = RunOptions.given(returned, 3)
    const shapes = alternatives.map(({ ast }) => shapeOf(ast))
    const all: Shape = new Map(shapes.flatMap((shape) => [...shape]))
    const fault = takesNothing(alternatives) ? anyMember(given) : unknownMember(all, given, "")
    if (fault !== undefined) return Result.fail(`The hook returned ${fault}`)
    const named = Predicate.isObject(given) ? Object.keys(given).filter((name) => all.has(name)) : []
    const fitting = alternatives.filter((_, index) => named.every((name) => shapes[index]?.has(name)))
    return fitting.length === 0
      ? Result.fail(`The hook returned ${together(named)}. ${adviceFor(shapes)}`)
      : Result.mapError(decoded(fitting, given), (fault) => `${fault}. ${adviceFor(shapes)}`)
  } catch (thrown) {
    return Result.fail(thrown)
  }
}

const together = (names: ReadonlyArray<string>): string =>
  names.map((name) => `\`${name}\``).join(" together with ")

const adviceFor = (shapes: ReadonlyArray<Shape>): string =>
  shapes.length === 1
    ? "The hook returned something else than its point takes."
    : `Return either ${shapes.map((shape) => `{ ${[...shape.keys()].join(", ")} }`).join(" or ")}.`

/** The first of the alternatives that decodes, or the failure of the first. */
const decoded = <A>(alternatives: Alternatives<A>, given: unknown): Result.Result<A, string> => {
  const results = alternatives.map((schema) =>
    Result.mapError(Schema.decodeUnknownResult(schema, strictly)(given), ({ message }) => message)
  )
  return results.find(Result.isSuccess) ?? results[0] ?? Result.fail("The point takes nothing")
}

/** Also refuses unknown members of values inside lists and unions. */
const strictly = { onExcessProperty: "error" } as const

const takesNothing = <A>(alternatives: Alternatives<A>): boolean =>
  alternatives.every(({ ast }) => ast._tag === "Void")

const anyMember = (given: unknown): string | undefined => {
  const [name] = Predicate.isObject(given) ? Object.keys(given) : []
  return name === undefined ? undefined : unknownAt(name, "This point takes nothing.")
}

/** The members of a struct, by name; empty for any other schema. */
type Shape = ReadonlyMap<string, SchemaAST.AST>

const shapeOf = memoize(
  (ast: SchemaAST.AST): Shape =>
    new Map(
      ast._tag === "Objects" ? ast.propertySignatures.map(({ name, type }) => [String(name), type]) : []
    )
)

/** Finds an unknown member, also of a struct inside. Prefers one whose name is nearly a known one, for a better message. */
const unknownMember = (shape: Shape, given: unknown, path: string): string | undefined => {
  if (shape.size === 0 || !Predicate.isObject(given)) return undefined
  const unknown = Object.keys(given).filter((name) => !shape.has(name))
  const missing = [...shape.keys()].filter((name) => !(name in given))
  for (const name of unknown) {
    const meant = NearestName.of(name, missing) ?? missing.find((known) => endsWith(name, known))
    if (meant !== undefined) return unknownAt(path + name, `Did you mean \`${path}${meant}\`?`)
  }
  if (unknown.length > 0) {
    const names = [...shape.keys()].map((name) => path + name).join(", ")
    return unknownAt(`${path}${unknown[0]}`, `Return any of ${names}.`)
  }
  for (const [name, type] of shape) {
    const inner = unknownMember(shapeOf(type), given[name], `${path}${name}.`)
    if (inner !== undefined) return inner
  }
  return undefined
}

/** Finds `result` in `mockResult`, as other systems name it. */
const endsWith = (name: string, known: string): boolean => name.toLowerCase().endsWith(known.toLowerCase())

const unknownAt = (path: string, advice: string) => `\`${path}\`, which has no meaning here. ${advice}`

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
  // Lets `console.log` print the values of the members, which are getters.
  Object.defineProperty(copy, NodeInspectSymbol, { value: () => ({ ...copy }) })
  return Object.freeze(copy)
}

const partOf = (key: string, value: unknown): unknown => {
  if (key === "metadata") return value
  return (key === "tools" || key === "tool") && Predicate.isObjectOrArray(value)
    ? toolsOf(value)
    : copyOf(value)
}

/** The message of the transcript behind this copy, since providers cache encodings by identity; `undefined` for other values. */
export const originalOf = (copy: object): unknown => originals.get(copy)

/** The frozen copies of messages, which hooks of every turn get. */
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

/** Freezes an error in place: events and the caller get the same one. Its `cause` may belong to other code, and stays as it is. */
const frozenError = (error: Error): Error => {
  if (Object.isFrozen(error)) return error
  for (const [key, value] of Object.entries(Object.freeze(error))) {
    if (value instanceof Error && key !== "cause") frozenError(value)
    if (Array.isArray(value)) Object.freeze(value)
  }
  return error
}
