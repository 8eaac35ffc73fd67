import { assert, describe, it } from "@effect/vitest"
import type { Schema } from "effect"
import { ReplyWriter } from "effect-agent/providers"
import type { Provider, RunOptions } from "effect-agent"
import { restorer } from "../../src/providers/internal/toolSchemas.ts"
import { type Endpoint, questionOf } from "./asked.ts"

type Json = Schema.Json

const models = {
  chat: "gpt-5.5",
  responses: "gpt-5.5",
  messages: "claude-sonnet-4-5",
  generateContent: "gemini-3-pro-preview",
  converse: "anthropic.claude-sonnet-4-5-20250929-v1:0"
} satisfies Record<Endpoint, string>
const endpoints = ["chat", "responses", "messages", "generateContent", "converse"] as const

interface Asked {
  readonly endpoint?: Endpoint
  readonly model?: string
  readonly schemas?: "openApi"
  readonly more?: Partial<Provider.ToolDefinition>
  readonly options?: RunOptions.ModelOptions
}

const ask = (
  parameters: Json,
  { endpoint = "responses", model = models[endpoint], more, options = {}, schemas }: Asked = {}
) => {
  const tool = { name: "t", description: "Does it.", parameters, ...more }
  const server = { id: "acme", protocol: "any", endpoint, schemas }
  return questionOf(server, { model, messages: [], tools: [tool], options })
}

const written = (parameters: Json, asked?: Asked): any => ask(parameters, asked).tools[0]?.parameters

const text = { type: "string" }
const object = (properties: { readonly [name: string]: Json }, more = {}) => ({
  type: "object",
  properties,
  ...more
})

