/**
 * Reads a session whole.
 */
import * as Effect from "effect/Effect"
import * as Message from "../../Message.ts"
import type { SessionError } from "../../Session.ts"
import type { Contents } from "./Contract.ts"
import * as Reading from "./Reading.ts"
import type * as SessionEntry from "../SessionEntry.ts"
import { firstUser } from "./SessionState.ts"
import type { SessionStorage } from "../SessionStorage.ts"
import { titleOf } from "./Titles.ts"

export const read = (storage: SessionStorage, sessionId: string): Effect.Effect<Contents, SessionError> =>
  Effect.gen(function* () {
    const entries: Array<SessionEntry.SessionEntry> = []
    const stored = yield* storage.find(sessionId)
    const { damage, state } = yield* Reading.read(storage, sessionId, (entry) => void entries.push(entry))
    const { name, start } = state
    const user = firstUser(state)
    const session = {
      ...stored,
      cwd: start?.cwd ?? "",
      ...(name === "" ? {} : { name }),
      title: name === "" ? titleOf(user === undefined ? "" : Message.textOf(user)) : name
    }
    return { session, entries, labels: state.labels, view: state.restored(), damage }
  })
