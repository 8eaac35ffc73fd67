/**
 * Transactions of an SQL database whose connection may be lost.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as SqlClient from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"

/**
 * Runs statements in a transaction. Fails with the `SqlError` of a lost connection: `withTransaction` of Effect 4.1 makes a defect of it,
 * because such a connection cannot roll back either.
 */
export const run = <A, E, R>(
  sql: SqlClient.SqlClient,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError, R> =>
  Effect.catchCause(sql.withTransaction(effect), (cause): Effect.Effect<A, E | SqlError> => {
    const defect = Cause.findDefect(cause)
    return Result.isSuccess(defect) && isSqlError(defect.success) && !Cause.hasInterrupts(cause)
      ? Effect.fail(defect.success)
      : Effect.failCause(cause)
  })
