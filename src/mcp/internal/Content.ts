/**
 * The content of MCP servers as content of tools.
 */
import type * as Official from "@modelcontextprotocol/client"
import * as Schema from "effect/Schema"
import * as Message from "../../Message.ts"
import * as Tool from "../../Tool.ts"
import * as Output from "../../internal/toolOutput.ts"

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

export const blockOf = (block: Official.ContentBlock): Block =>
  Output.blockOf(block) ?? Message.text(JSON.stringify(block))

/** A resource: text and images as they are, other bytes by their size. */
export const resourceOf = (resource: Official.TextResourceContents | Official.BlobResourceContents): Block =>
  Output.resourceOf(resource) ?? Message.text(JSON.stringify(resource))
