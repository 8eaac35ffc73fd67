/**
 * Tools with the schemas that people and servers give them: what each vendor is sent, and what the tool gets of a call.
 */
import { Effect, Schema } from "effect"
import { Agent, Message, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { z } from "zod"
import { languages, sentTo } from "../schemas.ts"
import type { Report } from "./Report.ts"

const object = (properties: object, more: object = {}) => ({ type: "object", properties, ...more })
const text = { type: "string" }
const numbers = [{ type: "number" }, { type: "number" }]

/** The right: the names of the parameters that each vendor is told of. */
type Row = readonly [source: string, input: string, schema: any, right: string]

const servers: ReadonlyArray<Row> = [
  [
    "anomalyco/opencode#47543",
    "anyOf of what is required",
    object({ route: text, file: text }, { anyOf: [{ required: ["route"] }, { required: ["file"] }] }),
    "route, file"
  ],
  [
    "langchain-ai/langchain#39271",
    "oneOf objects",
    {
      type: "object",
      oneOf: [object({ a: text }, { required: ["a"] }), object({ b: text }, { required: ["b"] })]
    },
    "a, b"
  ],
  ["", "allOf", { type: "object", allOf: [{ properties: { a: text } }] }, "a"],
  ["", "oneOf without a type", { oneOf: [object({ a: text }), object({ b: text })] }, "a, b"],
  ["github/github-mcp-server#1548", "no properties", { type: "object" }, ""],
  ["", "nothing", {}, ""],
  ["bnb-chain/bnbchain-mcp#68", "a list without items", object({ l: { type: "array" } }), "l"],
  [
    "opencode-gemini-auth#57",
    "$schema, const, exclusiveMinimum, propertyNames",
    {
      $schema: "http://json-schema.org/draft-07/schema#",
      ...object({
        n: { type: "integer", exclusiveMinimum: 0 },
        k: { const: "x" },
        p: { type: "object", propertyNames: { pattern: "^a" }, additionalProperties: text }
      })
    },
    "n, k, p"
  ],
  [
    "",
    "a list of types",
    object({ n: { type: ["string", "null"] }, m: { type: ["string", "integer"] } }),
    "n, m"
  ],
  [
    "",
    "enums of numbers and of any kind",
    object({ n: { type: "integer", enum: [1, 2, 3] }, m: { enum: [1, "a", null, true] } }),
    "n, m"
  ],
  ["", "a tuple of draft 7", object({ p: { type: "array", items: numbers } }), "p"],
  ["", "a tuple of today", object({ p: { type: "array", prefixItems: numbers, items: false } }), "p"],
  [
    "",
    "a recursive definition",
    object(
      { tree: { $ref: "#/$defs/Node" } },
      { $defs: { Node: object({ v: text, kids: { type: "array", items: { $ref: "#/$defs/Node" } } }) } }
    ),
    "tree"
  ],
  ["", "itself in itself", object({ v: text, kids: { type: "array", items: { $ref: "#" } } }), "v, kids"],
  [
    "NousResearch/hermes-agent#63441",
    "names with $ and spaces",
    object({ $filter: text, "a b": text, "x-y.z": text }),
    "$filter, a b, x-y.z | filter, a_b, x_y_z | filter, a_b, x-y.z"
  ],
  [
    "anthropics/claude-code#79418",
    "names with @ and brackets",
    object({ "@odata.type": text, "filters[]": text }),
    "@odata.type, filters[] | odata_type, filters"
  ],
  ["", "true and false for schemas", object({ any: true, none: false }), "any"],
  ["", "nullable", object({ n: { type: "string", nullable: true } }), "n"],
  ["", "a format", object({ n: { type: "string", format: "uri" } }), "n"]
]

const Kinds = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("a"), a: Schema.String }),
  Schema.Struct({ kind: Schema.Literal("b"), b: Schema.Finite })
])
interface Tree {
  readonly v: string
  readonly kids: ReadonlyArray<Tree>
}
const Tree: Schema.Codec<Tree> = Schema.Struct({
  v: Schema.String,
  kids: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree))
})
const zodTree: z.ZodType = z.object({
  v: z.string(),
  get kids() {
    return z.array(zodTree)
  }
})
class Named extends Schema.Class<Named>("Named")({ a: Schema.String }) {}

/** The right: the names of the parameters, and what the tool gets of the arguments. */
type Params = readonly [source: string, input: string, params: any, args: Schema.Json, right: string]

