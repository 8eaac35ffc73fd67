/**
 * Writes a JSON Schema in the form that a vendor takes. A part that the form has no words for becomes open, and its description
 * has it, so that the model still reads it. The reader of the value checks it by the original schema.
 */
import * as Json from "./json.ts"
import * as JsonSchema from "../../internal/jsonSchema.ts"
import { both, impliedType, kindOf, only, readSchema, texts, typesOf, withTypes } from "./schemaKeywords.ts"

type Node = Json.JsonObject

/**
 * The part of JSON Schema that a vendor takes.
 *
 * @since 0.2.0
 * @category models
 */
export interface Form {
  /** Whether it takes a keyword, without those of references. */
  readonly takes: (keyword: string, value: Json.Json) => boolean
  /** The keywords that it takes at the top of the params of a tool (default: all). */
  readonly top?: ReadonlySet<string>
  /** The names of properties that it takes (default: all). */
  readonly names?: RegExp
  /** Whether it takes references, and so recursion. Otherwise they are replaced, and recursion ends after a few levels. */
  readonly refers: boolean
  /**
   * Whether each schema has one type, or is a union and nothing else. `"openApi"`: it then takes values of an `enum` only if they
   * are texts, and `nullable` in place of the type `null` (default: neither).
   */
  readonly plain?: "openApi" | "jsonSchema"
  /** Whether objects have no properties beside those of the schema (default: `false`). */
  readonly closes?: boolean
}

/** A place in the schema: how deep it lies, and the references on the way. */
interface Place {
  readonly depth: number
  readonly refs: ReadonlyArray<string>
}

const top: Place = { depth: 0, refs: [] }
const below = ({ depth, refs }: Place): Place => ({ depth: depth + 1, refs })

/** Deeper schemas are open: no honest tool nests them so, and vendors limit the depth. */
const maxDepth = 32
/** The schemas of one tool. Further ones are open, so that references to references do not multiply. */
const maxNodes = 4000
/** So often a reference is replaced within itself. */
const unrolled = 2
/** Longest description of a schema, and of one keyword in it. */
const maxDescription = 4000
const maxNote = 240

/** The keywords that a description has if the form does not take them. Others mean nothing to a model. */
const noted: ReadonlySet<string> = new Set([
  "default",
  "examples",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "pattern",
  "format",
  "minItems",
  "maxItems",
  "uniqueItems",
  "prefixItems",
  "dependentRequired",
  "additionalProperties",
  "patternProperties",
  "propertyNames",
  "contains",
  "not"
])

/** The params of a tool in the form of a vendor. */
interface Written {
  readonly schema: Node
  /** The alternatives in words, for the description of the tool. Empty if there are none. */
  readonly note: string
  /** The names that properties have for the vendor, by their own. */
  readonly names: ReadonlyMap<string, string>
}

/** Writes the schema of the params of a tool, which takes objects. */
export const ofParams = (schema: Json.Json, form: Form): Written => {
  const writer = new Writer(schema, form)
  return { ...writer.params(), names: writer.names }
}

/** Writes the schema of any value. */
export const ofValue = (schema: Json.Json, form: Form): Node => new Writer(schema, form).value()

class Writer {
  readonly names = new Map<string, string>()
  private readonly root: Json.Json
  private readonly form: Form
  /** The names of the schemas that others refer to, by their references. */
  private readonly definitions = new Map<string, string>()
  private taken: Set<string> | undefined = undefined
  private nodes = 0

  constructor(root: Json.Json, form: Form) {
    this.root = root
    this.form = form
  }

  value(): Node {
    return this.withDefinitions(this.schema(this.root, top))
  }

  params(): { readonly schema: Node; readonly note: string } {
    const [whole, place] = this.whole(this.root, top)
    const { enum: _values, const: _constant, not: _not, ...node } = whole
    const [object, note] = this.folded(node, place)
    const {
      description = "",
      properties = {},
      required = [],
      ...rest
    } = this.object({ ...object, type: "object" }, place)
    const { top: taken } = this.form
    const kept = Object.entries(rest).filter(([keyword]) => taken?.has(keyword) !== false)
    const schema = {
      ...Object.fromEntries(kept),
      ...(description === "" || taken?.has("description") === false ? {} : { description }),
      type: "object",
      properties,
      ...(Json.array(required).length === 0 ? {} : { required })
    }
    return { schema: this.withDefinitions(schema), note }
  }

  /** A definition may refer to further ones, which then come after it. */
  private withDefinitions(schema: Node): Node {
    const written: Record<string, Node> = {}
    for (const [$ref, name] of this.definitions)
      written[name] = this.schema(JsonSchema.follow(this.root, { $ref }), top)
    return this.definitions.size === 0 ? schema : { ...schema, $defs: written }
  }

