/**
 * Forks sessions.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import { SessionError, Unreadable } from "../../Session.ts"
import type { ForkOptions } from "./Contract.ts"
import * as Journal from "./Journal.ts"
import * as Opening from "./Opening.ts"
import * as Reading from "./Reading.ts"
import * as SessionEntry from "../SessionEntry.ts"
import type { SessionState } from "./SessionState.ts"
import type { Line, SessionStorage } from "../SessionStorage.ts"
import * as Turn from "./Turn.ts"

export const fork = (
  storage: SessionStorage,
  sessionId: string,
  options: ForkOptions = {}
): Effect.Effect<string, SessionError> =>
  Effect.gen(function* () {
    const { state } = yield* Reading.read(storage, sessionId)
    const entryId = options.entryId ?? state.tree.leaf ?? sessionId
    const branch = state.tree.branchTo(entryId)
    if (branch === undefined) {
      const reason = new Unreadable({ detail: `it has no entry ${entryId}` })
      return yield* new SessionError({ sessionId, reason })
    }
    const cwd = options.cwd ?? state.start?.cwd ?? ""
    const session = yield* Opening.newSession({ ...options, cwd })
    const name = options.name ?? state.name
    const start = {
      ...Opening.startOf(session),
      ...(name === "" ? {} : { name }),
      forkedFrom: { sessionId, entryId }
    }
    const copied = branch.filter(isCopied(branch))
    const lines = chained([start, ...copied, ...settings(state, copied, session.created)])
    // Removes what it has made if it cannot complete it.
    yield* Effect.scoped(Effect.flatMap(storage.create(session), (writer) => writer.append(lines))).pipe(
      Effect.tapError(({ reason }) =>
        // Then the session is that of another process.
        reason._tag === "Exists" || reason._tag === "Locked"
          ? Effect.void
          : Effect.ignore(storage.remove(session.sessionId))
      )
    )
    return session.sessionId
  })

type Entry = SessionEntry.SessionEntry

/**
 * Whether an entry belongs to the new session too: neither queues, nor runs, approvals and questions that are open, nor options, labels
 * and the name, which are written anew.
 */
const isCopied = (branch: ReadonlyArray<Entry>) => {
  const ended = new Set(
    branch.flatMap((entry) => (entry.type === "run" && entry.phase === "end" ? [entry.runId] : []))
  )
  const answered = new Set(
    branch.flatMap((entry) =>
      entry.type === "approval" && entry.decision !== undefined ? [entry.approvalId] : []
    )
  )
  const questions = branch.flatMap(Turn.questionIn)
  const replied = new Set(
    questions.flatMap(({ phase, questionId }) => (phase === "answered" ? [questionId] : []))
  )
  const isOpenQuestion = (entry: Entry) =>
    Turn.questionIn(entry).some(({ questionId }) => !replied.has(questionId))
  return (entry: Entry): boolean => {
    switch (entry.type) {
      case "session":
      case "label":
      case "leaf":
        return false
      case "run":
        return ended.has(entry.runId)
      case "approval":
        return answered.has(entry.approvalId)
      case "custom":
        return !["queue", "child", "options"].includes(entry.kind) && !isOpenQuestion(entry)
      default:
        return true
    }
  }
}

/** The options of the session, and the labels of the entries that are copied: some may stand on another branch. */
const settings = (
  state: SessionState,
  copied: ReadonlyArray<Entry>,
  timestamp: number
): ReadonlyArray<Entry> =>
  [
    ...Journal.drafts(state, { _tag: "OptionsChanged", options: state.options, unset: state.unset }),
    ...labels(state, copied)
  ].map((draft) => ({
    ...draft,
    v: SessionEntry.version,
    id: SessionEntry.makeId(),
    parentId: null,
    timestamp
  }))

const labels = (state: SessionState, copied: ReadonlyArray<Entry>): ReadonlyArray<SessionEntry.Draft> =>
  copied.flatMap(({ id: targetId }) => {
    const label = state.labels.get(targetId)
    return label === undefined ? [] : [{ type: "label", targetId, label }]
  })

/** The lines of entries, each behind the one before it. */
const chained = (entries: Arr.NonEmptyReadonlyArray<Entry>): Arr.NonEmptyReadonlyArray<Line> =>
  Arr.map(entries, (entry, index) => {
    const parentId = entries[index - 1]?.id ?? null
    return { type: entry.type, text: SessionEntry.encode({ ...entry, parentId }) }
  })
