/**
 * The port between a {@link SessionStorage} and the store that uses it: the few operations in which stores differ.
 *
 * @since 0.2.0
 */
import type * as Arr from "effect/Array"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { SessionError } from "../Session.ts"

/**
 * A new session.
 *
 * @category models
 * @since 0.2.0
 */
export interface NewSession {
  /** The id of the session: letters, digits, `.`, `_` and `-`. */
  readonly sessionId: string
  /** The working directory of the session, `""` if it has none. */
  readonly cwd: string
  /** The time at which the session begins, in milliseconds since the epoch. */
  readonly created: number
}

/**
 * A session as a storage lists it.
 *
 * @category models
 * @since 0.2.0
 */
export interface StoredSession {
  /** The id of the session. */
  readonly sessionId: string
  /** The time at which the session began, in milliseconds since the epoch. */
  readonly created: number
  /** The time of the last append, in milliseconds since the epoch. */
  readonly modified: number
  /** The size of the entries in bytes. */
  readonly bytes: number
}

/**
 * The sessions that a list of a storage has.
 *
 * @category models
 * @since 0.2.0
 */
export interface Wanted {
  /** The working directory of the sessions. Default: any. */
  readonly cwd?: string
  /**
   * The id of a run that the sessions have an entry of. Default: any.
   *
   * A storage without an index of runs may list others too: the store reads their entries.
   */
  readonly runId?: string
}

/**
 * The one writer of a session.
 *
 * @category models
 * @since 0.2.0
 */
export interface Writer {
  /**
   * Appends lines in order, all or none of them. It has succeeded when another process that opens the session finds them.
   *
   * The store calls it for one append at a time.
   */
  readonly append: (lines: Arr.NonEmptyReadonlyArray<Line>) => Effect.Effect<void, SessionError>
  /**
   * Succeeds while no other writer has followed this one. For a storage that may open a session although its writer lives. Default: it
   * succeeds.
   */
  readonly verify?: Effect.Effect<void, SessionError>
}

/**
 * A line as a storage writes it: an entry, or an event in the log of a run.
 *
 * @category models
 * @since 0.2.0
 */
export interface Line {
  /** The type of the entry; `log:` and the id of the run for a line of a log. */
  readonly type: string
  /** The line as JSON, without a line feed. */
  readonly text: string
}

/**
 * A part of a session.
 *
 * @category models
 * @since 0.2.0
 */
export interface Range {
  /** The size that the session had before the part, in bytes. Default 0. */
  readonly from?: number | undefined
  /** The size that it had behind the part, in bytes. Default: the part is the rest of the session. */
  readonly to?: number | undefined
}

/**
 * A line as a storage reads it: text, or bytes that are not UTF-8.
 *
 * @category models
 * @since 0.2.0
 */
export type StoredLine = string | Uint8Array

/**
 * The operations in which stores differ.
 *
 * **When to use**
 *
 * Implement it for a store of one's own, and make the store with `SessionStore.make`. The contract of this package's stores is
 * `test/sessions/contract.ts`.
 *
 * @category models
 * @since 0.2.0
 */
export interface SessionStorage {
  /** Makes a session without entries, and opens it. Fails with `Exists` if there is one with the id. */
  readonly create: (session: NewSession) => Effect.Effect<Writer, SessionError, Scope.Scope>
  /**
   * Opens a session for writing until the scope closes. Fails with `Missing`, and at once with `Locked` if a writer that lives has
   * it open. The lock of a writer whose process ended counts for nothing.
   */
  readonly open: (sessionId: string) => Effect.Effect<Writer, SessionError, Scope.Scope>
  /**
   * Reads the lines of a session in the order in which they were appended, also while it is open. Fails with `Missing`.
   *
   * `only` names the types of lines that the store needs: default, those of all entries. `range` is the part of the session that has
   * them. A storage may give others too.
   */
  readonly lines: (
    sessionId: string,
    only?: ReadonlyArray<string>,
    range?: Range
  ) => Stream.Stream<Arr.NonEmptyReadonlyArray<StoredLine>, SessionError>
  /** Finds a session. Fails with `Missing`. */
  readonly find: (sessionId: string) => Effect.Effect<StoredSession, SessionError>
  /** Lists the sessions, all of them or those that are wanted, in any order. */
  readonly list: (where?: Wanted) => Effect.Effect<ReadonlyArray<StoredSession>, SessionError>
  /** Removes a session with all entries. Fails with `Missing`, and with `Locked` while it is open. */
  readonly remove: (sessionId: string) => Effect.Effect<void, SessionError>
}
