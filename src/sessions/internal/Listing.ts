/**
 * Lists sessions, those with the newest entries first.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as Message from "../../Message.ts"
import { SessionError, Unreadable } from "../../Session.ts"
import type { ListOptions, Page, Summary, Retention, Hit } from "./Contract.ts"
import * as SessionEntry from "../SessionEntry.ts"
import type { SessionStorage, StoredLine, StoredSession, Wanted } from "../SessionStorage.ts"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"

/** The sessions of a storage, those with the newest entries first. */
export const newest = (storage: SessionStorage, where?: Wanted) =>
  Effect.map(storage.list(where), (sessions) => sessions.toSorted(byAge))

const byAge = (one: StoredSession, other: StoredSession): number =>
  other.modified - one.modified || (one.sessionId < other.sessionId ? -1 : 1)

/** The most summaries that a store remembers. */
const most = 10_000

/** The summaries of sessions that have not changed since they were read. */
class Summaries {
  private readonly known = new Map<string, Summary>()

  of(storage: SessionStorage, stored: StoredSession): Effect.Effect<Summary | undefined, SessionError> {
    const known = this.known.get(stored.sessionId)
    if (known?.modified === stored.modified && known.bytes === stored.bytes) return Effect.succeed(known)
    return Effect.tap(summary(storage, stored), (found) =>
      Effect.sync(() => {
        this.known.delete(stored.sessionId)
        if (found !== undefined) this.known.set(stored.sessionId, found)
        const [oldest] = this.known.keys()
        if (this.known.size > most && oldest !== undefined) this.known.delete(oldest)
      })
    )
  }
}

/** Makes the list of the sessions of a storage. It searches for one text at a time. */
export const make = (storage: SessionStorage) => {
  const summaries = new Summaries()
  const searching = Semaphore.makeUnsafe(1)
  return (options: ListOptions = {}): Effect.Effect<Page, SessionError> => {
    const listed = list(storage, summaries, options)
    return (options.query ?? "") === "" ? listed : searching.withPermit(listed)
  }
}

const list = (
  storage: SessionStorage,
  summaries: Summaries,
  options: ListOptions
): Effect.Effect<Page, SessionError> =>
  Effect.gen(function* () {
    const { cursor, cwd, limit = 50, query = "" } = options
    const after = cursor === undefined ? undefined : yield* readCursor(cursor)
    const sessions = yield* newest(storage, cwd === undefined ? {} : { cwd })
    const rest = sessions.filter((session) => after === undefined || byAge(after, session) < 0)
    const items = yield* Stream.fromIterable(rest).pipe(
      Stream.mapEffect((session) => summaries.of(storage, session)),
      Stream.filter((found) => found !== undefined && matches(found, query)),
      Stream.filter((found) => found !== undefined),
      // One more, to know whether there is another page.
      Stream.take(Math.max(1, limit) + 1),
      Stream.runCollect
    )
    const page = items.slice(0, Math.max(1, limit))
    const last = page.at(-1)
    return items.length > page.length && last !== undefined
      ? { items: page, nextCursor: cursorOf(last) }
      : { items: page }
  })

const cursorOf = ({ modified, sessionId }: Summary): string => `${modified}:${sessionId}`

const readCursor = (cursor: string) => {
  const [, modified, sessionId] = /^(\d+(?:\.\d+)?):(.+)$/.exec(cursor) ?? []
  if (modified !== undefined && sessionId !== undefined) {
    return Effect.succeed({ modified: Number(modified), sessionId, created: 0, bytes: 0 })
  }
  const reason = new Unreadable({ detail: "the cursor of the list is none of nextCursor" })
  return Effect.fail(new SessionError({ sessionId: "", reason }))
}

const matches = ({ sessionId, title }: Summary, query: string): boolean =>
  [title, sessionId].some((text) => text.toLowerCase().includes(query.toLowerCase()))

