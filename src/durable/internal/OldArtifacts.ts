/**
 * Removes the large results of tools that no session names any more.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import * as SqlArtifactStore from "../../artifacts/SqlArtifactStore.ts"
import type { SessionError } from "../../Session.ts"
import { SessionStore } from "../../sessions/SessionStore.ts"

/** The time within which a session names what one of its calls has stored, however short the time to keep is. */
const day = Duration.days(1)

/** Removes those that are older than a duration, and returns their number. A session that cannot be read keeps all. */
export const sweep = Effect.fnUntraced(function* (
  maxAge: Duration.Input
): Effect.fn.Return<number, SessionError | SqlError, SessionStore | SqlClient.SqlClient> {
  const sessions = yield* SessionStore
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  const age = Duration.toMillis(Duration.max(Duration.fromInputUnsafe(maxAge), day))
  const old = yield* SqlArtifactStore.storedBefore(sql, (yield* Clock.currentTimeMillis) - age)
  const unnamed = new Map(old.map(({ created, id }) => [id, created]))
  if (unnamed.size === 0) return 0
  // A session without a newer entry cannot name any of them.
  const oldest = old.reduce((least, { created }) => Math.min(least, created), Infinity)
  // One page: a session that gets an entry moves to the first one.
  const { items } = yield* sessions.list({ limit: Number.MAX_SAFE_INTEGER })
  yield* Stream.fromIterable(items).pipe(
    Stream.filter(({ modified }) => modified >= oldest),
    Stream.flatMap(({ sessionId }) =>
      Stream.catchReason(sessions.export(sessionId, "jsonl"), "SessionError", "NotFound", () => Stream.empty)
    ),
    Stream.takeWhile(() => unnamed.size > 0),
    Stream.runForEach((text) =>
      Effect.sync(() => {
        for (const [id] of text.matchAll(SqlArtifactStore.made)) unnamed.delete(id)
      })
    )
  )
  yield* SqlArtifactStore.removeAll(sql, [...unnamed.keys()])
  return unnamed.size
})