describe("the schema of a tool", () => {
  it("is one object at the top, whose description says the alternatives", () => {
    const a = object({ kind: { const: "a" }, x: text, both: text }, { required: ["kind", "both"] })
    const b = object(
      { kind: { const: "b" }, y: text, both: { type: "integer" } },
      { required: ["kind", "y", "both"] }
    )
    for (const endpoint of endpoints)
      for (const keyword of ["anyOf", "oneOf"]) {
        const [tool] = ask(
          { [keyword]: [a, { $ref: "#/definitions/b" }], definitions: { b } },
          { endpoint }
        ).tools
        assert.deepStrictEqual(tool?.parameters, {
          type: "object",
          properties: {
            kind: { type: "string", enum: ["a", "b"] },
            x: text,
            both: { anyOf: [text, { type: "integer" }] },
            y: text
          },
          required: ["kind", "both"]
        })
        assert.strictEqual(
          tool?.description,
          'Does it.\n\nGive one of these: { kind: "a", both } or { kind: "b", y, both }.'
        )
      }
    const parts = {
      allOf: [object({ a: text }, { required: ["a"] }), object({ b: text }, { required: ["b"] })]
    }
    assert.deepStrictEqual(written(parts), object({ a: text, b: text }, { required: ["a", "b"] }))
    assert.deepStrictEqual(
      written({
        ...object({ a: text }),
        if: { required: ["a"] },
        // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
        then: object({ c: text }, { required: ["c"] })
      }),
      object({ a: text, c: text })
    )
  })

  it("has a type, properties and items where vendors insist", () => {
    for (const endpoint of endpoints) {
      for (const empty of [{}, { type: "object" }, { type: ["object", "null"] }, { description: "" }])
        assert.deepStrictEqual(written(empty, { endpoint }), object({}))
      const { properties } = written(
        object(
          { list: { type: "array" }, pair: { items: [text, text] }, n: { enum: [1, 2] } },
          { required: ["id"] }
        ),
        { endpoint }
      )
      assert.deepStrictEqual(properties.list, { type: "array", items: {} })
      assert.deepStrictEqual(properties.pair, { type: "array", prefixItems: [text, text], items: {} })
      assert.deepStrictEqual(properties.n, { type: "integer", enum: [1, 2] })
      assert.deepStrictEqual(properties.id, {})
    }
  })

  it("gives what is required, and declared by its name alone, the schema of other properties", () => {
    const record = { type: "object", additionalProperties: { type: "number" }, required: ["a", "b"] }
    const { properties } = written(record)
    assert.deepStrictEqual(properties, { a: { type: "number" }, b: { type: "number" } })
  })

  it("names the values of an enum in words where the vendor rejects an empty one", () => {
    const { properties } = written(object({ e: { enum: ["", "a"] } }), { schemas: "openApi" })
    assert.deepStrictEqual(Object.keys(properties.e).toSorted(), ["description", "type"])
    assert.include(properties.e.description, '"a"')
  })

  it("keeps recursion where the vendor takes references, and ends it elsewhere", () => {
    const node = object({ kids: { type: "array", items: { $ref: "#/definitions/node" } } })
    const tree = object({ tree: { $ref: "#/definitions/node" } }, { definitions: { node } })
    const kept = object({ kids: { type: "array", items: { $ref: "#/$defs/node" } } })
    for (const endpoint of ["chat", "responses", "messages", "converse"] as const)
      assert.deepStrictEqual(
        written(tree, { endpoint }),
        object({ tree: { $ref: "#/$defs/node" } }, { $defs: { node: kept } })
      )
    const level = (items: Json) => object({ kids: { type: "array", items } })
    assert.deepStrictEqual(
      written(tree, { endpoint: "generateContent" }),
      object({ tree: level(level(level({ type: "object" }))) })
    )
    // What leads nowhere is any value, and what never ends is cut.
    assert.deepStrictEqual(written(object({ a: { $ref: "https://x.example/y" } })), object({ a: {} }))
    assert.deepStrictEqual(written({ allOf: [{ $ref: "#" }], properties: { a: text } }), object({ a: text }))
    const wide = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`n${at}`, { $ref: "#" }]))
    assert.isBelow(JSON.stringify(written(object(wide), { endpoint: "generateContent" })).length, 300_000)
    let deep: Json = text
    for (let level = 0; level < 900; level++) deep = object({ next: deep })
    assert.isBelow(JSON.stringify(written(object({ deep }))).length, 3000)
  })

  it("has the words of one draft, and none that nobody knows (row 30)", () => {
    assert.deepStrictEqual(
      written({
        $schema: "http://json-schema.org/draft-04/schema#",
        $id: "x",
        type: "OBJECT",
        properties: {
          above: { type: "integer", minimum: 0, exclusiveMinimum: true },
          maybe: { type: "string", nullable: true },
          any: true,
          never: false,
          odd: { type: "string", minLength: -1, pattern: "(", required: true, encrypted: true, title: 5 }
        },
        required: ["any", "any"],
        dependencies: { above: ["maybe"] }
      }),
      {
        type: "object",
        properties: {
          above: { type: "integer", exclusiveMinimum: 0 },
          maybe: { type: ["string", "null"] },
          any: {},
          odd: text
        },
        required: ["any"],
        dependentRequired: { above: ["maybe"] }
      }
    )
  })

  it("is the part of OpenAPI that Gemini takes, where a gateway may have it behind (row 30)", () => {
    const schema = object(
      {
        k: { const: "x" },
        n: { enum: [1, 2] },
        m: { type: ["string", "integer", "null"] },
        map: { type: "object", additionalProperties: { type: "integer" }, patternProperties: { "^a": text } },
        u: { type: "object", properties: { a: text }, anyOf: [{ required: ["a"] }, object({ b: text })] },
        d: { description: "One.", oneOf: [text, { type: "null" }] },
        any: {}
      },
      { additionalProperties: false }
    )
    const openApi = object({
      k: { type: "string", enum: ["x"] },
      n: { type: "integer", description: 'JSON Schema: { "enum": [1,2] }' },
      m: { anyOf: [text, { type: "integer" }, { type: "null" }] },
      map: {
        type: "object",
        description:
          'JSON Schema: { "additionalProperties": {"type":"integer"}, "patternProperties": {"^a":{"type":"string"}} }'
      },
      u: { ...object({ a: text, b: text }), description: "Give one of these: { a } or { b }." },
      d: { type: "string", description: "One.", nullable: true },
      any: {
        anyOf: [
          text,
          { type: "number" },
          { type: "boolean" },
          { type: "object" },
          { type: "array", items: text }
        ]
      }
    })
    const behind: ReadonlyArray<Asked> = [
      { endpoint: "chat", schemas: "openApi" },
      { endpoint: "chat", model: "google/gemini-3-pro" },
      { endpoint: "messages", model: "kimi-k2.6" }
    ]
    for (const asked of behind) assert.deepStrictEqual(written(schema, asked), openApi)
    // Who asks for strict schemas knows that the server takes them.
    const strict = object({ a: text }, { required: ["a"], additionalProperties: false })
    assert.deepStrictEqual(written(strict, { ...behind[0], more: { strict: true } }), strict)
  })

  it("is the same object for the same tool", () => {
    const tool = { name: "t", description: "Does it.", parameters: { anyOf: [object({ a: text })] } }
    const server = { id: "acme", protocol: "any", endpoint: "messages" } as const
    const of = () =>
      questionOf(server, { model: models.messages, messages: [], tools: [tool], options: {} }).tools[0]
    assert.strictEqual(of(), of())
  })

  it("that takes no object leaves its tool out, and is reported", () => {
    const { adjusted, tools } = ask({ anyOf: [text, { type: "array" }] })
    assert.deepStrictEqual(tools, [])
    assert.deepInclude(adjusted[0], { option: "tools", asked: "t", sent: null })
    assert.include(adjusted[0]?.reason ?? "", "string or array")
  })

  it("is not asked for where its tool is left out", () => {
    const { adjusted, options } = ask({ type: "array" }, { options: { toolChoice: { name: "t" } } })
    assert.isUndefined(options.toolChoice)
    assert.deepStrictEqual(
      adjusted.map(({ option }) => option),
      ["tools", "toolChoice"]
    )
  })
})

