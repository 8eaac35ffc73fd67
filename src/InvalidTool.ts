/**
 * A tool that cannot work, refused before a model can call it.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as DurationInput from "./DurationInput.ts"

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

/** Providers accept no other names. */
const acceptedName = /^[a-zA-Z0-9_-]{1,64}$/

/** The name with every character replaced that providers refuse, cut to their 64 characters. */
export const acceptableName = (name: string): string => name.replace(/[^\w-]/g, "_").slice(0, 64) || "_"

const shown = (value: unknown): string => {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 100))
  return Predicate.isObjectOrArray(value) ? "an object" : String(value)
}

const nameFault = (name: unknown): string | undefined => {
  if (typeof name !== "string" || name === "")
    return '`name` is missing. Give it a name such as "get_weather".'
  return acceptedName.test(name)
    ? undefined
    : "the name may hold only letters, digits, _ and -, at most 64 characters: providers refuse any other. " +
        `Use ${JSON.stringify(acceptableName(name))}, and \`label\` for what people read.`
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

/** Throws when `params` is no schema, or one of something else than an object. */
export const refuseParams = (tool: Checked, params: unknown): void => {
  const detail = paramsFault(params)
  if (detail !== undefined) Result.getOrThrow(Result.fail(invalid(tool, detail)))
}

const paramsFault = (params: unknown): string | undefined => {
  if (params === undefined) return undefined
  if (Schema.isSchema(params)) {
    const kind = SchemaAST.toEncoded(params.ast)._tag
    return notObjects.has(kind) ? scalar(`a schema of ${kind.toLowerCase()}`) : undefined
  }
  if (Predicate.hasProperty(params, "~standard")) return undefined
  if (!Predicate.isObject(params)) return `\`params\` must be a schema; it is ${shown(params)}.`
  return isJsonSchema(params)
    ? "`params` is plain JSON Schema. Use Tool.fromJsonSchema with `parameters`."
    : `\`params\` is a plain object with the keys ${Object.keys(params).slice(0, 10).join(", ")}, not a schema. ` +
        "Put it into z.object({ … }) or Schema.Struct({ … })."
}

const isJsonSchema = (value: object): boolean =>
  ("type" in value && typeof value.type === "string") || "$schema" in value || "$ref" in value

const notObjects: ReadonlySet<string> = new Set([
  "String",
  "Number",
  "Boolean",
  "BigInt",
  "Null",
  "Undefined",
  "Literal",
  "Arrays",
  "TemplateLiteral"
])

const scalar = (what: string): string =>
  `\`params\` is ${what}, but models call tools with an object. Put it into one: Schema.Struct({ value: … }).`

/** Throws when a JSON Schema of params describes something else than an object. */
export const refuseJsonSchema = (tool: Checked, parameters: unknown): void => {
  const fault = jsonSchemaFault(tool, parameters)
  if (fault !== undefined) Result.getOrThrow(Result.fail(fault))
}

const jsonSchemaFault = (tool: Checked, parameters: unknown): InvalidTool | undefined => {
  if (!Predicate.isObject(parameters))
    return invalid(tool, `\`parameters\` must be a JSON Schema of an object; it is ${shown(parameters)}.`)
  const { type } = parameters
  return type === undefined || type === "object" || (Array.isArray(type) && type.includes("object"))
    ? undefined
    : invalid(
        tool,
        `the JSON Schema of its params is of type ${shown(type)}, but models call tools with an object. ` +
          'Use { type: "object", properties: { … } }.'
      )
}