  // ───────────────────────── One schema

  private schema(raw: Json.Json | undefined, place: Place): Node {
    const node = this.form.refers ? asReference(readSchema(raw)) : {}
    if (node["$ref"] !== undefined) return this.reference(node, place)
    const [whole, at] = this.whole(raw, place)
    return this.form.plain === undefined ? this.kept(whole, at) : this.plain(whole, at)
  }

  /** A schema with those that it refers to and those of `allOf` in it, and the place of what it holds. */
  private whole(raw: Json.Json | undefined, place: Place): readonly [Node, Place] {
    this.nodes++
    if (place.depth > maxDepth || this.nodes > maxNodes) return [{}, place]
    const { $ref, allOf, ...own } = readSchema(raw)
    let [node, at] = typeof $ref === "string" ? this.entered($ref, own, place) : [own, place]
    for (const part of Json.array(allOf)) {
      const [other, inner] = this.whole(part, { ...below(place), refs: at.refs })
      node = both(node, other)
      at = { ...at, refs: inner.refs }
    }
    return [node, at]
  }

  private entered($ref: string, own: Node, place: Place): readonly [Node, Place] {
    const target = JsonSchema.follow(this.root, { $ref })
    const isDeep = place.refs.filter((ref) => ref === $ref).length > unrolled
    if (isDeep) return [both(own, withTypes({}, typesOf(readSchema(target)))), place]
    const [node, { refs }] = this.whole(target, { depth: place.depth + 1, refs: [...place.refs, $ref] })
    return [both(own, node), { ...place, refs }]
  }

  private reference({ $ref = "", ...own }: Node, place: Place): Node {
    const target = JsonSchema.follow(this.root, { $ref })
    const siblings = Object.keys(own).length === 0 ? {} : this.members(own, place)
    if (!Json.isObject(target)) return siblings
    return { $ref: `#/$defs/${this.definition(String($ref))}`, ...siblings }
  }

  /** The name of a definition, which `withDefinitions` writes. */
  private definition(ref: string): string {
    const last = /[\w-]{1,60}$/.exec(ref)?.[0] ?? "root"
    const name = this.definitions.get(ref) ?? unique(last, new Set(this.definitions.values()))
    this.definitions.set(ref, name)
    return name
  }

  // ───────────────────────── Members

  /** A schema of a vendor that takes most of JSON Schema. */
  private kept(node: Node, place: Place): Node {
    const isSaid = "type" in node || "anyOf" in node
    const types = new Set(valuesOf(node)?.map(typeOf))
    const type = isSaid || types.size > 1 ? undefined : ([...types][0] ?? impliedType(node))
    return this.object(type === undefined ? node : { type, ...node }, place)
  }

  /** A schema whose lists have items and whose objects have the properties that they require, as vendors insist. */
  private object(node: Node, place: Place): Node {
    const types = typesOf(node)
    const required = types.includes("object") ? texts(node["required"]) : []
    const properties = Json.object(node["properties"]) ?? {}
    const other = Json.object(node["additionalProperties"]) ?? {}
    const missing = required.filter((name) => !Object.hasOwn(properties, name) || properties[name] === false)
    return this.members(
      {
        ...node,
        ...(missing.length === 0
          ? {}
          : { properties: { ...properties, ...Object.fromEntries(missing.map((name) => [name, other])) } }),
        ...(types.includes("array") && !Json.isObject(node["items"]) ? { items: this.itemsOf(node) } : {})
      },
      place
    )
  }

  /** The items of a list whose schema has none, or has one for each place where the vendor takes one for all. */
  private itemsOf({ prefixItems }: Node): Node {
    const places = this.form.takes("prefixItems", []) ? [] : Json.array(prefixItems)
    const [first] = places
    return Json.isObject(first) && places.length === 1 ? first : places.length === 0 ? {} : { anyOf: places }
  }

  private members(node: Node, place: Place): Node {
    const dropped: Array<readonly [string, Json.Json]> = []
    const members = Object.entries(node).flatMap(
      ([keyword, value]): ReadonlyArray<readonly [string, Json.Json]> => {
        if (keyword === "description") return []
        if (!this.form.takes(keyword, value)) {
          dropped.push([keyword, value])
          return []
        }
        const written = this.member(keyword, value, place)
        return written === undefined ? [] : [[keyword, written]]
      }
    )
    const description = described(node["description"], dropped)
    const isOpen =
      this.form.closes === true && typesOf(node).includes("object") && node["additionalProperties"] !== false
    return {
      ...Object.fromEntries(members),
      ...(description === "" ? {} : { description }),
      ...(isOpen && !Json.isObject(node["additionalProperties"]) ? { additionalProperties: false } : {})
    }
  }