describe("names of properties that a vendor rejects", () => {
  const filter = object({ "@odata.type": text }, { required: ["@odata.type"] })
  const parameters = object(
    {
      $top: { type: "integer" },
      top: { type: "integer" },
      "filters[]": { type: "array", items: { anyOf: [{ $ref: "#/$defs/filter" }, text] } },
      free: { type: "object" },
      "": { oneOf: [text, { type: "null" }] }
    },
    { required: ["$top"], $defs: { filter } }
  )

  it("are others for the vendor, which their descriptions say", () => {
    const { $defs, properties, required } = written(parameters, { endpoint: "messages" })
    assert.deepStrictEqual(Object.keys(properties), ["top_2", "top", "filters", "free", "p_"])
    assert.strictEqual(properties.top_2.description, 'The tool calls it "$top".')
    assert.deepStrictEqual(Object.keys($defs.filter.properties), ["odata_type"])
    assert.deepStrictEqual([required, $defs.filter.required], [["top_2"], ["odata_type"]])
    assert.deepStrictEqual(
      Object.keys(written(parameters, { endpoint: "responses" }).properties),
      Object.keys(parameters.properties)
    )
  })

  it("are those of the vendor in examples of the arguments too", () => {
    const inputExamples = [{ $top: 1, "filters[]": [{ "@odata.type": "x" }, "y"], free: { $top: 2 } }]
    const { tools } = ask(parameters, { endpoint: "messages", more: { inputExamples } })
    const example = { top_2: 1, filters: [{ odata_type: "x" }, "y"], free: { $top: 2 } }
    assert.include(tools[0]?.description ?? "", JSON.stringify(example))
  })

  it("are their own again in the arguments of calls", () => {
    const question = ask(parameters, { endpoint: "messages" })
    const called = (params: Json | string): Json => {
      const reply = new ReplyWriter.ReplyWriter(
        { provider: "acme", name: "any" },
        { model: "m", seed: "s", question, restore: restorer(question.tools) }
      )
      const call = reply.openCall("c", "t")
      for (const piece of typeof params === "string" ? [params] : JSON.stringify(params)) call.write(piece)
      reply.finish({ stopReason: "toolUse" })
      const [raw = ""] = reply
        .take()
        .flatMap((event) => (event._tag === "ToolCallEnd" ? [event.rawArguments] : []))
      return typeof params === "string" ? raw : JSON.parse(raw)
    }
    assert.deepStrictEqual(
      called({
        top_2: 1,
        top: 2,
        filters: [{ odata_type: "x" }, "y"],
        free: { odata_type: 1, filters: 2 },
        p_: "z"
      }),
      {
        $top: 1,
        top: 2,
        "filters[]": [{ "@odata.type": "x" }, "y"],
        free: { odata_type: 1, filters: 2 },
        "": "z"
      }
    )
    assert.deepStrictEqual(called({ $top: 1 }), { $top: 1 })
    assert.strictEqual(called('{"top_2":'), '{"top_2":')
  })
})
