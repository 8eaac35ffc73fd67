/**
 * The ids of the messages of a session.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Queue } from "../sessions/CustomData.ts"
import type { SessionEntry } from "../sessions/SessionEntry.ts"

/** The ids of the messages that entries add: to each of the branches, and to the queues. */
export const of = (entries: ReadonlyArray<SessionEntry>): ReadonlySet<string> =>
  new Set(entries.flatMap(idsIn))

const readQueue = Schema.decodeUnknownResult(Queue)

const idsIn = (entry: SessionEntry): ReadonlyArray<string> => {
  if (entry.type === "message") return [entry.message.id]
  if (entry.type !== "custom" || entry.kind !== "queue") return []
  const read = readQueue(entry.data)
  return Result.isSuccess(read) && "messages" in read.success ? read.success.messages.map(({ id }) => id) : []
}