  /** The value of a keyword, `undefined` for one that means nothing. */
  private member(keyword: string, value: Json.Json, place: Place): Json.Json | undefined {
    const inner = below(place)
    switch (kindOf(keyword)) {
      case "schema":
        if (typeof value === "boolean")
          return keyword === "additionalProperties" && !value ? false : undefined
        return this.schema(value, inner)
      case "schemas":
        return Json.array(value).map((schema) => this.schema(schema, inner))
      case "named schemas":
        return this.named(keyword, Json.object(value) ?? {}, inner)
      default:
        return keyword === "required" ? this.namesOf(texts(value)) : value
    }
  }

  private named(keyword: string, schemas: Node, place: Place): Node {
    const isNamed = keyword === "properties"
    return Object.fromEntries(
      Object.entries(schemas)
        .filter(([, schema]) => schema !== false)
        .map(([own, schema]) => {
          const name = isNamed ? this.nameOf(own) : own
          const written = this.schema(schema, place)
          return [name, name === own ? written : alias(written, own)]
        })
    )
  }

  private namesOf(names: ReadonlyArray<string>): ReadonlyArray<string> | undefined {
    return names.length === 0 ? undefined : names.map((name) => this.nameOf(name))
  }

  private nameOf(name: string): string {
    const { names } = this.form
    if (names === undefined || names.test(name)) return name
    const known = this.names.get(name)
    if (known !== undefined) return known
    this.taken ??= namesIn(this.root)
    const plain = name
      .replace(/\W+/g, "_")
      .replace(/^_+|_+$/g, "")
      .slice(0, 56)
    const made = unique(names.test(plain) ? plain : `p_${plain}`, this.taken)
    this.taken.add(made)
    this.names.set(name, made)
    return made
  }

  // ───────────────────────── Plain schemas

  /** A schema with one type, or a union and nothing else. */
  private plain(node: Node, place: Place, isNullable = false): Node {
    if (node["anyOf"] !== undefined) return this.union(node, place, isNullable)
    const { const: constant, enum: values = constant === undefined ? undefined : [constant], ...rest } = node
    if (values !== undefined) return this.enumeration(Json.array(values), rest, place, isNullable)
    const types = typesOf(node)
    const others = types.filter((type) => type !== "null")
    const nullable = isNullable || types.includes("null")
    const [type = impliedType(node)] = others
    if (others.length > 1) {
      const anyOf = others.map((one) => only(one, Json.without(rest, "description")))
      return this.union({ ...annotations(rest), anyOf }, place, nullable)
    }
    if (type === undefined)
      return types.length > 0 ? { ...annotations(node), type: "null" } : this.anything(node)
    return this.orNull(this.object(only(type, rest), place), nullable)
  }

  private union({ anyOf, ...node }: Node, place: Place, isNullable: boolean): Node {
    const all = Json.array(anyOf).map((schema) => this.whole(schema, below(place)))
    const branches = all.filter(([branch]) => !isNull(branch))
    const nullable = isNullable || branches.length < all.length
    const [first, ...others] = branches
    if (first === undefined) return this.plain(node, place, nullable)
    const own = Json.without(node, ...annotating)
    const notes = annotations(node)
    if (others.length === 0) return this.plain(both(both(notes, own), first[0]), first[1], nullable)
    const isOne =
      Object.keys(own).length > 0 && [own, ...branches.map(([branch]) => branch)].every(isObjectLike)
    if (isOne) {
      const [object, note] = this.folded({ ...node, anyOf: anyOf ?? [] }, place)
      const text = [Json.text(notes["description"]), note]
        .filter((line) => line !== undefined && line !== "")
        .join("\n")
      return this.plain({ ...object, type: "object", description: text }, place, nullable)
    }
    const written = branches.flatMap(([branch, at]) => {
      const { anyOf: inner, ...made } = this.plain(both(own, branch), at)
      return inner === undefined ? [made] : Json.array(inner).filter(Json.isObject)
    })
    return this.alone(written, notes, nullable)
  }

  /** A union and nothing else, whose description is that of each part without one. */
  private alone(parts: ReadonlyArray<Node>, { description }: Node, isNullable: boolean): Node {
    const described = parts.map((part) => (description === undefined ? part : { description, ...part }))
    const each = [...new Map(described.map((part) => [JSON.stringify(part), part])).values()]
    const [only] = each
    if (only !== undefined && each.length === 1) return this.orNull(only, isNullable)
    const hasNull = each.some(isNull)
    return { anyOf: isNullable && !hasNull ? [...each, { type: "null" }] : each }
  }

