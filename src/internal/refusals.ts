/**
 * The messages that an input guard refused: they stay in the transcript, and no request has them.
 */
import type { Message, MessageId } from "../Message.ts"
import * as Transcript from "../Transcript.ts"

/** A transcript, and the compaction that requests start from. */
interface Conversation {
  readonly messages: ReadonlyArray<Message>
  readonly compaction: Transcript.Compaction | undefined
}

/** The messages after the last answer, which a guard has just refused. */
export const news = (messages: ReadonlyArray<Message>): ReadonlyArray<MessageId> =>
  messages
    .slice(
      messages.findLastIndex((message) => message.role === "assistant" && !Transcript.isFailed(message)) + 1
    )
    .flatMap((message) => (isNews(message) ? [message.id] : []))

const isNews = (message: Message): boolean =>
  message.role === "custom" ? message.kind !== "developer" : message.role !== "assistant"

/**
 * The conversation without the refused messages. A compaction that keeps a refused message first keeps the next one first. A summary
 * of refused messages alone goes with them.
 */
export const without = ({ compaction, messages }: Conversation): Conversation => {
  const refused = new Set(
    messages.flatMap((message) => (message.role === "assistant" && message.refused) || [])
  )
  if (refused.size === 0) return { messages, compaction }
  const accepted = messages.filter(({ id }) => !refused.has(id))
  const start = messages.findIndex(({ id }) => id === compaction?.firstKept)
  const isRefused = ({ id, role }: Message) => role === "custom" || refused.has(id)
  if (compaction === undefined || messages.slice(0, Math.max(start, 0)).every(isRefused))
    return { messages: accepted, compaction: undefined }
  if (!refused.has(compaction.firstKept)) return { messages: accepted, compaction }
  const next = messages.find(({ id }, index) => index > start && !refused.has(id))
  return {
    messages: accepted,
    compaction: next === undefined ? compaction : { ...compaction, firstKept: next.id }
  }
}
