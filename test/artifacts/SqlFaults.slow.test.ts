import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Scope, Exit } from "effect"
import { ArtifactStore, SqlArtifactStore } from "effect-agent/artifacts"
import * as Cuts from "../sql/cuts.ts"
import { client, postgres } from "../sql/databases.ts"
import * as Postgres from "../sql/postgres.ts"

const storeAt = (url: string) =>
  Effect.map(Layer.build(Layer.provide(SqlArtifactStore.layer, client(url))), (context) =>
    Context.get(context, ArtifactStore.ArtifactStore)
  )

describe.skipIf(!Postgres.isInstalled)("artifacts in a PostgreSQL that fails", () => {
  it.live(
    "are put and got while connections are cut and the server starts again",
    () =>
      Effect.gen(function* () {
        const server = yield* Postgres.start
        const url = yield* postgres(server)
        const network = yield* Cuts.to(url, 5)
        const scope = yield* Scope.make()
        const store = yield* Scope.provide(storeAt(network.url), scope)
        network.setShare(0.05)
        const call = { runId: "r", toolCallId: "c", toolName: "t", mediaType: "text/plain" }
        const textOf = (n: number) => `${n} `.repeat(60_000 * (n % 4) + 1)
        for (let n = 0; n < 30; n++) {
          if (n === 15) yield* Effect.forkChild(server.restart("300 millis"))
          yield* store.put({ id: `a${n}`, ...call, text: textOf(n) })
          assert.isTrue((yield* store.get(`a${n}`)).text === textOf(n))
        }
        network.setShare(0)
        assert.isAbove(network.cuts(), 3)
        yield* Scope.close(scope, Exit.void)
        const again = yield* storeAt(url)
        for (let n = 0; n < 30; n++) assert.isTrue((yield* again.get(`a${n}`)).text === textOf(n))
      }),
    60_000
  )
})
