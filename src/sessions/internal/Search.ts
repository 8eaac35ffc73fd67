/**
 * Finds messages by their text.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Message from "../../Message.ts"
import type { SessionError } from "../../Session.ts"
import type { Hit } from "./Contract.ts"
import { entryOf, excerptOf, newest } from "./Listing.ts"
import type { SessionStorage, StoredLine } from "../SessionStorage.ts"
import * as Result from "effect/Result"
import type * as SessionEntry from "../SessionEntry.ts"

export const search = (
  storage: SessionStorage,
  text: string,
  where: { readonly cwd?: string } = {}
): Stream.Stream<Hit, SessionError> => {
  const wanted = text.toLowerCase()
  // As it stands in a line of JSON, which rules most lines out before they are parsed.
  const escaped = JSON.stringify(wanted).slice(1, -1)
  const hits = (sessionId: string) => (line: StoredLine) =>
    typeof line === "string" && line.toLowerCase().includes(escaped) ? hitOf(sessionId, line, wanted) : []
  return Stream.unwrap(
    Effect.map(newest(storage, where), (sessions) =>
      Stream.flatMap(Stream.fromIterable(sessions), ({ sessionId }) =>
        storage.lines(sessionId, ["message"]).pipe(
          Stream.flatMap((lines) => Stream.fromIterable(lines.flatMap(hits(sessionId)))),
          // Another process may have removed it.
          Stream.catchTag("SessionError", (error) =>
            error.reason._tag === "Missing" ? Stream.empty : Stream.fail(error)
          )
        )
      )
    )
  )
}

const hitOf = (sessionId: string, line: string, wanted: string): ReadonlyArray<Hit> => {
  const entry = entryOf(line)
  if (entry?.type !== "message" || entry.message.role === "custom") return []
  const text = Message.textOf(entry.message)
  const at = text.toLowerCase().indexOf(wanted)
  const { role } = entry.message
  return at === -1
    ? []
    : [{ sessionId, entryId: entry.id, role, excerpt: excerptOf(text, at, wanted.length) }]
}

// ───────────────────────── The session of a run

/** The id of the session in which a run took place, `undefined` if there is none. A session that cannot be read is no obstacle. */
export const sessionOf = (
  storage: SessionStorage,
  runId: string
): Effect.Effect<string | undefined, SessionError> =>
  Effect.gen(function* () {
    let unreadable: SessionError | undefined
    for (const { sessionId } of yield* newest(storage, { runId })) {
      const found = yield* Effect.result(originOf(storage, sessionId, runId))
      if (Result.isFailure(found)) unreadable ??= found.failure
      else if (found.success !== undefined) return found.success
    }
    // Another process may have removed one.
    return unreadable === undefined || unreadable.reason._tag === "Missing" ? undefined : yield* unreadable
  })

/** The session itself if it has the run, or the one that it has the run from. */
const originOf = (
  storage: SessionStorage,
  sessionId: string,
  runId: string
): Effect.Effect<string | undefined, SessionError> =>
  Effect.flatMap(look(storage, sessionId, runId), ({ isFound, start }) => {
    if (!isFound) return Effect.undefined
    if (start?.forkedFrom === undefined) return Effect.succeed(sessionId)
    return originOf(storage, start.forkedFrom.sessionId, runId).pipe(
      Effect.catchTag("SessionError", () => Effect.undefined),
      Effect.map((origin) => origin ?? sessionId)
    )
  })

interface Seen {
  readonly start?: SessionEntry.Start
  readonly isFound: boolean
}

const nothing = (): Seen => ({ isFound: false })

/** Whether a session has a run, and its first entry. Reads no more than it must. */
const look = (storage: SessionStorage, sessionId: string, runId: string) => {
  // As they stand in a line of JSON, which rule most lines out before they are parsed.
  const member = `"runId":${JSON.stringify(runId)}`
  const withLine = (seen: Seen, line: StoredLine): Seen => {
    if (seen.isFound || typeof line !== "string") return seen
    if (!line.includes(member) && !line.includes('"type":"session"')) return seen
    const entry = entryOf(line)
    if (entry?.type === "session") return { start: entry, ...seen }
    return entry?.type === "run" && entry.runId === runId ? { ...seen, isFound: true } : seen
  }
  return storage.lines(sessionId, ["session", "run"]).pipe(
    Stream.scan(nothing, (seen, lines) => lines.reduce(withLine, seen)),
    Stream.takeUntil(({ isFound }) => isFound),
    Stream.runFold(nothing, (_, seen) => seen)
  )
}
