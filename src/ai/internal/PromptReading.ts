/**
 * The conversion of a call of a `LanguageModel` to a request.
 *
 * Each message is converted once, so that a chat that sends the same prompt again, with more at its end, is encoded once.
 */
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import * as AiTool from "effect/ai/Tool"
import type * as Schema from "effect/Schema"
import * as Message from "../../Message.ts"
import type { ModelRequest, ToolDefinition } from "../../Provider.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import * as FilePart from "./FilePart.ts"
import * as PartMetadata from "../../reply/PartMetadata.ts"
import * as AiMetadata from "./AiMetadata.ts"

/** The provider, the model and the options of the requests. */
export interface Target {
  readonly provider: string
  readonly model: string
  readonly options: ModelOptions
}

/** Makes a function that converts calls for this target. It joins all system messages. */
export const reader = (target: Target): ((call: LanguageModel.ProviderOptions) => ModelRequest) => {
  const known = new WeakMap<Prompt.Message, ReadonlyArray<Message.ModelMessage>>()
  const messagesOf = (message: Prompt.Message) => {
    const found = known.get(message) ?? read(target, message)
    known.set(message, found)
    return found
  }
  return ({ prompt, responseFormat, toolChoice, tools }) => {
    const system = prompt.content.flatMap((message) => (message.role === "system" ? [message.content] : []))
    return {
      model: target.model,
      ...(system.length === 0 ? {} : { system: system.join("\n\n") }),
      messages: prompt.content.flatMap(messagesOf),
      tools: tools.map(definitionOf),
      options: {
        ...target.options,
        ...(tools.length === 0 ? {} : { toolChoice: toolChoiceOf(toolChoice) }),
        ...(responseFormat.type === "text" ? {} : { output: outputOf(responseFormat) })
      }
    }
  }
}

/** Returns the reason why no request can have the content of a call, or `undefined`. */
export const unsupported = ({ tools }: LanguageModel.ProviderOptions): AiError.AiErrorReason | undefined => {
  const hosted = tools.find(AiTool.isProviderDefined)
  return hosted === undefined
    ? undefined
    : new AiError.ToolConfigurationError({
        toolName: hosted.name,
        description: "a tool that a vendor defines cannot be used with this model"
      })
}

const strictOf = (tool: AiTool.Any): Pick<ToolDefinition, "strict"> => {
  const strict = AiTool.getStrictMode(tool)
  return strict === undefined ? {} : { strict }
}

const definitions = new WeakMap<AiTool.Any, ToolDefinition>()

const definitionOf = (tool: AiTool.Any): ToolDefinition => {
  const made = definitions.get(tool) ?? {
    name: tool.name,
    description: AiTool.getDescription(tool) ?? "",
    parameters: toJson(AiTool.getJsonSchema(tool)),
    ...strictOf(tool)
  }
  definitions.set(tool, made)
  return made
}

/** Converts a choice. `oneOf` has selected the tools already. */
const toolChoiceOf = (choice: LanguageModel.ToolChoice<string>): NonNullable<ModelOptions["toolChoice"]> => {
  if (typeof choice === "string") return choice
  return "tool" in choice ? { name: choice.tool } : (choice.mode ?? "auto")
}

const outputOf = ({
  objectName,
  schema
}: Extract<LanguageModel.ProviderOptions["responseFormat"], { readonly type: "json" }>) => ({
  name: objectName,
  schema: toJson(AiTool.getJsonSchemaFromSchema(schema))
})

const toJson = (value: unknown): Schema.Json => JSON.parse(JSON.stringify(value))

const read = (target: Target, message: Prompt.Message): ReadonlyArray<Message.ModelMessage> => {
  switch (message.role) {
    case "system":
      return []
    case "user":
      return [{ ...Message.user(message.content.map(readUser)), ...AiMetadata.toVendor(message.options) }]
    case "assistant":
      return readAnswer(target, message)
    case "tool":
      return message.content.flatMap((part) => (part.type === "tool-result" ? [readResult(part)] : []))
  }
}

/** Only parts of the user have members for vendors: the options of an answer are data of the model that gave it. */
const readUser = (part: Prompt.UserMessagePart): Message.User["content"][number] => ({
  ...(part.type === "text" ? Message.text(part.text) : FilePart.read(part)),
  ...AiMetadata.toVendor(part.options)
})

const readAnswer = (
  { model, provider }: Target,
  { content }: Prompt.AssistantMessage
): ReadonlyArray<Message.Assistant> => {
  const blocks = content.flatMap((part): ReadonlyArray<Message.Assistant["content"][number]> => {
    switch (part.type) {
      case "text":
        return [{ type: "text", text: part.text, ...opaqueOf(part) }]
      case "reasoning":
        return [{ type: "thinking", text: part.text, ...opaqueOf(part) }]
      case "tool-call":
        return [part.providerExecuted ? readHostedCall(part) : readCall(part)]
      case "tool-result":
        return part.providerExecuted ? [readHostedResult(part)] : []
      case "file":
        return readMedia(part)
      case "tool-approval-request":
        return []
    }
  })
  const stopReason = blocks.some((block) => block.type === "toolCall") ? "toolUse" : "stop"
  return blocks.length === 0 ? [] : [Message.assistant(blocks, { model, provider, stopReason })]
}

const readCall = (part: Prompt.ToolCallPart): Message.ToolCall => {
  const params = toJson(part.params ?? {})
  return {
    type: "toolCall",
    id: part.id,
    name: part.name,
    rawArguments: JSON.stringify(params),
    params,
    ...opaqueOf(part)
  }
}

const readHostedCall = (part: Prompt.ToolCallPart): Message.HostedTool => ({
  type: "hostedTool",
  id: part.id,
  name: part.name,
  params: AiMetadata.toJson(part.params),
  ...opaqueOf(part)
})

const readHostedResult = (part: Prompt.ToolResultPart): Message.HostedTool => ({
  type: "hostedTool",
  id: part.id,
  name: part.name,
  result: AiMetadata.toJson(part.result),
  ...(part.isFailure ? { isError: true } : {}),
  ...opaqueOf(part)
})

const readMedia = (part: Prompt.FilePart): ReadonlyArray<Message.Media> => {
  const source = FilePart.sourceOf(part)
  return "fileId" in source ? [] : [{ type: "media", source, ...AiMetadata.restOfMedia(part.options) }]
}

const opaqueOf = ({
  options
}: {
  readonly options: PartMetadata.Metadata
}): { readonly opaque?: Schema.Json } => {
  const opaque = options[AiMetadata.ownKey] ?? undefined
  return opaque === undefined ? {} : { opaque }
}

const readResult = (part: Prompt.ToolResultPart): Message.ToolResult =>
  Message.toolResult(part, part.modelOutput?.map(FilePart.ofOutput) ?? textOf(part.result), {
    isError: part.isFailure
  })

const textOf = (result: unknown): string =>
  typeof result === "string" ? result : (JSON.stringify(result) ?? "")
