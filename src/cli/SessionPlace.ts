/** The store of the program: a file for each session, in a folder for each working directory, or what `--store` names. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { SessionError } from "../Session.ts"
import * as JsonlSessionStore from "../sessions/JsonlSessionStore.ts"
import * as SessionHome from "../sessions/SessionHome.ts"
import * as SessionStore from "../sessions/SessionStore.ts"
import { UsageError } from "./ExitCode.ts"
import type { Settings } from "./Settings.ts"
import type { StoreAddress } from "./StoreAddress.ts"

/** The settings that name the place. */
export type Place = Pick<Settings, "cwd" | "store">

/** A store, and the working directory whose sessions a list has; `undefined` for all sessions of a folder that the user named. */
export interface Sessions {
  readonly store: SessionStore.Service
  readonly cwd: string
  readonly listed: { readonly cwd?: string }
}

/** Opens the store, whose connections the scope holds. */
export const at = Effect.fnUntraced(function* (place: Place) {
  const path = yield* Path.Path
  const cwd = path.resolve(place.cwd)
  const address = Option.getOrUndefined(place.store)
  const store = yield* address === undefined ? inHome : open(address)
  const sessions: Sessions = { store, cwd, listed: address?._tag === "Files" ? {} : { cwd } }
  return sessions
})

const open = Effect.fnUntraced(function* (address: StoreAddress) {
  const path = yield* Path.Path
  if (address._tag === "Files") return yield* files({ directory: path.resolve(address.directory) })
  const { postgres, sqlite } = yield* Effect.promise(() => import("./DatabaseStore.ts"))
  return yield* address._tag === "Sqlite" ? sqlite(path.resolve(address.filename)) : postgres(address.url)
})

const files = (folders: JsonlSessionStore.Files) =>
  Effect.map(JsonlSessionStore.storage(folders), (storage) => SessionStore.make(storage))

const inHome = Effect.gen(function* () {
  const path = yield* Path.Path
  return yield* files({ root: path.join(yield* Effect.orDie(SessionHome.home), "sessions") })
})

/** Names a session that does not exist as wrong usage. */
export const known = <A, R>(
  effect: Effect.Effect<A, SessionError, R>
): Effect.Effect<A, SessionError | UsageError, R> =>
  Effect.catchReason(effect, "SessionError", "NotFound", (_, { sessionId }) =>
    Effect.fail(new UsageError({ detail: `There is no session ${JSON.stringify(sessionId)}.` }))
  )
