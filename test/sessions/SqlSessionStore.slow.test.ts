import { Effect } from "effect"
import { SqlSessionStore } from "effect-agent/sessions"
import { connect } from "../sql/databases.ts"
import { onEach } from "../sql/suites.ts"
import { contract } from "./contract.ts"

onEach((name, make) =>
  contract({
    name,
    storage: Effect.gen(function* () {
      return yield* Effect.provide(SqlSessionStore.storage, yield* connect(yield* make))
    })
  })
)
