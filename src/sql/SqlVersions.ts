/**
 * The versions of tables in an SQL database.
 */
import * as Effect from "effect/Effect"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

interface Tables {
  /** The table that has the version. */
  readonly table: string
  /** The steps from one version to the next. */
  readonly versions: Readonly<Record<string, Effect.Effect<void, unknown, SqlClient.SqlClient>>>
  /** The words for tables of a version behind the last one that this version of the package knows. */
  readonly tooNew: (found: number, latest: number) => string
}

/** Brings tables to the version that this version of the package uses. Fails if a later one has changed them. */
export const migrate = ({
  table,
  tooNew,
  versions
}: Tables): Effect.Effect<void, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* Migrator.make({})({ loader: Migrator.fromRecord(versions), table })
    const [row] = yield* sql`SELECT max(migration_id) FROM ${sql(table)}`.values
    const found = Number(row?.[0])
    const latest = Object.keys(versions).length
    if (found > latest)
      return yield* new Migrator.MigrationError({ kind: "BadState", message: tooNew(found, latest) })
  })
