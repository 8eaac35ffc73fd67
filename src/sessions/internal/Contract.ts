/**
 * The interface of a store of sessions, whatever it keeps them in.
 */
import type * as Arr from "effect/Array"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type * as Message from "../../Message.ts"
import type { Record, Restored, Session, SessionError } from "../../Session.ts"
import type * as SessionEntry from "../SessionEntry.ts"
import type { Range } from "../SessionStorage.ts"

/**
 * A fault of a stored session.
 *
 * @category models
 * @since 0.2.0
 */
export interface Damage {
  /** The number of the line, from 1. */
  readonly line: number
  /** The fault in words. */
  readonly detail: string
}

/**
 * The options of a store.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /**
   * Changes an entry before it is stored, such as to remove secrets. `id` and `parentId` stay. Default: no change.
   *
   * An agent that opens the session later continues from what is stored. An approval does not hold for a call whose params changed so: the
   * call is rejected. If the function throws, nothing is stored, and the run fails with `SessionError`. Logs of a server and artifacts
   * have `redacted` of their own: `RunLogStore.redacted`, `ArtifactStore.redacted`.
   */
  readonly redact?: (entry: SessionEntry.Known) => SessionEntry.Known
  /**
   * Makes the name of a session that has none, from its first user message. It runs beside the conversation, for as long as the session
   * is open. A failure changes nothing. Default: none, and the title is the first line of the message.
   */
  readonly title?: (message: Message.User) => Effect.Effect<string, unknown>
}

/**
 * The options of a new session.
 *
 * @category options
 * @since 0.2.0
 */
export interface CreateOptions {
  /** The id of the session: 1 to 200 characters without control characters, and not `.` or `..`. Default: a new one. */
  readonly sessionId?: string
  /** The working directory of the session. Default: none. */
  readonly cwd?: string
  /** The name of the session. Default none. */
  readonly name?: string
}

/**
 * A session that is open for writing.
 *
 * **Details**
 *
 * It is the `session` of `Agent.make`. It is closed with the scope that it was opened in.
 *
 * @category models
 * @since 0.2.0
 */
export interface OpenSession extends Session {
  /** The faults that the store found when it read the session. */
  readonly damage: ReadonlyArray<Damage>
  /** The id of the current entry. */
  readonly leaf: Effect.Effect<string>
  /**
   * Appends entries behind the current one, all or none of them. Returns their ids. Fails with `Unreadable` for a `leaf` whose target does
   * not exist, and for data that does not fit a kind that the package writes.
   */
  readonly append: (
    entries: Arr.NonEmptyReadonlyArray<SessionEntry.Draft>
  ) => Effect.Effect<ReadonlyArray<string>, SessionError>
  /**
   * Makes an entry the current one, in a new branch. Returns the state there, which `restored` is from then on: an agent that is made
   * with this session afterwards begins with it.
   */
  readonly rewind: (entryId: string) => Effect.Effect<Restored, SessionError>
  /**
   * Makes the entry before a message of the current branch the current one, as `rewind` does: the conversation continues without the
   * message and those behind it. Fails with `Unreadable` if the branch has no message with the id.
   */
  readonly rewindBefore: (messageId: Message.MessageId) => Effect.Effect<Restored, SessionError>
  /** Labels an entry. The label `""` removes the label that it has. */
  readonly label: (entryId: string, label: string) => Effect.Effect<void, SessionError>
  /** Gives the session a name. The name `""` removes the name that it has. */
  readonly rename: (name: string) => Effect.Effect<void, SessionError>
  /** Writes lines of logs of runs, and records as `record` does, all or none of them, in order. */
  readonly log: (lines: Arr.NonEmptyReadonlyArray<Logged | Record>) => Effect.Effect<void, SessionError>
  /** Opens the part of a sub-agent as `child` does. The next `log` stores its records, whose events are those of the log. */
  readonly childOf: (toolCallId: string) => Effect.Effect<Session, SessionError>
}

/**
 * A line of the log of a run, which stands in the session of the run.
 *
 * @category models
 * @since 0.2.0
 */
export interface Logged {
  /** Distinguishes it from an entry and a record. */
  readonly _tag: "Logged"
  /** The id of the run. */
  readonly runId: string
  /** The line as JSON, without a line feed. A crash may have cut it. */
  readonly text: string
}

/**
 * A session as a list shows it.
 *
 * @category models
 * @since 0.2.0
 */
export interface Summary {
  /** The id of the session. */
  readonly sessionId: string
  /** The working directory of the session, `""` if it has none. */
  readonly cwd: string
  /** The time at which the session began, in milliseconds since the epoch. */
  readonly created: number
  /** The time of the last entry, in milliseconds since the epoch. */
  readonly modified: number
  /** The size of the entries in bytes. */
  readonly bytes: number
  /** The name that the session was given. Default none. */
  readonly name?: string
  /** The name, or the start of the first line of the first user message, `""` without both. */
  readonly title: string
}

/**
 * The options of a list.
 *
 * @category options
 * @since 0.2.0
 */
