/**
 * The schemas of tools in the form that each vendor takes, and the arguments of their calls in the form that the tools take.
 *
 * A schema is written once for each tool and form. A tool that no form can say is left out of the request.
 */
import { memoize } from "effect/Function"
import type { Changes } from "../Protocol.ts"
import { kindOfJson } from "../../internal/invalidTool.ts"
import * as Json from "./json.ts"
import * as JsonSchema from "../../internal/jsonSchema.ts"
import { parseArguments } from "../../ModelEvent.ts"
import type { ToolDefinition } from "../../Provider.ts"
import { readSchema } from "./schemaKeywords.ts"
import { type Form, ofParams, ofValue } from "./schemaWriter.ts"
import type { ModelOptions } from "../../RunOptions.ts"

// ───────────────────────── OpenAI

// Output schemas in the form that OpenAI accepts: https://platform.openai.com/docs/guides/structured-outputs

/** The form of schemas that OpenAI takes without enforcing them: all but `oneOf`, which no form has. */
export const openAi: Form = { takes: () => true, refers: true }

/** The schema of an output, and whether OpenAI enforces it, computed once for each output. */
export const format = /* @__PURE__ */ memoize(({ name, schema }: NonNullable<ModelOptions["output"]>) => {
  const taken = ofValue(schema, openAi)
  return { name, schema: taken, strict: isClosed(taken) }
})

/**
 * OpenAI enforces a schema only if each object names and requires all its members, and rejects other schemas in
 * strict mode.
 */
export const isClosed = (schema: Json.Json): boolean => {
  if (Json.isArray(schema)) return schema.every(isClosed)
  if (!Json.isObject(schema)) return true
  const members = Object.keys(Json.object(schema["properties"]) ?? {})
  const required = Json.array(schema["required"])
  const closed =
    !takesObjects(schema) ||
    (schema["additionalProperties"] === false && members.every((member) => required.includes(member)))
  return closed && Object.values(schema).every(isClosed)
}

/** Whether the schema accepts objects, alone or among other types. */
const takesObjects = ({ type }: Json.JsonObject): boolean =>
  type === "object" || Json.array(type).includes("object")

// ───────────────────────── Claude

/** Anthropic takes what OpenAI does, and names as in its error "Property keys should match pattern". */
export const claude: Form = { ...openAi, names: /^[a-zA-Z0-9_.-]{1,64}$/ }

/**
 * The part of an output schema that Anthropic enforces, in which objects are closed, computed once for each output.
 * https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs
 *
 * Anthropic rejects other keywords, so they stand in descriptions, as its SDK writes them. The reader of the output has to check them.
 */
export const enforceable = /* @__PURE__ */ memoize(
  ({ schema }: NonNullable<ModelOptions["output"]>): Json.Json =>
    ofValue(schema, { takes, refers: true, closes: true })
)

const takes = (keyword: string, value: Json.Json): boolean => {
  if (keyword === "format") return typeof value === "string" && formats.has(value)
  if (keyword === "minItems") return value === 0 || value === 1
  return !unenforced.has(keyword)
}

const formats: ReadonlySet<string> = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "uri",
  "ipv4",
  "ipv6",
  "uuid"
])

const unenforced: ReadonlySet<string> = new Set([
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "maxItems",
  "uniqueItems",
  "contains",
  "minProperties",
  "maxProperties"
])

// ───────────────────────── Forms

export const among =
  (keywords: string, formats: RegExp): Form["takes"] =>
  (keyword, value) =>
    keyword === "format" ? formats.test(String(value)) : keywords.split(" ").includes(keyword)

/**
 * Gemini's first form, a part of OpenAPI, in which gateways send the tools of any client to it: "Unknown name \"$schema\"". It is
 * also within what Moonshot takes: no references with other keywords, no type beside `anyOf`.
 */
const openApi: Form = {
  takes: among(
    "type title description enum items minItems maxItems minimum maximum anyOf properties required minLength maxLength pattern default",
    /^(?:enum|date-time|int32|int64|float|double)$/
  ),
  names: /^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/,
  refers: false,
  plain: "openApi"
}

/** The form of an API that gateways have too, with models of vendors that take less. */
export const usually =
  (form: Form): ((model: string) => Form) =>
  (model) =>
    /gemini|kimi|moonshot/i.test(model) ? openApi : form

/** The forms of schemas that an API takes. */
interface Forms {
  readonly form?: (model: string) => Form
  readonly schemas?: "jsonSchema" | "openApi" | undefined
}

// ───────────────────────── Tools

/** The own names of properties by those for the vendor, and the schema that has them. Kept by the schema that was written. */
const renamed = new WeakMap<object, Renamed>()

interface Renamed {
  readonly schema: Json.Json
  readonly own: ReadonlyMap<string, string>
}

const writers = new Map<Form, (tool: ToolDefinition) => ToolDefinition>()

const writerOf = (form: Form): ((tool: ToolDefinition) => ToolDefinition) => {
  const writer =
    writers.get(form) ??
    memoize((tool: ToolDefinition) => {
      const { names, note, schema } = ofParams(tool.parameters, form)
      const own = new Map(Array.from(names, ([name, given]) => [given, name] as const))
      if (own.size > 0) renamed.set(schema, { schema: tool.parameters, own })
      const description = note === "" ? tool.description : `${tool.description}\n\n${note}`.trim()
      const examples = own.size === 0 ? undefined : tool.inputExamples
      const inputExamples = examples?.map((example) =>
        namedMembers(toGiven(names), tool.parameters, applied(tool.parameters, tool.parameters), example)
      )
      return { ...tool, description, parameters: schema, ...(inputExamples && { inputExamples }) }
    })
  writers.set(form, writer)
  return writer
}

