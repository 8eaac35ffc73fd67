/** The stores of durable runs, as an application composes them. */
import { PgClient } from "@effect/sql-pg"
import { Layer, Redacted } from "effect"
import { SqlRunLogStore } from "effect-agent/server"
import { SqlSessionStore } from "effect-agent/sessions"
import * as NodeSqlite from "effect-agent/node/NodeSqlite"

const database = (url: string) =>
  url.startsWith("sqlite:")
    ? NodeSqlite.layer({ filename: url.slice("sqlite:".length) })
    : PgClient.layer({
        url: Redacted.make(url),
        maxConnections: 10,
        startupParameters: { timezone: "UTC" }
      })

/** The stores in a database, `sqlite:FILE` or `postgres://…`. They wait for one that is away. */
export const layer = (url: string) =>
  SqlRunLogStore.layer({ patience: "2 minutes" }).pipe(
    Layer.provideMerge(SqlSessionStore.layer({ takeOver: true, patience: "2 minutes" })),
    Layer.provideMerge(database(url))
  )
