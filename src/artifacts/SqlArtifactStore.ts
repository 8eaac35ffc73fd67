/**
 * Keeps artifacts in an SQL database: SQLite, or PostgreSQL.
 *
 * @since 0.2.0
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { Artifact, ArtifactNotFound, ArtifactStore, ArtifactStoreFailed } from "./ArtifactStore.ts"

const table = "effect_agent_artifact"
const migrations = `${table}_migrations`

/** Version 1. A row is a part of the JSON of an artifact, because clients of PostgreSQL refuse messages of 16 MiB. */
const create = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`CREATE TABLE ${sql(table)} (
    id TEXT NOT NULL,
    part INTEGER NOT NULL,
    created BIGINT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (id, part)
  )`
)

/** The steps from one version to the next. A new version adds a line here, and its statements to `test/artifacts/SqlTables.slow.test.ts`. */
const versions: Record<string, Effect.Effect<void, unknown, SqlClient.SqlClient>> = {
  "1_artifacts": Effect.asVoid(create)
}
const latest = Object.keys(versions).length

/** Brings the table to the version that this version of the package uses. Fails if a later one has changed it. */
const migrate = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Migrator.make({})({ loader: Migrator.fromRecord(versions), table: migrations })
  const [row] = yield* sql`SELECT max(migration_id) FROM ${sql(migrations)}`.values
  const found = Number(row?.[0])
  if (found > latest) {
    const message = `The table of artifacts has version ${found}. This version of effect-agent knows it up to ${latest}`
    return yield* new Migrator.MigrationError({ kind: "BadState", message })
  }
})

/**
 * Keeps each artifact as rows of a table in the SQL database of the context.
 *
 * **Details**
 *
 * The store uses the `SqlClient` of `effect/sql`: that of `effect-agent/node/NodeSqlite`, or of `PgClient` of `@effect/sql-pg`. It
 * makes its table `effect_agent_artifact`, and brings an older one to its version. The layer fails with `MigrationError` for a table of a
 * later version. `put` is one transaction. `put` and `get` wait for up to 30 seconds for a database that is away. `created` of a
 * row is the time of the last `put`, in milliseconds since the epoch. `Retention` of `effect-agent/durable` removes old artifacts that no
 * session names; nothing else does.
 *
 * **Example** (Keeping artifacts in SQLite)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { ArtifactStore, SqlArtifactStore } from "effect-agent/artifacts"
 * import * as NodeSqlite from "effect-agent/node/NodeSqlite"
 *
 * const artifacts = SqlArtifactStore.layer.pipe(Layer.provide(NodeSqlite.layer({ filename: ":memory:" })))
 *
 * const program = Effect.gen(function* () {
 *   const store = yield* ArtifactStore.ArtifactStore
 *   const call = { runId: "run_1", toolCallId: "call_1", toolName: "log", mediaType: "text/plain" }
 *   yield* store.put({ id: "log-1", ...call, text: "all is well" })
 *   return (yield* store.get("log-1")).text
 * }).pipe(Effect.provide(artifacts))
 *
 * console.log(await Effect.runPromise(program)) // => all is well
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer: Layer.Layer<ArtifactStore, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =
  Layer.effect(
    ArtifactStore,
    Effect.gen(function* () {
      // An application may transform the names of its own tables.
      const sql = (yield* SqlClient.SqlClient).withoutTransforms()
      yield* Effect.provideService(migrate, SqlClient.SqlClient, sql)
      return {
        put: (artifact) =>
          isSafe(artifact.id)
            ? Effect.mapError(put(sql, artifact), (error) => failed("put", artifact.id, error))
            : Effect.fail(unsafe(artifact.id)),
        get: (id) =>
          isSafe(id)
            ? Effect.mapError(get(sql, id), (error) =>
                error._tag === "ArtifactNotFound" ? error : failed("get", id, error)
              )
            : Effect.fail(new ArtifactNotFound({ artifactId: id })),
        remove: (id) =>
          isSafe(id)
            ? Effect.mapError(sql`DELETE FROM ${sql(table)} WHERE id = ${id}`, (error) =>
                failed("remove", id, error)
              )
            : Effect.void
      }
    })
  )

const json = Schema.fromJsonString(Artifact)
const encode = Schema.encodeEffect(json)
const decode = Schema.decodeEffect(json)

/** The parts of a text: by code points, so that none ends within a pair of surrogates. */
const partsOf = (text: string): ReadonlyArray<string> => text.match(/[^]{1,200000}/gu) ?? []

