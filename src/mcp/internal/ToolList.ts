/**
 * The list of the tools of a server, before the official client reads it: that refuses the whole list for one tool that is not
 * as the protocol says.
 */
import type * as Official from "@modelcontextprotocol/client"
import * as Predicate from "effect/Predicate"
import * as Content from "./Content.ts"
import { shown } from "../../internal/invalidInput.ts"
import { kindOfJson } from "../../internal/invalidTool.ts"
import { isObject, maxDepth, nestsTooDeep } from "../../internal/json.ts"
import type { Package } from "./Transport.ts"

/** The most characters of a schema, which each request to the model repeats. No tool that is meant well has so many. */
const maxSchema = 200_000

/** Takes tools out of lists that pass by, and keeps a line on each. */
export class ToolList {
  /** The lines since the last `splice`. */
  readonly lines: Array<string> = []
  private readonly main: Package["main"]
  private readonly server: string

  constructor({ main }: Package, server: string) {
    this.main = main
    this.server = server
  }

  /** Changes a message in place if it is a list of tools. */
  readonly sift = (message: Official.JSONRPCMessage): void => {
    const result = "result" in message ? message.result : undefined
    if (!Predicate.hasProperty(result, "tools") || !Array.isArray(result.tools)) return
    Object.assign(result, { tools: result.tools.flatMap((tool: unknown) => this.kept(tool)) })
  }

  private kept(tool: unknown): ReadonlyArray<unknown> {
    const repaired = isRecord(tool) ? repairedOf(tool) : tool
    const fault = faultOf(repaired) ?? this.invalid(repaired)
    if (fault === undefined) return [repaired]
    const name = Predicate.hasProperty(tool, "name") ? shown(tool.name) : "without a name"
    this.lines.push(leftOut(this.server, name, fault))
    return []
  }

  /** The fault of a tool by the protocol. */
  private invalid(tool: unknown): string | undefined {
    const result = this.main.specTypeSchemas.Tool["~standard"].validate(tool)
    if (!("issues" in result) || result.issues === undefined) return undefined
    const [{ message, path = [] } = { message: "it is no tool" }] = result.issues
    const steps = path.map((step) => String(typeof step === "object" ? step.key : step))
    return [steps.join("."), message].filter((text) => text !== "").join(": ")
  }
}

/** The line on a tool that is left out. */
export const leftOut = (server: string, tool: string, reason: string): string =>
  `The tool ${tool.slice(0, 100)} of the MCP server ${server} is left out: ${reason}`

type Tool = Readonly<Record<string, unknown>>

const isRecord = (tool: unknown): tool is Tool => Predicate.isObject(tool)

/** Says the type of an input schema that can only be one of objects, and leaves out an output schema that cannot be read. */
const repairedOf = (tool: Tool): Tool => {
  const { inputSchema, outputSchema, ...rest } = tool
  return {
    ...rest,
    ...("inputSchema" in tool ? { inputSchema: withType(inputSchema) } : {}),
    ...(outputSchema === undefined || sizeFault(outputSchema) !== undefined || !isTyped(outputSchema)
      ? {}
      : { outputSchema })
  }
}

const isTyped = (schema: unknown): boolean =>
  Predicate.hasProperty(schema, "type") && schema.type === "object"

const withType = (schema: unknown): unknown => {
  if (sizeFault(schema) !== undefined || !Content.isJson(schema) || !isObject(schema)) return schema
  return isTyped(schema) || kindOfJson(schema) !== undefined ? schema : { ...schema, type: "object" }
}

const faultOf = (tool: unknown): string | undefined => {
  if (!Predicate.hasProperty(tool, "inputSchema")) return "it has no input schema"
  const { inputSchema } = tool
  const fault = sizeFault(inputSchema)
  if (fault !== undefined) return fault
  return isTyped(inputSchema) ? undefined : "its input schema is no JSON Schema of an object"
}

/** Why a schema is too large for a request, if it is. */
export const sizeFault = (schema: unknown): string | undefined => {
  const text = JSON.stringify(schema) ?? ""
  if (nestsTooDeep(text)) return `its schema nests deeper than ${maxDepth} levels`
  return text.length > maxSchema ? `its schema has more than ${maxSchema} characters` : undefined
}
