/**
 * What oneringai's two vocabularies share: token counts, answers, tool output in words, and which of our ends is which
 * of theirs.
 *
 * Source: Integrail/oneringai, src/domain/entities.
 */
import type { RunStatus, ToolOutput } from "../AgentEvent.ts"
import * as Message from "../Message.ts"
import * as Usage from "../Usage.ts"

export interface TokenUsage {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly total_tokens: number
  readonly output_tokens_details?: { readonly reasoning_tokens: number }
}

export const usageOf = ({ input, output, reasoning, total }: Usage.Usage): TokenUsage => ({
  input_tokens: input,
  output_tokens: output,
  total_tokens: total,
  ...(reasoning === undefined ? {} : { output_tokens_details: { reasoning_tokens: reasoning } })
})

/** What the model reads of a result. */
export const textOf = ({ content }: ToolOutput): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("")

export type Status = "completed" | "incomplete" | "failed"

/** A run that was cancelled, or waits, has no word of its own: it is not complete. */
export const statusOf = (status: RunStatus): Status => {
  switch (status) {
    case "completed":
    case "stopped":
    case "terminated":
      return "completed"
    case "incomplete":
    case "cancelled":
    case "suspended":
      return "incomplete"
    case "failed":
      return "failed"
  }
}

/** One answer of the model. */
export interface Response {
  readonly id: string
  readonly object: "response"
  readonly created_at: number
  readonly status: Status
  readonly model: string
  readonly output: ReadonlyArray<{
    readonly type: "message"
    readonly id: string
    readonly role: "assistant"
    readonly content: ReadonlyArray<
      | { readonly type: "output_text"; readonly text: string }
      | { readonly type: "thinking"; readonly thinking: string; readonly persistInHistory: boolean }
      | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly arguments: string }
    >
  }>
  readonly output_text: string
  readonly usage: TokenUsage
}

/** An answer as a response. */
export const responseOf = (answer: Message.Assistant): Response => ({
  id: answer.id,
  object: "response",
  created_at: answer.timestamp,
  status: answer.stopReason === "error" ? "failed" : "completed",
  model: answer.model,
  output: [{ type: "message", id: answer.id, role: "assistant", content: answer.content.map(part) }],
  output_text: Message.textOf(answer),
  usage: usageOf(answer.usage ?? Usage.zero)
})

const part = (block: Message.Assistant["content"][number]): Response["output"][number]["content"][number] => {
  switch (block.type) {
    case "text":
      return { type: "output_text", text: block.text }
    case "thinking":
      return { type: "thinking", thinking: block.text, persistInHistory: block.opaque !== undefined }
    case "toolCall":
      return { type: "tool_use", id: block.id, name: block.name, arguments: block.rawArguments }
  }
}
