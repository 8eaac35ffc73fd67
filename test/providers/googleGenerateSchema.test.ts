import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Tool, ToolRegistry } from "effect-agent"
import { toParameters } from "../../src/providers/gemini/schema.ts"

type Json = Schema.Json

/** What becomes of one member. */
const member = (schema: Json, rest: { readonly [keyword: string]: Json } = {}) =>
  Object(toParameters({ type: "object", properties: { it: schema }, ...rest })?.["properties"]).it

/** The keywords of Gemini's Schema. */
const known = new Set(
  (
    "type format title description nullable enum items maxItems minItems properties required minProperties " +
    "maxProperties minLength maxLength pattern example anyOf propertyOrdering default minimum maximum"
  ).split(" ")
)

/** All that Gemini would answer with 400. */
const refused = (schema: unknown, path = "$"): ReadonlyArray<string> => {
  const { anyOf, enum: values, items, properties, required = [], type, ...rest } = Object(schema)
  const names = Object.keys(properties ?? {})
  return [
    ...Object.keys(rest)
      .filter((keyword) => !known.has(keyword))
      .map((keyword) => `${path} ${keyword}`),
    ...(typeof type === "string" || anyOf !== undefined ? [] : [`${path} has no type`]),
    ...(type === "array" && items === undefined ? [`${path} has no items`] : []),
    ...(values !== undefined && type !== "string" ? [`${path} enum of ${type}`] : []),
    ...required
      .filter((name: string) => !names.includes(name))
      .map((name: string) => `${path} needs ${name}`),
    ...names.flatMap((name) => refused(properties[name], `${path}.${name}`)),
    ...(items === undefined ? [] : refused(items, `${path}[]`)),
    ...(anyOf ?? []).flatMap((variant: unknown, index: number) => refused(variant, `${path}|${index}`))
  ]
}

