/** Encodes the content of a message for both APIs of OpenAI: a text, or a list of parts. */
import type * as Message from "../../Message.ts"
import type { Reason } from "../../ProviderError.ts"
import * as Json from "./json.ts"
import * as Members from "./members.ts"
import { isReason } from "../Protocol.ts"

export interface Part {
  readonly type: string
  readonly [field: string]: unknown
}

/** The content as JSON. OpenAI rejects an empty text as a part, and a list without parts. */
export const encodeContent = (
  provider: string,
  content: Message.User["content"],
  textType: string,
  toMedia: (block: Message.Image | Message.File) => Part | Reason
): string | Reason => {
  const [first] = content
  const isPlain = content.length === 1 && first?.type === "text" && Members.of(provider, first) === undefined
  if (isPlain) return Json.encode(first.text)
  const parts: Array<object> = []
  for (const block of content) {
    if (block.type === "text" && block.text === "") continue
    const part = block.type === "text" ? { type: textType, text: block.text } : toMedia(block)
    if (isReason(part)) return part
    parts.push(Members.over(provider, block, part))
  }
  return Json.encode(parts.length === 0 ? "" : parts)
}

export const dataUrl = (source: { readonly data: string; readonly mediaType: string }): string =>
  `data:${source.mediaType};base64,${source.data}`