/** Parts in one statement. */
const maxInsert = 20

const put = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, artifact: Artifact) {
  const { id } = artifact
  const created = yield* Clock.currentTimeMillis
  const rows = partsOf(yield* encode(artifact)).map((text, part) => ({ id, part, created, text }))
  const stored = sql.withTransaction(
    Effect.andThen(
      Effect.forEach(
        Arr.chunksOf(rows, maxInsert),
        (chunk) => sql`INSERT INTO ${sql(table)} ${sql.insert(chunk)}
          ON CONFLICT (id, part) DO UPDATE SET text = excluded.text, created = excluded.created`,
        { discard: true }
      ),
      sql`DELETE FROM ${sql(table)} WHERE id = ${id} AND part >= ${rows.length}`
    )
  )
  yield* waiting(stored)
})

/**
 * Waits for a database that is away: to put twice is to put once. Effect 4.1 makes a defect of a transaction whose connection is lost,
 * which `test/server/SqlFaults.slow.test.ts` watches.
 */
const waiting = <A, E>(effect: Effect.Effect<A, E | SqlError>) =>
  effect.pipe(
    Effect.catchDefect((defect) => (isSqlError(defect) ? Effect.fail(defect) : Effect.die(defect))),
    Effect.retry({ while: (error) => isSqlError(error) && isAway(error), schedule: pace })
  )

const pace = Schedule.upTo(Schedule.spaced("200 millis"), { duration: "30 seconds" })

/** A lost connection, and a PostgreSQL that ends or starts. */
const isAway = ({ isRetryable, reason: { cause } }: SqlError): boolean =>
  isRetryable || (Predicate.hasProperty(cause, "code") && String(cause.code).startsWith("57P"))

const get = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, id: string) {
  const rows = yield* waiting(
    sql<{
      readonly text: string
    }>`SELECT text FROM ${sql(table)} WHERE id = ${id} ORDER BY part`
  )
  if (rows.length === 0) return yield* new ArtifactNotFound({ artifactId: id })
  return yield* decode(rows.map(({ text }) => text).join(""))
})

/** A model writes ids, and PostgreSQL takes no text with U+0000. */
const isSafe = (id: string): boolean => /^[\w-]{1,100}$/.test(id)

const unsafe = (artifactId: string) =>
  new ArtifactStoreFailed({
    operation: "put",
    artifactId,
    detail: "an id has 1 to 100 letters, digits, _ and -"
  })

const failed = (
  operation: ArtifactStoreFailed["operation"],
  artifactId: string,
  error: SqlError | Schema.SchemaError
) => {
  const detail = error._tag === "SqlError" ? messageOf(error) : "its rows do not hold an artifact"
  return new ArtifactStoreFailed({ operation, artifactId, detail })
}

const messageOf = ({ message, reason: { cause } }: SqlError): string =>
  cause instanceof Error ? cause.message : message

/** @internal The ids that `LargeResults` makes. */
export const made = /\bartifact_[\w-]+/g

/** @internal The artifacts of `LargeResults` that were stored before a time; none if the database has no artifacts. */
export const storedBefore = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, time: number) {
  const isThere = sql.onDialectOrElse({
    pg: () => sql`SELECT 1 WHERE to_regclass(${table}) IS NOT NULL`,
    orElse: () => sql`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ${table}`
  })
  if ((yield* isThere).length === 0) return []
  const rows = yield* sql<{
    readonly id: string
    readonly created: number | bigint
  }>`SELECT id, created FROM ${sql(table)} WHERE part = 0 AND created < ${time}`
  return rows.flatMap(({ created, id }) =>
    id.startsWith("artifact_") ? [{ id, created: Number(created) }] : []
  )
})

/** @internal */
export const removeAll = (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) =>
  Effect.forEach(
    Arr.chunksOf(ids, 200),
    (chunk) => sql`DELETE FROM ${sql(table)} WHERE ${sql.in("id", chunk)}`,
    { discard: true }
  )
