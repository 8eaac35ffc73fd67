/**
 * Prompts of version 4 of the specification as prompts of version 3, which differ in how a part has its file.
 */
import type {
  LanguageModelV3DataContent,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3ToolResultOutput,
  LanguageModelV3ToolResultPart,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart
} from "@ai-sdk/provider"
import * as Base64 from "effect/encoding/Base64"

type FileData = LanguageModelV4FilePart["data"]
type Content<V, Type> = Extract<V, { type: Type }>

/** Converts a prompt. */
export const promptOf = (prompt: LanguageModelV4Prompt): LanguageModelV3Prompt => prompt.map(messageOf)

const messageOf = (message: LanguageModelV4Message): LanguageModelV3Message => {
  switch (message.role) {
    case "system":
      return message
    case "user":
      return {
        ...message,
        content: message.content.map((part) => (part.type === "file" ? filePart(part) : part))
      }
    case "assistant":
      return { ...message, content: message.content.flatMap(answerPart) }
    case "tool":
      return {
        ...message,
        content: message.content.map((part) => (part.type === "tool-result" ? resultPart(part) : part))
      }
  }
}

type Answer = Extract<LanguageModelV4Message, { role: "assistant" }>["content"][number]
type Answer3 = Extract<LanguageModelV3Message, { role: "assistant" }>["content"][number]

/** Converts a part of an answer. Version 3 has no files of reasoning, and no parts of a vendor's own. */
const answerPart = (part: Answer): ReadonlyArray<Answer3> => {
  switch (part.type) {
    case "file":
      return [filePart(part)]
    case "tool-result":
      return [resultPart(part)]
    case "reasoning-file":
    case "custom":
      return []
    default:
      return [part]
  }
}

const filePart = (part: LanguageModelV4FilePart) => ({ ...part, data: dataOf(part.data) })

/** Converts the data of a file. Vendors read a text as the id of a file where it has the form of one. */
const dataOf = (data: FileData): LanguageModelV3DataContent => {
  switch (data.type) {
    case "data":
      return data.data
    case "url":
      return data.url
    case "text":
      return new TextEncoder().encode(data.text)
    case "reference":
      return Object.values(data.reference)[0] ?? ""
  }
}

const resultPart = (part: LanguageModelV4ToolResultPart): LanguageModelV3ToolResultPart => ({
  ...part,
  output: outputOf(part.output)
})

const outputOf = (output: LanguageModelV4ToolResultOutput): LanguageModelV3ToolResultOutput =>
  output.type === "content"
    ? {
        type: "content",
        value: output.value.map((item) => (item.type === "file" ? outputFile(item) : item))
      }
    : output

type Output = Content<LanguageModelV4ToolResultOutput, "content">["value"][number]
type Output3 = Content<LanguageModelV3ToolResultOutput, "content">["value"][number]

const outputFile = ({ data, mediaType }: Content<Output, "file">): Output3 => {
  const isImage = mediaType.startsWith("image")
  switch (data.type) {
    case "data": {
      const base64 = typeof data.data === "string" ? data.data : Base64.encode(data.data)
      return { type: isImage ? "image-data" : "file-data", data: base64, mediaType }
    }
    case "url":
      return { type: isImage ? "image-url" : "file-url", url: data.url.href }
    case "text":
      return { type: "text", text: data.text }
    case "reference":
      return { type: isImage ? "image-file-id" : "file-id", fileId: data.reference }
  }
}
