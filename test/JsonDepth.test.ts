import { assert, describe, it } from "@effect/vitest"
import { ModelEvent } from "effect-agent"
import { parseShallow } from "../src/providers/internal/json.ts"
import * as Json from "../src/internal/json.ts"
import * as JsonSchema from "../src/internal/jsonSchema.ts"

const lists = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`
const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`
/** A list in an object in a list, and so on. */
const mixed = (depth: number) => {
  const isOdd = depth % 2 === 1
  const inner = isOdd ? "[1]" : "1"
  return `${'[{"a":'.repeat(Math.floor(depth / 2))}${inner}${"}]".repeat(Math.floor(depth / 2))}`
}
const texts = [lists, objects, mixed]

describe("JsonDepth", () => {
  it("takes 256 levels and refuses 257", () => {
    for (const text of texts) {
      assert.isFalse(Json.nestsTooDeep(text(255)))
      assert.isFalse(Json.nestsTooDeep(text(256)))
      assert.isTrue(Json.nestsTooDeep(text(257)))
      assert.isTrue(Json.nestsTooDeep(text(258)))
    }
  })

  it("counts levels, not brackets: values side by side, and brackets in texts, add none", () => {
    const many = Array.from({ length: 300 }, () => lists(255)).join(",")
    assert.isFalse(Json.nestsTooDeep(`[${many}]`))
    assert.isTrue(Json.nestsTooDeep(`[${many},${lists(256)}]`))
    const text = JSON.stringify(`"${lists(300)}\\`)
    assert.isFalse(Json.nestsTooDeep(text))
    assert.isFalse(Json.nestsTooDeep(`[${text},${lists(255)}]`))
    assert.isTrue(Json.nestsTooDeep(`[${text},${lists(256)}]`))
  })

  it("bounds arguments, params that are coerced and what providers send by the same 256", () => {
    for (const text of texts) {
      const whole: unknown = JSON.parse(text(256))
      assert.deepStrictEqual(ModelEvent.parseArguments(text(256)), whole)
      assert.deepStrictEqual(JsonSchema.coerce(["array", "object"], text(256)), whole)
      assert.deepStrictEqual(parseShallow(text(256)), whole)
      assert.isUndefined(ModelEvent.parseArguments(text(257)))
      assert.isUndefined(JsonSchema.coerce(["array", "object"], text(257)))
      assert.isUndefined(parseShallow(text(257)))
    }
  })
})
