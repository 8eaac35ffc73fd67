/** The messages of a run as messages of AG-UI. */
import type * as Schema from "effect/Schema"
import * as Message from "../../Message.ts"
import type { AgUiMessage, JsonObject } from "./AgUiEvent.ts"
import { callIdOf, type Producer, type State, wholeOf } from "./AgUiState.ts"

type Block = Message.Assistant["content"][number]

/** The answer of an agent: a message for each block of thinking, then the words and the calls. */
export const answer = (
  state: State,
  runId: string,
  { tag }: Producer,
  message: { readonly id: string; readonly content: ReadonlyArray<Block | undefined> },
  metadata: JsonObject = {}
): ReadonlyArray<AgUiMessage> => {
  const reasoning = message.content.flatMap((block, at) =>
    block?.type === "thinking"
      ? [{ id: reasoningId(message.id, at), role: "reasoning", content: block.text, ...tag }]
      : []
  )
  const toolCalls = message.content.flatMap((block) => {
    if (block?.type !== "toolCall") return []
    const id = callIdOf(state, { runId, toolCallId: block.id })
    return [{ id, type: "function", function: { name: block.name, arguments: block.rawArguments } }]
  })
  const content = message.content.reduce(
    (all, block) => (block?.type === "text" ? all + block.text : all),
    ""
  )
  return [
    ...reasoning,
    {
      id: message.id,
      role: "assistant",
      content,
      ...(toolCalls.length === 0 ? {} : { toolCalls }),
      ...tag,
      ...metadata
    }
  ]
}

export const reasoningId = (messageId: string, contentIndex: number) => `${messageId}:${contentIndex}`

export const user = (message: Message.User): AgUiMessage => ({
  id: message.id,
  role: "user",
  content: message.content.every(({ type }) => type === "text")
    ? Message.textOf(message)
    : message.content.map(partOf),
  ...wholeOf(message)
})

export const toolResult = (state: State, runId: string, { tag }: Producer, message: Message.ToolResult) => ({
  id: message.id,
  role: "tool",
  toolCallId: callIdOf(state, { runId, toolCallId: message.toolCallId }),
  content: contentOf(message.content),
  ...(message.isError ? { error: Message.textOf(message) } : {}),
  ...tag,
  ...wholeOf(message)
})

/** Text, or a list of parts where it has images. */
export const contentOf = (content: Message.ToolResult["content"]): string | Array<JsonObject> =>
  content.every(({ type }) => type === "text") ? Message.textOf({ content }) : content.map(partOf)

const partOf = (block: Message.User["content"][number]): JsonObject => {
  if (block.type === "text") return { type: "text", text: block.text }
  if (block.type === "image") return { type: "image", source: sourceOf(block.source) }
  const { name, source } = block
  const metadata = name === undefined ? {} : { metadata: { fileName: name } }
  return { type: "document", source: sourceOf(source), ...metadata }
}

const sourceOf = (source: Message.Image["source"] | Message.File["source"]): JsonObject => {
  if ("data" in source) return { type: "data", value: source.data, mimeType: source.mediaType }
  if ("fileId" in source) return { type: "file", value: source.fileId }
  const mimeType = "mediaType" in source ? source.mediaType : undefined
  return { type: "url", value: source.url, ...(mimeType === undefined ? {} : { mimeType }) }
}

/** The conversation with a message that may be in it under its id. It keeps the members that the client gave the message. */
export const added = (
  messages: ReadonlyArray<AgUiMessage>,
  more: ReadonlyArray<AgUiMessage>
): ReadonlyArray<AgUiMessage> =>
  more.reduce((all, message) => {
    const at = all.findIndex(({ id }) => id === message.id)
    return at === -1 ? [...all, message] : all.with(at, { ...all[at], ...message })
  }, messages)

/** The whole conversation, with the answers as far as they have come. */
export const snapshot = (state: State, retracted: ReadonlyArray<string>): Array<AgUiMessage> => {
  const open = [...state.producers].flatMap(([runId, producer]) =>
    producer.streamed.reply.content.length === 0
      ? []
      : answer(state, runId, producer, { id: producer.answerId, content: producer.streamed.reply.content })
  )
  const messages = [...state.messages, ...open]
  // A client drops retracted thinking only where the snapshot has some.
  if (retracted.length === 0 || messages.some(({ role }) => role === "reasoning")) return messages
  return [...messages, ...retracted.map((id) => ({ id, role: "reasoning", content: "" }))]
}

/** A custom message: an activity, which clients keep to themselves. */
export const activity = ({ data, kind }: Message.Custom): { readonly [key: string]: Schema.Json } => ({
  kind,
  data
})
