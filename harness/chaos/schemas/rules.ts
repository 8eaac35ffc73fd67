/**
 * What each vendor rejects in the schema of a tool, written from its error messages and docs and not from the code under test.
 */
import type { Schema } from "effect"

type Json = Schema.Json
type Node = { readonly [keyword: string]: Json }
/** What is wrong with a schema, by its place. */
export type Rule = (schema: Json | undefined) => ReadonlyArray<string>

const isNode = (json: Json | undefined): json is Node =>
  typeof json === "object" && json !== null && !Array.isArray(json)

const named = ["properties", "patternProperties", "$defs", "dependentSchemas"]
const listed = ["anyOf", "allOf", "oneOf", "prefixItems"]
const single = ["items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"]

/** Every schema in a schema, with its place. */
const all = (
  schema: Json | undefined,
  path = "$"
): ReadonlyArray<readonly [path: string, node: Json | undefined]> => [
  [path, schema],
  ...(isNode(schema)
    ? [
        ...named.flatMap((keyword) =>
          Object.entries(isNode(schema[keyword]) ? schema[keyword] : {}).flatMap(([name, inner]) =>
            all(inner, `${path}.${keyword}.${name}`)
          )
        ),
        ...listed.flatMap((keyword) => {
          const list = schema[keyword]
          return Array.isArray(list)
            ? list.flatMap((inner, at) => all(inner, `${path}.${keyword}.${at}`))
            : []
        }),
        ...single.flatMap((keyword) =>
          schema[keyword] === undefined || typeof schema[keyword] === "boolean"
            ? []
            : all(schema[keyword], `${path}.${keyword}`)
        )
      ]
    : [])
]

const each = (
  schema: Json | undefined,
  check: (node: Node) => ReadonlyArray<string>
): ReadonlyArray<string> =>
  all(schema).flatMap(([path, node]) =>
    isNode(node)
      ? check(node).map((fault) => `${path}: ${fault}`)
      : [`${path}: is no object but ${JSON.stringify(node)}`]
  )

const faults = (...found: ReadonlyArray<readonly [isFault: boolean, fault: string]>): ReadonlyArray<string> =>
  found.flatMap(([isFault, fault]) => (isFault ? [fault] : []))

const types = ["array", "boolean", "integer", "null", "number", "object", "string"]
const typesOf = ({ type }: Node): ReadonlyArray<Json> =>
  Array.isArray(type) ? type : type === undefined ? [] : [type]
const keysOf = (json: Json | undefined): ReadonlyArray<string> => (isNode(json) ? Object.keys(json) : [])
const itemsOf = (json: Json | undefined): ReadonlyArray<Json> => (Array.isArray(json) ? json : [])

/** "JSON schema is invalid. It must match JSON Schema draft 2020-12" */
const draft: Rule = (schema) =>
  each(schema, (node) => {
    const {
      $ref,
      enum: values,
      exclusiveMaximum,
      exclusiveMinimum,
      items,
      minLength,
      pattern,
      required,
      type
    } = node
    const names = Array.isArray(required) ? required : []
    const target = typeof $ref === "string" ? /^#\/\$defs\/([\w-]+)$/.exec($ref)?.[1] : undefined
    const defs = isNode(schema) ? keysOf(schema["$defs"]) : []
    return faults(
      [type !== undefined && !typesOf(node).every((one) => types.some((known) => known === one)), "type"],
      [Array.isArray(items), "items is a list"],
      [exclusiveMinimum !== undefined && typeof exclusiveMinimum !== "number", "exclusiveMinimum"],
      [exclusiveMaximum !== undefined && typeof exclusiveMaximum !== "number", "exclusiveMaximum"],
      [typeof minLength === "number" && minLength < 0, "minLength"],
      [pattern === "(", "pattern"],
      [
        required !== undefined && (!Array.isArray(required) || new Set(names).size < names.length),
        "required"
      ],
      [values !== undefined && (!Array.isArray(values) || values.length === 0), "enum"],
      [$ref !== undefined && (target === undefined || !defs.includes(target)), `$ref ${String($ref)}`],
      [
        listed.some((keyword) => node[keyword] !== undefined && itemsOf(node[keyword]).length === 0),
        "an empty list of schemas"
      ]
    )
  })

const top =
  (...forbidden: ReadonlyArray<string>): Rule =>
  (schema) =>
    isNode(schema)
      ? faults(
          [schema["type"] !== "object", "the top is no object"],
          ...forbidden.map((keyword) => [keyword in schema, `${keyword} at the top`] as const)
        )
      : ["the top is no schema"]

/** "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'" */
const names =
  (pattern: RegExp): Rule =>
  (schema) =>
    each(schema, ({ properties }) =>
      keysOf(properties).flatMap((name) => (pattern.test(name) ? [] : [`a property ${JSON.stringify(name)}`]))
    )

/** "property is not defined" */
const defined: Rule = (schema) =>
  each(schema, ({ properties, required }) =>
    itemsOf(required).flatMap((name) =>
      keysOf(properties).some((known) => known === name)
        ? []
        : [`required ${JSON.stringify(name)} is not defined`]
    )
  )

/** "array schema missing items" */
const withItems: Rule = (schema) =>
  each(schema, (node) =>
    faults([typesOf(node).includes("array") && !isNode(node["items"]), "array without items"])
  )

const among =
  (keywords: ReadonlyArray<string>): Rule =>
  (schema) =>
    each(schema, (node) =>
      Object.keys(node).flatMap((keyword) => (keywords.includes(keyword) ? [] : [keyword]))
    )

const together =
  (...rules: ReadonlyArray<Rule>): Rule =>
  (schema) =>
    rules.flatMap((rule) => rule(schema))

const combiners = ["anyOf", "oneOf", "allOf"]

export const anthropic = together(draft, top(...combiners), names(/^[a-zA-Z0-9_.-]{1,64}$/))

export const openAi = together(
  draft,
  top(...combiners, "enum", "not"),
  withItems,
  (schema) => each(schema, (node) => faults(["oneOf" in node, "oneOf"])),
  (schema) => faults([!isNode(schema) || !isNode(schema["properties"]), "object schema missing properties"])
)

/** The docs of `responseJsonSchema`, and of the names of parameters. */
export const gemini: Rule = (schema) =>
  schema === undefined
    ? []
    : together(
        draft,
        defined,
        top(...combiners),
        names(/^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/),
        among(
          "$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum anyOf oneOf properties additionalProperties required".split(
            " "
          )
        )
      )(schema)

/** The members of `Schema` of Gemini's API. "Proto field is not repeating", "When using any_of, it must be the only field set". */
export const openApi: Rule = together(
  defined,
  withItems,
  names(/^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/),
  top(...combiners),
  among(
    "type format title description nullable enum items maxItems minItems properties required minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering default minimum maximum".split(
      " "
    )
  ),
  (schema) =>
    each(schema, (node) =>
      faults(
        [Array.isArray(node["type"]), "a list of types"],
        ["anyOf" in node && Object.keys(node).length > 1, "anyOf beside other keywords"],
        [!("anyOf" in node) && typeof node["type"] !== "string", "no type"],
        [itemsOf(node["enum"]).some((value) => typeof value !== "string"), "a value of enum that is no text"],
        ["properties" in node && node["type"] !== "object", "properties of no object"]
      )
    )
)

/** "extraneous key [$schema] is not permitted" at the top, by Nova. */
export const nova = together(draft, anthropic, (schema) =>
  keysOf(schema).flatMap((keyword) =>
    ["type", "properties", "required", "$defs"].includes(keyword) ? [] : [`${keyword} at the top`]
  )
)
