/**
 * The error of a session, and its reasons.
 */
import * as Schema from "effect/Schema"
import { TaggedError } from "./taggedError.ts"

/**
 * No session has the id.
 *
 * @category errors
 * @since 0.2.0
 */
export class NotFound extends TaggedError<NotFound>()("NotFound", {}) {
  override get message(): string {
    return "there is no such session"
  }
}

/**
 * Another session has the id already.
 *
 * @category errors
 * @since 0.2.0
 */
export class Exists extends TaggedError<Exists>()("Exists", {}) {
  override get message(): string {
    return "a session of this id exists already"
  }
}

/**
 * Another writer has the session open.
 *
 * **Details**
 *
 * A session has one writer at a time.
 *
 * @category errors
 * @since 0.2.0
 */
export class Locked extends TaggedError<Locked>()("Locked", {
  /** The process of the writer, such as its id. Default: not known. */
  owner: Schema.optionalKey(Schema.String),
  /** The time since which the writer has it open, in milliseconds since the epoch. Default: not known. */
  since: Schema.optionalKey(Schema.Finite)
}) {
  override get message(): string {
    const since = this.since === undefined ? "" : ` since ${new Date(this.since).toISOString()}`
    return `another writer has it open: ${this.owner ?? "an unknown process"}${since}. End that one, or fork the session`
  }
}

/**
 * The store could not read or write.
 *
 * @category errors
 * @since 0.2.0
 */
export class StorageFailed extends TaggedError<StorageFailed>()("StorageFailed", {
  /** The work that failed, such as `"append"`. */
  operation: Schema.String,
  /** The failure in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return `the store failed at ${this.operation}: ${this.detail}`
  }
}

/**
 * The session holds data that this version cannot read, or was given data that it cannot hold.
 *
 * @category errors
 * @since 0.2.0
 */
export class Unreadable extends TaggedError<Unreadable>()("Unreadable", {
  /** The fault in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/**
 * The reason of a `SessionError`.
 *
 * @category errors
 * @since 0.2.0
 */
export const SessionReason = Schema.Union([NotFound, Exists, Locked, StorageFailed, Unreadable])
export type SessionReason = typeof SessionReason.Type

/**
 * A session could not be opened, read or written.
 *
 * @category errors
 * @since 0.2.0
 */
export class SessionError extends TaggedError<SessionError>()("SessionError", {
  /** The id of the session; empty if the error is about all sessions of a store. */
  sessionId: Schema.String,
  /** The reason. */
  reason: SessionReason
}) {
  override get message(): string {
    const what = this.sessionId === "" ? "Sessions" : `Session ${this.sessionId}`
    return `${what}: ${this.reason.message}`
  }
}
