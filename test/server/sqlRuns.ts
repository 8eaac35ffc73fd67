/** Stores of sessions and of the logs of their runs in one database, as processes of their own have them. */
import { Context, type Duration, Effect, Layer } from "effect"
import { RunLogStore, SqlRunLogStore } from "effect-agent/server"
import { SessionStore, SqlSessionStore } from "effect-agent/sessions"
import { SqlClient } from "effect/sql"
import { client } from "../sql/databases.ts"

/** The stores of a process, which takes sessions over. */
export const processOf = (url: string, patience: Duration.Input = 0) =>
  Effect.map(
    Layer.build(
      SqlRunLogStore.layer({ patience }).pipe(
        Layer.provideMerge(SqlSessionStore.layer({ takeOver: true, patience })),
        Layer.provideMerge(client(url))
      )
    ),
    (context) => ({
      context,
      logs: Context.get(context, RunLogStore.RunLogStore),
      sessions: Context.get(context, SessionStore.SessionStore),
      sql: Context.get(context, SqlClient.SqlClient)
    })
  )
