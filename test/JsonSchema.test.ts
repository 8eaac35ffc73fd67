import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as JsonSchema from "../src/JsonSchema.ts"

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
})
