/**
 * Blocks of messages as content of ACP.
 */
import type { ContentBlock, SessionUpdate, ToolCallContent } from "@agentclientprotocol/sdk"
import * as Predicate from "effect/Predicate"
import type * as Message from "../../Message.ts"

type Block = Message.User["content"][number] | Message.Media | Message.Source

/** A block as content, none where ACP has no place for it: a file by its id at a vendor, a source without an address. */
export const of = (block: Block): ReadonlyArray<ContentBlock> => {
  switch (block.type) {
    case "text":
      return block.text === "" ? [] : [{ type: "text", text: block.text }]
    case "image":
      return "url" in block.source
        ? [{ type: "resource_link", name: "image", uri: block.source.url }]
        : [inline(block.source, "image")]
    case "source":
      return block.url === undefined
        ? []
        : [{ type: "resource_link", name: block.title ?? block.url, uri: block.url }]
    case "media":
    case "file":
      return fileOf(block)
  }
}

const fileOf = (block: Message.File | Message.Media): ReadonlyArray<ContentBlock> => {
  const { source } = block
  const name = ("name" in block ? block.name : undefined) ?? "file"
  if ("data" in source) return [inline(source, name)]
  if (!("url" in source)) return []
  const { mediaType, url } = source
  return [
    { type: "resource_link", name, uri: url, ...(mediaType === undefined ? {} : { mimeType: mediaType }) }
  ]
}

const inline = (
  { data, mediaType }: { readonly data: string; readonly mediaType: string },
  name: string
): ContentBlock => {
  if (mediaType.startsWith("image/")) return { type: "image", data, mimeType: mediaType }
  if (mediaType.startsWith("audio/")) return { type: "audio", data, mimeType: mediaType }
  return {
    type: "resource",
    resource: { blob: data, mimeType: mediaType, uri: `attachment:${encodeURIComponent(name)}` }
  }
}

/** The content of a tool result. */
export const ofResult = (content: Message.ToolResult["content"]): Array<ToolCallContent> =>
  content.flatMap(of).map((block) => ({ type: "content", content: block }))

type Chunk = "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk"

/** A piece of a message. */
export const chunk = (sessionUpdate: Chunk, messageId: string, content: ContentBlock): SessionUpdate => ({
  sessionUpdate,
  messageId,
  content
})

/** Joins the pieces of text that stand beside one another in a message. */
export const joined = (updates: ReadonlyArray<SessionUpdate>): ReadonlyArray<SessionUpdate> => {
  const all: Array<SessionUpdate> = []
  for (const update of updates) {
    const whole = together(all.at(-1), update)
    if (whole === undefined) all.push(update)
    else all[all.length - 1] = whole
  }
  return all
}

const together = (before: SessionUpdate | undefined, update: SessionUpdate): SessionUpdate | undefined => {
  if (before === undefined || !isText(before) || !isText(update)) return undefined
  if (before.sessionUpdate !== update.sessionUpdate || before.messageId !== update.messageId) return undefined
  const text = before.content.text + update.content.text
  return { ...update, content: { type: "text", text } }
}

type TextChunk = Extract<SessionUpdate, { readonly sessionUpdate: Chunk }> & {
  readonly content: Extract<ContentBlock, { readonly type: "text" }>
}

const isText = (update: SessionUpdate): update is TextChunk =>
  (update.sessionUpdate === "agent_message_chunk" || update.sessionUpdate === "agent_thought_chunk") &&
  Predicate.hasProperty(update.content, "type") &&
  update.content.type === "text"
