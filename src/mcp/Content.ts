/**
 * The content of MCP servers as content of tools.
 */
import type * as Official from "@modelcontextprotocol/client"
import * as Schema from "effect/Schema"
import * as Message from "../Message.ts"
import * as Tool from "../Tool.ts"

type Block = Message.Text | Message.Image

/** The result of a call: its blocks, and its structured content as `details`. */
export const outputOf = (result: Official.CallToolResult): Tool.ToolOutput => {
  const { content, isError, structuredContent } = result
  const blocks = content.map(blockOf)
  const details = isJson(structuredContent) ? structuredContent : undefined
  const shown =
    blocks.length === 0 && details !== undefined ? [Message.text(JSON.stringify(details))] : blocks
  return Tool.output(shown, {
    ...(details === undefined ? {} : { details }),
    ...(isError === true ? { isError } : {})
  })
}

export const isJson = Schema.is(Schema.Json)

export const blockOf = (block: Official.ContentBlock): Block => {
  switch (block.type) {
    case "text":
      return Message.text(block.text)
    case "image":
      return Message.image(block.data, block.mimeType)
    case "audio":
      return Message.text(`[audio: ${block.mimeType}, ${bytes(block.data)}]`)
    case "resource_link":
      return Message.text(
        [`[resource: ${block.uri}]`, block.title ?? block.name, block.description ?? ""].join(" ").trim()
      )
    case "resource":
      return resourceOf(block.resource)
  }
}

type Resource = Official.TextResourceContents | Official.BlobResourceContents

/** A resource: text and images as they are, other bytes by their size. */
export const resourceOf = (resource: Resource): Block => {
  if ("text" in resource) return Message.text(resource.text)
  const { blob, mimeType = "application/octet-stream", uri } = resource
  return mimeType.startsWith("image/")
    ? Message.image(blob, mimeType)
    : Message.text(`[resource: ${uri}, ${mimeType}, ${bytes(blob)}]`)
}

const bytes = (base64: string): string => `${Math.floor((base64.length * 3) / 4)} bytes`
