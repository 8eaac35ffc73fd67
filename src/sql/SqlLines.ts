/**
 * The lines of a session as rows of an SQL database.
 *
 * The position of a row is its place in the session, in bytes. So the rows of a megabyte are those between two positions, and reading
 * takes bounded memory however long lines are.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type * as Statement from "effect/sql/Statement"
import * as Stream from "effect/Stream"
import * as SqlBatch from "./SqlBatch.ts"

/** A row of a line, with its length in bytes. */
export interface Row {
  readonly bytes: number
  readonly type: string
  readonly continues: number
  readonly text: string
}

/** Characters. A client of PostgreSQL refuses messages of 16 MiB. */
const maxRow = 262_144

const encoder = new TextEncoder()

/** The parts of a text. None ends within a pair of surrogates, whose halves do not survive as UTF-8. */
export const partsOf = (text: string): ReadonlyArray<string> => {
  const parts: Array<string> = []
  let at = 0
  do {
    const end = at + maxRow
    const next = end < text.length && isHigh(text, end - 1) ? end - 1 : end
    parts.push(text.slice(at, next))
    at = next
  } while (at < text.length)
  return parts
}

const isHigh = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xd800

/** The bytes of a row. The last one of a line counts one more, as if a line feed ended it. */
const bytesOf = ({ continues, text }: Pick<Row, "continues" | "text">): number =>
  encoder.encode(text).length + (continues === 1 ? 0 : 1)

/** The rows of a line. */
export const rowsOf = ({
  text,
  type
}: {
  readonly text: string
  readonly type: string
}): ReadonlyArray<Row> =>
  partsOf(text).map((part, index, parts) => {
    const row = { type, continues: index === parts.length - 1 ? 0 : 1, text: part }
    return { bytes: bytesOf(row), ...row }
  })

/** Rows in one statement. */
const maxInsert = 500

/** Rows one behind the other, from a position on. */
export const placed = (session: number, from: number, rows: ReadonlyArray<Row>) => {
  let next = from
  return rows.map(({ bytes, ...row }) => {
    const position = next
    next += bytes
    return { session, position, ...row }
  })
}

/** Rows behind the end of a session, for the writer with its fence. */
export interface Append {
  /** The row of the session, its fence, and its size before the append. */
  readonly id: number
  readonly fence: number
  readonly from: number
  /** The size of the rows. */
  readonly bytes: number
  readonly modified: number
  readonly rows: ReadonlyArray<Row>
}

type Appends = Arr.NonEmptyReadonlyArray<Append>

const sizes = (sql: SqlClient.SqlClient, appends: Appends) =>
  SqlBatch.table(
    sql,
    "size",
    { id: "BIGINT", fence: "BIGINT", start: "BIGINT", bytes: "BIGINT", modified: "BIGINT" },
    appends.map(({ bytes, fence, from, id, modified }) => ({ id, fence, start: from, bytes, modified }))
  )

const lines = (sql: SqlClient.SqlClient, appends: ReadonlyArray<Append>) =>
  SqlBatch.table(
    sql,
    "line",
    { session: "BIGINT", position: "BIGINT", type: "TEXT", continues: "BIGINT", text: "TEXT" },
    appends.flatMap(({ from, id, rows }) => placed(id, from, rows))
  )

/** Appends to several sessions at a time. Whether each one was held by its writer. */
export const append = (
  sql: SqlClient.SqlClient,
  appends: Appends
): Effect.Effect<Arr.NonEmptyReadonlyArray<boolean>, SqlError> => {
  const held = sql.onDialectOrElse({
    pg: () => appendNow(sql, appends),
    orElse: () => appendInTurn(sql, appends)
  })
  return Effect.map(held, (rows) => {
    const ids = new Set(rows.map(({ id }) => Number(id)))
    return Arr.map(appends, ({ id }) => ids.has(id))
  })
}

type Held = ReadonlyArray<{ readonly id: number | bigint }>

/** In one statement, which costs PostgreSQL one round trip. All statements take the locks of sessions in one order. */
const appendNow = (sql: SqlClient.SqlClient, appends: Appends): Effect.Effect<Held, SqlError> =>
  sql<Held[number]>`WITH owned AS (
    SELECT s.id, s.bytes + size.bytes AS bytes, size.modified FROM effect_agent_session s JOIN ${sizes(sql, appends)}
      ON s.id = size.id AND s.fence = size.fence AND s.bytes = size.start
    ORDER BY s.id FOR NO KEY UPDATE OF s
  ), held AS (
    UPDATE effect_agent_session s SET bytes = owned.bytes, modified = owned.modified FROM owned
    WHERE s.id = owned.id RETURNING s.id
  ), added AS (
    INSERT INTO effect_agent_session_entry (session, position, type, continues, text)
    SELECT line.* FROM held JOIN ${lines(sql, appends)} ON line.session = held.id
  ) SELECT id FROM held`

