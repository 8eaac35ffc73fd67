import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { ArtifactStore, SqlArtifactStore } from "effect-agent/artifacts"
import { client, connect } from "../sql/databases.ts"
import { onEach } from "../sql/suites.ts"
import { artifact, contract } from "./contract.ts"

onEach((name, make) => {
  const layer = Layer.unwrap(Effect.map(make, (url) => Layer.provide(SqlArtifactStore.layer, client(url))))
  contract(name, layer)

  it.live("keeps large texts, and replaces them", () =>
    Effect.gen(function* () {
      const store = yield* ArtifactStore.ArtifactStore
      // Characters of two code units, one off from the length of a part, and more than PostgreSQL's client takes as one message.
      const large = artifact("a", `x${"😀".repeat(5_000_000)}`)
      yield* store.put(large)
      assert.isTrue((yield* store.get("a")).text === large.text)
      yield* store.put(artifact("a", "small"))
      yield* store.put(artifact("b", "other"))
      assert.strictEqual((yield* store.get("a")).text, "small")
      assert.strictEqual((yield* store.get("b")).text, "other")
    }).pipe(Effect.provide(layer))
  )

  it.live("keeps texts for stores that begin at one time, and after them", () =>
    Effect.gen(function* () {
      const context = yield* connect(yield* make)
      const use = <A, E>(effect: Effect.Effect<A, E, ArtifactStore.ArtifactStore>) =>
        Effect.provideContext(Effect.provide(effect, SqlArtifactStore.layer), context)
      const put = (id: string) => use(ArtifactStore.ArtifactStore.use((store) => store.put(artifact(id, id))))
      yield* Effect.forEach(["a", "b", "c", "a"], put, { concurrency: "unbounded" })
      const text = yield* use(ArtifactStore.ArtifactStore.use((store) => store.get("c")))
      assert.strictEqual(text.text, "c")
    })
  )

  it.live("says why it failed", () =>
    Effect.gen(function* () {
      const context = yield* connect(yield* make)
      const store = yield* Effect.provideContext(
        Effect.provide(ArtifactStore.ArtifactStore, SqlArtifactStore.layer),
        context
      )
      const sql = yield* Effect.provideContext(SqlClient.SqlClient, context)
      yield* sql`INSERT INTO effect_agent_artifact (id, part, created, text) VALUES ('broken', 0, 0, '{')`
      const broken = yield* Effect.flip(store.get("broken"))
      assert.strictEqual(
        broken.message,
        "Artifact broken could not be read: its rows do not hold an artifact"
      )
      yield* sql`DROP TABLE effect_agent_artifact`
      const missing = yield* Effect.flip(store.put(artifact("a", "text")))
      assert.match(missing.message, /^Artifact a could not be stored: .*effect_agent_artifact/)
    })
  )
})
