/**
 * Results of tools in the shape that MCP, pi and Karl share, so that a tool of theirs works here as it is.
 */
import * as Predicate from "effect/Predicate"
import type { ToolOutput } from "../AgentEvent.ts"
import * as Message from "../Message.ts"

type Block = ToolOutput["content"][number]

/** A result that was read from an object in its shape. */
export interface Ported {
  readonly content: ToolOutput["content"]
  readonly isError: boolean
  readonly terminate: boolean
  /** `undefined` for none. Not checked to be JSON. */
  readonly details: unknown
}

/** Of MCP, pi and Karl. An object with any other member is data of the application. */
const members: ReadonlySet<string> = new Set([
  "content",
  "isError",
  "details",
  "structuredContent",
  "terminate",
  "usage",
  "_meta"
])

/**
 * Reads an object as a result; `undefined` for data that merely has a member `content`. Its content is a list of blocks, or a text
 * beside an `isError`. An empty list counts beside an `isError` or a `structuredContent`.
 */
export const read = (value: unknown): Ported | undefined => {
  if (!Predicate.isObject(value) || !Object.keys(value).every((name) => members.has(name))) return undefined
  const { content, details, isError, structuredContent, terminate } = value
  const isFlagged = typeof isError === "boolean"
  if (isError !== undefined && !isFlagged) return undefined
  const given = typeof content === "string" && isFlagged ? [Message.text(content)] : blocksOf(content)
  if (given === undefined) return undefined
  const isBare = given.length === 0
  if (isBare && !isFlagged && structuredContent === undefined) return undefined
  const shown = isBare && structuredContent !== undefined ? JSON.stringify(structuredContent) : undefined
  return {
    content: shown === undefined ? given : [Message.text(shown)],
    isError: isError === true,
    terminate: terminate === true,
    details: details ?? structuredContent
  }
}

const blocksOf = (content: unknown): ReadonlyArray<Block> | undefined => {
  if (!Array.isArray(content)) return undefined
  const blocks = content.flatMap((block) => blockOf(block) ?? [])
  return blocks.length === content.length ? blocks : undefined
}

/** A block of content; `undefined` for any other value. Other content than texts and images becomes a note. */
export const blockOf = (block: unknown): Block | undefined => {
  if (!Predicate.isObject(block)) return undefined
  const { data, mimeType, text, type, uri } = block
  if (type === "text") return isText(text) ? Message.text(text) : undefined
  if (type === "image") return imageOf(block)
  if (type === "audio" && isText(data)) return Message.text(`[audio: ${String(mimeType)}, ${bytes(data)}]`)
  if (type === "resource") return resourceOf(block["resource"])
  if (type !== "resource_link" || !isText(uri)) return undefined
  const named = [block["title"] ?? block["name"], block["description"]].filter(isText)
  return Message.text([`[resource: ${uri}]`, ...named].join(" "))
}

/** An image of MCP and pi, or one with a source as of Karl and of this library. */
const imageOf = ({ data, mimeType, source }: { readonly [name: string]: unknown }): Block | undefined => {
  if (isText(data) && isText(mimeType)) return Message.image(data, mimeType)
  if (!Predicate.isObject(source)) return undefined
  const { data: inline, mediaType, url } = source
  if (isText(inline) && isText(mediaType)) return Message.image(inline, mediaType)
  return isText(url) ? { type: "image", source: { url } } : undefined
}

/** A resource of MCP: text and images as they are, other bytes by their size. */
export const resourceOf = (resource: unknown): Block | undefined => {
  if (!Predicate.isObject(resource)) return undefined
  const { blob, mimeType = "application/octet-stream", text, uri } = resource
  if (isText(text)) return Message.text(text)
  if (!isText(blob) || !isText(mimeType)) return undefined
  return mimeType.startsWith("image/")
    ? Message.image(blob, mimeType)
    : Message.text(`[resource: ${String(uri)}, ${mimeType}, ${bytes(blob)}]`)
}

const isText = Predicate.isString

const bytes = (base64: string): string => `${Math.floor((base64.length * 3) / 4)} bytes`
