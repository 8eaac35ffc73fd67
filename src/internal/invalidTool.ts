/**
 * A tool that cannot work, refused before a model can call it.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import * as DurationInput from "./durationInput.ts"
import { shown } from "./invalidInput.ts"
import { isObject, type JsonObject } from "./jsonCoercion.ts"
import * as JsonReference from "./jsonReference.ts"
import * as ToolParams from "./params.ts"
import * as ToolName from "./toolName.ts"

/**
 * A tool is set up wrongly. The constructors (`Tool.make`, `Tool.fromJsonSchema`, `Tool.fromPromise`) throw it; a registry
 * that is given such a tool dies with it.
 */
export class InvalidTool extends Schema.TaggedError<InvalidTool>()("InvalidTool", {
  /** Name of the tool, as far as it has one. */
  tool: Schema.String,
  /** What is wrong, and what to write instead. */
  detail: Schema.String
}) {
  override get message(): string {
    return `Tool ${JSON.stringify(this.tool.slice(0, 100))}: ${this.detail}`
  }
}

const nameFault = (name: unknown): string | undefined => {
  if (typeof name !== "string" || name === "")
    return '`name` is missing. Give it a name such as "get_weather".'
  return ToolName.isAccepted(name)
    ? undefined
    : "the name may hold only letters, digits, _ and -, at most 64 characters: providers refuse any other. " +
        `Use ${JSON.stringify(ToolName.accepted(name))}, and \`label\` for what people read.`
}

/** The members of a tool that are checked, of any type. */
interface Checked {
  readonly name?: unknown
  readonly description?: unknown
  readonly execute?: unknown
  readonly executionMode?: unknown
  readonly prepareArguments?: unknown
  readonly timeout?: unknown
}

const isMode = (mode: unknown): boolean => mode === undefined || mode === "sequential" || mode === "parallel"

const faultOf = (tool: Checked): string | undefined => {
  const { description, execute, executionMode, name, prepareArguments, timeout } = tool
  const badName = nameFault(name)
  if (badName !== undefined) return badName
  if (typeof description !== "string")
    return "`description` is missing. Say in a sentence what the tool does: the model decides by it."
  if (typeof execute !== "function") return `\`execute\` must be a function; it is ${shown(execute)}.`
  if (timeout !== undefined && !DurationInput.is(timeout))
    return `\`timeout\` is ${shown(timeout)}; expected ${DurationInput.expected}.`
  if (!isMode(executionMode))
    return `\`executionMode\` is ${shown(executionMode)}; expected "sequential" or "parallel".`
  return prepareArguments === undefined || typeof prepareArguments === "function"
    ? undefined
    : "`prepareArguments` must be a function of the raw arguments."
}

const invalid = (tool: Checked, detail: string): InvalidTool =>
  new InvalidTool({ tool: typeof tool.name === "string" ? tool.name : "", detail })

/** The fault of a tool, if it has one. */
export const of = (tool: unknown): InvalidTool | undefined => {
  if (!Predicate.isObject(tool)) {
    return new InvalidTool({ tool: "", detail: `expected a tool made by Tool.make, got ${shown(tool)}.` })
  }
  const detail = faultOf(tool)
  return detail === undefined ? undefined : invalid(tool, detail)
}

/** Throws the fault of a tool. */
export const refuse = (tool: Checked): void => {
  const fault = of(tool)
  if (fault !== undefined) Result.getOrThrow(Result.fail(fault))
}

/** The members of a tool that say what it takes. */
interface Taking extends Checked {
  readonly params?: unknown
  readonly parameters?: unknown
}

/** Throws when `params` is no schema, or when it or `parameters` is one of something else than an object. */
export const refuseParams = (tool: Taking): void => {
  const { parameters } = tool
  const detail = paramsFault(tool) ?? (parameters === undefined ? undefined : parametersFault(parameters))
  if (detail !== undefined) Result.getOrThrow(Result.fail(invalid(tool, detail)))
}

