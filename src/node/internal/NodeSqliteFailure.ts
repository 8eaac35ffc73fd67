/**
 * The errors of SQLite as those of `effect/sql`.
 */
import * as Predicate from "effect/Predicate"
import * as SqlError from "effect/sql/SqlError"

/** The extended result code, `undefined` for an error of Node. */
const codeOf = (cause: unknown): number | undefined =>
  Predicate.hasProperty(cause, "errcode") && typeof cause.errcode === "number" ? cause.errcode : undefined

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Uniqueness of a column, a primary key and a row id. */
const unique = new Set([2067, 1555, 2579])
/** The text of the constraint that `UNIQUE constraint failed: table.column` names. */
const constraintOf = (message: string): string => /constraint failed: (.+)$/.exec(message)?.[1] ?? "unknown"
/** SQLite has one code for all that it cannot compile, and for a few failures of statements that it could. */
const isSyntax = (message: string): boolean =>
  /syntax error|no such (?:table|column|function|index)|incomplete input|unrecognized token|has no column|values for \d+ columns/.test(
    message
  )

const reasonOf = (
  cause: unknown,
  operation: string,
  code = codeOf(cause),
  message = messageOf(cause)
): SqlError.SqlErrorReason => {
  const fields = { cause, message, operation }
  if (code !== undefined && unique.has(code))
    return new SqlError.UniqueViolation({ ...fields, constraint: constraintOf(message) })
  switch (code === undefined ? undefined : code & 0xff) {
    case 1:
      return isSyntax(message) ? new SqlError.SqlSyntaxError(fields) : new SqlError.UnknownError(fields)
    case 3:
    case 8:
      return new SqlError.AuthorizationError(fields)
    case 5:
    case 6:
      return new SqlError.LockTimeoutError(fields)
    case 14:
      return new SqlError.ConnectionError(fields)
    case 19:
      return new SqlError.ConstraintError(fields)
    case 23:
      return new SqlError.AuthenticationError(fields)
    default:
      return Predicate.hasProperty(cause, "code") && cause.code === "ERR_INVALID_STATE"
        ? new SqlError.ConnectionError(fields)
        : new SqlError.UnknownError(fields)
  }
}

/** The failure of an operation such as `execute`. */
export const make = (cause: unknown, operation: string): SqlError.SqlError =>
  new SqlError.SqlError({ reason: reasonOf(cause, operation) })

/** The failure to open a database. */
export const unopened = (cause: unknown): SqlError.SqlError =>
  new SqlError.SqlError({
    reason: new SqlError.ConnectionError({ cause, message: messageOf(cause), operation: "open" })
  })

/** `SQLITE_BUSY`, but for a transaction whose snapshot is too old: another try cannot help that. */
export const isBusy = ({ reason }: SqlError.SqlError): boolean => {
  const code = codeOf(reason.cause)
  return code !== undefined && (code & 0xff) === 5 && code !== 517
}
