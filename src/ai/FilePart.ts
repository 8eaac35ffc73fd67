/**
 * What `effect/ai` calls a file, as content of ours.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import * as Message from "../Message.ts"

/** A text is a data URL, base64, or, when it is neither, what a vendor calls a file that it has. */
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

/** Our results hold texts and images; of anything else the model is told that it was there. */
export const ofOutput = (part: Prompt.ToolModelOutputPart): Message.Text | Message.Image => {
  if (part.type === "text") return Message.text(part.text)
  const file = read(part)
  return file.type === "image" && part.mediaType.startsWith("image/")
    ? file
    : Message.text(Prompt.toolModelOutputToText([part]))
}
