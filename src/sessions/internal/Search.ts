/**
 * Finds messages by their text.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Message from "../../Message.ts"
import type { SessionError } from "../../Session.ts"
import type { Hit } from "./Contract.ts"
import { entryOf, newest } from "./Listing.ts"
import type { SessionStorage, StoredLine } from "../SessionStorage.ts"
import { excerptOf } from "./Titles.ts"

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
            error.reason._tag === "NotFound" ? Stream.empty : Stream.fail(error)
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
