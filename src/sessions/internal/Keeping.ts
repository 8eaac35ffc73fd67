/**
 * Removes sessions that exceed the bounds of a store.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { SessionError } from "../../Session.ts"
import type { Retention } from "./Contract.ts"
import { newest } from "./Listing.ts"
import type { SessionStorage, StoredSession } from "../SessionStorage.ts"

export const retain = (
  storage: SessionStorage,
  retention: Retention
): Effect.Effect<ReadonlyArray<string>, SessionError> =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const sessions = yield* newest(storage)
    const kept = new Set(retention.keep)
    const due = excess(sessions, retention, now).filter(({ sessionId }) => !kept.has(sessionId))
    const removed = yield* Effect.forEach(due, ({ sessionId }) =>
      storage.remove(sessionId).pipe(
        Effect.as([sessionId]),
        Effect.catchTag("SessionError", (error) =>
          error.reason._tag === "Locked" || error.reason._tag === "NotFound"
            ? Effect.succeed([])
            : Effect.fail(error)
        )
      )
    )
    return removed.flat()
  })

/** The sessions that exceed a bound, those with the oldest entries first. */
const excess = (
  sessions: ReadonlyArray<StoredSession>,
  { maxAge = Duration.infinity, maxBytes = Infinity, maxCount = Infinity }: Retention,
  now: number
): ReadonlyArray<StoredSession> => {
  const oldest = now - Duration.toMillis(maxAge)
  let sum = 0
  return sessions
    .filter(({ bytes, modified }, index) => {
      sum += bytes
      return index >= maxCount || modified < oldest || sum > maxBytes
    })
    .reverse()
}
