/** Ids as a person types them: whole, or the beginning of one. */
import * as Effect from "effect/Effect"
import type { SessionError } from "../../Session.ts"
import type { ListOptions, Service, Summary } from "../../sessions/SessionStore.ts"
import { UsageError } from "../ExitCode.ts"
import * as Inert from "../terminal/Inert.ts"

/** Uses the session of an id, else the only one whose id begins so. Fails with `UsageError` if there is none, or several. */
export const use = <A, R>(
  store: Service,
  text: string,
  use: (sessionId: string) => Effect.Effect<A, SessionError, R>
): Effect.Effect<A, SessionError | UsageError, R> =>
  Effect.catchReason(use(text), "SessionError", "NotFound", () => Effect.flatMap(whole(store, text), use))

const whole = Effect.fnUntraced(function* (store: Service, text: string) {
  const found = text === "" ? [] : yield* all(store, { query: text })
  const ids = found.flatMap(({ sessionId, title }) =>
    isSession(sessionId, text) ? [{ id: sessionId, title }] : []
  )
  return yield* only("session", text, ids)
})

/** Whether the program made the id of a session. One that a person gave, such as `trip`, is no beginning of another, such as `trip-2`. */
const isMade = (sessionId: string): boolean => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(sessionId)

/** Whether a text is the beginning of the id that the program made for a session. */
export const isSession = (sessionId: string, text: string): boolean =>
  isMade(sessionId) && sessionId.startsWith(text)

/** Whether a text is the beginning of the id of a run, and no whole one: `run_a_1` is no beginning of `run_a_12`. */
export const isRun = (runId: string, text: string): boolean =>
  /^(?:run_)?[^_]+_?$/.test(text) && (runId.startsWith(text) || runId.startsWith(`run_${text}`))

interface Candidate {
  readonly id: string
  readonly title: string
}

/** The most candidates that a failure names. */
const maxNamed = 5

/** The id of the only candidate. */
export const only = (
  kind: "run" | "session",
  text: string,
  candidates: ReadonlyArray<Candidate>
): Effect.Effect<string, UsageError> => {
  const [first, ...others] = candidates
  if (first !== undefined && others.length === 0) return Effect.succeed(first.id)
  const names = candidates.slice(0, maxNamed).map(({ id, title }) => `${id} (${Inert.line(title, 60)})`)
  const more = candidates.length > maxNamed ? ` and ${candidates.length - maxNamed} more` : ""
  const detail =
    first === undefined
      ? `There is no ${kind} ${JSON.stringify(text)}.`
      : `The ids of several ${kind}s begin with ${JSON.stringify(text)}: ${names.join(", ")}${more}.`
  return Effect.fail(new UsageError({ detail }))
}

/** All pages of a list. */
export const all = (store: Service, page: ListOptions): Effect.Effect<ReadonlyArray<Summary>, SessionError> =>
  Effect.flatMap(store.list(page), ({ items, nextCursor }) =>
    nextCursor === undefined
      ? Effect.succeed(items)
      : Effect.map(all(store, { ...page, cursor: nextCursor }), (more) => [...items, ...more])
  )

/** The fewest characters of an id that a list shows. */
const minShown = 8

/** The beginning of each id by which it differs from the others. */
export const shortened = (ids: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const sorted = [...new Set(ids)].toSorted()
  const common = (one: string, other = "") => {
    let length = 0
    while (length < one.length && one[length] === other[length]) length++
    return length
  }
  return new Map(
    sorted.map((id, index) => {
      const differs = Math.max(common(id, sorted[index - 1]), common(id, sorted[index + 1])) + 1
      return [id, isMade(id) ? id.slice(0, Math.max(minShown, differs)) : id]
    })
  )
}
