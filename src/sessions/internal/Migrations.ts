/**
 * The versions of the entries of a session, and the way from an older version to the next one.
 */
import type { JsonObject } from "../../internal/json.ts"

/** The version of the entries that this version of the package writes. */
export const version = 1

/** Makes an entry of version `n + 1` of one of version `n`, for each older version `n`. */
export type Migrations = Readonly<Record<number, (entry: JsonObject) => JsonObject>>

/** A new version adds a line here, and a file to `test/sessions/versions`. */
const migrations: Migrations = {}

/** Makes an entry of the current version of an older one. An entry without a way to the current version stays as it is. */
export const upgrade = (entry: JsonObject, table: Migrations = migrations): JsonObject => {
  const { v } = entry
  const next = typeof v === "number" ? table[v] : undefined
  return next === undefined ? entry : upgrade(next(entry), table)
}