const own: ReadonlyArray<Params> = [
  [
    "mastra-ai/mastra#17020",
    "a union of structs",
    Kinds,
    { kind: "a", a: "x" },
    'kind, a, b; {"kind":"a","a":"x"}'
  ],
  [
    "",
    "a tagged union",
    Schema.Union([
      Schema.TaggedStruct("A", { x: Schema.String }),
      Schema.TaggedStruct("B", { y: Schema.Finite })
    ]),
    { _tag: "A", x: "1" },
    '_tag, x, y; {"_tag":"A","x":"1"}'
  ],
  ["", "a class", Named, { a: "x" }, 'a; {"a":"x"}'],
  [
    "",
    "a struct with a check",
    Schema.Struct({ a: Schema.Finite, b: Schema.Finite }).check(Schema.makeFilter(({ a, b }) => a < b)),
    { a: 1, b: 2 },
    'a, b; {"a":1,"b":2}'
  ],
  [
    "",
    "null for an optional text or null",
    Schema.Struct({ a: Schema.optional(Schema.NullOr(Schema.String)) }),
    { a: null },
    'a; {"a":null}'
  ],
  [
    "",
    "null for an optional text",
    Schema.Struct({ a: Schema.optionalKey(Schema.String) }),
    { a: null },
    "a; {}"
  ],
  ["", "a record", Schema.Record(Schema.String, Schema.String), { a: "x" }, '; {"a":"x"}'],
  [
    "",
    "a text",
    Schema.String,
    {},
    'Tool "t": `params` is a schema of string, but models call tools with an object. Put it into one, such as Schema.Struct({ value: … }).'
  ],
  [
    "",
    "a list",
    Schema.Array(Schema.String),
    {},
    'Tool "t": `params` is a schema of arrays, but models call tools with an object. Put it into one, such as Schema.Struct({ value: … }).'
  ],
  [
    "",
    "a tuple",
    Schema.Struct({ p: Schema.Tuple([Schema.Finite, Schema.Finite]) }),
    { p: [1, 2] },
    'p; {"p":[1,2]}'
  ],
  ["", "literal numbers", Schema.Struct({ n: Schema.Literals([1, 2, 3]) }), { n: 2 }, 'n; {"n":2}'],
  [
    "",
    "a literal number as text",
    Schema.Struct({ n: Schema.Literals([1, 2, 3]) }),
    { n: "2" },
    'n; {"n":2}'
  ],
  [
    "",
    "a date",
    Schema.Struct({ d: Schema.Date }),
    { d: "2026-11-26T10:00:00Z" },
    'd; {"d":"2026-11-26T10:00:00.000Z"}'
  ],
  [
    "",
    "an option that is not there",
    Schema.Struct({ o: Schema.Option(Schema.String) }),
    {},
    'o; Invalid arguments for tool "t": Missing key\n  at ["o"]'
  ],
  [
    "",
    "an option",
    Schema.Struct({ o: Schema.Option(Schema.String) }),
    { o: "x" },
    'o; Invalid arguments for tool "t": Expected { readonly "_tag": "Some", ... } | { readonly "_tag": "None", ... }\n  at ["o"]'
  ],
  [
    "",
    "an address",
    Schema.Struct({ u: Schema.URL }),
    { u: "https://example.com" },
    'u; {"u":"https://example.com/"}'
  ],
  [
    "",
    "a duration in words",
    Schema.Struct({ u: Schema.Duration }),
    { u: "5 seconds" },
    'u; Invalid arguments for tool "t": Expected { readonly "_tag": "Infinity", ... } | { readonly "_tag": "NegativeInfinity", ... } | { readonly "_tag": "Nanos", ... } | { readonly "_tag": "Millis", ... }\n  at ["u"]'
  ],
  [
    "",
    "a large integer and a date",
    Schema.Struct({ n: Schema.BigInt, d: Schema.Date, o: Schema.optional(Schema.NullOr(Schema.String)) }),
    { n: "7", d: "2026-11-26" },
    'n, d, o; {"n":"7n","d":"2026-11-26T00:00:00.000Z"}'
  ],
  [
    "",
    "a tree",
    Schema.Struct({ tree: Tree }),
    { tree: { v: "a", kids: [] } },
    'tree; {"tree":{"v":"a","kids":[]}}'
  ],
  [
    "triggerdotdev/trigger.dev#4939",
    "zod: a date",
    z.object({ d: z.date(), q: z.string() }),
    { d: "2026-11-26", q: "x" },
    'd, q; {"d":"2026-11-26T00:00:00.000Z","q":"x"}'
  ],
  [
    "",
    "zod: a coerced date",
    z.object({ d: z.coerce.date(), q: z.string() }),
    { d: "2026-11-26", q: "x" },
    'd, q; {"d":"2026-11-26T00:00:00.000Z","q":"x"}'
  ],
  [
    "",
    "zod: a large integer",
    z.object({ d: z.bigint(), q: z.string() }),
    { d: 1, q: "x" },
    'd, q; {"d":"1n","q":"x"}'
  ],
  [
    "mastra-ai/mastra#16377",
    "zod: a transformation",
    z.object({ d: z.string().transform((s) => s.length) }),
    { d: "abc" },
    'd; {"d":3}'
  ],
  ["", "zod: a default", z.object({ d: z.string().default("q") }), {}, 'd; {"d":"q"}'],
  [
    "langchain-ai/langchainjs#8367",
    "zod: preprocessed",
    z.object({ d: z.preprocess((x) => String(x), z.string()) }),
    { d: 5 },
    'd; {"d":"5"}'
  ],
  [
    "",
    "zod: a set",
    z.object({ s: z.set(z.string()), q: z.string() }),
    { s: ["a"], q: "x" },
    's, q; {"s":["a"],"q":"x"}'
  ],
  [
    "",
    "zod: a union",
    z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]),
    { b: "x" },
    'a, b; {"b":"x"}'
  ],
  [
    "",
    "zod: a union by a kind",
    z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("a"), a: z.string() }),
      z.object({ kind: z.literal("b"), b: z.number() })
    ]),
    { kind: "b", b: 1 },
    'kind, a, b; {"kind":"b","b":1}'
  ],
  [
    "",
    "zod: an intersection",
    z.intersection(z.object({ a: z.string() }), z.object({ b: z.string() })),
    { a: "x", b: "y" },
    'a, b; {"a":"x","b":"y"}'
  ],
  [
    "",
    "zod: a custom check",
    z.object({ f: z.custom<string>(() => true), q: z.string() }),
    { f: 1, q: "x" },
    'f, q; {"f":1,"q":"x"}'
  ],
  [
    "",
    "zod: null for an optional text or null",
    z.object({ a: z.string().nullable().optional() }),
    { a: null },
    'a; {"a":null}'
  ],
  [
    "",
    "zod: a record",
    z.object({ r: z.record(z.string(), z.string()) }),
    { r: { a: "x" } },
    'r; {"r":{"a":"x"}}'
  ],
  [
    "",
    "zod: a tree",
    z.object({ tree: zodTree }),
    { tree: { v: "a", kids: [] } },
    'tree; {"tree":{"v":"a","kids":[]}}'
  ]
]