  private orNull(node: Node, isNullable: boolean): Node {
    if (!isNullable) return node
    return this.form.plain === "openApi"
      ? { ...node, nullable: true }
      : { ...node, type: [...typesOf(node), "null"] }
  }

  /** Values of one type as an `enum`, of several types as a union. */
  private enumeration(values: ReadonlyArray<Json.Json>, node: Node, place: Place, isNullable: boolean): Node {
    const byType = new Map<string, Array<Json.Json>>()
    for (const value of values) {
      const type = typeOf(value)
      byType.set(type, [...(byType.get(type) ?? []), value])
    }
    const isMixed = byType.delete("null") || isNullable
    const parts = Array.from(byType, ([type, these]) => this.constants(type, these, node, place))
    const [first] = parts
    if (first === undefined) return { ...annotations(node), type: "null" }
    return parts.length === 1
      ? this.orNull({ ...annotations(node), ...first }, isMixed)
      : this.alone(parts, node, isMixed)
  }

  private constants(type: string, values: ReadonlyArray<Json.Json>, node: Node, place: Place): Node {
    const isText = type === "string"
    const isNumber = type === "integer" || type === "number"
    // Gemini: "enum[0]: cannot be empty".
    const hasEmpty = this.form.plain !== undefined && values.includes("")
    const isTaken = isText ? !hasEmpty : this.form.plain === "jsonSchema" && isNumber
    if (isTaken) return { type, enum: values }
    const own = this.object(only(type, Json.without(node, ...annotating)), place)
    const note = described(node["description"], [["enum", values]])
    return { ...own, ...(note === "" ? {} : { description: note }) }
  }

  /** OpenAPI has no schema of any value, and vendors that have it as theirs insist on a type. */
  private anything(node: Node): Node {
    if (this.form.plain !== "openApi") return this.members(Json.without(node, "not"), top)
    return this.alone(anyValue, annotations(node), false)
  }

  // ───────────────────────── Unions of objects as one object

  /** An object with the properties of all alternatives, which requires what each of them does, and what it does not say. */
  private folded(node: Node, place: Place): readonly [Node, string] {
    const { anyOf, dependentSchemas = {}, else: otherwise, if: _condition, then, ...base } = node
    const inner = below(place)
    const alternatives = Json.array(anyOf)
      .map((schema) => this.alternative(schema, inner))
      .filter(isObjectLike)
    const optional = [then, otherwise, ...Object.values(Json.object(dependentSchemas) ?? {})]
      .filter(Json.isObject)
      .map((schema) => this.alternative(schema, inner))
      .filter(isObjectLike)
    if (alternatives.length + optional.length === 0) return [base, ""]
    const all = [...alternatives, ...optional]
    const names = [...new Set(all.flatMap((one) => Object.keys(Json.object(one["properties"]) ?? {})))]
    const added = Object.fromEntries(names.map((name) => [name, oneOf(all, name)]))
    const { properties, required, additionalProperties, ...rest } = base
    const shared = alternatives.map((one) => texts(one["required"]))
    const always = (shared[0] ?? []).filter((name) => shared.every((list) => list.includes(name)))
    const isClosed = additionalProperties === false && alternatives.length === 0
    return [
      {
        ...both({ ...rest, properties: properties ?? {} }, { properties: added }),
        required: [...new Set([...texts(required), ...always])],
        ...(isClosed || Json.isObject(additionalProperties)
          ? { additionalProperties: additionalProperties ?? true }
          : {})
      },
      choice(alternatives)
    ]
  }

  private alternative(schema: Json.Json, place: Place): Node {
    const [node, at] = this.whole(schema, place)
    return node["anyOf"] === undefined ? node : this.folded(node, at)[0]
  }
}

// ───────────────────────── Parts

const annotating = ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"]

const annotations = (node: Node): Node =>
  Object.fromEntries(
    Object.entries(node).filter(([keyword]) => keyword === "title" || keyword === "description")
  )

/** `allOf` with one reference is how older drafts add a description to it. */
const asReference = (node: Node): Node => {
  const { allOf, ...rest } = node
  const [part, ...others] = Json.array(allOf)
  const isAlone = Object.keys(rest).every((keyword) => annotating.includes(keyword))
  return Json.isObject(part) && typeof part["$ref"] === "string" && others.length === 0 && isAlone
    ? { ...rest, $ref: part["$ref"] }
    : allOf === undefined
      ? node
      : {}
}

