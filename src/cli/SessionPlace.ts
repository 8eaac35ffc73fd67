/** The store of the program: a file for each session, in a folder for each working directory. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { SessionError } from "../Session.ts"
import * as JsonlSessionStore from "../sessions/JsonlSessionStore.ts"
import * as SessionHome from "../sessions/SessionHome.ts"
import * as SessionStore from "../sessions/SessionStore.ts"
import { UsageError } from "./ExitCode.ts"
import type { Settings } from "./Settings.ts"

/** The settings that name the place. */
export type Place = Pick<Settings, "cwd" | "sessionDir">

/** A store, and the working directory whose sessions a list has; `undefined` for all sessions of `--session-dir`. */
export interface Sessions {
  readonly store: SessionStore.Service
  readonly cwd: string
  readonly listed: { readonly cwd?: string }
}

/** Opens the store. */
export const at = Effect.fnUntraced(function* (place: Place) {
  const path = yield* Path.Path
  const cwd = path.resolve(place.cwd)
  const directory = Option.map(place.sessionDir, (folder) => path.resolve(folder))
  const files = Option.isSome(directory)
    ? { directory: directory.value }
    : { root: path.join(yield* Effect.orDie(SessionHome.home), "sessions") }
  const store = SessionStore.make(yield* JsonlSessionStore.storage(files))
  const sessions: Sessions = { store, cwd, listed: Option.isSome(directory) ? {} : { cwd } }
  return sessions
})

/** Names a session that does not exist as wrong usage. */
export const known = <A, R>(
  effect: Effect.Effect<A, SessionError, R>
): Effect.Effect<A, SessionError | UsageError, R> =>
  Effect.catchReason(effect, "SessionError", "NotFound", (_, { sessionId }) =>
    Effect.fail(new UsageError({ detail: `There is no session ${JSON.stringify(sessionId)}.` }))
  )