describe("googleSchema", () => {
  it("leaves what Gemini takes as it is", () => {
    const schema = {
      type: "object",
      properties: {
        city: { type: "string", description: "City name", minLength: 1 },
        unit: { type: "string", enum: ["c", "f"], default: "c" },
        days: { type: "array", items: { type: "integer", minimum: 1 }, maxItems: 7 }
      },
      required: ["city"]
    }
    assert.deepStrictEqual(toParameters(schema), schema)
  })

  it("has no parameters for a tool that takes none", () => {
    assert.isUndefined(toParameters({ type: "object", properties: {}, additionalProperties: false }))
    assert.isUndefined(toParameters({}))
    assert.isUndefined(toParameters({ type: "null" }))
  })

  it("leaves unknown keywords out, but no member of that name", () => {
    const schema = {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { $id: { type: "string", $comment: "x" }, const: { type: "boolean", examples: [true] } },
      additionalProperties: false,
      required: ["const", "gone"]
    }
    assert.deepStrictEqual(toParameters(schema), {
      type: "object",
      properties: { $id: { type: "string" }, const: { type: "boolean" } },
      required: ["const"]
    })
  })

  it("writes null as nullable", () => {
    const nullable = { type: "string", nullable: true }
    assert.deepStrictEqual(member({ type: ["string", "null"] }), nullable)
    assert.deepStrictEqual(member({ anyOf: [{ type: "string" }, { type: "null" }], description: "D" }), {
      ...nullable,
      description: "D"
    })
    assert.deepStrictEqual(member({ enum: ["a", null] }), { ...nullable, enum: ["a"] })
    assert.deepStrictEqual(member({ type: ["string", "integer", "null"] }), {
      anyOf: [{ type: "string" }, { type: "integer" }],
      nullable: true
    })
  })

  it("writes constants as a list of one, and tells those that are no text", () => {
    assert.deepStrictEqual(member({ const: "a" }), { type: "string", enum: ["a"] })
    assert.deepStrictEqual(member({ oneOf: [{ const: "a" }, { enum: ["b", ""] }] }), {
      type: "string",
      enum: ["a", "b"]
    })
    assert.deepStrictEqual(member({ enum: [1, 2], description: "How many" }), {
      type: "number",
      description: "How many (one of 1, 2)"
    })
  })

  it("tells what has no keyword", () => {
    assert.deepStrictEqual(member({ type: "integer", exclusiveMinimum: 0, multipleOf: 5 }), {
      type: "integer",
      description: "(more than 0; a multiple of 5)"
    })
    assert.deepStrictEqual(member({ type: "string", format: "uri" }), {
      type: "string",
      description: "(format uri)"
    })
    assert.deepStrictEqual(member({ type: "string", pattern: "^(?=a)" }), {
      type: "string",
      description: "(pattern ^(?=a))"
    })
    assert.deepStrictEqual(member({ type: "object", additionalProperties: { type: "number" } }), {
      type: "object",
      description: '(members of any name, each {"type":"number"})'
    })
  })

  it("writes references out, once", () => {
    const node = {
      type: "object",
      properties: { value: { type: "number" }, next: { anyOf: [{ $ref: "#/$defs/a~1b" }, { type: "null" }] } }
    }
    assert.deepStrictEqual(
      member({ $ref: "#/$defs/a~1b", description: "The first" }, { $defs: { "a/b": node } }),
      {
        type: "object",
        description: "The first",
        properties: { value: { type: "number" }, next: { type: "object", nullable: true } }
      }
    )
  })

  it("puts together what is said in parts", () => {
    assert.deepStrictEqual(
      member(
        {
          allOf: [
            { $ref: "#/definitions/Named" },
            { properties: { age: { type: "integer" } }, required: ["age"] }
          ]
        },
        {
          definitions: {
            Named: { type: "object", properties: { name: { type: "string" } }, required: ["name"] }
          }
        }
      ),
      {
        type: "object",
        properties: { age: { type: "integer" }, name: { type: "string" } },
        required: ["age", "name"]
      }
    )
  })

  it("takes a union for the parameters as one object", () => {
    const variant = (name: string) => ({
      type: "object",
      properties: { kind: { const: name }, [name]: { type: "string" } },
      required: ["kind", name]
    })
    const written = toParameters({ anyOf: [variant("url"), variant("path")] })
    assert.deepStrictEqual(Object.keys(Object(written?.["properties"])).sort(), ["kind", "path", "url"])
    assert.deepStrictEqual(written?.["required"], ["kind"])
  })

  it("leaves out conditions that no keyword can say", () => {
    const properties = { a: { type: "string" }, b: { type: "string" } }
    assert.deepStrictEqual(
      toParameters({ type: "object", properties, anyOf: [{ required: ["a"] }, { required: ["b"] }] }),
      { type: "object", properties }
    )
  })

  it("gives a type to everything", () => {
    for (const schema of [
      {},
      true,
      { type: "array" },
      { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], items: false },
      { items: {} },
      { required: ["a"] },
      { minimum: 3 },
      { $ref: "#/nowhere" },
      { $ref: "https://elsewhere.test/schema.json" },
      { anyOf: [] },
      { not: { type: "string" } },
      { type: "STRING" },
      { type: "integer", enum: [1] },
      {
        oneOf: [{ anyOf: [{ type: "string" }, { type: "object", properties: { a: {} } }] }, { type: "null" }]
      }
    ]) {
      assert.deepStrictEqual(refused(member(schema)), [], JSON.stringify(schema))
    }
  })

  it("stays small and shallow, however the definitions refer to one another", () => {
    const both = (name: string) => ({ type: "object", properties: { l: { $ref: name }, r: { $ref: name } } })
    const $defs = Object.fromEntries(
      Array.from({ length: 40 }, (_, index) => [`D${index}`, both(`#/$defs/D${index + 1}`)])
    )
    const tree = toParameters({ ...both("#/$defs/D0"), $defs })
    assert.isBelow(JSON.stringify(tree).length, 200_000)
    assert.deepStrictEqual(refused(tree), [])
    const deep = Array.from({ length: 500 }).reduce<Json>(
      (inner) => ({ type: "object", properties: { inner } }),
      { type: "string" }
    )
    assert.deepStrictEqual(refused(toParameters(deep)), [])
    const self = {
      type: "object",
      properties: { me: { $ref: "#" }, all: { type: "array", items: { $ref: "#" } } }
    }
    assert.deepStrictEqual(refused(toParameters(self)), [])
  })

  it.effect("takes what a Schema makes of itself", () =>
    Effect.gen(function* () {
      interface Tree {
        readonly name: string
        readonly children: ReadonlyArray<Tree>
      }
      const Tree = Schema.Struct({
        name: Schema.String,
        children: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree))
      })
      const params = Schema.Struct({
        tree: Tree,
        kind: Schema.Literals(["a", "b"]),
        id: Schema.NullOr(Schema.Int),
        either: Schema.Union([Schema.String, Schema.Struct({ n: Schema.Finite })]),
        pair: Schema.Tuple([Schema.String, Schema.Finite]),
        map: Schema.Record(Schema.String, Schema.Boolean),
        any: Schema.optionalKey(Schema.Json)
      })
      const grow = Tool.make({
        name: "grow",
        description: "Grows.",
        params,
        execute: () => Effect.succeed("")
      })
      const registry = yield* ToolRegistry.ToolRegistry.pipe(Effect.provide(ToolRegistry.layer(grow)))
      const [definition] = yield* registry.definitions
      const written = toParameters(definition?.parameters ?? {})
      assert.deepStrictEqual(refused(written), [])
      assert.deepStrictEqual(written?.["required"], ["tree", "kind", "id", "either", "pair", "map"])
    })
  )
})
