/**
 * SQL clients for stores: SQLite over `node:sqlite`.
 *
 * Stores of this package need a `SqlClient` of `effect/sql`. `NodeSqlite` provides one for a file, `PgClient` of `@effect/sql-pg` one for
 * PostgreSQL.
 *
 * @since 0.2.0
 */
export * as NodeSqlite from "./NodeSqlite.ts"
