import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Tool, ToolRegistry } from "effect-agent"
import type * as StandardSchema from "effect/StandardSchema"
import * as z from "zod"
import * as ToolParams from "../src/ToolParams.ts"

const told = (params: ToolParams.ParamsSchema<any>) => ToolParams.reader(params, undefined).parameters()
const decoded = (params: ToolParams.ParamsSchema<any>, input: Schema.Json) =>
  ToolParams.reader(params, undefined).decode(input)

const call = (params: Schema.Json) => ({
  type: "toolCall" as const,
  id: "call_1",
  name: "t",
  rawArguments: JSON.stringify(params),
  params
})

interface Tree {
  readonly size: number
  readonly within?: Tree
}
const Tree: Schema.Codec<Tree> = Schema.Struct({
  size: Schema.Finite,
  within: Schema.optionalKey(Schema.suspend((): Schema.Codec<Tree> => Tree))
})
class City extends Schema.Class<City>("my/City~of x")({ name: Schema.String, people: Schema.Finite }) {}
const city = {
  type: "object",
  properties: { name: { type: "string" }, people: { type: "number" } },
  required: ["name", "people"],
  additionalProperties: true
}

describe("ToolParams", () => {
  it("tells the fields of params that have a name of their own", () => {
    const Named = Schema.Struct(City.fields).annotate({ identifier: "City" })
    assert.deepStrictEqual(told(Named), city)
    assert.deepStrictEqual(told(City), city)
  })

  it("tells the fields of params that hold themselves, and what the reference within leads to", () => {
    const tree = {
      type: "object",
      properties: { size: { type: "number" }, within: { $ref: "#/$defs/Objects_" } },
      required: ["size"],
      additionalProperties: true
    }
    assert.deepStrictEqual(told(Tree), { ...tree, $defs: { Objects_: tree } })
  })

  it.effect("coerces the fields of such params too", () =>
    Effect.gen(function* () {
      assert.deepInclude(yield* decoded(City, { name: 7, people: "42" }), { name: "7", people: 42 })
      assert.deepStrictEqual(yield* decoded(Tree, { size: 1, within: { size: "2" } }), {
        size: 1,
        within: { size: 2 }
      })
    })
  )

  it.effect("what a validator throws, or is rejected with, is wrong with the arguments", () =>
    Effect.gen(function* () {
      const throws = z.object({ url: z.string().transform((text) => new URL(text).host) })
      const rejects: StandardSchema.StandardSchemaV1<unknown, unknown> = {
        "~standard": { version: 1, vendor: "ours", validate: () => Promise.reject(new Error("no such host")) }
      }
      assert.match((yield* Effect.flip(decoded(throws, { url: "x" }))).message, /Invalid URL/)
      assert.match((yield* Effect.flip(decoded(rejects, { url: "x" }))).message, /no such host/)
    })
  )

  it.effect("what a check throws is wrong with the arguments, and told by the registry", () =>
    Effect.gen(function* () {
      const tool = Tool.make({
        name: "t",
        description: "Takes a host.",
        params: Schema.Struct({
          url: Schema.String.check(Schema.makeFilter((text) => new URL(text).host !== ""))
        }),
        execute: () => Effect.succeed("done")
      })
      const registry = yield* ToolRegistry.make(tool)
      const error = yield* Effect.flip(registry.prepare(call({ url: "x" })))
      assert.strictEqual(error._tag, "InvalidArguments")
      assert.match(error.message, /Invalid URL/)
    })
  )

  it("tells of any object where JSON Schema has no words", () => {
    assert.deepStrictEqual(told(z.object({ when: z.coerce.date() })), { type: "object" })
  })

  it.effect("text that holds a list too deep to be walked is a text", () =>
    Effect.gen(function* () {
      const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`
      const params = Schema.Struct({ data: Schema.Array(Schema.Json) })
      assert.match((yield* Effect.flip(decoded(params, { data: deep }))).message, /Expected array/)
    })
  )
})
