/**
 * Encodes messages as input items of OpenAI Responses.
 * https://platform.openai.com/docs/api-reference/responses/create, read in November 2026.
 *
 * The vendor stores nothing. So thinking, and items of tools at the vendor, return unchanged: to the same
 * model, in the same order, all of them or none. The vendor rejects thinking without the items that followed
 * it, and the reverse.
 */
import type * as Message from "../../../Message.ts"
import type { Assistant, HostedTool, Source } from "../../../Message.ts"
import { type Reason, UnsupportedContent } from "../../../ProviderError.ts"
import type { HostedBlock, ReplyWriter } from "../../../reply/ReplyWriter.ts"
import { isReason } from "../../Protocol.ts"
import {
  argumentsText,
  nameFor,
  paramsIn,
  into,
  keptFor,
  membersOf,
  type Part,
  dataUrl,
  encodeContent
} from "../writing.ts"
import * as Json from "../json.ts"

export interface Item {
  readonly json: string
  /** The id of a call. It depends on the rest of the conversation, so the JSON does not contain it. */
  readonly callId?: string
  /** The type of the item that answers the call. */
  readonly result?: string
  /** The caller of a call, such as a program that the vendor runs, which its output names too. */
  readonly caller?: Json.JsonObject
  /** The checks of a call for the screen, which its output acknowledges. */
  readonly checks?: ReadonlyArray<Json.Json>
  /** The function of a call without a namespace. */
  readonly bare?: string
  /** The function of a call in the namespace that a search of the vendor made for it, and the call without it. */
  readonly loaded?: { readonly name: string; readonly bare: Item }
  /** The functions that a search of the vendor loaded. */
  readonly loads?: ReadonlyArray<string>
}

export interface Answer {
  readonly items: ReadonlyArray<Item>
  /**
   * Whether the items contain all thinking. If not, they only name thinking that the vendor may have stored.
   */
  readonly isReadable: boolean
}

type Content = Message.Assistant["content"]

/** The items of an answer of this provider. */
export const encodeOwn = (provider: string, { content }: Message.Assistant): Answer => {
  const pieces = content.flatMap((block, index) => encodeBlock(provider, content, block, index))
  const items = pieces.flatMap(({ isThought, item }, index) => {
    const next = isThought ? pieces.slice(index).find((piece) => !piece.isThought) : undefined
    return item === undefined || (isThought && next?.item === undefined) ? [] : [item]
  })
  return { items, isReadable: pieces.every((piece) => piece.isReadable) }
}

/** The items of an answer, for any model. */
export const encodePlain = (provider: string, { content }: Message.Assistant): ReadonlyArray<Item> =>
  content.flatMap((block) => {
    if (block.type === "toolCall") {
      const item = itemIn(provider, block)
      const type = item?.["type"]
      if (item !== undefined && type === "mcp_approval_request") return [encodeCall(item, block)]
      // A call for the screen is part of an answer of the model that made it.
      const isPlain = type === undefined || type === "computer_call"
      return [within(provider, block, encodeCall(isPlain ? {} : { type }, block))]
    }
    return block.type === "text" && block.text !== "" ? [assistantText(provider, block)] : []
  })

/** An item, or the position of one that cannot be sent. */
interface Piece {
  readonly item: Item | undefined
  readonly isThought: boolean
  readonly isReadable: boolean
}

const piece = (item: Item | undefined): Piece => ({ item, isThought: false, isReadable: true })

const encodeBlock = (
  provider: string,
  content: Content,
  block: Content[number],
  index: number
): ReadonlyArray<Piece> => {
  const item = itemIn(provider, block)
  if (block.type === "thinking")
    return item === undefined ? [] : [encodeThought(Json.merge(item, membersOf(provider, block) ?? {}))]
  if (block.type === "toolCall") return [piece(within(provider, block, encodeCall(item ?? {}, block)))]
  if (isPart(provider, block)) return encodeMessage(provider, content, item, index)
  if (item !== undefined && block.type !== "source") {
    const whole = Json.merge(item, membersOf(provider, block) ?? {})
    return [piece(isUnanswered(provider, content, item) ? undefined : verbatim(whole))]
  }
  return block.type === "text" && block.text !== "" ? [piece(assistantText(provider, block))] : []
}

