import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Tool, ToolRegistry } from "effect-agent"
import type * as StandardSchema from "effect/StandardSchema"
import * as z from "zod"
import * as ToolParams from "../src/internal/params.ts"
import { longest, tries } from "./tools/stretch.ts"

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

  it("tells what stands in JSON for a type that it has not, and takes it", async () => {
    const params = z.object({
      when: z.date(),
      until: z.coerce.date().optional(),
      count: z.bigint(),
      tags: z.array(z.set(z.string())),
      by: z.map(z.string(), z.number()),
      own: z.custom<string>(() => true),
      name: z.string()
    })
    assert.deepInclude(told(params), {
      type: "object",
      properties: {
        when: { type: "string", format: "date-time" },
        until: { type: "string", format: "date-time" },
        count: { type: "integer" },
        tags: { type: "array", items: { type: "array", items: {} } },
        by: { type: "object" },
        own: {},
        name: { type: "string" }
      },
      required: ["when", "count", "tags", "by", "own", "name"]
    })
    const tool = Tool.make({ name: "t", description: "T.", params, execute: () => Effect.succeed("") })
    const input = {
      when: "2026-11-26T10:00:00Z",
      count: 7,
      tags: [["a", "a", "b"]],
      by: { a: 1 },
      own: "o",
      name: "n"
    }
    assert.deepStrictEqual(await Effect.runPromise(tool.decode(input)), {
      when: new Date("2026-11-26T10:00:00Z"),
      count: 7n,
      tags: [new Set(["a", "b"])],
      by: new Map([["a", 1]]),
      own: "o",
      name: "n"
    })
    const wrong = await Effect.runPromise(Effect.flip(tool.decode({ ...input, when: "soon" })))
    assert.include(wrong.detail, "when")
  })

  it("tells of a union of objects as an object of one of them", () => {
    const branches = (params: ToolParams.ParamsSchema<any>) => {
      const { anyOf, oneOf, type }: any = told(params)
      return [type, (anyOf ?? oneOf).map(({ properties }: any) => Object.keys(properties).join())]
    }
    const expected = ["object", ["kind,a", "kind,b"]]
    const a = Schema.Struct({ kind: Schema.Literal("a"), a: Schema.String })
    const b = Schema.Struct({ kind: Schema.Literal("b"), b: Schema.Finite })
    assert.deepStrictEqual(branches(Schema.Union([a, b])), expected)
    assert.deepStrictEqual(branches(Schema.suspend(() => Schema.Union([a, b]))), expected)
    assert.deepStrictEqual(
      branches(Schema.TaggedUnion({ A: { x: Schema.String }, B: { y: Schema.Finite } })),
      ["object", ["_tag,x", "_tag,y"]]
    )
    const zod = z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("a"), a: z.string() }),
      z.object({ kind: z.literal("b"), b: z.number() })
    ])
    assert.deepStrictEqual(branches(zod), expected)
  })

  it("refuses what is no object, and what does not say its JSON Schema", () => {
    const make = (params: ToolParams.ParamsSchema<any>, more = {}) => {
      try {
        Tool.make({ name: "t", description: "T.", params, execute: () => Effect.succeed(""), ...more })
        return ""
      } catch (error) {
        return error instanceof Tool.InvalidTool ? error.detail : String(error)
      }
    }
    assert.include(make(Schema.Date), "schema of string")
    assert.include(make(z.union([z.string(), z.date()])), "schema of string")
    const mute: ToolParams.ParamsSchema<any> = {
      "~standard": { version: 1, vendor: "mine", validate: (value) => ({ value }) }
    }
    assert.include(make(mute), "does not say its JSON Schema")
    assert.strictEqual(make(mute, { parameters: { type: "object" } }), "")
  })

  it.effect("text that holds a list too deep to be walked is a text", () =>
    Effect.gen(function* () {
      const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`
      const params = Schema.Struct({ data: Schema.Array(Schema.Json) })
      assert.match((yield* Effect.flip(decoded(params, { data: deep }))).message, /Expected array/)
    })
  )

  describe("that do not decode as they are", () => {
    it.live(
      "leave time to others, however many they are, and name the first fault",
      () =>
        Effect.gen(function* () {
          const Params = Schema.Struct({ list: Schema.Array(Schema.Finite) })
          const numbers = Array.from({ length: 30_000 }, (_, index) => index)
          const write = (prefix: string) => ({ list: numbers.map((each) => `${prefix}${each}`) })
          const coerced = yield* longest(decoded(Params, write("")))
          assert.deepStrictEqual(coerced.result, { list: numbers })
          const failed = yield* longest(Effect.flip(decoded(Params, write("x"))))
          assert.match(failed.result.detail, /^Expected number.*\n.*at \["list"\]\[0\]$/)
          assert.isBelow(Math.max(coerced.stretch, failed.stretch), 100)
        }),
      tries
    )

    const isLong = Schema.makeFilter((text: string) => text.length > 3, { expected: "a long text" })
    const Visit = Schema.Struct({
      count: Schema.Finite,
      when: Schema.DateFromString,
      note: Schema.optionalKey(Schema.String),
      maybe: Schema.optionalKey(Schema.NullOr(Schema.String)),
      stops: Schema.optionalKey(Schema.Array(Schema.Struct({ days: Schema.optionalKey(Schema.Finite) })))
    })
    const when = "2026-01-02T00:00:00.000Z"
    const zodVisit = z.object({
      count: z.number(),
      when: z.string().transform((text) => new Date(text)),
      note: z.string().optional(),
      maybe: z.string().nullish(),
      stops: z.array(z.object({ days: z.number().optional() })).optional()
    })

    it.effect("are decoded again once they are coerced, by Effect's schemas and by zod's", () =>
      Effect.gen(function* () {
        for (const schema of [Visit, zodVisit]) {
          assert.deepStrictEqual(yield* decoded(schema, { count: "41", when, stops: [{ days: "2" }] }), {
            count: 41,
            when: new Date(when),
            stops: [{ days: 2 }]
          })
        }
      })
    )

    it.effect("are refused where they do not decode once they are coerced, with what is wrong then", () =>
      Effect.gen(function* () {
        const effect = Schema.Struct({ count: Schema.Finite, note: Schema.String.check(isLong) })
        const zod = z.object({
          count: z.number(),
          note: z.string().refine((text) => text.length > 3, "Expected a long text")
        })
        for (const schema of [effect, zod]) {
          const { message } = yield* Effect.flip(decoded(schema, { count: "41", note: 7 }))
          assert.match(message, /a long text/)
          assert.notMatch(message, /count/)
        }
      })
    )

    it.effect("lose an optional null, within objects and lists too, but not one that is taken", () =>
      Effect.gen(function* () {
        const input = { count: 1, when, note: null, maybe: null, stops: [{ days: null }, { days: 2 }] }
        const visit = { count: 1, when: new Date(when), maybe: null, stops: [{}, { days: 2 }] }
        for (const schema of [Visit, zodVisit]) assert.deepStrictEqual(yield* decoded(schema, input), visit)
        assert.deepStrictEqual(
          yield* ToolParams.fromJsonSchema(told(zodVisit)).decode({ ...input, note: null }),
          { ...visit, when }
        )
      })
    )

    it.effect("keep a null that is required: it is wrong", () =>
      Effect.gen(function* () {
        for (const schema of [Visit, zodVisit]) {
          assert.match((yield* Effect.flip(decoded(schema, { count: null, when }))).message, /count/)
        }
      })
    )

    it.effect("have the default of a zod field in place of null", () =>
      Effect.gen(function* () {
        const schema = z.object({ unit: z.enum(["C", "F"]).default("C") })
        assert.deepStrictEqual(yield* decoded(schema, { unit: null }), { unit: "C" })
      })
    )

    it.effect("are coerced by the `parameters` beside a Standard Schema that cannot describe itself", () =>
      Effect.gen(function* () {
        const validated: Array<unknown> = []
        const mute: StandardSchema.StandardSchemaV1<unknown, unknown> = {
          "~standard": {
            version: 1,
            vendor: "ours",
            validate: (value) => {
              validated.push(value)
              const isTaken = JSON.stringify(value) === '{"count":41}'
              return isTaken ? { value: "taken" } : { issues: [{ message: "no" }] }
            }
          }
        }
        const parameters = {
          type: "object",
          properties: { count: { type: "integer" }, note: { type: "string" } }
        }
        const input = { count: "41", note: null }
        assert.strictEqual(yield* ToolParams.reader(mute, parameters).decode(input), "taken")
        assert.deepStrictEqual(validated, [input, { count: 41 }])
        assert.strictEqual((yield* Effect.flip(decoded(mute, input))).message, "no")
      })
    )

    it.effect("are not validated again when there is nothing to coerce", () =>
      Effect.gen(function* () {
        let asked = 0
        const parameters = { type: "object", properties: { name: { type: "string" } } }
        const schema: StandardSchema.StandardSchemaV1<unknown, unknown> = {
          "~standard": {
            version: 1,
            vendor: "ours",
            validate: () => {
              asked++
              return Promise.resolve({ issues: [{ message: "taken by another" }] })
            }
          }
        }
        const { message } = yield* Effect.flip(ToolParams.reader(schema, parameters).decode({ name: "x" }))
        assert.match(message, /taken by another/)
        assert.strictEqual(asked, 1)
      })
    )

    it.effect("are told as they were when nothing makes them fit", () =>
      Effect.gen(function* () {
        for (const schema of [Visit, zodVisit]) {
          const { message } = yield* Effect.flip(decoded(schema, { count: "many", when, note: 7 }))
          assert.match(message, /count/)
          assert.match(message, /note/)
        }
      })
    )
  })

  it.effect("params that decode as they are stay as they are", () =>
    Effect.gen(function* () {
      const either = Schema.Struct({ value: Schema.Unknown, text: Schema.optional(Schema.String) })
      assert.deepStrictEqual(yield* decoded(either, { value: "41" }), { value: "41" })
      const lenient = z.object({
        count: z.preprocess((value) => (value === null ? "none" : `${typeof value}`), z.string()).optional(),
        size: z.coerce.number().optional()
      })
      assert.deepStrictEqual(yield* decoded(lenient, { count: null, size: null }), { count: "none", size: 0 })
      assert.deepStrictEqual(yield* decoded(lenient, { count: 7, size: "41" }), { count: "number", size: 41 })
    })
  )
})