export interface ListOptions {
  /** The most sessions of the page, at least 1. Default 50. */
  readonly limit?: number
  /** The `nextCursor` of the page before. Default: the first page. */
  readonly cursor?: string
  /** Text that the title or the id has, in upper or lower case. Default: all sessions. */
  readonly query?: string
  /** The working directory of the sessions. Default: any. */
  readonly cwd?: string
}

/**
 * A page of a list.
 *
 * @category models
 * @since 0.2.0
 */
export interface Page {
  /** The sessions, those with the newest entries first. */
  readonly items: ReadonlyArray<Summary>
  /** The cursor of the next page, absent on the last one. */
  readonly nextCursor?: string
}

/**
 * A session as it is stored.
 *
 * @category models
 * @since 0.2.0
 */
export interface Contents {
  /** The session as a list shows it. */
  readonly session: Summary
  /** The entries of all branches, in the order in which they were written. */
  readonly entries: ReadonlyArray<SessionEntry.SessionEntry>
  /** The labels by the id of their entry. */
  readonly labels: ReadonlyMap<string, string>
  /** The state of the current branch, as an agent would begin with it. */
  readonly view: Restored
  /** The faults of the session. */
  readonly damage: ReadonlyArray<Damage>
}

/**
 * A message that a search found.
 *
 * @category models
 * @since 0.2.0
 */
export interface Hit {
  /** The id of the session. */
  readonly sessionId: string
  /** The id of the entry. */
  readonly entryId: string
  /** The role of the message. */
  readonly role: Message.Message["role"]
  /** The text around the place, on one line. */
  readonly excerpt: string
}

/**
 * The options of a fork.
 *
 * @category options
 * @since 0.2.0
 */
export interface ForkOptions extends CreateOptions {
  /** The last entry that the new session has. Default: the current one. */
  readonly entryId?: string
}

/**
 * The bounds of the sessions that a store keeps.
 *
 * **Details**
 *
 * A session that is open stays, even if it exceeds a bound.
 *
 * @category options
 * @since 0.2.0
 */
export interface Retention {
  /** The longest time since the last entry. Default: no bound. */
  readonly maxAge?: Duration.Input
  /** The most sessions. Default: no bound. */
  readonly maxCount?: number
  /** The most bytes of all sessions together. Default: no bound. */
  readonly maxBytes?: number
  /** The ids of sessions that stay in any case. Default: none, but for those that are open. */
  readonly keep?: ReadonlyArray<string>
}

/**
 * The functions of a store.
 *
 * @category models
 * @since 0.2.0
 */
export interface Service {
  /** Makes a session and opens it. Fails with `Exists` if there is one with the id. */
  readonly create: (options?: CreateOptions) => Effect.Effect<OpenSession, SessionError, Scope.Scope>
  /** Opens a session for writing. Fails with `Missing`, and at once with `Locked` if it is open elsewhere. */
  readonly open: (sessionId: string) => Effect.Effect<OpenSession, SessionError, Scope.Scope>
  /** Opens a session for writing, or makes it if there is none. */
  readonly openOrCreate: (
    sessionId: string,
    options?: Omit<CreateOptions, "sessionId">
  ) => Effect.Effect<OpenSession, SessionError, Scope.Scope>
  /** Reads a session, also while it is open. */
  readonly read: (sessionId: string) => Effect.Effect<Contents, SessionError>
  /** Lists sessions, those with the newest entries first. */
  readonly list: (options?: ListOptions) => Effect.Effect<Page, SessionError>
  /** Finds the messages that have a text, in upper or lower case, in the sessions with the newest entries first. */
  readonly search: (text: string, options?: Pick<ListOptions, "cwd">) => Stream.Stream<Hit, SessionError>
  /** Reads the log of a run of a session, with the messages and the calls around its lines. */
  readonly log: (
    sessionId: string,
    runId: string,
    range?: Range
  ) => Effect.Effect<ReadonlyArray<Logged | SessionEntry.SessionEntry>, SessionError>
  /** Finds the id of the session in which a run took place, `undefined` if there is none. Forks of the session do not count. */
  readonly sessionOf: (runId: string) => Effect.Effect<string | undefined, SessionError>
  /**
   * Makes a session that has the conversation of another one up to an entry. Returns its id.
   *
   * Queued messages, and what waits for an answer of a person, stay with the other session.
   */
  readonly fork: (sessionId: string, options?: ForkOptions) => Effect.Effect<string, SessionError>
  /** Writes a session as lines of JSON, or its current branch as Markdown. */
  readonly export: (sessionId: string, format: "jsonl" | "md") => Stream.Stream<string, SessionError>
  /** Removes a session with all entries. Fails with `Locked` while it is open. */
  readonly delete: (sessionId: string) => Effect.Effect<void, SessionError>
  /** Removes the sessions that exceed the bounds, those with the oldest entries first. Returns their ids. */
  readonly retain: (retention: Retention) => Effect.Effect<ReadonlyArray<string>, SessionError>
}
