/** Opens the session of a run: a new one, or the one that `--continue`, `--resume` or `--fork` name. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Session } from "../Session.ts"
import { UsageError } from "./ExitCode.ts"
import * as SessionPlace from "./SessionPlace.ts"
import type { Settings } from "./Settings.ts"

/** The settings that choose the session. */
type Options = SessionPlace.Place & Pick<Settings, "continue" | "fork" | "name" | "resume">

/** A session, and the store of its large tool results. */
export interface Opened {
  readonly session: Session
  readonly artifacts: SessionPlace.Sessions["artifacts"]
}

/** Opens the session for writing. Fails with `UsageError` if there is no such session. */
export const open = Effect.fnUntraced(function* (options: Options) {
  const { artifacts, ...sessions } = yield* SessionPlace.at(options)
  return { session: yield* sessionIn(sessions, options), artifacts } satisfies Opened
})

const sessionIn = Effect.fnUntraced(function* (
  { cwd, listed, store }: Omit<SessionPlace.Sessions, "artifacts">,
  options: Options
) {
  const { fork, name, resume } = options
  const created = { cwd, ...Option.match(name, { onNone: () => ({}), onSome: (name) => ({ name }) }) }
  if (Option.isSome(fork))
    return yield* store.open(yield* SessionPlace.known(store.fork(fork.value, created)))
  if (Option.isNone(resume) && !options.continue) return yield* store.create(created)
  const id = Option.isSome(resume)
    ? resume.value
    : (yield* store.list({ ...listed, limit: 1 })).items[0]?.sessionId
  if (id === undefined)
    return yield* new UsageError({ detail: "There is no session of this folder to continue." })
  const session = yield* SessionPlace.known(store.open(id))
  if (Option.isSome(name)) yield* session.rename(name.value)
  return session
})