/** The summary of a session, `undefined` if another process has removed it. */
const summary = (
  storage: SessionStorage,
  stored: StoredSession
): Effect.Effect<Summary | undefined, SessionError> =>
  Effect.gen(function* () {
    const { sessionId } = stored
    const { start, user } = yield* headOf(storage, sessionId)
    const name = (yield* labelOf(storage, sessionId, start?.id ?? sessionId)) ?? start?.name ?? ""
    return {
      ...stored,
      cwd: start?.cwd ?? "",
      ...(name === "" ? {} : { name }),
      title: name === "" ? titleOf(user === undefined ? "" : Message.textOf(user)) : name
    }
  }).pipe(Effect.catchReason("SessionError", "Missing", () => Effect.undefined))

interface Head {
  start?: SessionEntry.Start
  user?: Message.User
}

const noHead = (): Head => ({})

/** The first entry and the first message of the user. Reads no more than it must. */
const headOf = (storage: SessionStorage, sessionId: string) =>
  storage.lines(sessionId, ["session", "message"]).pipe(
    Stream.scan(noHead, (head, lines) => lines.reduce(withLine, head)),
    Stream.takeUntil(({ user }) => user !== undefined),
    Stream.runFold(noHead, (_, head) => head)
  )

const withLine = (head: Head, line: StoredLine): Head => {
  if (head.user !== undefined) return head
  const entry = entryOf(line)
  if (entry?.type === "session") return { start: entry, ...head }
  return entry?.type === "message" && entry.message.role === "user" ? { ...head, user: entry.message } : head
}

/** The last label of an entry. */
const labelOf = (storage: SessionStorage, sessionId: string, targetId: string) =>
  Stream.runFold(
    storage.lines(sessionId, ["label"]),
    (): string | undefined => undefined,
    (label, lines) => lines.reduce((last: string | undefined, line) => labelIn(line, targetId) ?? last, label)
  )

const labelIn = (line: StoredLine, targetId: string): string | undefined => {
  if (typeof line !== "string" || !line.includes('"label"')) return undefined
  const entry = entryOf(line)
  return entry?.type === "label" && entry.targetId === targetId ? entry.label : undefined
}

/** The entry of a line, `undefined` if it holds none. */
export const entryOf = (line: StoredLine): SessionEntry.SessionEntry | undefined =>
  typeof line === "string" ? Result.getOrUndefined(SessionEntry.decode(line)) : undefined

// ───────────────────────── Titles, and one-line pieces of text

/** Most characters of a title. */
const maxTitle = 80

/** The first line of a text that is not empty, cut to the length of a title. */
export const titleOf = (text: string): string => {
  const line = text.split("\n").find((one) => one.trim() !== "") ?? ""
  return cut(line.replace(/\s+/g, " ").trim(), maxTitle)
}

/** The text, cut to a number of characters between two of them. */
export const cut = (text: string, max: number): string => {
  if (text.length <= max) return text
  const characters = Array.from(text.slice(0, max))
  return `${characters.slice(0, -1).join("")}…`
}

/** The part of a text around a place, on one line. */
export const excerptOf = (text: string, at: number, length: number): string => {
  const [start, end] = [Math.max(0, at - 40), Math.min(text.length, at + length + 80)]
  const part = text.slice(start, end).replace(/\s+/g, " ").trim()
  return `${start > 0 ? "…" : ""}${part}${end < text.length ? "…" : ""}`
}

// ───────────────────────── Bounds

/** Removes the sessions that exceed the bounds of a store. */
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
          error.reason._tag === "Locked" || error.reason._tag === "Missing"
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

// ───────────────────────── Messages found by their text

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

const unseen = (): Seen => ({ isFound: false })

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
    Stream.scan(unseen, (seen, lines) => lines.reduce(withLine, seen)),
    Stream.takeUntil(({ isFound }) => isFound),
    Stream.runFold(unseen, (_, seen) => seen)
  )
}
