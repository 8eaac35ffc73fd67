import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { ArtifactStore } from "effect-agent/artifacts"

export const artifact = (id: string, text: string): ArtifactStore.Artifact => ({
  id,
  runId: "run_1",
  toolCallId: "call_1",
  toolName: "log",
  mediaType: "text/plain",
  text
})

/** What every store of artifacts promises. */
export const contract = (name: string, layer: Layer.Layer<ArtifactStore.ArtifactStore, unknown>) =>
  describe(name, () => {
    it.effect("returns what was put, whatever its characters", () =>
      Effect.gen(function* () {
        const store = yield* ArtifactStore.ArtifactStore
        const kept = {
          ...artifact("a-1_B", "a\u0000b \u2028 🎉 \ud800 \"'\\\r\n"),
          trust: "untrusted" as const
        }
        yield* store.put(kept)
        assert.deepStrictEqual(yield* store.get("a-1_B"), kept)
        yield* store.put(artifact("a-1_B", "again"))
        assert.strictEqual((yield* store.get("a-1_B")).text, "again")
      }).pipe(Effect.provide(layer))
    )

    it.effect("removes an artifact, and none for another id", () =>
      Effect.gen(function* () {
        const store = yield* ArtifactStore.ArtifactStore
        yield* store.put(artifact("r-1", "text"))
        yield* store.put(artifact("r-2", "text"))
        for (const id of ["r-1", "r-1", "", "../r-2", "r-2.json", "a\u0000"]) yield* store.remove(id)
        assert.strictEqual((yield* Effect.flip(store.get("r-1")))._tag, "ArtifactNotFound")
        assert.strictEqual((yield* store.get("r-2")).text, "text")
      }).pipe(Effect.provide(layer))
    )

    it.effect("fails for ids that it does not have, whatever they look like", () =>
      Effect.gen(function* () {
        const store = yield* ArtifactStore.ArtifactStore
        yield* store.put(artifact("a", "text"))
        for (const id of [
          "b",
          "",
          "../a",
          "a/../a",
          "a.json",
          ".a",
          "a\u0000",
          "/etc/passwd",
          "x".repeat(5_000)
        ]) {
          const error = yield* Effect.flip(store.get(id))
          assert.strictEqual(error._tag, "ArtifactNotFound")
        }
      }).pipe(Effect.provide(layer))
    )
  })