/** An item with the members of the block that it stands for. */
const within = (provider: string, from: Pick<Message.Text, "vendor">, item: Item): Item =>
  membersOf(provider, from) === undefined ? item : { ...item, json: into(provider, from, item.json) }

const partIn = (provider: string, block: Content[number]): Json.JsonObject | undefined =>
  Json.object(keptFor(provider, block)?.["part"])

const verbatim = (item: Json.JsonObject): Item => ({
  json: Json.encode(short(item)),
  ...(item["type"] === "tool_search_output" ? { loads: loadedBy(item) } : {})
})

/** The names of the functions that an item `tool_search_output` loads. */
const loadedBy = (item: Json.JsonObject): ReadonlyArray<string> =>
  Json.array(item["tools"]).flatMap((tool) => Json.text(Json.object(tool)?.["name"]) ?? [])

/** The vendor rejects longer ids, which compatible servers make. */
const short = (item: Json.JsonObject): Json.JsonObject =>
  (Json.text(item["id"]) ?? "").length > 64 ? Json.without(item, "id") : item

/** Some servers add a status to thinking, which OpenAI rejects. */
const encodeThought = (item: Json.JsonObject): Piece => ({
  item: verbatim(Json.without(item, "status")),
  isThought: true,
  isReadable: Json.text(item["encrypted_content"]) !== undefined || Json.array(item["content"]).length > 0
})

const assistantText = (provider: string, block: Message.Text): Item => ({
  json: into(provider, block, Json.encode({ role: "assistant", content: block.text }))
})

const isPart = (provider: string, block: Content[number]): boolean =>
  block.type === "text" && partIn(provider, block) !== undefined

/** A message with all its parts, at the position of the first one. */
const encodeMessage = (
  provider: string,
  content: Content,
  item: Json.JsonObject | undefined,
  index: number
): ReadonlyArray<Piece> => {
  const before = content[index - 1]
  if (item === undefined && before !== undefined && isPart(provider, before)) return []
  const parts: Array<Json.JsonObject> = []
  for (const block of content.slice(index)) {
    const isNext = parts.length > 0 && itemIn(provider, block) !== undefined
    if (block.type !== "text" || isNext || !isPart(provider, block)) break
    const part = partIn(provider, block)
    const spoken = { ...part, [part?.["type"] === "refusal" ? "refusal" : "text"]: block.text }
    parts.push(Json.merge(spoken, membersOf(provider, block) ?? {}))
  }
  const shell = item === undefined ? { type: "message", role: "assistant" } : short(item)
  return [piece({ json: Json.encode({ ...shell, content: parts }) })]
}

/**
 * Whether the item calls a tool of the vendor that the client has to run. This library does not run them, and
 * the vendor rejects such a call without its result.
 */
const isUnanswered = (
  provider: string,
  content: Content,
  { call_id: callId, type }: Json.JsonObject
): boolean =>
  typeof callId === "string" &&
  (Json.text(type) ?? "").endsWith("_call") &&
  !content.some((block) => {
    const other = itemIn(provider, block)
    return other?.["call_id"] === callId && other["type"] !== type
  })

const encodeCall = (item: Json.JsonObject, call: Message.ToolCall): Item => {
  if (item["type"] === "computer_call") return encodeComputer(item, call)
  if (item["type"] === "mcp_approval_request")
    return { json: Json.encode(item), callId: call.id, result: "mcp_approval_response" }
  const name = nameFor(call.name, 128)
  const isCustom = item["type"] === "custom_tool_call"
  const own = isCustom ? { input: call.rawArguments } : { arguments: argumentsText(call.rawArguments) }
  const { namespace, ...rest } = short(item)
  const encoded = (fields: Json.JsonObject): Item => ({
    json: Json.encode({ type: "function_call", ...fields, name, ...own }),
    callId: call.id,
    ...(Json.isObject(item["caller"]) ? { caller: item["caller"] } : {}),
    result: isCustom ? "custom_tool_call_output" : "function_call_output"
  })
  if (isCustom) return encoded(short(item))
  const bare = { ...encoded(rest), bare: name }
  if (namespace === undefined) return bare
  const called = encoded(short(item))
  return namespace === name ? { ...called, loaded: { name, bare } } : called
}

