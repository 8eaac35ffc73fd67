/**
 * The content of a prompt of an editor, as the model reads it.
 */
import type { ContentBlock, RequestError } from "@agentclientprotocol/sdk"
import * as Effect from "effect/Effect"
import type * as Message from "../../Message.ts"
import * as AcpRefusal from "./AcpRefusal.ts"

/**
 * The kinds of content that the model reads.
 *
 * @category options
 * @since 0.2.0
 */
export interface Accepts {
  /** Whether it reads images. Default `true`. */
  readonly image?: boolean
  /** Whether it reads recordings. Default `false`. */
  readonly audio?: boolean
}

type PromptBlock = Message.User["content"][number]

/** Fails for a prompt without content, and for content that the model does not read. */
export const read = (
  prompt: ReadonlyArray<ContentBlock>,
  accepts: Accepts
): Effect.Effect<ReadonlyArray<PromptBlock>, RequestError> =>
  prompt.length === 0
    ? Effect.fail(AcpRefusal.invalid("The prompt has no content."))
    : Effect.forEach(prompt, (block) => blockOf(block, accepts))

const blockOf = (
  block: ContentBlock,
  { audio = false, image = true }: Accepts
): Effect.Effect<PromptBlock, RequestError> => {
  switch (block.type) {
    case "text":
      return Effect.succeed({ type: "text", text: block.text })
    case "image":
      if (!image) return Effect.fail(AcpRefusal.invalid("The model does not read images."))
      return Effect.succeed(promptFileOf(block.data, block.mimeType, undefined))
    case "audio":
      if (!audio) return Effect.fail(AcpRefusal.invalid("The model does not read recordings."))
      return Effect.succeed(promptFileOf(block.data, block.mimeType, undefined))
    case "resource_link":
      return Effect.succeed({ type: "text", text: `[${block.name}](${block.uri})` })
    case "resource": {
      const { resource } = block
      if ("text" in resource)
        return Effect.succeed({
          type: "text",
          text: `<resource uri=${JSON.stringify(resource.uri)}>\n${resource.text.trimEnd()}\n</resource>`
        })
      const mediaType = resource.mimeType ?? "application/octet-stream"
      return Effect.succeed(promptFileOf(resource.blob, mediaType, nameOf(resource.uri)))
    }
    default:
      return Effect.fail(AcpRefusal.invalid("The prompt has content of an unknown type."))
  }
}

const promptFileOf = (data: string, mediaType: string, name: string | undefined): PromptBlock =>
  mediaType.startsWith("image/")
    ? { type: "image", source: { data, mediaType } }
    : { type: "file", source: { data, mediaType }, ...(name === undefined ? {} : { name }) }

const nameOf = (uri: string): string | undefined => {
  const last = uri.split(/[?#]/)[0]?.split("/").at(-1)
  return last === undefined || last === "" ? undefined : last
}
