/**
 * Writes to an SQL database that wait at one time, as one statement: the database does many in about the time of one.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Request from "effect/Request"
import * as RequestResolver from "effect/RequestResolver"
import * as Semaphore from "effect/Semaphore"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type * as Statement from "effect/sql/Statement"
import * as SqlPatience from "./SqlPatience.ts"

/** Writes, and succeeds with the result of each. */
type Write<A, B> = (
  items: Arr.NonEmptyReadonlyArray<A>
) => Effect.Effect<Arr.NonEmptyReadonlyArray<B>, SqlError>

interface Waiting<A, B> extends Request.Request<B, SqlError> {
  readonly item: A
}

type Entries<A, B> = Arr.NonEmptyArray<Request.Entry<Waiting<A, B>>>

/** Writes in one statement. */
const most = 64

/**
 * Joins the writes that come while another one is under way; of those with the same key, each has a statement of its own. A write that is
 * interrupted comes to its end first. One of a transaction stays in that.
 */
export const make = <A, B>(
  sql: SqlClient.SqlClient,
  write: Write<A, B>,
  keyOf: (item: A) => number
): ((item: A) => Effect.Effect<B, SqlError>) => {
  const turn = Semaphore.makeUnsafe(1)
  const written = (entries: Entries<A, B>) =>
    Effect.map(write(Arr.map(entries, ({ request }) => request.item)), (results) =>
      Arr.zipWith(entries, results, (entry, result) => entry.completeUnsafe(Exit.succeed(result)))
    )
  const failed = (entries: Entries<A, B>, error: SqlError) =>
    Effect.sync(() => entries.forEach((entry) => entry.completeUnsafe(Exit.fail(error))))
  const alone = (entry: Entries<A, B>[number]) =>
    Effect.catch(written([entry]), (error) => failed([entry], error))
  const together = (entries: Entries<A, B>) =>
    Effect.catch(written(entries), (error) =>
      entries.length === 1 || SqlPatience.isAway(error)
        ? failed(entries, error)
        : // The database refuses one of them.
          Effect.forEach(entries, alone, { discard: true })
    )
  const resolver = RequestResolver.make<Waiting<A, B>>((entries) => {
    const rounds = roundsOf(entries, ({ request }) => keyOf(request.item))
    return turn.withPermit(Effect.forEach(rounds, together, { discard: true }))
  }).pipe(RequestResolver.setDelayEffect(turn.withPermit(Effect.yieldNow)), RequestResolver.batchN(most))
  const waiting = Request.of<Waiting<A, B>>()
  return (item) =>
    Effect.flatMap(Effect.serviceOption(sql.transactionService), (transaction) =>
      Option.isSome(transaction)
        ? Effect.map(write([item]), ([result]) => result)
        : Effect.uninterruptible(Effect.request(waiting({ item }), resolver))
    )
}

/** Values in order, in groups that have each key once. */
const roundsOf = <A>(
  values: ReadonlyArray<A>,
  keyOf: (value: A) => number
): ReadonlyArray<Arr.NonEmptyArray<A>> => {
  const rounds: Array<Arr.NonEmptyArray<A>> = []
  const counts = new Map<number, number>()
  for (const value of values) {
    const key = keyOf(value)
    const count = counts.get(key) ?? 0
    counts.set(key, count + 1)
    const round = rounds[count]
    if (round === undefined) rounds.push([value])
    else round.push(value)
  }
  return rounds
}

/** The columns of a table, with their types. */
type Columns = Readonly<Record<string, "BIGINT" | "TEXT">>

/** Rows as a table in one parameter, so that their number does not change the statement, which the database prepares once. */
export const table = <Names extends Columns>(
  sql: SqlClient.SqlClient,
  name: string,
  columns: Names,
  rows: ReadonlyArray<{ readonly [Name in keyof Names]: Names[Name] extends "TEXT" ? string : number }>
): Statement.Fragment => {
  const json = JSON.stringify(rows)
  const all = Object.entries(columns)
  return sql.onDialectOrElse({
    pg: () => {
      const definitions = all.map(([column, type]) => `${column} ${type}`).join(", ")
      return sql`json_to_recordset(${json}::text::json) AS ${sql.literal(`${name}(${definitions})`)}`
    },
    orElse: () => {
      const values = all.map(([column]) => `json_extract(value, '$.${column}') AS ${column}`).join(", ")
      return sql`(SELECT ${sql.literal(values)} FROM json_each(${json})) AS ${sql.literal(name)}`
    }
  })
}