const paramsFault = ({ parameters, params }: Taking): string | undefined => {
  if (params === undefined) return undefined
  if (Schema.isSchema(params)) return scalar(kindOfAst(SchemaAST.toEncoded(params.ast)), "Schema.Struct")
  // With `parameters` beside it the schema is not what the model is told, and may read anything.
  if (isStandard(params)) {
    const kind = parameters === undefined ? kindOfJson(ToolParams.described(params)) : undefined
    return scalar(kind, "z.object({ value: … }) or Schema.Struct")
  }
  if (!Predicate.isObject(params)) return `\`params\` must be a schema; it is ${shown(params)}.`
  return isJsonSchema(params)
    ? "`params` is plain JSON Schema. Use Tool.fromJsonSchema with `parameters`."
    : `\`params\` is a plain object with the keys ${Object.keys(params).slice(0, 10).join(", ")}, not a schema. ` +
        "Put it into z.object({ … }) or Schema.Struct({ … })."
}

const isStandard = (params: unknown): params is StandardSchemaV1<any, any> =>
  Predicate.hasProperty(params, "~standard")

const isJsonSchema = (value: object): boolean =>
  ("type" in value && typeof value.type === "string") || "$schema" in value || "$ref" in value

const scalar = (kind: string | undefined, struct: string): string | undefined =>
  kind === undefined
    ? undefined
    : `\`params\` is a schema of ${kind}, but models call tools with an object. ` +
      `Put it into one, such as ${struct}({ value: … }).`

const notObjects: ReadonlySet<string> = new Set([
  "String",
  "Number",
  "Boolean",
  "BigInt",
  "Null",
  "Undefined",
  "Literal",
  "Enum",
  "Arrays",
  "TemplateLiteral"
])

/** What a schema takes, in words, when no object is among it. */
const kindOfAst = (ast: SchemaAST.AST): string | undefined =>
  ast._tag === "Union"
    ? kindOfAll(ast.types.map(kindOfAst))
    : notObjects.has(ast._tag)
      ? ast._tag.toLowerCase()
      : undefined

/** The same of a JSON Schema. `depth` ends references that go in a circle. */
const kindOfJson = (root: Schema.Json, at: Schema.Json = root, depth = 0): string | undefined => {
  const schema = JsonReference.follow(root, at)
  if (!isObject(schema) || depth > 16) return undefined
  const { allOf, anyOf, enum: values, oneOf, type } = schema
  if (type !== undefined) {
    const types = Array.isArray(type) ? type : [type]
    return types.includes("object") ? undefined : types.join(" or ")
  }
  const constants = "const" in schema ? [schema["const"]] : values
  if (Array.isArray(constants)) return constants.some(Predicate.isObject) ? undefined : "constant"
  const kinds = (members: Schema.Json | undefined) =>
    Array.isArray(members) ? members.map((member) => kindOfJson(root, member, depth + 1)) : []
  return kindOfAll(kinds(anyOf)) ?? kindOfAll(kinds(oneOf)) ?? kinds(allOf).find((kind) => kind !== undefined)
}

/** The kinds of a union; nothing when one of its members takes an object. */
const kindOfAll = (kinds: ReadonlyArray<string | undefined>): string | undefined => {
  const known = kinds.flatMap((kind) => (kind === undefined ? [] : kind.split(" or ")))
  return kinds.length === 0 || kinds.includes(undefined) ? undefined : [...new Set(known)].join(" or ")
}

/** Throws when `parameters` is no JSON Schema of an object. */
export const refuseJsonSchema = (tool: Checked, parameters: unknown): void => {
  const detail = parametersFault(parameters)
  if (detail !== undefined) Result.getOrThrow(Result.fail(invalid(tool, detail)))
}

const parametersFault = (parameters: unknown): string | undefined => {
  if (!isJsonObject(parameters))
    return `\`parameters\` must be a JSON Schema of an object; it is ${shown(parameters)}.`
  const kind = kindOfJson(parameters)
  return kind === undefined
    ? undefined
    : `the JSON Schema of its params is of type ${kind}, but models call tools with an object. ` +
        'Use { type: "object", properties: { … } }.'
}

/** Its members are read one by one: what is no JSON in them says nothing of a type. */
const isJsonObject = (value: unknown): value is JsonObject => Predicate.isObject(value)
