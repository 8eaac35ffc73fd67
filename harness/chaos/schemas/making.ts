/**
 * Schemas of tools as they come from anywhere, each with arguments that it takes: every draft, the words of OpenAPI, unknown words,
 * unions and references at every place, and names that vendors reject.
 */
import type { Schema } from "effect"
import type { Random } from "../Random.ts"

type Json = Schema.Json
type Node = { readonly [keyword: string]: Json }

/** A schema, and a value that it takes. */
export interface Made {
  readonly schema: Json
  readonly value: () => Json
}

/** A schema of an object with its definitions, and arguments that it takes. */
export const tool = (dice: Random): Made => new Maker(dice).tool()

class Maker {
  private readonly dice: Random
  private readonly definitions = new Map<string, Made>()
  private readonly place: string

  constructor(dice: Random) {
    this.dice = dice
    this.place = dice.pick("$defs", "definitions")
  }

  tool(): Made {
    const { schema, value } = this.root()
    const made = Array.from(this.definitions, ([name, definition]) => [name, definition.schema] as const)
    const extra = this.dice.once(3) ? { $schema: "http://json-schema.org/draft-07/schema#", $id: "x" } : {}
    const defs = made.length === 0 ? {} : { [this.place]: Object.fromEntries(made) }
    return { schema: { ...(isNode(schema) ? schema : {}), ...extra, ...defs }, value }
  }

  private root(): Made {
    const { dice } = this
    switch (dice.upTo(7)) {
      case 0:
        return this.union(() => this.object(2))
      case 1:
        return this.all(2)
      case 2:
        return this.reference(() => this.object(2))
      case 3: {
        const { schema, value } = this.object(2)
        const names = isNode(schema) && isNode(schema["properties"]) ? Object.keys(schema["properties"]) : []
        // No alternative demands more than the object does.
        const anyOf = names.slice(0, 2).map((name) => ({ properties: { [name]: {} } }))
        return {
          schema: { ...(isNode(schema) ? schema : {}), ...(anyOf.length === 0 ? {} : { anyOf }) },
          value
        }
      }
      default:
        return this.object(3)
    }
  }

  private any(depth: number): Made {
    const { dice } = this
    const leaf = depth <= 0
    const made = ((): Made => {
      switch (dice.upTo(leaf ? 6 : 14)) {
        case 0:
        case 1:
          return this.text()
        case 2:
          return this.number()
        case 3:
          return { schema: { type: "boolean" }, value: () => dice.once(2) }
        case 4:
          return this.constants()
        case 5:
          return { schema: dice.pick<Json>({}, true, { description: "Anything." }), value: () => this.free() }
        case 6:
          return this.several()
        case 7:
        case 8:
          return this.list(depth - 1)
        case 9:
          return this.union(() => this.any(depth - 1))
        case 10:
          return this.all(depth - 1)
        case 11:
        case 12:
          return this.reference(() => this.any(depth - 1))
        default:
          return this.object(depth - 1)
      }
    })()
    return this.dressed(made)
  }

  /** Words that say nothing of the value, or nothing at all. */
  private dressed({ schema, value }: Made): Made {
    const { dice } = this
    if (!isNode(schema) || !dice.once(3)) return { schema, value }
    const more = dice.pick<Node>(
      { description: 'It is "so".' },
      { title: "T", "x-order": 1 },
      { $comment: "c", markdownDescription: "m" },
      { title: 5, required: true },
      { minLength: -1, pattern: "(", format: 7 },
      { encrypted: true, enumTitles: ["a"] },
      { default: null, examples: "e" },
      { enum: [] },
      { type: "any" }
    )
    const own = Object.keys(schema)
    const added = Object.entries(more).filter(([keyword]) => !own.includes(keyword))
    return { schema: { ...Object.fromEntries(added), ...schema }, value }
  }

  private free(): Json {
    const { dice } = this
    return dice.pick<Json>("free", 7, true, null, ["a", 1], { k1: "v", k2: { k3: [null] } })
  }

  private text(): Made {
    const { dice } = this
    const schema = dice.pick<Node>(
      { type: "string" },
      { type: "string", minLength: 1, maxLength: 9 },
      { type: "string", format: dice.pick("uri", "date-time", "odd") },
      { type: "string", pattern: "^[a-z]+$" },
      { minLength: 2 }
    )
    return { schema, value: () => dice.pick("ab", "abc") }
  }

  private number(): Made {
    const { dice } = this
    const schema = dice.pick<Node>(
      { type: "integer", minimum: 0, exclusiveMinimum: true },
      { type: "number", exclusiveMaximum: 100 },
      { type: "integer", multipleOf: 1 },
      { type: "number" },
      { minimum: 1, maximum: 9 }
    )
    return { schema, value: () => dice.pick(1, 2, 3) }
  }

  private constants(): Made {
    const { dice } = this
    const values = dice.pick<ReadonlyArray<Json>>(["a", "b"], [1, 2], [1, "a", true], [{ k1: 1 }, [2]])
    const chosen = values[dice.upTo(values.length - 1)] ?? "a"
    return dice.once(3)
      ? { schema: { const: chosen }, value: () => chosen }
      : { schema: { enum: values }, value: () => values[dice.upTo(values.length - 1)] ?? "a" }
  }