/** A call for the screen. The agent that ran it acknowledged the checks that it had pending. */
const encodeComputer = (item: Json.JsonObject, call: Message.ToolCall): Item => {
  const params = paramsIn(call.rawArguments)
  return {
    json: Json.encode({ ...short(item), ...params }),
    callId: call.id,
    result: "computer_call_output",
    checks: Json.array(params["pending_safety_checks"])
  }
}

// ───────────────────────── Messages of the user and results

/** The item of a user message, or why it cannot be sent. */
export const encodeUser = (provider: string, message: Message.User): string | Reason => {
  const json = encodeContent(provider, message.content, "input_text", toMedia)
  return isReason(json)
    ? json
    : into(provider, message, `{"role":"${message.from ?? "user"}","content":${json}}`)
}

/** The output of a tool, for the item that answers its call. */
export const encodeOutput = (
  provider: string,
  { content }: Message.ToolResult
): ReadonlyArray<string> | Reason => {
  const json = content.every((block) => block.type === "text" && membersOf(provider, block) === undefined)
    ? Json.encode(content.map((block) => (block.type === "text" ? block.text : "")).join("\n"))
    : encodeContent(provider, content, "input_text", toMedia)
  return isReason(json) ? json : [json]
}

/** The output of the tool for the screen: an image of it. Texts follow as an item, because the output has none. */
export const encodeScreen = ({ content }: Message.ToolResult): ReadonlyArray<string> => {
  const image = content.find((block) => block.type === "image")
  const text = content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n")
  const spoken = text === "" ? [] : [Json.encode({ role: "user", content: text })]
  return [Json.encode(toScreen(image)), ...spoken]
}

/** An image of the screen, which the vendor requires also of a call that failed. */
export const toScreen = (image: Message.Image | undefined): Json.JsonObject => ({
  type: "computer_screenshot",
  image_url: image === undefined ? blank : urlOf(image)
})

/** One pixel. */
const blank =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

const urlOf = ({ source }: Message.Image): string => ("url" in source ? source.url : dataUrl(source))

export const toMedia = (block: Message.Image | Message.File): Part | Reason => {
  if (block.type === "image") return toImage(urlOf(block), block.detail)
  const { source } = block
  if ("fileId" in source) return { type: "input_file", file_id: source.fileId }
  if ("url" in source) return { type: "input_file", file_url: source.url }
  const [kind, subtype = ""] = source.mediaType.split("/")
  if (kind === "image") return toImage(dataUrl(source))
  if (kind === "audio" || kind === "video") {
    return new UnsupportedContent({ detail: `OpenAI Responses takes no files of type ${source.mediaType}` })
  }
  return { type: "input_file", filename: block.name ?? `file.${subtype}`, file_data: dataUrl(source) }
}

const toImage = (url: string, detail: Message.ImageDetail = "auto"): Part => ({
  type: "input_image",
  detail,
  image_url: url
})

// ───────────────────────── Hosted tools

// Items of the vendor's own tools as blocks of an answer, and blocks as items.

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
const itemIn = (provider: string, block: Assistant["content"][number]): Json.JsonObject | undefined => {
  const { item, result: member } = keptFor(provider, block) ?? {}
  const kept = Json.object(item)
  if (kept === undefined || typeof member !== "string") return kept
  const data = block.type === "media" && "data" in block.source ? block.source.data : undefined
  return { ...kept, [member]: (block.type === "hostedTool" ? block.result : data) ?? null }
}
