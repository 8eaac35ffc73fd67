/**
 * Files of `effect/ai` as content of messages.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import * as Message from "../../Message.ts"

/** Reads a file. A text is a data URL, base64, or else the id of a file at the vendor. */
export const read = (part: Prompt.FilePart): Message.Image | Message.File => {
  const source = sourceOf(part)
  const isImage = ("mediaType" in source ? source.mediaType : part.mediaType).startsWith("image/")
  if (isImage && "url" in source) return { type: "image", source: { url: source.url } }
  if (isImage && "data" in source) return { type: "image", source }
  return { type: "file", source, ...(part.fileName === undefined ? {} : { name: part.fileName }) }
}

/** The bytes, the address or the id of a file. */
export const sourceOf = ({
  data,
  mediaType
}: Prompt.FilePart): Inline | Linked | { readonly fileId: string } => {
  if (data instanceof URL) return { url: data.href, mediaType }
  if (typeof data !== "string") return { data: Base64.encode(data), mediaType }
  const [, type = mediaType, base64 = data] = /^data:([^;,]+);base64,(.*)$/s.exec(data) ?? []
  return Result.isSuccess(Base64.decode(base64)) ? { data: base64, mediaType: type } : { fileId: data }
}

interface Inline {
  readonly data: string
  readonly mediaType: string
}

interface Linked {
  readonly url: string
  readonly mediaType: string
}

/** Reads a part of a tool result, which has texts and images. Another part becomes a text that names it. */
export const ofOutput = (part: Prompt.ToolModelOutputPart): Message.Text | Message.Image => {
  if (part.type === "text") return Message.text(part.text)
  const file = read(part)
  return file.type === "image" && part.mediaType.startsWith("image/")
    ? file
    : Message.text(Prompt.toolModelOutputToText([part]))
}
