/**
 * Files of `effect/ai` as content of messages.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import * as Message from "../Message.ts"

/** Reads a file. A text is a data URL, base64, or else the id of a file at the vendor. */
export const read = ({ data, mediaType }: Prompt.FilePart): Message.Image | Message.File => {
  if (data instanceof URL) return { type: "image", source: { url: data.href } }
  if (typeof data !== "string") return inline(Base64.encode(data), mediaType)
  const [, type = mediaType, base64 = data] = /^data:([^;,]+);base64,(.*)$/s.exec(data) ?? []
  return Result.isSuccess(Base64.decode(base64))
    ? inline(base64, type)
    : { type: "file", source: { fileId: data } }
}

const inline = (data: string, mediaType: string): Message.Image | Message.File =>
  mediaType.startsWith("image/")
    ? { type: "image", source: { data, mediaType } }
    : { type: "file", source: { data, mediaType } }

/** Reads a part of a tool result, which has texts and images. Another part becomes a text that names it. */
export const ofOutput = (part: Prompt.ToolModelOutputPart): Message.Text | Message.Image => {
  if (part.type === "text") return Message.text(part.text)
  const file = read(part)
  return file.type === "image" && part.mediaType.startsWith("image/")
    ? file
    : Message.text(Prompt.toolModelOutputToText([part]))
}
