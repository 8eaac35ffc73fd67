import { assert, describe, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import * as JsonSchema from "../src/internal/jsonSchema.ts"

const decoded = (schema: Schema.Json, value: Schema.Json) =>
  Result.getOrElse(JsonSchema.decode(schema, value), (found) => found.join("\n"))

/** What is wrong with a text that may have so many characters. */
const faults = (text: string, size: { readonly minLength?: number; readonly maxLength?: number }) => {
  const decoded = JsonSchema.decode({ type: "string", ...size }, text)
  return Result.isSuccess(decoded) ? [] : decoded.failure
}

describe("JsonSchema", () => {
  it("counts the characters of a text, of which an emoji is one, and half of one too", () => {
    assert.deepStrictEqual(faults("a😀b", { minLength: 3, maxLength: 3 }), [])
    assert.deepStrictEqual(faults("\ud83d😀\ude00", { minLength: 3, maxLength: 3 }), [])
    assert.match(faults("a😀b", { minLength: 4 }).join(), /must have at least 4 characters/)
    assert.match(faults("a😀b", { maxLength: 2 }).join(), /must have at most 2 characters/)
  })

  it("reads a scalar of another type as one that fits, and nothing is one of them", () => {
    assert.strictEqual(decoded({ type: "null" }, "null"), null)
    assert.strictEqual(decoded({ type: ["null", "integer"] }, "7"), 7)
    assert.strictEqual(decoded({ type: [] }, "7"), "7")
    assert.match(String(decoded({ type: ["null", "integer"] }, "x")), /must be null or integer, got "x"/)
  })

  it("lets properties be that nobody named, unless it is said that there are none", () => {
    const properties = { a: { type: "integer" } }
    const closed = { type: "object", properties, additionalProperties: false }
    assert.deepStrictEqual(decoded({ type: "object", properties }, { a: "1", b: "2" }), { a: 1, b: "2" })
    assert.match(String(decoded(closed, { b: "2" })), /b is not a known property/)
    assert.deepStrictEqual(decoded({ ...closed, patternProperties: {} }, { b: "2" }), { b: "2" })
    const counts = { type: "object", additionalProperties: { type: "integer" } }
    assert.deepStrictEqual(decoded(counts, { b: "2" }), { b: 2 })
  })

  it("follows a reference to a reference, whatever its name is, and into lists", () => {
    const $defs = {
      first: { $ref: "#/$defs/with%20space~1slash" },
      "with space/slash": { $ref: "#/$defs/kinds/anyOf/1" },
      kinds: { anyOf: [{ type: "string" }, { type: "boolean" }] },
      "100%": { type: "boolean" },
      none: false
    }
    assert.strictEqual(decoded({ $defs, $ref: "#/$defs/first" }, "true"), true)
    assert.strictEqual(decoded({ $defs, $ref: "#/$defs/100%" }, "true"), true)
    assert.match(String(decoded({ $defs, $ref: "#/$defs/first" }, "x")), /must be boolean/)
    assert.match(String(decoded({ $defs, $ref: "#/$defs/none" }, "x")), /is not allowed/)
  })

  it("takes anything where references lead nowhere, or in a circle", () => {
    const $defs = { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }
    assert.strictEqual(decoded({ $defs, $ref: "#/$defs/a" }, "x"), "x")
    assert.strictEqual(decoded({ $defs, $ref: "#/$defs/c" }, "x"), "x")
  })

  it("prefers the alternative that takes a value as it is, also of objects and lists", () => {
    const of = (type: string) => ({ type: "object", properties: { id: { type } } })
    const listOf = (type: string) => ({ type: "array", items: { type } })
    assert.deepStrictEqual(decoded({ anyOf: [of("string"), of("number")] }, { id: 7 }), { id: 7 })
    assert.deepStrictEqual(decoded({ anyOf: [of("string"), of("boolean")] }, { id: 7 }), { id: "7" })
    assert.deepStrictEqual(decoded({ oneOf: [listOf("string"), listOf("number")] }, [7]), [7])
  })

  it("refuses by `not` what is so as it is, not what could be read so", () => {
    assert.strictEqual(decoded({ not: { type: "string" } }, 7), 7)
    assert.match(String(decoded({ not: { type: "string" } }, "x")), /not allowed/)
  })

  it("leaves out an optional property that is null, unless null is one of its values", () => {
    const schema = {
      type: "object",
      properties: {
        text: { type: "string" },
        size: { enum: ["s", "m"] },
        unit: { const: "px" },
        either: { anyOf: [{ type: "string" }, { type: "integer" }] },
        never: false
      }
    }
    const values = { text: null, size: null, unit: null, either: null, never: null }
    assert.deepStrictEqual(decoded(schema, values), {})
    assert.deepStrictEqual(decoded(schema, { ...values, text: "x", size: "m" }), { text: "x", size: "m" })
  })

  it("keeps null where a property may be null or anything, and where no property is named", () => {
    const $defs = { nothing: { type: ["string", "null"] } }
    const properties = {
      nullable: { type: ["string", "null"] },
      either: { anyOf: [{ type: "string" }, { type: "null" }] },
      one: { enum: ["s", null] },
      nothing: { const: null },
      referred: { $ref: "#/$defs/nothing" },
      all: { allOf: [{ $ref: "#/$defs/nothing" }] },
      untyped: {},
      anything: true,
      notText: { not: { type: "string" } }
    }
    const nulls = Object.fromEntries(Object.keys(properties).map((key) => [key, null]))
    assert.deepStrictEqual(decoded({ $defs, type: "object", properties }, nulls), nulls)
    assert.deepStrictEqual(decoded({ type: "object" }, { other: null }), { other: null })
    const closed = { type: "object", properties: {}, additionalProperties: false }
    assert.match(String(decoded(closed, { other: null })), /other is not a known property/)
  })

  it("refuses null in records and lists, whose members are not optional", () => {
    const counts = { type: "object", additionalProperties: { type: "integer" } }
    assert.match(String(decoded(counts, { a: null })), /a must be integer, got null/)
    assert.match(String(decoded({ type: "array", items: { type: "string" } }, ["a", null])), /\[1\] must be/)
  })

  it("leaves out optional nulls within objects, lists, alternatives and references", () => {
    const $defs = {
      node: {
        type: "object",
        properties: { note: { type: "string" }, next: { $ref: "#/$defs/node" } }
      }
    }
    const kind = (name: string) => ({
      type: "object",
      properties: { kind: { const: name }, note: { type: "string" } },
      required: ["kind"]
    })
    const schema = {
      $defs,
      type: "object",
      properties: {
        inner: { type: "object", properties: { deep: { $ref: "#/$defs/node" } } },
        list: { type: "array", items: { $ref: "#/$defs/node" } },
        tuple: { type: "array", prefixItems: [{ $ref: "#/$defs/node" }] },
        kinds: { type: "array", items: { oneOf: [kind("a"), kind("b")] } },
        record: { type: "object", additionalProperties: { $ref: "#/$defs/node" } }
      }
    }
    const node = { note: null, next: { note: "x", next: null } }
    const left = { next: { note: "x" } }
    assert.deepStrictEqual(
      decoded(schema, {
        inner: { deep: node },
        list: [node, { note: null }],
        tuple: [node],
        kinds: [{ kind: "b", note: null }],
        record: { a: node }
      }),
      {
        inner: { deep: left },
        list: [left, {}],
        tuple: [left],
        kinds: [{ kind: "b" }],
        record: { a: left }
      }
    )
  })

  it("refuses null for a property that is required, also where another part of the schema requires it", () => {
    const properties = { a: { type: "string" } }
    const required = ["a"]
    assert.match(String(decoded({ type: "object", properties, required }, { a: null })), /a must be string/)
    for (const schema of [
      { required, allOf: [{ properties }] },
      { required, anyOf: [{ properties }] },
      { allOf: [{ required }, { properties }] },
      { allOf: [{ properties }, { required }] },
      { properties, anyOf: [{ required }, { required: ["b"] }] }
    ]) {
      assert.match(String(decoded({ type: "object", ...schema }, { a: null })), /a is missing/)
      assert.deepStrictEqual(decoded({ type: "object", ...schema }, { a: "x" }), { a: "x" })
    }
    const either = { type: "object", properties, anyOf: [{ required }, { required: ["b"] }] }
    assert.deepStrictEqual(decoded(either, { a: null, b: 1 }), { b: 1 })
  })

  it("prefers the alternative that takes null to one that leaves it out", () => {
    const of = (type: string) => ({ type: "object", properties: { id: { type } } })
    assert.deepStrictEqual(decoded({ anyOf: [of("string"), of("null")] }, { id: null }), { id: null })
  })
})