const isNull = (node: Node): boolean =>
  node["const"] === null || (typesOf(node).join() === "null" && node["anyOf"] === undefined)

const isObjectLike = (node: Node): boolean => {
  const types = typesOf(node)
  const isOther = types.length > 0 && !types.includes("object")
  return !isOther && !("enum" in node) && !("const" in node) && (impliedType(node) ?? "object") === "object"
}

const typeOf = (value: Json.Json): string => {
  if (value === null) return "null"
  if (Json.isArray(value)) return "array"
  return typeof value === "number" ? (Number.isInteger(value) ? "integer" : "number") : typeof value
}

const anyValue: ReadonlyArray<Node> = [
  { type: "string" },
  { type: "number" },
  { type: "boolean" },
  { type: "object" },
  { type: "array", items: { type: "string" } }
]

/** The schema of a property that several alternatives have. */
const oneOf = (alternatives: ReadonlyArray<Node>, name: string): Node => {
  const found = alternatives.flatMap((one) => {
    const properties = Json.object(one["properties"]) ?? {}
    return Object.hasOwn(properties, name) ? [readSchema(properties[name])] : []
  })
  const each = [...new Map(found.map((schema) => [JSON.stringify(schema), schema])).values()]
  const [first] = each
  if (first !== undefined && each.length === 1) return first
  const constants = each.map(valuesOf)
  if (!constants.every((values) => values !== undefined)) return { anyOf: each }
  const types = [...new Set(each.flatMap(typesOf))]
  return withTypes({ enum: [...new Set(constants.flat())] }, types.length === 1 ? types : [])
}

/** The values of a schema of a few values alone. */
const valuesOf = ({ const: constant, enum: values }: Node): ReadonlyArray<Json.Json> | undefined =>
  constant === undefined ? (Json.isArray(values) ? values : undefined) : [constant]

/** The alternatives in words. */
const choice = (alternatives: ReadonlyArray<Node>): string => {
  const each = [...new Set(alternatives.map(sketch))].filter((text) => text !== "{}")
  if (each.length < 2) return ""
  const shown = each.slice(0, 24).join(" or ")
  return cut(`Give one of these: ${shown}${each.length > 24 ? " or others" : ""}.`, 2000)
}

const sketch = (node: Node): string => {
  const properties = Json.object(node["properties"]) ?? {}
  const required = texts(node["required"])
  const names = required.length === 0 ? Object.keys(properties).slice(0, 12) : required
  const members = names.map((name) => {
    const values = Object.hasOwn(properties, name) ? valuesOf(readSchema(properties[name])) : undefined
    return values?.length === 1 ? `${name}: ${JSON.stringify(values[0])}` : name
  })
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`
}

const alias = (written: Node, own: string): Node => {
  const note = `The tool calls it ${JSON.stringify(cut(own, 200))}.`
  const { anyOf, description, ...rest } = written
  const text = [Json.text(description), note].filter((line) => line !== undefined).join("\n")
  if (anyOf === undefined || description !== undefined) return { ...written, description: text }
  const [first, ...others] = Json.array(anyOf)
  return { ...rest, anyOf: [Json.isObject(first) ? alias(first, own) : (first ?? {}), ...others] }
}

const described = (
  description: Json.Json | undefined,
  dropped: ReadonlyArray<readonly [string, Json.Json]>
): string => {
  const notes = dropped.flatMap(([keyword, value]) => {
    const text = `${JSON.stringify(keyword)}: ${JSON.stringify(value)}`
    const isSaid = (keyword === "enum" || noted.has(keyword)) && typeof value !== "boolean"
    return isSaid && text.length <= maxNote && !text.includes('"$ref"') ? [text] : []
  })
  const own = cut(Json.text(description) ?? "", maxDescription)
  return notes.length === 0 ? own : `${own === "" ? "" : `${own}\n`}JSON Schema: { ${notes.join(", ")} }`
}

const cut = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length)} … (cut)`

const unique = (name: string, taken: ReadonlySet<string>): string => {
  if (!taken.has(name)) return name
  for (let count = 2; ; count++) if (!taken.has(`${name}_${count}`)) return `${name}_${count}`
}

/** The names of all properties in a schema. */
const namesIn = (root: Json.Json): Set<string> => {
  const names = new Set<string>()
  const rest: Array<Json.Json> = [root]
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    for (const [keyword, value] of Object.entries(next ?? {})) {
      if (keyword === "properties" && Json.isObject(value))
        for (const name of Object.keys(value)) names.add(name)
      if (typeof value === "object") rest.push(value)
    }
  }
  return names
}
