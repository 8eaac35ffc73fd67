/**
 * Follows references within a JSON Schema.
 */
import type * as Schema from "effect/Schema"
import { isObject } from "./jsonCoercion.ts"

type Json = Schema.Json

/** Returns the schema that a schema refers to, or `undefined` if the reference leads nowhere or in a circle. */
export const follow = (
  root: Json,
  schema: Json | undefined,
  seen: ReadonlyArray<string> = []
): Json | undefined => {
  if (!isObject(schema) || typeof schema["$ref"] !== "string") return schema
  const { $ref } = schema
  return seen.includes($ref) ? undefined : follow(root, resolve(root, $ref), [...seen, $ref])
}

const resolve = (root: Json, ref: string): Json | undefined =>
  ref
    .replace(/^#\/?/, "")
    .split("/")
    .filter((step) => step !== "")
    .reduce<Json | undefined>((at, step) => inner(at, unescaped(step)), root)

const inner = (at: Json | undefined, name: string): Json | undefined =>
  isObject(at) ? at[name] : Array.isArray(at) ? at[Number(name)] : undefined

/** Decodes a step of a reference, which may or may not be encoded as part of a URI. */
const unescaped = (step: string): string => decoded(step).replaceAll("~1", "/").replaceAll("~0", "~")

const decoded = (step: string): string => {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}
