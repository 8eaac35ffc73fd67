/** Items of the vendor's own tools as blocks of an answer, and blocks as items. */
import type { Assistant, HostedTool, Source } from "../../../Message.ts"
import * as Json from "../json.ts"
import * as Opaque from "../opaque.ts"
import type { HostedBlock, ReplyWriter } from "../../../reply/ReplyWriter.ts"

/** Whether items of a type are calls of the vendor's tools, their results, or steps before them. */
export const isHosted = (type: string): boolean => /_call(?:_output)?$/.test(type) || others.has(type)

const others: ReadonlySet<string> = new Set(["mcp_list_tools", "tool_search_output"])

/** Whether an item is a call of a tool that xAI has run as a step of its own search, although its type is that of a client's. */
export const isRun = ({ call_id, name, type }: Json.JsonObject): boolean =>
  type === "custom_tool_call" &&
  ((Json.text(call_id) ?? "").startsWith("xs_call") ||
    /^x_\w+_(?:search|fetch)$|^view_(?:x_video|image)$/.test(Json.text(name) ?? ""))

/** Begins the block of an item. */
export const open = (reply: ReplyWriter, { call_id, id, name, type }: Json.JsonObject): HostedBlock => {
  const tool = (Json.text(type) ?? "").replace(/_call(?:_output)?$|_output$/, "")
  const own = Json.text(call_id) ?? Json.text(id) ?? `${tool}_${reply.length}`
  return reply.hostedTool(own, (named.has(type) ? Json.text(name) : undefined) ?? tool)
}

/** The types whose items name their tool. */
const named: ReadonlySet<Json.Json | undefined> = new Set(["mcp_call", "custom_tool_call"])

/** Ends the block of an item, and adds the files and the sources that the tool found. */
export const end = (reply: ReplyWriter, block: HostedBlock, item: Json.JsonObject): void => {
  const { kept, run } = runOf(item)
  const { result, ...called } = run
  if (item["type"] === "image_generation_call" && typeof result === "string") {
    // The image keeps the item, whose result it is.
    block.end(called)
    const format = Json.text(item["output_format"]) ?? "png"
    const mediaType = `image/${format === "svg" ? "svg+xml" : format}`
    return reply.media({ source: { data: result, mediaType }, ...idOf(item["id"]) }, kept)
  }
  block.end(run, kept)
  for (const output of Json.array(item["outputs"])) {
    const url = Json.text(Json.object(output)?.["url"])
    if (url !== undefined) reply.media({ source: { url, mediaType: "image/png" } })
  }
  const pages = Json.array(Json.object(item["action"])?.["sources"])
  for (const found of [...pages, ...Json.array(item["results"])]) reply.source(sourceOf(found))
}

/** The source that an annotation, a page or a hit of a search names. */
export const sourceOf = (json: Json.Json): Omit<Source, "type" | "opaque"> => {
  const { file_id, filename, text, title, url } = Json.object(json) ?? {}
  const sourceType = Json.text(url) === undefined ? "document" : "url"
  const named = { url, title, fileName: filename, citedText: text }
  return { sourceType, ...idOf(file_id), ...texts(named) }
}

const idOf = (id: Json.Json | undefined): { readonly id?: string } => texts({ id })

/** The members that are texts and not empty. */
const texts = (members: Readonly<Record<string, Json.Json | undefined>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(members).flatMap(([name, json]) => {
      const text = Json.text(json)
      return text === undefined ? [] : [[name, text]]
    })
  )

/** The members that hold the result of a tool, by the type of its item. For other types it is `output`. */
const resultMembers: Readonly<Record<string, string>> = {
  code_interpreter_call: "outputs",
  file_search_call: "results",
  image_generation_call: "result",
  mcp_list_tools: "tools",
  tool_search_output: "tools"
}

interface Run {
  readonly run: Pick<HostedTool, "params" | "result" | "isError">
  readonly kept: Json.JsonObject
}

/** The params and the result of an item, and its other members, which the vendor wants back. */
const runOf = (item: Json.JsonObject): Run => {
  const member = resultMembers[Json.text(item["type"]) ?? ""] ?? "output"
  const { [member]: output = null, ...rest } = item
  const error = item["error"] ?? null
  const params = paramsOf(rest)
  const result = output ?? error
  return {
    run: {
      ...(params === undefined ? {} : { params }),
      ...(result === null ? {} : { result }),
      ...(error !== null || item["status"] === "failed" ? { isError: true } : {})
    },
    kept: output === null ? { item } : { item: rest, result: member }
  }
}

const paramsOf = (item: Json.JsonObject): Json.Json | undefined => {
  const { action, arguments: args, operation, type } = item
  if (typeof type !== "string" || /_output$|_tools$/.test(type)) return undefined
  if (type === "custom_tool_call") return Json.parseShallow(Json.text(item["input"]) ?? "") ?? item["input"]
  if (type === "mcp_call") return Json.parseShallow(Json.text(args) ?? "") ?? args
  const rest = Json.without(item, "call_id", "error", "id", "status", "type")
  return action ?? operation ?? (type === "tool_search_call" ? args : undefined) ?? rest
}

/** The item that a block of this provider keeps, whole. */
export const itemIn = (
  provider: string,
  block: Assistant["content"][number]
): Json.JsonObject | undefined => {
  const { item, result: member } = Opaque.of(provider, block) ?? {}
  const kept = Json.object(item)
  if (kept === undefined || typeof member !== "string") return kept
  const data = block.type === "media" && "data" in block.source ? block.source.data : undefined
  return { ...kept, [member]: (block.type === "hostedTool" ? block.result : data) ?? null }
}
