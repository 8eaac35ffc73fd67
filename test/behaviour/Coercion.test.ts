import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Tool } from "effect-agent"
import * as z from "zod"

const parameters = {
  type: "object",
  properties: { n: { type: "integer" }, note: { type: "string" } },
  required: ["n"]
}
const common = { name: "look", description: "Looks.", execute: () => Effect.void }
const params = Schema.Struct({ n: Schema.Finite, note: Schema.optionalKey(Schema.String) })

const tools = (coercion?: boolean): ReadonlyArray<Tool.Any["decode"]> => {
  const given = coercion === undefined ? {} : { coercion }
  return [
    Tool.make({ ...common, ...given, params }),
    Tool.make({ ...common, ...given, params: z.object({ n: z.number(), note: z.string().optional() }) }),
    Tool.fromJsonSchema({ ...common, ...given, parameters }),
    Tool.fromPromise({ ...common, ...given, parameters, execute: async () => "" })
  ].map(({ decode }) => decode)
}

describe("coercion of arguments", () => {
  it.effect("is on by default (row 159)", () =>
    Effect.gen(function* () {
      for (const decode of tools()) {
        assert.deepStrictEqual(yield* decode({ n: "41" }), { n: 41 })
        assert.deepStrictEqual(yield* decode({ n: 41, note: null }), { n: 41 })
      }
    })
  )

  it.effect(
    "can be switched off: what is right decodes, and anything else is a fault that names its place (row 159)",
    () =>
      Effect.gen(function* () {
        for (const decode of tools(false)) {
          assert.deepStrictEqual(yield* decode({ n: 41, note: "x" }), { n: 41, note: "x" })
          assert.include((yield* Effect.flip(decode({ n: "41" }))).detail, "n")
          assert.include((yield* Effect.flip(decode({ n: 41, note: null }))).detail, "note")
        }
      })
  )
})
