/**
 * A request as the body of pi's `streamProxy`: `{ model, context, options }`. The system prompt and the tools are a message of the role
 * `system`, as in version 0.87.1.
 */
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import type * as Message from "../../Message.ts"
import type { ModelRequest } from "../../Provider.ts"
import * as PiSignature from "./PiSignature.ts"
import * as PiUsage from "./PiUsage.ts"

export const bodyOf = (request: ModelRequest, model: Schema.JsonObject): object => ({
  model,
  context: { messages: [...systemOf(request), ...request.messages.map(toPi)] },
  options: optionsOf(request.options)
})

const systemOf = ({ system = "", tools }: ModelRequest): ReadonlyArray<object> => {
  if (system === "" && tools.length === 0) return []
  const toolsAdded = tools.map(({ description, name, parameters }) => ({ name, description, parameters }))
  return [{ role: "system", content: system, ...(tools.length === 0 ? {} : { toolsAdded }), timestamp: 0 }]
}

/** pi has no level "off": it leaves the member out. */
const optionsOf = (options: ModelRequest["options"]): object => {
  const { cacheRetention, maxTokens, sessionId, temperature, thinkingBudgets, thinkingLevel } = options
  const reasoning = thinkingLevel === "off" ? undefined : thinkingLevel
  return { temperature, maxTokens, reasoning, cacheRetention, sessionId, thinkingBudgets }
}

const toPi = (message: Message.ModelMessage): object => {
  const { timestamp } = message
  switch (message.role) {
    case "user":
      return { role: "user", content: message.content.map(shown), timestamp }
    case "toolResult": {
      const { content, isError, toolCallId, toolName } = message
      return { role: "toolResult", toolCallId, toolName, content: content.map(shown), isError, timestamp }
    }
    case "assistant": {
      const { errorMessage, model, protocol, provider, responseId, stopReason, usage } = message
      return {
        role: "assistant",
        content: message.content.flatMap(toBlock),
        api: protocol,
        provider,
        model,
        responseId,
        usage: PiUsage.write(usage),
        stopReason: stopReason === "contentFilter" || stopReason === "refusal" ? "error" : stopReason,
        errorMessage,
        timestamp
      }
    }
  }
}

/** pi has images as base64 alone, and no files. */
const shown = (part: Message.Text | Message.Image | Message.File): object => {
  if (part.type === "text") return { type: "text", text: part.text }
  const { source } = part
  if ("url" in source) return { type: "text", text: `(${part.type}: ${source.url})` }
  if ("fileId" in source) return { type: "text", text: `(file: ${source.fileId})` }
  return part.type === "image"
    ? { type: "image", data: source.data, mimeType: source.mediaType }
    : { type: "text", text: `(file: ${source.mediaType})` }
}

/** pi has no blocks for sources and tools of vendors. */
const toBlock = (block: Message.Assistant["content"][number]): ReadonlyArray<object> => {
  const signature = block.opaque === undefined ? undefined : PiSignature.write(block.opaque)
  switch (block.type) {
    case "text":
      return [{ type: "text", text: block.text, textSignature: signature }]
    case "thinking": {
      const { redacted, text } = block
      return [{ type: "thinking", thinking: text, thinkingSignature: signature, redacted }]
    }
    case "toolCall": {
      const params = Predicate.isObject(block.params) ? block.params : {}
      const { id, name } = block
      return [{ type: "toolCall", id, name, arguments: params, thoughtSignature: signature }]
    }
    case "media":
      return [{ type: "text", text: `(media: ${block.source.mediaType})` }]
    case "source":
    case "hostedTool":
      return []
  }
}
