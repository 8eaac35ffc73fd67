/** The deltas of an answer as events of pi. */
import type * as ModelEvent from "../../ModelEvent.ts"
import type { AssistantMessage, ToolCall } from "./PiMessage.ts"
import * as Pi from "./PiMessage.ts"

interface Block {
  readonly contentIndex: number
  readonly partial: AssistantMessage
}

interface Delta extends Block {
  readonly delta: string
}

interface End extends Block {
  readonly content: string
}

/**
 * A delta of an answer.
 *
 * pi's `start`, `done` and `error` are `message_start` and `message_end`.
 *
 * @since 0.1.0
 * @category models
 */
export type AssistantMessageEvent =
  | (Block & { readonly type: "text_start" })
  | (Delta & { readonly type: "text_delta" })
  | (End & { readonly type: "text_end" })
  | (Block & { readonly type: "thinking_start" })
  | (Delta & { readonly type: "thinking_delta" })
  | (End & { readonly type: "thinking_end" })
  | (Block & { readonly type: "toolcall_start" })
  | (Delta & { readonly type: "toolcall_delta" })
  | (Block & { readonly type: "toolcall_end"; readonly toolCall: ToolCall })

/** Converts a delta, `undefined` if it belongs to no block. */
export const from = (
  delta: ModelEvent.ModelEvent,
  open: ModelEvent.Reply,
  partial: AssistantMessage
): AssistantMessageEvent | undefined => {
  if (!("contentIndex" in delta)) return undefined
  const { contentIndex } = delta
  const block = open.content[contentIndex]
  const content = block?.type === "text" || block?.type === "thinking" ? block.text : ""
  switch (delta._tag) {
    case "TextStart":
      return { type: "text_start", contentIndex, partial }
    case "TextDelta":
      return { type: "text_delta", contentIndex, delta: delta.delta, partial }
    case "TextEnd":
      return { type: "text_end", contentIndex, content, partial }
    case "ThinkingStart":
      return { type: "thinking_start", contentIndex, partial }
    case "ThinkingDelta":
      return { type: "thinking_delta", contentIndex, delta: delta.delta, partial }
    case "ThinkingEnd":
      return { type: "thinking_end", contentIndex, content, partial }
    case "ToolCallStart":
      return { type: "toolcall_start", contentIndex, partial }
    case "ToolCallDelta":
      return { type: "toolcall_delta", contentIndex, delta: delta.delta, partial }
    case "ToolCallEnd": {
      const toolCall = block === undefined ? undefined : Pi.block(block)
      return toolCall?.type === "toolCall"
        ? { type: "toolcall_end", contentIndex, toolCall, partial }
        : undefined
    }
    case "HostedToolStart":
    case "HostedToolEnd":
    case "Source":
    case "Media":
      return undefined
  }
}