/** The names of the parameters in every language, or what is wrong with the schema there. */
const offered = (parameters: any): string => {
  const tool = { name: "t", description: "T.", parameters }
  const told = languages.map((language) => {
    const asked = sentTo(language, tool)
    if (typeof asked === "string" || asked.question.tools.length === 0) return `${language.name}: left out`
    // Gemini is given no schema for no parameters.
    const sent: any = asked.sent ?? { type: "object", properties: {} }
    const faults = language.rule(sent)
    return faults.length === 0
      ? Object.keys(sent.properties).join(", ")
      : `${language.name}: ${faults.join()}`
  })
  return [...new Set(told)].join(" | ")
}

const called = (params: any, args: Schema.Json) =>
  Effect.gen(function* () {
    let got: unknown = "not run"
    const execute = (given: unknown) =>
      Effect.sync(() => {
        got = given
        return "ok"
      })
    const tool = yield* Effect.sync(() => Tool.make({ name: "t", description: "T.", params, execute }))
    const agent = yield* Agent.make({ model: "m", tools: [tool] })
    const { newMessages } = yield* agent.prompt("x")
    const faults = newMessages.flatMap((message) =>
      message.role === "toolResult" && message.isError ? [Message.textOf(message)] : []
    )
    return `${offered(tool.parameters)}; ${faults.length > 0 ? faults.join() : shown(got)}`
  }).pipe(
    Effect.scoped,
    Effect.provide(
      ScriptedProvider.layer([ScriptedProvider.toolCall("t", args), ScriptedProvider.text("x")])
    ),
    Effect.catch(({ message }) => Effect.succeed(message)),
    // Tool.make throws for params that no model can be shown.
    Effect.catchDefect((defect) => Effect.succeed(defect instanceof Error ? defect.message : String(defect)))
  )

const shown = (got: unknown): string =>
  JSON.stringify(got, (_, value) =>
    typeof value === "bigint" ? `${value}n` : value instanceof Set ? [...value] : value
  )

export const reports: ReadonlyArray<Report> = [
  ...servers.map(([source, input, schema, right]) => ({
    source,
    input: `Schema: ${input}`,
    seen: Effect.sync(() => offered(schema)),
    right
  })),
  ...own.map(([source, input, params, args, right]) => ({
    source,
    input: `Params: ${input}`,
    seen: called(params, args),
    right
  }))
]
