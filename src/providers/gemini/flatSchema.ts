/** Resolves the references and the `allOf` of a JSON Schema in place. */
import * as Json from "../internal/json.ts"

export interface Reading {
  readonly root: Json.Json
  /** The references on the path to this schema. Following one of them again would not terminate. */
  readonly refs: ReadonlyArray<string>
  readonly depth: number
  readonly left: { nodes: number }
}

/** A schema and its position. */
export interface Flat {
  readonly schema: Json.JsonObject
  readonly reading: Reading
}

/** Resolves one level. Nested schemas stay unresolved. */
export const flat = (reading: Reading, json: Json.Json): Flat => {
  if (!Json.isObject(json)) return { schema: {}, reading }
  const { $ref, allOf, ...own } = json
  const ref = Json.text($ref)
  if (ref !== undefined && (reading.refs.includes(ref) || --reading.left.nodes < 0)) {
    return { schema: { ...own, type: "object" }, reading }
  }
  const within = ref === undefined ? reading : { ...reading, refs: [...reading.refs, ref] }
  const target = ref === undefined ? [] : [resolve(reading.root, ref)]
  return [...target, ...Json.array(allOf)]
    .map((part) => flat(within, part))
    .reduce(both, { schema: own, reading: within })
}

/** Merges two schemas as far as possible. The first one wins where they differ. */
export const both = (first: Flat, second: Flat): Flat => {
  const properties = {
    ...Json.object(second.schema["properties"]),
    ...Json.object(first.schema["properties"])
  }
  const required = [...new Set([...requiredBy(second.schema), ...requiredBy(first.schema)])]
  return {
    schema: {
      ...second.schema,
      ...first.schema,
      ...(Object.keys(properties).length === 0 ? {} : { properties }),
      ...(required.length === 0 ? {} : { required })
    },
    reading: { ...first.reading, refs: [...new Set([...first.reading.refs, ...second.reading.refs])] }
  }
}

export const requiredBy = (schema: Json.JsonObject): ReadonlyArray<Json.Json> =>
  Json.array(schema["required"])

const resolve = (root: Json.Json, ref: string): Json.Json => {
  const steps = ref.replace(/^#\/?/, "").split("/")
  return steps.reduce<Json.Json>((at, step) => {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~")
    return name === "" ? at : ((Json.isArray(at) ? at[Number(name)] : Json.object(at)?.[name]) ?? {})
  }, root)
}
