/**
 * The shared parts of oneringai's two event vocabularies: token counts, answers, tool output as text, and run
 * statuses.
 *
 * Source: Integrail/oneringai, src/domain/entities.
 */
import * as Duration from "effect/Duration"
import type * as Schema from "effect/Schema"
import type { RunStatus, ToolOutput } from "../../AgentEvent.ts"
import * as Message from "../../Message.ts"
import type { ToolDefinition } from "../../Provider.ts"
import type { ModelOptions, RunOptions } from "../../RunOptions.ts"
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
const contentOf = (answer: Message.Assistant): ReadonlyArray<OutputContent> => answer.content.flatMap(part)

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

// ───────────────────────── Inputs

// The data that oneringai's agent gets and sends: its configuration, input items, tools, and the options of a model call.
//
// Source: Integrail/oneringai, src/domain/entities and src/domain/interfaces.

/**
 * A part of a message that the model reads.
 *
 * @since 0.2.0
 * @category models
 */
export type InputContent =
  | { readonly type: "input_text"; readonly text: string }
  | {
      readonly type: "input_image_url"
      readonly image_url: { readonly url: string; readonly detail?: Message.ImageDetail }
    }
  | { readonly type: "input_file"; readonly file_id: string }
  /** `error` is the text of a result that is an error. Its `content` is empty. */
  | {
      readonly type: "tool_result"
      readonly tool_use_id: string
      readonly content: string
      readonly error?: string
    }
  | OutputContent

/**
 * A message that the model reads.
 *
 * **Details**
 *
 * The results of the calls of one answer are one message of the user.
 *
 * @since 0.2.0
 * @category models
 */
export interface InputItem {
  /** Always `message`. */
  readonly type: "message"
  /** The role of the message. */
  readonly role: "user" | "assistant"
  /** The parts of the message, in order. */
  readonly content: ReadonlyArray<InputContent>
}

/**
 * A tool that the model may call.
 *
 * @since 0.2.0
 * @category models
 */
export interface FunctionTool {
  /** Always `function`. */
  readonly type: "function"
  /** The name, the description and the JSON Schema of the params. */
  readonly function: {
    readonly name: string
    readonly description: string
    readonly parameters: Schema.Json
  }
}

/**
 * The options of a model call.
 *
 * @since 0.2.0
 * @category models
 */
export interface GenerateOptions {
  /** The id of the model. */
  readonly model: string
  /** The conversation, oldest message first. */
  readonly input: ReadonlyArray<InputItem>
  /** The system prompt. Default none. */
  readonly instructions?: string
  /** The tools of the agent. Default none. */
  readonly tools?: ReadonlyArray<FunctionTool>
  /** Whether the model may or must call tools, or the one tool that it must call. */
  readonly tool_choice:
    | "auto"
    | "none"
    | "required"
    | { readonly type: "function"; readonly function: { readonly name: string } }
  /** The randomness of the answer. Default: the vendor's. */
  readonly temperature?: number
  /** The most tokens of the answer. Default: the provider's. */
  readonly max_output_tokens?: number
}

/**
 * The configuration of a run.
 *
 * @since 0.2.0
 * @category models
 */
export interface Config {
  /** The id of the model. */
  readonly model: string
  /** The prompt of the run. */
  readonly input: ReadonlyArray<InputItem>
  /** The system prompt. Default none. */
  readonly instructions?: string
  /** The tools of the agent. */
  readonly tools: ReadonlyArray<FunctionTool>
  /** The randomness of the answers. Default: the vendor's. */
  readonly temperature?: number
  /** `limits.maxTurns`. */
  readonly maxIterations: number
  /** Bounds of the run: `maxExecutionTime` in milliseconds. Default none. */
  readonly limits?: {
    readonly maxExecutionTime?: number
    readonly maxToolCalls?: number
    readonly maxContextSize?: number
  }
  /** The treatment of hooks and tools that fail. Default: that of the run. */
  readonly errorHandling?: Pick<RunOptions, "hookFailureMode" | "toolFailureMode"> & {
    /** `maxConsecutiveHookErrors`. */
    readonly maxConsecutiveErrors?: number
  }
}

/**
 * The parts of an agent that no event of a run has: the system prompt, the tools, and the messages before the run.
 *
 * @since 0.2.0
 * @category options
 */
export interface Context {
  /** The system prompt. Default none. */
  readonly system?: string | undefined
  /** The tools: those of a list, or `definitions` of a registry. Default none. */
  readonly tools?: ReadonlyArray<Pick<ToolDefinition, "name" | "description" | "parameters">>
  /** The messages before the first prompt. Default none. */
  readonly messages?: ReadonlyArray<Message.Message>
}

