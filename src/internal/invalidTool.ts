/**
 * Finds what is wrong with the definition of a tool before a model can call it.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as DurationInput from "./durationInput.ts"
import { shown } from "./invalidInput.ts"
import { isObject, type JsonObject } from "./json.ts"
import * as JsonSchema from "./jsonSchema.ts"
import * as NearestName from "./nearestName.ts"
import * as Params from "./params.ts"
import { TaggedError } from "./errors.ts"

/**
 * The definition of a tool cannot work.
 *
 * **Details**
 *
 * `Tool.make`, `Tool.fromJsonSchema` and `Tool.fromPromise` throw it. `ToolRegistry.make` and `register` die with it, and so does
 * `Agent.make`.
 *
 * @since 0.2.0
 * @category errors
 */
export class InvalidTool extends TaggedError<InvalidTool>()("InvalidTool", {
  /** Name of the tool. Empty if it has none. */
  tool: Schema.String,
  /** The fault, and what to write instead. */
  detail: Schema.String
}) {
  override get message(): string {
    return `Tool ${JSON.stringify(this.tool.slice(0, 100))}: ${this.detail}`
  }
}

/** The members of a tool, or of the options it is made from, that are checked. Types do not guard them in plain JavaScript. */
interface Checked {
  readonly name?: unknown
  readonly description?: unknown
  readonly execute?: unknown
  readonly executionMode?: unknown
  readonly prepareArguments?: unknown
  readonly blocking?: unknown
  readonly timeout?: unknown
  readonly strict?: unknown
  readonly trust?: unknown
  readonly effect?: unknown
  readonly params?: unknown
  readonly parameters?: unknown
  readonly inputExamples?: unknown
  readonly allowedCallers?: unknown
  readonly vendor?: unknown
}

/** The fault of a tool, if it has one. */
export const of = (tool: unknown): InvalidTool | undefined =>
  Predicate.isObject(tool)
    ? invalid(tool, memberFault(tool))
    : new InvalidTool({ tool: "", detail: `expected a tool made by Tool.make, got ${shown(tool)}.` })

/** Throws `InvalidTool` if a tool cannot be made from the options. */
export const refuse = (options: Checked, hasParameters = options.parameters !== undefined): void => {
  const fault =
    memberFault(options) ??
    unknownFault(options) ??
    paramsFault(options) ??
    (hasParameters ? parametersFault(options.parameters) : undefined)
  const error = invalid(options, fault)
  if (error !== undefined) Result.getOrThrow(Result.fail(error))
}

const invalid = ({ name }: Checked, detail: string | undefined): InvalidTool | undefined =>
  detail === undefined ? undefined : new InvalidTool({ tool: typeof name === "string" ? name : "", detail })

const memberFault = (tool: Checked): string | undefined => {
  const {
    blocking,
    description,
    effect,
    execute,
    executionMode,
    name,
    prepareArguments,
    strict,
    timeout,
    trust
  } = tool
  const badName = nameFault(name)
  if (badName !== undefined) return badName
  if (typeof description !== "string")
    return "`description` is missing. Say in a sentence what the tool does: the model decides by it."
  if (typeof execute !== "function") return `\`execute\` must be a function; it is ${shown(execute)}.`
  if (timeout !== undefined && !DurationInput.is(timeout))
    return `\`timeout\` is ${shown(timeout)}; expected ${DurationInput.expected}.`
  if (![undefined, "sequential", "parallel"].some((mode) => mode === executionMode))
    return `\`executionMode\` is ${shown(executionMode)}; expected "sequential" or "parallel".`
  if (blocking !== undefined && typeof blocking !== "boolean" && blocking !== "optional")
    return `\`blocking\` is ${shown(blocking)}; expected true, false or "optional".`
  if (strict !== undefined && typeof strict !== "boolean")
    return `\`strict\` is ${shown(strict)}; expected true or false.`
  if (![undefined, "trusted", "untrusted"].some((known) => known === trust))
    return `\`trust\` is ${shown(trust)}; expected "trusted" or "untrusted".`
  if (![undefined, "pure", "idempotent", "once"].some((known) => known === effect))
    return `\`effect\` is ${shown(effect)}; expected "pure", "idempotent" or "once".`
  if (prepareArguments !== undefined && typeof prepareArguments !== "function")
    return "`prepareArguments` must be a function of the raw arguments."
  return vendorFault(tool)
}

const vendorFault = ({ allowedCallers, inputExamples, vendor }: Checked): string | undefined => {
  if (inputExamples !== undefined && !areObjects(inputExamples))
    return `\`inputExamples\` is ${shown(inputExamples)}; expected a list of objects, each the arguments of a call.`
  if (allowedCallers !== undefined && !areCallers(allowedCallers))
    return `\`allowedCallers\` is ${shown(allowedCallers)}; expected a list of "direct" and "programmatic".`
  return vendor === undefined ||
    (Predicate.isObject(vendor) && Object.values(vendor).every(Predicate.isObject))
    ? undefined
    : '`vendor` holds an object for each provider id, such as { "anthropic": { "eager_input_streaming": true } }.'
}

const areObjects = (value: unknown): boolean => Array.isArray(value) && value.every(Predicate.isObject)

const areCallers = (value: unknown): boolean =>
  Array.isArray(value) && value.every((caller) => caller === "direct" || caller === "programmatic")

/** Finds a member that no code reads, mostly a misspelt one. */
const unknownFault = (options: object): string | undefined => {
  const name = Object.keys(options).find((name) => !members.has(name))
  if (name === undefined) return undefined
  const nearest = NearestName.of(name.replaceAll("_", ""), members)
  return (
    `\`${name.slice(0, 100)}\` is not a member of a tool. ` +
    (nearest === undefined
      ? `A member for one vendor belongs into its vendor: { "anthropic": { ${JSON.stringify(name)}: … } }.`
      : `Did you mean \`${nearest}\`?`)
  )
}