/** In one statement: a trigger of the table changes the row of the session, whose fence and size are read before that. */
const appendInTurn = (sql: SqlClient.SqlClient, appends: Appends): Effect.Effect<Held, SqlError> =>
  sql<Held[number]>`WITH held AS MATERIALIZED (
    SELECT s.id, size.modified FROM effect_agent_session s JOIN ${sizes(sql, appends)}
      ON s.id = size.id AND s.fence = size.fence AND s.bytes = size.start
  ) INSERT INTO effect_agent_session_entry (session, position, type, continues, text, time)
    SELECT line.*, held.modified FROM held JOIN ${lines(sql, appends)} ON line.session = held.id
    RETURNING session AS id`

/** Inserts rows one behind the other, from a position on. */
export const insert = (
  sql: SqlClient.SqlClient,
  session: number,
  from: number,
  rows: ReadonlyArray<Row>
): Effect.Effect<void, SqlError> =>
  Effect.forEach(
    Arr.chunksOf(placed(session, from, rows), maxInsert),
    (chunk) => sql`INSERT INTO effect_agent_session_entry ${sql.insert(chunk)}`,
    { discard: true }
  )

/** Bytes that are read at a time, and the last row of them: few at first, for readers that need the start of a session alone. */
const [firstWindow, maxWindow] = [32_768, 1_048_576]

interface Cursor {
  /** Bytes. */
  readonly window: number
  /** The position behind the rows that were read. */
  readonly at: number
  /** The parts of a line whose other parts follow. */
  readonly begun: ReadonlyArray<string>
}

interface Stored {
  readonly position: number | bigint
  readonly continues: number
  readonly text: string
}

/** Reads the lines of a session between two positions: those of entries, or those of some types if `only` is given. */
export const read = (
  sql: SqlClient.SqlClient,
  session: number,
  { from, to: end }: { readonly from: number; readonly to: number },
  only: ReadonlyArray<string> | undefined,
  briefly: <A>(page: Effect.Effect<A, SqlError>) => Effect.Effect<A, SqlError>
): Stream.Stream<Arr.NonEmptyReadonlyArray<string>, SqlError> => {
  const isWanted = wanted(sql, only)
  const page = (
    at: number,
    window: number
  ) => sql<Stored>`SELECT position, continues, text FROM effect_agent_session_entry
    WHERE session = ${session} AND position >= ${at} AND position < ${end} AND ${isWanted} AND position < ${window} + (
      SELECT min(position) FROM effect_agent_session_entry
      WHERE session = ${session} AND position >= ${at} AND ${isWanted}
    ) ORDER BY position`
  const first: Cursor = { at: from, begun: [], window: firstWindow }
  return Stream.paginate(first, ({ at, begun, window }) =>
    Effect.map(briefly(page(at, window)), (rows) => {
      const last = rows.at(-1)
      if (last === undefined) return [[], Option.none()] as const
      const [lines, rest] = joined(begun, rows)
      const larger = Math.min(window * 2, maxWindow)
      const behind = Number(last.position) + bytesOf(last)
      const next = behind >= end ? Option.none() : Option.some({ at: behind, begun: rest, window: larger })
      return [Arr.isReadonlyArrayNonEmpty(lines) ? [lines] : [], next] as const
    })
  )
}

/** A condition for sessions that have an entry of a run. Its part about the type is the condition of the index of runs. */
export const hasRun = (sql: SqlClient.SqlClient, runId: string): Statement.Fragment => {
  const member = `"runId":${JSON.stringify(runId)}`
  const isThere = sql.onDialectOrElse({
    pg: () => sql`strpos(text, ${member}) > 0`,
    orElse: () => sql`instr(text, ${member}) > 0`
  })
  return sql`id IN (SELECT session FROM effect_agent_session_entry WHERE type = 'run' AND ${isThere})`
}

/** A condition for rows of some types. That for labels is the condition of their index. */
const wanted = (sql: SqlClient.SqlClient, only: ReadonlyArray<string> | undefined): Statement.Fragment => {
  if (only === undefined) return sql.literal("type NOT LIKE 'log:%'")
  return only.length === 1 && only[0] === "label" ? sql.literal("type = 'label'") : sql.in("type", only)
}

/** The lines that end in these rows, and the parts of one that does not. */
export const joined = (
  begun: ReadonlyArray<string>,
  rows: ReadonlyArray<Pick<Stored, "continues" | "text">>
): readonly [ReadonlyArray<string>, ReadonlyArray<string>] => {
  const lines: Array<string> = []
  let parts = [...begun]
  for (const { continues, text } of rows) {
    parts.push(text)
    if (continues === 1) continue
    lines.push(parts.join(""))
    parts = []
  }
  return [lines, parts]
}
