/**
 * The reason for which a process does not take part in a cluster.
 *
 * @since 0.2.0
 */
import * as Schema from "effect/Schema"
import { TaggedError } from "../../internal/errors.ts"

/**
 * A process cannot take part in the cluster.
 *
 * **Details**
 *
 * `reason` is `"AlreadyRunning"` if another process uses the SQLite file, `"TimeZone"` if the sessions of PostgreSQL do not have the time
 * zone UTC, and `"Storage"` if the database cannot be used.
 *
 * @category errors
 * @since 0.2.0
 */
export class ClusterRefused extends TaggedError<ClusterRefused>()("ClusterRefused", {
  /** The kind of failure. */
  reason: Schema.Literals(["AlreadyRunning", "TimeZone", "Storage"]),
  /** The failure in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}