/** Converts messages. Leaves out custom messages, and answers that failed, which no request has. */
const inputOf = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<InputItem> => {
  const items: Array<InputItem> = []
  let results: Array<InputContent> | undefined
  for (const message of messages) {
    if (message.role === "toolResult") {
      if (results === undefined) items.push({ type: "message", role: "user", content: (results = []) })
      results.push(resultOf(message))
      continue
    }
    results = undefined
    if (message.role === "user")
      items.push({ type: "message", role: "user", content: message.content.flatMap(given) })
    if (message.role === "assistant" && !hasFailed(message))
      items.push({ type: "message", role: "assistant", content: contentOf(message) })
  }
  return items
}

const resultOf = (result: Message.ToolResult): InputContent => {
  const text = Message.textOf(result)
  const call = { type: "tool_result", tool_use_id: result.toolCallId } as const
  return result.isError ? { ...call, content: "", error: text } : { ...call, content: text }
}

/** Files that the vendor does not store have no place in oneringai's input. */
const given = (block: Message.User["content"][number]): ReadonlyArray<InputContent> => {
  const { source } = block.type === "text" ? { source: undefined } : block
  if (block.type === "text") return [{ type: "input_text", text: block.text }]
  if (block.type === "file")
    return source !== undefined && "fileId" in source ? [{ type: "input_file", file_id: source.fileId }] : []
  const detail = block.detail === undefined ? {} : { detail: block.detail }
  const url = "url" in block.source ? block.source.url : inline(block.source)
  return [{ type: "input_image_url", image_url: { url, ...detail } }]
}

const inline = ({ data, mediaType }: { readonly data: string; readonly mediaType: string }): string =>
  `data:${mediaType};base64,${data}`

const toolsOf = ({ tools = [] }: Context): ReadonlyArray<FunctionTool> =>
  tools.map(({ description, name, parameters }) => ({
    type: "function",
    function: { name, description, parameters }
  }))

const instructionsOf = ({ system }: Context) => (system === undefined ? {} : { instructions: system })

const temperatureOf = ({ temperature }: ModelOptions) => (temperature === undefined ? {} : { temperature })

/** The options of a model call. */
export const optionsOf = (
  context: Context,
  messages: ReadonlyArray<Message.Message>,
  model: string,
  options: ModelOptions
): GenerateOptions => {
  const { maxTokens, toolChoice = "auto" } = options
  const tools = toolsOf(context)
  return {
    model,
    input: inputOf(messages),
    ...instructionsOf(context),
    ...(tools.length === 0 ? {} : { tools }),
    tool_choice:
      typeof toolChoice === "string" ? toolChoice : { type: "function", function: { name: toolChoice.name } },
    ...temperatureOf(options),
    ...(maxTokens === undefined ? {} : { max_output_tokens: maxTokens })
  }
}

/** The configuration of a run. */
export const configOf = (
  context: Context,
  prompts: ReadonlyArray<Message.Message>,
  model: string,
  options: Partial<RunOptions>
): Config => {
  const {
    hookFailureMode,
    limits = {},
    maxConsecutiveHookErrors,
    modelOptions = {},
    toolFailureMode
  } = options
  const errorHandling = {
    ...(hookFailureMode === undefined ? {} : { hookFailureMode }),
    ...(toolFailureMode === undefined ? {} : { toolFailureMode }),
    ...(maxConsecutiveHookErrors === undefined ? {} : { maxConsecutiveErrors: maxConsecutiveHookErrors })
  }
  const bounds = boundsOf(limits)
  return {
    model,
    input: inputOf(prompts),
    ...instructionsOf(context),
    tools: toolsOf(context),
    ...temperatureOf(modelOptions),
    maxIterations: limits.maxTurns ?? 50,
    ...(Object.keys(bounds).length === 0 ? {} : { limits: bounds }),
    ...(Object.keys(errorHandling).length === 0 ? {} : { errorHandling })
  }
}

const boundsOf = ({
  executionTime,
  maxContextSize,
  maxToolCalls
}: NonNullable<RunOptions["limits"]>): NonNullable<Config["limits"]> => ({
  ...(executionTime === undefined
    ? {}
    : { maxExecutionTime: Duration.toMillis(Duration.fromInputUnsafe(executionTime)) }),
  ...(maxToolCalls === undefined ? {} : { maxToolCalls }),
  ...(maxContextSize === undefined ? {} : { maxContextSize })
})
