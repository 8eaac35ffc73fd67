/**
 * The shared parts of oneringai's two event vocabularies: token counts, answers, tool output as text, and run
 * statuses.
 *
 * Source: Integrail/oneringai, src/domain/entities.
 */
import type { RunStatus, ToolOutput } from "../../AgentEvent.ts"
import * as Message from "../../Message.ts"
import * as Usage from "../../Usage.ts"

/**
 * Token counts.
 *
 * @since 0.1.0
 * @category models
 */
export interface TokenUsage {
  /** Input tokens, including cached ones. */
  readonly input_tokens: number
  /** Output tokens. */
  readonly output_tokens: number
  /** All tokens. */
  readonly total_tokens: number
  /** The output tokens spent on thinking, if the provider reports them. */
  readonly output_tokens_details?: { readonly reasoning_tokens: number }
}

/** Converts token counts. */
export const usageOf = ({ input, output, reasoning, total }: Usage.Usage): TokenUsage => ({
  input_tokens: input,
  output_tokens: output,
  total_tokens: total,
  ...(reasoning === undefined ? {} : { output_tokens_details: { reasoning_tokens: reasoning } })
})

/** The text of a result as the model reads it. */
export const textOf = ({ content }: ToolOutput): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("")

/**
 * The status of a run or an answer.
 *
 * @since 0.1.0
 * @category models
 */
export type Status = "completed" | "incomplete" | "failed"

/** Cancelled and suspended runs have no status in oneringai. They are incomplete. */
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

/**
 * A part of an answer.
 *
 * @since 0.2.0
 * @category models
 */
export type OutputContent =
  | { readonly type: "output_text"; readonly text: string }
  | { readonly type: "thinking"; readonly thinking: string; readonly persistInHistory: boolean }
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly arguments: string }

/**
 * One answer of the model.
 *
 * @since 0.1.0
 * @category models
 */
export interface Response {
  /** The id of the message. */
  readonly id: string
  /** Always `response`. */
  readonly object: "response"
  /** Milliseconds since the epoch. */
  readonly created_at: number
  /** `failed` if the answer ended with an error. */
  readonly status: Status
  /** The model that answered. */
  readonly model: string
  /** The answer as one message. */
  readonly output: ReadonlyArray<{
    readonly type: "message"
    readonly id: string
    readonly role: "assistant"
    readonly content: ReadonlyArray<OutputContent>
  }>
  /** The text of the answer. */
  readonly output_text: string
  /** The tokens of the model call. */
  readonly usage: TokenUsage
}

/** Converts an answer to a response. */
export const responseOf = (answer: Message.Assistant): Response => ({
  id: answer.id,
  object: "response",
  created_at: answer.timestamp,
  status: answer.stopReason === "error" ? "failed" : "completed",
  model: answer.model,
  output: [{ type: "message", id: answer.id, role: "assistant", content: contentOf(answer) }],
  output_text: Message.textOf(answer),
  usage: usageOf(answer.usage ?? Usage.zero)
})

/** Whether the answer broke off. */
export const hasFailed = ({ stopReason }: Message.Assistant): boolean =>
  stopReason === "error" || stopReason === "aborted"

/** Converts the blocks of an answer. */
export const contentOf = (answer: Message.Assistant): ReadonlyArray<OutputContent> =>
  answer.content.flatMap(part)

/** Sources, media and tools that the vendor ran have no place in oneringai's answers. */
const part = (block: Message.Assistant["content"][number]): ReadonlyArray<OutputContent> => {
  switch (block.type) {
    case "text":
      return [{ type: "output_text", text: block.text }]
    case "thinking":
      return [{ type: "thinking", thinking: block.text, persistInHistory: block.opaque !== undefined }]
    case "toolCall":
      return [{ type: "tool_use", id: block.id, name: block.name, arguments: block.rawArguments }]
    case "source":
    case "media":
    case "hostedTool":
      return []
  }
}
