/**
 * Waits for an SQL database that is away: one that restarts, or cannot be reached. One whose disk is full is not waited for.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schedule from "effect/Schedule"
import { isSqlError, type SqlError } from "effect/sql/SqlError"

/**
 * Classes of PostgreSQL: connections, resources but the disk, an operator's hand, a rolled back transaction, a standby that only reads.
 */
const classes = /^(?:08|53(?!100)|57P|40|55P03|25006)/

/** Whether a statement may succeed later as it is. */
export const isAway = ({ isRetryable, reason: { cause } }: SqlError): boolean => {
  if (isRetryable) return true
  return Predicate.hasProperty(cause, "code") && typeof cause.code === "string" && classes.test(cause.code)
}

const pace = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")])

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Tries again for up to a duration while the database is away. The effect must bear to have succeeded unnoticed. */
export const patiently =
  (patience: Duration.Input) =>
  <A, E, R>(effect: Effect.Effect<A, E | SqlError, R>): Effect.Effect<A, E | SqlError, R> => {
    if (Duration.toMillis(patience) === 0) return effect
    const schedule = Schedule.upTo(pace, { duration: patience })
    const isDue = (error: E | SqlError) => isSqlError(error) && isAway(error)
    return Effect.catchIf(effect, isDue, (error) =>
      Effect.logWarning(`A statement waits for the SQL database: ${messageOf(error)}`).pipe(
        Effect.andThen(Effect.retry(effect, { schedule, while: isDue }))
      )
    )
  }

/** Tries a read again for up to 2 seconds: a lost connection costs nothing, and a database that is away shows soon. */
export const briefly = (patience: Duration.Input) =>
  patiently(Duration.min(Duration.fromInputUnsafe(patience), Duration.seconds(2)))