  private several(): Made {
    const { dice } = this
    const schema = dice.pick<Node>(
      { type: ["string", "null"] },
      { type: ["string", "integer"], minLength: 1 },
      { type: "string", nullable: true },
      { type: ["array", "string"] }
    )
    return { schema, value: () => "ab" }
  }

  private list(depth: number): Made {
    const { dice } = this
    const [one, other] = [this.any(depth), this.any(depth)]
    const both = [one.schema, other.schema]
    switch (dice.upTo(4)) {
      case 0:
        return { schema: { type: "array" }, value: () => [this.free()] }
      case 1:
        return { schema: { type: "array", items: both }, value: () => [one.value(), other.value()] }
      case 2: {
        const schema = { type: "array", prefixItems: both, minItems: 2, items: false }
        return { schema, value: () => [one.value(), other.value()] }
      }
      default: {
        const schema = { ...(dice.once(3) ? {} : { type: "array" }), items: one.schema }
        return { schema, value: () => dice.some(2, one.value) }
      }
    }
  }

  private union(make: () => Made): Made {
    const { dice } = this
    const branches = [make(), make(), ...dice.some(1, make)]
    const keyword = dice.pick("anyOf", "oneOf")
    return {
      schema: {
        [keyword]: branches.map(({ schema }) => schema),
        ...(dice.once(3) ? { description: "One." } : {})
      },
      value: () => (branches[dice.upTo(branches.length - 1)] ?? make()).value()
    }
  }

  private all(depth: number): Made {
    const [one, other] = [this.object(depth, "a_"), this.object(depth, "b_")]
    const open = [one, other].map(({ schema }) =>
      without(schema, "additionalProperties", "patternProperties")
    )
    return { schema: { allOf: open }, value: () => ({ ...asNode(one.value()), ...asNode(other.value()) }) }
  }

  private reference(make: () => Made): Made {
    const { dice, definitions } = this
    const known = [...definitions.keys()]
    const name = `D${definitions.size}${dice.once(4) ? "/x y" : ""}`
    const $ref = (of: string) => `#/${this.place}/${of.replaceAll("~", "~0").replaceAll("/", "~1")}`
    if (known.length > 6) return { schema: { type: "string" }, value: () => "ab" }
    if (dice.once(3)) {
      // A node that holds nodes, and is held by what is made within it.
      const schema = {
        type: "object",
        properties: { v: { type: "string" }, kids: { type: "array", items: { $ref: $ref(name) } } },
        required: ["v"]
      }
      const node = (levels: number): Json => ({
        v: "ab",
        ...(levels > 0 ? { kids: [node(levels - 1)] } : {})
      })
      definitions.set(name, { schema, value: () => node(dice.upTo(5)) })
    } else {
      definitions.set(name, { schema: true, value: () => "ab" })
      definitions.set(name, make())
    }
    const { value } = definitions.get(name) ?? make()
    const schema: Node = { $ref: $ref(name), ...(dice.once(4) ? { description: "By reference." } : {}) }
    return { schema: dice.once(5) ? { allOf: [schema] } : schema, value }
  }

  private object(depth: number, prefix = ""): Made {
    const { dice } = this
    const names = [...new Set(dice.some(4, () => `${prefix}${this.name()}`))]
    const properties = names.map((name) => [name, this.any(depth)] as const)
    const required = names.filter(() => dice.once(2))
    const extra = dice.pick<Node>(
      {},
      {},
      { additionalProperties: false },
      { additionalProperties: true },
      { additionalProperties: { type: "string" } },
      { patternProperties: { "^x-": { type: "string" } }, additionalProperties: false },
      { dependencies: { k9: ["k8"] } },
      { propertyNames: { type: "string" } },
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      { if: { required: ["k7"] }, then: { properties: { k6: { type: "string" } } } }
    )
    return {
      schema: {
        ...(dice.once(4) ? {} : { type: dice.once(8) ? ["object", "null"] : "object" }),
        ...(names.length === 0 && dice.once(2)
          ? {}
          : { properties: Object.fromEntries(properties.map(([name, { schema }]) => [name, schema])) }),
        ...(required.length === 0 ? {} : { required }),
        ...extra
      },
      value: () =>
        Object.fromEntries(
          properties
            .filter(([name]) => required.includes(name) || dice.once(2))
            .map(([name, { value }]) => [name, value()])
        )
    }
  }

  private name(): string {
    const { dice } = this
    if (!dice.once(4)) return dice.pick("city", "days", "kind", "a", "b", "note", "from", "to")
    return dice.pick(
      "$top",
      "@odata.type",
      "filters[]",
      "filters",
      "a b",
      "",
      "x".repeat(80),
      "über",
      "x-y",
      "1st",
      "$ref",
      "type",
      "properties",
      "__proto__",
      "constructor"
    )
  }
}

const isNode = (json: Json | undefined): json is Node =>
  typeof json === "object" && json !== null && !Array.isArray(json)

const asNode = (json: Json): Node => (isNode(json) ? json : {})

const without = (json: Json, ...keywords: ReadonlyArray<string>): Json =>
  Object.fromEntries(Object.entries(asNode(json)).filter(([keyword]) => !keywords.includes(keyword)))
