/** The storages of sessions, by URLs that any process can open: `jsonl:FOLDER`, `sqlite:FILE` and `postgres://…`. */
import { NodeServices } from "@effect/platform-node"
import { Effect, type Scope } from "effect"
import { JsonlSessionStore, type SessionStorage, SqlSessionStore } from "effect-agent/sessions"
import { connect } from "../../../test/sql/databases.ts"

/** Opens a storage until the scope closes. */
export const open = (url: string): Effect.Effect<SessionStorage.SessionStorage, unknown, Scope.Scope> =>
  url.startsWith("jsonl:")
    ? Effect.provide(JsonlSessionStore.storage({ directory: url.slice("jsonl:".length) }), NodeServices.layer)
    : Effect.flatMap(connect(url), (context) => Effect.provide(SqlSessionStore.storage, context))
