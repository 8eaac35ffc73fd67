/**
 * The results of tools as those of MCP.
 */
import * as McpSchema from "effect/ai/McpSchema"
import * as Base64 from "effect/encoding/Base64"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { ToolOutput } from "../../AgentEvent.ts"
import * as JsonSchema from "../../internal/jsonSchema.ts"

type Block = ToolOutput["content"][number]

/** The key of `details` that are not the text of a result. */
const detailsKey = "effect-agent/details"

/** A result. `details` that its text is the JSON of are structured content, as MCP wants it; others are metadata. */
export const resultOf = ({ content, details, isError }: ToolOutput): McpSchema.CallToolResult =>
  new McpSchema.CallToolResult({
    content: content.map(blockOf),
    ...(details === undefined
      ? {}
      : Predicate.isObject(details) && content.some((block) => isJsonOf(block, details))
        ? { structuredContent: details }
        : { _meta: { [detailsKey]: details } }),
    ...(isError === true ? { isError } : {})
  })

const decodeJson = Schema.decodeOption(Schema.fromJsonString(Schema.Json))

const isJsonOf = (block: Block, details: Schema.Json): boolean =>
  block.type === "text" && Option.exists(decodeJson(block.text), (json) => JsonSchema.same(json, details))

const blockOf = (block: Block): McpSchema.ContentBlock => {
  if (block.type === "text") return McpSchema.TextContent.make({ text: block.text })
  const { source } = block
  if ("url" in source) return McpSchema.TextContent.make({ text: `[image: ${source.url}]` })
  const bytes = Base64.decode(source.data)
  return Result.isSuccess(bytes)
    ? McpSchema.ImageContent.make({ data: bytes.success, mimeType: source.mediaType })
    : McpSchema.TextContent.make({ text: `[image: ${source.mediaType}, not base64]` })
}