/** The tools of a request in the form that the vendor takes. Leaves out and reports those whose params are no object. */
export const fitted = (
  changes: Changes,
  { form: formOf, schemas }: Forms,
  { model, tools }: { readonly model: string; readonly tools: ReadonlyArray<ToolDefinition> }
): ReadonlyArray<ToolDefinition> => {
  const form = schemas === "openApi" ? openApi : formOf?.(model)
  if (form === undefined || tools.length === 0) return tools
  const usual = writerOf(form)
  // An application with strict tools knows that the server takes their schemas.
  const strict = form === openApi ? writerOf(openAi) : usual
  return tools.flatMap((tool) => {
    const kind = kindOfJson(tool.parameters)
    if (kind === undefined) return [(tool.strict === true ? strict : usual)(tool)]
    changes.report(
      "tools",
      tool.name,
      null,
      `Its params are a schema of ${kind}, and models call tools with an object.`
    )
    const { toolChoice } = changes.options
    if (typeof toolChoice === "object" && toolChoice.name === tool.name)
      changes.leaveOut("toolChoice", `The tool ${tool.name} is left out.`)
    return []
  })
}

// ───────────────────────── Calls

/** Gives the properties in the arguments of calls their own names. `undefined` if no tool has other names for the vendor. */
export const restorer = (
  tools: ReadonlyArray<ToolDefinition> = []
): ((name: string, rawArguments: string) => string) | undefined => {
  const known = tools.flatMap(({ name, parameters }) => {
    const found = Json.isObject(parameters) ? renamed.get(parameters) : undefined
    return found === undefined ? [] : [[name, found] as const]
  })
  if (known.length === 0) return undefined
  const byName = new Map(known)
  return (name, rawArguments) => {
    const found = byName.get(name)
    const params = found === undefined ? undefined : parseArguments(rawArguments)
    if (found === undefined || params === undefined) return rawArguments
    return JSON.stringify(named(toOwn(found.own), found.schema, [found.schema], params))
  }
}

/** The own name of a member of an object, and the name to give it. */
type Naming = (
  member: string,
  declared: ReadonlyMap<string, unknown>,
  value: Json.JsonObject
) => readonly [own: string, given: string]

/** From the names for the vendor to the own ones. */
const toOwn =
  (own: Renamed["own"]): Naming =>
  (member, declared, value) => {
    const name = own.get(member) ?? member
    const isOwn = declared.has(member) || !declared.has(name) || Object.hasOwn(value, name)
    return isOwn ? [member, member] : [name, name]
  }

/** From the own names to those for the vendor. */
const toGiven =
  (given: ReadonlyMap<string, string>): Naming =>
  (member, declared) => [member, declared.has(member) ? (given.get(member) ?? member) : member]

/** Gives the properties of a value that its schemas declare other names. */
const named = (
  naming: Naming,
  root: Json.Json,
  schemas: ReadonlyArray<Json.Json>,
  value: Json.Json
): Json.Json => {
  if (typeof value !== "object" || value === null) return value
  const nodes = schemas.flatMap((schema) => applied(root, schema))
  if (Json.isArray(value))
    return value.map((item, index) =>
      named(
        naming,
        root,
        nodes.flatMap((node) => itemOf(node, index)),
        item
      )
    )
  if (!Json.isObject(value)) return value
  return namedMembers(naming, root, nodes, value)
}

const namedMembers = (
  naming: Naming,
  root: Json.Json,
  nodes: ReadonlyArray<Json.JsonObject>,
  value: Json.JsonObject
): Json.JsonObject => {
  const declared = new Map<string, ReadonlyArray<Json.Json>>()
  for (const node of nodes)
    for (const [name, schema] of Object.entries(Json.object(node["properties"]) ?? {}))
      declared.set(name, [...(declared.get(name) ?? []), schema])
  const others = nodes.flatMap(otherOf)
  return Object.fromEntries(
    Object.entries(value).map(([member, item]) => {
      const [own, given] = naming(member, declared, value)
      return [given, named(naming, root, declared.get(own) ?? others, item)]
    })
  )
}

/** The schemas that apply to a value of a schema, with those that it refers to. */
const applied = (root: Json.Json, schema: Json.Json, depth = 0): ReadonlyArray<Json.JsonObject> => {
  if (depth > 16) return []
  const own = readSchema(schema)
  const node = own["$ref"] === undefined ? own : readSchema(JsonSchema.follow(root, own))
  const { allOf, anyOf, dependentSchemas, else: otherwise, then } = node
  const parts = [...Json.array(allOf), ...Json.array(anyOf), then, otherwise]
  const within = [...parts, ...Object.values(Json.object(dependentSchemas) ?? {})]
  return [node, ...within.flatMap((part) => (Json.isObject(part) ? applied(root, part, depth + 1) : []))]
}

const itemOf = ({ items, prefixItems }: Json.JsonObject, index: number): ReadonlyArray<Json.Json> => {
  const schema = Json.array(prefixItems)[index] ?? items
  return schema === undefined ? [] : [schema]
}

const otherOf = ({ additionalProperties, patternProperties }: Json.JsonObject): ReadonlyArray<Json.Json> => [
  ...(additionalProperties === undefined ? [] : [additionalProperties]),
  ...Object.values(Json.object(patternProperties) ?? {})
]
