/** Opens the versions of a session, in a folder or in a database. The program loads this module and those that it uses with the first change. */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import * as FileKeeper from "./FileKeeper.ts"
import * as KeptRows from "./KeptRows.ts"
import * as KeptStore from "./KeptStore.ts"

export { has, remove } from "./KeptRows.ts"

export const openFolder = (path: string, limits?: FileKeeper.Limits) =>
  Effect.flatMap(KeptStore.inFolder(path), (store) => FileKeeper.open(store, limits))

export const openTables = (sql: SqlClient.SqlClient, sessionId: string, limits?: FileKeeper.Limits) =>
  Effect.flatMap(KeptRows.inTables(sql, sessionId), (store) => FileKeeper.open(store, limits))