/** The members of the options and of a tool, since tools are made from other tools. */
const members: ReadonlySet<string> = new Set(
  (
    "name label description executionMode blocking timeout strict trust effect prepareArguments parameters inputExamples " +
    "allowedCallers vendor coercion params success failure execute decode encodeSuccess renderFailure question"
  ).split(" ")
)

const nameFault = (name: unknown): string | undefined => {
  if (typeof name !== "string" || name === "")
    return '`name` is missing. Give it a name such as "get_weather".'
  return isAcceptedName(name)
    ? undefined
    : "the name may hold only letters, digits, _ and -, at most 64 characters: providers refuse any other. " +
        `Use ${JSON.stringify(acceptedName(name))}, and \`label\` for what people read.`
}

const paramsFault = ({ parameters, params }: Checked): string | undefined => {
  if (params === undefined) return undefined
  // With `parameters` the model does not read the JSON Schema of `params`, which may then be of any kind.
  const isRead = parameters === undefined
  if (Schema.isSchema(params)) {
    const ast = SchemaAST.toEncoded(params.ast)
    // A JSON Schema takes time to make. Most params are a struct, whose kind is known without it.
    const kind =
      kindOfAst(ast) ?? (isRead && ast._tag !== "Objects" ? kindOfJson(Params.stated(params)) : undefined)
    return scalar(kind, "Schema.Struct")
  }
  if (Params.isStandard(params)) {
    if (isRead && Params.standardDescribed(params) === undefined)
      return "`params` does not say its JSON Schema, so the model would not know it. Give `parameters` beside it."
    return scalar(
      isRead ? kindOfJson(Params.stated(params)) : undefined,
      "z.object({ value: … }) or Schema.Struct"
    )
  }
  if (!Predicate.isObject(params)) return `\`params\` must be a schema; it is ${shown(params)}.`
  return isJsonSchema(params)
    ? "`params` is plain JSON Schema. Use Tool.fromJsonSchema with `parameters`."
    : `\`params\` is a plain object with the keys ${Object.keys(params).slice(0, 10).join(", ")}, not a schema. ` +
        "Put it into z.object({ … }) or Schema.Struct({ … })."
}

const isJsonSchema = (value: object): boolean =>
  ("type" in value && typeof value.type === "string") || "$schema" in value || "$ref" in value

const scalar = (kind: string | undefined, struct: string): string | undefined =>
  kind === undefined
    ? undefined
    : `\`params\` is a schema of ${kind}, but models call tools with an object. ` +
      `Put it into one, such as ${struct}({ value: … }).`

const parametersFault = (parameters: unknown): string | undefined => {
  if (!isJsonObject(parameters))
    return `\`parameters\` must be a JSON Schema of an object; it is ${shown(parameters)}.`
  const kind = kindOfJson(parameters)
  return kind === undefined
    ? undefined
    : `the JSON Schema of its params is of type ${kind}, but models call tools with an object. ` +
        'Use { type: "object", properties: { … } }.'
}

/** Members that are not JSON are never read as a type. */
const isJsonObject = (value: unknown): value is JsonObject => Predicate.isObject(value)

const notObject = /^(String|Number|Boolean|BigInt|Null|Undefined|Literal|Enum|Arrays|TemplateLiteral)$/

/** The kind of value that a schema takes, in words, if it takes no object. */
const kindOfAst = (ast: SchemaAST.AST): string | undefined =>
  ast._tag === "Union"
    ? kindOfAll(ast.types.map(kindOfAst))
    : notObject.test(ast._tag)
      ? ast._tag.toLowerCase()
      : undefined

/** The kind of value that a JSON Schema takes, in words, if it takes no object. `depth` ends circular references. */
export const kindOfJson = (root: Schema.Json, at: Schema.Json = root, depth = 0): string | undefined => {
  const schema = JsonSchema.follow(root, at)
  if (!isObject(schema) || depth > 16) return undefined
  const { allOf, anyOf, enum: values, oneOf, type } = schema
  const types = (Array.isArray(type) ? type : [type]).map((name) => String(name).toLowerCase()).filter(isType)
  if (types.length > 0) return types.includes("object") ? undefined : types.join(" or ")
  const constants = "const" in schema ? [schema["const"]] : values
  if (Array.isArray(constants)) return constants.some(Predicate.isObject) ? undefined : "constant"
  const kinds = (members: Schema.Json | undefined) =>
    Array.isArray(members) ? members.map((member) => kindOfJson(root, member, depth + 1)) : []
  return kindOfAll(kinds(anyOf)) ?? kindOfAll(kinds(oneOf)) ?? kinds(allOf).find((kind) => kind !== undefined)
}

const isType = (name: string): boolean => /^(?:array|boolean|integer|null|number|object|string)$/.test(name)

/** The kinds of a union, if none of its members takes an object. */
const kindOfAll = (kinds: ReadonlyArray<string | undefined>): string | undefined => {
  const known = kinds.flatMap((kind) => (kind === undefined ? [] : kind.split(" or ")))
  return kinds.length === 0 || kinds.includes(undefined) ? undefined : [...new Set(known)].join(" or ")
}

/** Whether every provider accepts the name. */
export const isAcceptedName = (name: string): boolean => /^[a-zA-Z0-9_-]{1,64}$/.test(name)

/** The name with every character that providers refuse replaced by `_`, cut to 64 characters. */
export const acceptedName = (name: string): string => name.replace(/[^\w-]/g, "_").slice(0, 64) || "_"
