/** Keeps versions of files, and the records of what calls have changed, as rows of the database of the sessions. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { KeepFailed, type KeptStore } from "./KeptStore.ts"

const records = "effect_agent_file_change"
const contents = "effect_agent_file_content"

const detailOf = ({ message, reason: { cause } }: SqlError): string =>
  cause instanceof Error ? cause.message : message

const failing = <A>(effect: Effect.Effect<A, SqlError>): Effect.Effect<A, KeepFailed> =>
  Effect.mapError(effect, (error) => new KeepFailed({ detail: detailOf(error) }))

/** The parts of a text: clients of PostgreSQL refuse messages of 16 MiB. */
const partsOf = (text: string): ReadonlyArray<string> => text.match(/[^]{1,200000}/gu) ?? [""]

/** Makes the store of a session, and the tables if there are none. */
export const inTables = Effect.fnUntraced(function* (client: SqlClient.SqlClient, sessionId: string) {
  const sql = client.withoutTransforms()
  yield* failing(
    Effect.andThen(
      sql`CREATE TABLE IF NOT EXISTS ${sql(records)} (
        session_id TEXT NOT NULL, position BIGINT NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (session_id, position, part))`,
      sql`CREATE TABLE IF NOT EXISTS ${sql(contents)} (
        session_id TEXT NOT NULL, hash TEXT NOT NULL, part INTEGER NOT NULL, size BIGINT NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (session_id, hash, part))`
    )
  )
  const ofHash = (hash: string) => sql`session_id = ${sessionId} AND hash = ${hash}`
  const insert = (table: string, rows: ReadonlyArray<Record<string, string | number>>) =>
    sql.withTransaction(
      Effect.forEach(Arr.chunksOf(rows, 20), (chunk) => sql`INSERT INTO ${sql(table)} ${sql.insert(chunk)}`, {
        discard: true
      })
    )
  const store: KeptStore = {
    lines: failing(
      sql<{
        readonly position: number | bigint
        readonly text: string
      }>`SELECT position, text FROM ${sql(records)} WHERE session_id = ${sessionId} ORDER BY position, part`
    ).pipe(
      Effect.map((rows) => {
        const lines = new Map<string, string>()
        for (const { position, text } of rows)
          lines.set(String(position), (lines.get(String(position)) ?? "") + text)
        return [...lines.values()]
      })
    ),
    append: (text) =>
      failing(
        Effect.gen(function* () {
          const [row] = yield* sql<{
            readonly next: number | bigint
          }>`SELECT COALESCE(MAX(position), 0) + 1 AS next FROM ${sql(records)} WHERE session_id = ${sessionId}`
          const position = Number(row?.next ?? 1)
          const rows = partsOf(text).map((text, part) => ({ session_id: sessionId, position, part, text }))
          yield* insert(records, rows)
        })
      ),
    sizes: failing(
      sql<{
        readonly hash: string
        readonly size: number | bigint
      }>`SELECT hash, size FROM ${sql(contents)} WHERE session_id = ${sessionId} AND part = 0`
    ).pipe(Effect.map((rows) => new Map(rows.map(({ hash, size }) => [hash, Number(size)])))),
    put: (hash, content) => {
      const text = Buffer.from(content).toString("base64")
      const size = content.length
      const rows = partsOf(text).map((text, part) => ({ session_id: sessionId, hash, part, size, text }))
      return failing(
        sql.withTransaction(
          Effect.andThen(sql`DELETE FROM ${sql(contents)} WHERE ${ofHash(hash)}`, insert(contents, rows))
        )
      )
    },
    get: (hash) =>
      failing(
        sql<{ readonly text: string }>`SELECT text FROM ${sql(contents)} WHERE ${ofHash(hash)} ORDER BY part`
      ).pipe(
        Effect.map((rows) => Buffer.from(rows.map(({ text }) => text).join(""), "base64")),
        Effect.map((bytes) => new Uint8Array(bytes))
      ),
    drop: (hash) => failing(Effect.asVoid(sql`DELETE FROM ${sql(contents)} WHERE ${ofHash(hash)}`))
  }
  return store
})

/** Whether there are records of a session; not if the tables are not there. */
export const has = (sql: SqlClient.SqlClient, sessionId: string): Effect.Effect<boolean> =>
  sql.withoutTransforms()`SELECT 1 FROM ${sql(records)} WHERE session_id = ${sessionId} LIMIT 1`.pipe(
    Effect.map((rows) => rows.length > 0),
    Effect.orElseSucceed(() => false)
  )

/** Removes the versions of a session. */
export const remove = (client: SqlClient.SqlClient, sessionId: string): Effect.Effect<void> => {
  const sql = client.withoutTransforms()
  const all = Effect.forEach(
    [records, contents],
    (table) => sql`DELETE FROM ${sql(table)} WHERE session_id = ${sessionId}`,
    { discard: true }
  )
  return Effect.flatMap(has(client, sessionId), (isThere) =>
    isThere ? Effect.ignore(all, { log: "Warn" }) : Effect.void
  )
}
