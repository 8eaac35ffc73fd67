/**
 * The messages of a prompt that joined a run, as its session has them.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Problem from "../api/Problem.ts"
import { Queue } from "../sessions/CustomData.ts"
import type { SessionEntry } from "../sessions/SessionEntry.ts"
import type * as SessionStore from "../sessions/SessionStore.ts"
import * as SessionProblem from "./SessionProblem.ts"

/** Returns whether messages reached their session, by their ids. */
export type HasMessages = (
  ids: ReadonlyArray<string>
) => Effect.Effect<boolean, Problem.SessionNotFound | Problem.StorageUnavailable>

/** Looks for messages in the entries of a session: in its queues and in each of its branches. */
export const inSession =
  (sessions: SessionStore.Service, sessionId: string): HasMessages =>
  (ids) =>
    Effect.map(SessionProblem.reading(sessions.read(sessionId)), ({ entries }) => {
      const stored = new Set(entries.flatMap(idsIn))
      return ids.every((id) => stored.has(id))
    })

const readQueue = Schema.decodeUnknownResult(Queue)

/** The ids of the messages that an entry adds. */
const idsIn = (entry: SessionEntry): ReadonlyArray<string> => {
  if (entry.type === "message") return [entry.message.id]
  if (entry.type !== "custom" || entry.kind !== "queue") return []
  const read = readQueue(entry.data)
  return Result.isSuccess(read) && "messages" in read.success ? read.success.messages.map(({ id }) => id) : []
}
